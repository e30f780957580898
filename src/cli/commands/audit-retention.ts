import { InvalidArgumentError, type Command } from 'commander';
import type { Erasure, Hold } from '../../http/audit/answers.ts';
import { queryText } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { addList, JSON_ANSWER } from '../audit/lists.ts';
import { jsonText, printable } from '../output.ts';
import { AUDIT } from './audit-events.ts';
import { repeatable } from './hub-paths.ts';

const ONE_SCOPE = 'one of --subject, --tenant and --all is required';

type HoldOptions = {
  readonly subject?: string;
  readonly tenant?: string;
  readonly all: boolean;
  readonly reason: string;
  readonly ticket?: string;
  readonly json: boolean;
};

type EraseOptions = {
  readonly tenant: string;
  readonly reason: string;
  readonly request?: string;
  readonly json: boolean;
};

/** `ledgerctl audit hold|release|holds|erase|erasures`: what must be kept, and whose data must go. */
export const addRetentionCommands = (audit: Command, connection: Connection): void => {
  addHoldCommands(audit, connection);
  addErasureCommands(audit, connection);
};

const addHoldCommands = (audit: Command, connection: Connection): void => {
  const { client, io } = connection;
  audit
    .command('hold')
    .description('place a legal hold: whose data it covers cannot be erased until it is released')
    .usage('(--subject <id> | --tenant <name> | --all) --reason <text> [options]')
    .option('--subject <id>', `the data of this subject (${ONE_SCOPE})`)
    .option('--tenant <name>', `the data of a tenant's people (${ONE_SCOPE})`)
    .option('--all', `everybody's data (${ONE_SCOPE})`, false)
    .requiredOption('--reason <text>', 'why; kept in the history')
    .option('--ticket <number>', 'number of the case in your own files')
    .option(...JSON_ANSWER)
    .addHelpText('after', examples('audit hold --tenant acme --reason "case 4711" --ticket L-4711'))
    .action(async ({ reason, ticket, json, ...of }: HoldOptions) => {
      const scope = scopeOf(of);
      const body = { scope, reason, ticket };
      const hold = await (await client()).send<Hold>('POST', `${AUDIT}/holds`, body, repeatable());
      io.out(json ? jsonText(hold) : `${hold.id}\n`);
    });
  audit
    .command('release')
    .description('release a legal hold')
    .argument('<hold>', 'id of the hold')
    .requiredOption('--reason <text>', 'why; kept in the history')
    .addHelpText(
      'after',
      examples('audit release 0190fdc2-bf52-71b8-8c36-977f348f4436 --reason "case closed"'),
    )
    .action(async (id: string, { reason }: { reason: string }) => {
      const path = `${AUDIT}/holds/${encodeURIComponent(id)}${queryText({ reason })}`;
      await (await client()).send('DELETE', path, undefined, repeatable());
      io.err(`hold ${id} is released\n`);
    });
  addList<Hold>(audit, connection, 'holds', 'legal holds that stand', {
    none: 'no legal hold stands',
    header: ['id', 'scope', 'placed', 'ticket', 'reason'],
    row: ({ id, scope, placed_at: at, ticket, reason }) => [
      id,
      scope.id === undefined ? scope.kind : `${scope.kind} ${scope.id}`,
      at,
      ticket,
      printable(reason),
    ],
  });
};

const addErasureCommands = (audit: Command, connection: Connection): void => {
  const { client, io } = connection;
  audit
    .command('erase')
    .description("destroy a person's key: their data becomes unreadable everywhere; this cannot be undone")
    .argument('<subject>', 'id of the subject (`metadata.creator`, the id of the User)')
    .requiredOption('--tenant <name>', 'tenant of the person')
    .requiredOption('--reason <text>', 'why; kept in the history')
    .option('--request <number>', "number of the person's request in your own files")
    .requiredOption('--yes', 'confirm')
    .option(...JSON_ANSWER)
    .addHelpText(
      'after',
      examples(
        'audit erase 5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1 --tenant acme --reason "asked for it" --request R-17 --yes',
      ),
    )
    .action(async (subject: string, options: EraseOptions) => {
      const body = {
        subject_id: subject,
        tenant: options.tenant,
        reason: options.reason,
        request_id: options.request,
      };
      const api = await client();
      const erasure = await api.send<Erasure>('POST', `${AUDIT}/erasures`, body, repeatable());
      io.out(options.json ? jsonText(erasure) : `${erasure.id}\n`);
      io.err(
        erasure.already === true
          ? `${alreadyText(erasure)}: nothing was left to do\n`
          : `erasure ${erasure.state}: the data of ${subject} cannot be read any more\n`,
      );
    });
  addList<Erasure>(audit, connection, 'erasures', 'all erasures, oldest first', {
    none: 'nobody was erased',
    header: ['id', 'state', 'subject', 'tenant', 'begun', 'by', 'request', 'reason'],
    row: (each) => [
      each.id,
      each.state,
      each.subject_id,
      each.tenant,
      each.begun_at,
      each.by,
      each.request_id,
      printable(each.reason),
    ],
  });
};

const alreadyText = ({ subject_id: subject, completed_at: at, by }: Erasure): string =>
  `the data of ${subject} was erased already${at === undefined ? '' : `, at ${at}`}${by === undefined ? '' : `, by ${by}`}`;

const scopeOf = ({ subject, tenant, all }: Pick<HoldOptions, 'subject' | 'tenant' | 'all'>): object => {
  const scopes = [
    ...(subject === undefined ? [] : [{ kind: 'subject', id: subject }]),
    ...(tenant === undefined ? [] : [{ kind: 'tenant', id: tenant }]),
    ...(all ? [{ kind: 'all' }] : []),
  ];
  const [scope, ...more] = scopes;
  if (scope === undefined || more.length > 0)
    throw new InvalidArgumentError('give one of --subject, --tenant and --all');
  return scope;
};
