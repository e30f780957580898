import type { Command } from 'commander';
import { stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { CliFailure, EXIT, exitStatusOf, notFound } from '../exit.ts';
import { parseDuration } from '../output.ts';
import type { NamedKind } from '../resources/kind-names.ts';
import { nameOf, noSuch, onlyOne, type ResourceApi } from '../resources/resource-api.ts';
import { targetsOf, withScope, type ResourceContext, type Scope, type Targets } from './resource-context.ts';

type DeleteOptions = Scope & {
  readonly wait: boolean;
  readonly waitTimeout: number;
  readonly ignoreNotFound: boolean;
  readonly dryRun: boolean;
};

type Victim = { readonly kind: NamedKind; readonly object: JsonObject };

const EXAMPLES = `
Nothing is deleted unless every id or name is found, and only once. Then one after the other: it ends at the first that
the service refuses, for example because something refers to it, and says which were not tried.

Examples:
  ledgerctl delete cluster web
  ledgerctl delete cluster web db --wait --wait-timeout 20m
  ledgerctl get clusters --filter 'this.metadata.labels["env"] == "test"' -o name | xargs ledgerctl delete
`;

/** `ledgerctl delete`: objects by id or name; says of each what became of it. */
export const addDeleteCommand = (program: Command, context: ResourceContext): void => {
  withScope(
    program
      .command('delete')
      .description('delete objects by id or name')
      .argument('<kind>', 'a kind, see `ledgerctl kinds`; or kind/name')
      .argument('[name...]', 'ids or names')
      .option('--wait', 'until they are gone, not only marked', false)
      .option('--wait-timeout <time>', 'how long --wait waits for each', parseDuration, 600)
      .option('--dry-run', 'say whether they could be deleted, but delete nothing', false)
      .option('--ignore-not-found', 'do not fail for absent objects', false)
      .addHelpText('after', EXAMPLES),
  ).action(async (kind: string, names: string[], options: DeleteOptions) => {
    const targets = targetsOf(context.names, [kind, ...names]);
    const api = await context.open(options);
    const victims = await victimsOf(api, targets, options);
    for (const [i, victim] of victims.entries())
      await remove(context, api, victim, options.dryRun).catch((error: unknown) => {
        throw victims.length === 1 ? error : stopped(error, victims, i);
      });
    if (options.wait && !options.dryRun)
      for (const victim of victims) await untilGone(context, api, victim, options.waitTimeout);
  });
};

const victimsOf = async (
  api: ResourceApi,
  targets: readonly Targets[],
  { ignoreNotFound }: DeleteOptions,
): Promise<readonly Victim[]> => {
  const victims: Victim[] = [];
  for (const { kind, names } of targets) {
    if (names.length === 0) throw new CliFailure(EXIT.usage, 'give the ids or names of what to delete');
    const { objects, missing, deleted } = await api.find(kind, names);
    for (const name of names)
      if (!missing.includes(name)) victims.push({ kind, object: onlyOne(kind, name, objects) });
    if (missing.length > 0 && !ignoreNotFound)
      throw notFound(`${noSuch(kind, missing, deleted)}; nothing was deleted`);
  }
  const ids = new Set<string>();
  return victims.filter(({ kind, object }) => {
    const id = `${kind.singular}/${stringAt(object, 'id')}`;
    return !ids.has(id) && ids.add(id);
  });
};

/** What was deleted before is on stdout; what was not is said here. */
const stopped = (error: unknown, victims: readonly Victim[], at: number): CliFailure => {
  const [failed, ...rest] = victims.slice(at).map(({ kind, object }) => nameOf(kind, object));
  const untouched = rest.length === 0 ? '' : `\n  not tried: ${rest.join(', ')}`;
  const message = error instanceof Error ? error.message : String(error);
  return new CliFailure(exitStatusOf(error), `${failed} was not deleted: ${message}${untouched}`, {
    cause: error,
  });
};

const remove = async (
  { io, newKey }: ResourceContext,
  api: ResourceApi,
  { kind, object }: Victim,
  dryRun: boolean,
): Promise<void> => {
  await api.remove(kind, stringAt(object, 'id'), { key: newKey(), dryRun });
  io.out(`${nameOf(kind, object)} deleted${dryRun ? ' (dry run)' : ''}\n`);
};

const LOOK_MS = 500;

const untilGone = async (
  { io, pause, now }: ResourceContext,
  api: ResourceApi,
  { kind, object }: Victim,
  seconds: number,
): Promise<void> => {
  const deadline = now() + seconds * 1000;
  for (;;) {
    const left = await api.read(kind, stringAt(object, 'id'));
    if (left === undefined) break;
    if (now() >= deadline)
      throw new CliFailure(
        EXIT.failed,
        `${nameOf(kind, object)} is marked for deletion but not gone after ${seconds} s; ` +
          `\`ledgerctl describe ${nameOf(kind, object)}\` shows what it waits for`,
      );
    await pause(LOOK_MS);
  }
  io.out(`${nameOf(kind, object)} gone\n`);
};
