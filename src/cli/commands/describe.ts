import type { Command } from 'commander';
import { stringAt } from '../../domain/json-tools.ts';
import { describeText } from '../resources/describe-text.ts';
import { targetOf, wholeNumber, withScope, type ResourceContext, type Scope } from './resource-context.ts';

const EXAMPLES = `
Examples:
  ledgerctl describe cluster web
  ledgerctl describe cluster/web --timeline 50
  ledgerctl describe tenant acme --private
`;

/** `ledgerctl describe`: everything about one object, for a reader. */
export const addDescribeCommand = (program: Command, context: ResourceContext): void => {
  withScope(
    program
      .command('describe')
      .description(
        'show one object: creator and time, spec, status, conditions, and the last events of an order',
      )
      .argument('<kind>', 'a kind, see `ledgerctl kinds`; or kind/name')
      .argument('[name]', 'id or name')
      .option('--timeline <n>', 'entries of an order’s history', wholeNumber, LAST_ENTRIES)
      .addHelpText('after', EXAMPLES),
  ).action(async (kindText: string, nameText: string | undefined, options: Scope & { timeline: number }) => {
    const { kind, name } = targetOf(
      context.names,
      nameText === undefined ? [kindText] : [kindText, nameText],
    );
    const api = await context.open(options);
    const object = await api.one(kind, name);
    const timeline =
      kind.kind.acts === true && options.timeline > 0
        ? (await api.timeline(kind, stringAt(object, 'id'))).slice(-options.timeline)
        : [];
    context.io.out(`${describeText(kind, object, { now: context.now(), timeline })}\n`);
  });
};

const LAST_ENTRIES = 10;
