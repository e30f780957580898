import { InvalidArgumentError, type Command } from 'commander';
import { objectAt, stringAt, textsAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import { ApiError } from '../api-client.ts';
import { CliFailure, EXIT, notFound } from '../exit.ts';
import type { NamedKind } from '../resources/kind-names.ts';
import { changedMap, splitChanges, type MapChange } from '../resources/map-changes.ts';
import { nameOf, noSuch, onlyOne, type ResourceApi } from '../resources/resource-api.ts';
import { targetsOf, wholeNumber, withScope, type ResourceContext, type Scope } from './resource-context.ts';

type ChangeOptions = Scope & { readonly dryRun: boolean };

/** How often a change starts over because its object changed between the look and the write. */
const ROUNDS = 5;

/** `ledgerctl label` and `annotate`: entries of one map set and removed, all others kept. */
export const addMapCommands = (program: Command, context: ResourceContext): void => {
  for (const [verb, field, one] of [
    ['label', 'labels', 'env=prod'],
    ['annotate', 'annotations', 'owner=alice@example.com'],
  ] as const)
    withScope(
      program
        .command(verb)
        .description(`set and remove ${field}: key=value sets, key- removes`)
        .argument('<kind>', 'a kind, see `ledgerctl kinds`; or kind/name')
        .argument('<arguments...>', 'ids or names, then the changes')
        .option('--dry-run', 'show what would be done, but change nothing', false)
        .addHelpText(
          'after',
          `\nExamples:\n  ledgerctl ${verb} cluster web ${one}\n  ledgerctl ${verb} cluster web db ${one} old-\n`,
        ),
    ).action(async (kind: string, args: string[], options: ChangeOptions) => {
      const slash = kind.includes('/');
      const { names, changes } = splitChanges(slash ? [kind, ...args] : args);
      const api = await context.open(options);
      for (const target of targetsOf(context.names, slash ? names : [kind, ...names]))
        for (const object of await allOf(api, target.kind, target.names)) {
          const changed = await changeMap(context, api, target.kind, object, field, changes, options);
          const done = changed ? PAST[verb] : 'unchanged';
          context.io.out(`${nameOf(target.kind, object)} ${done}${options.dryRun ? ' (dry run)' : ''}\n`);
        }
    });
};

const PAST = { label: 'labelled', annotate: 'annotated' } as const;

/** Every object that is named, before any is touched. Throws CliFailure. */
const allOf = async (api: ResourceApi, kind: NamedKind, names: readonly string[]): Promise<JsonObject[]> => {
  const { objects } = await api.find(kind, names);
  return names.map((name) => onlyOne(kind, name, objects));
};

/**
 * The service replaces a map that is named whole (OSAC), so the write names the state that was read, and
 * begins again when it is no longer the newest: labels that others set at the same time are kept.
 */
const changeMap = async (
  { newKey }: ResourceContext,
  api: ResourceApi,
  kind: NamedKind,
  object: JsonObject,
  field: 'labels' | 'annotations',
  changes: readonly MapChange[],
  { dryRun }: ChangeOptions,
): Promise<boolean> => {
  const id = stringAt(object, 'id');
  for (let round = 1; ; round += 1) {
    const current = await api.read(kind, id);
    if (current === undefined) throw notFound(noSuch(kind, [id]));
    const map = changedMap(textsAt(objectAt(current.object, 'metadata'), field), changes);
    if (map === undefined) return false;
    try {
      const tag = current.etag === undefined ? {} : { ifMatch: current.etag };
      await api.update(kind, id, { metadata: { [field]: map } }, { key: newKey(), dryRun, ...tag });
      return true;
    } catch (error) {
      const stale = error instanceof ApiError && error.status === 412;
      if (!stale || round === ROUNDS) throw error;
    }
  }
};

/** `ledgerctl scale`: sizes of a cluster's node sets, and nothing else of it. */
export const addScaleCommand = (program: Command, context: ResourceContext): void => {
  withScope(
    program
      .command('scale')
      .description('set how many nodes a node set of a cluster has')
      .argument('<kind>', 'cluster; or cluster/name')
      .argument('<arguments...>', 'id or name, then <node set>=<nodes>')
      .option('--dry-run', 'check it, but change nothing', false)
      .addHelpText(
        'after',
        '\nExamples:\n  ledgerctl scale cluster web workers=5\n  ledgerctl scale cluster web workers=5 gpu=0\n',
      ),
  ).action(async (kindText: string, args: string[], options: ChangeOptions) => {
    const slash = kindText.includes('/');
    const { names, changes } = splitChanges(slash ? [kindText, ...args] : args, SCALE_USAGE);
    const sizes = changes.map(sizeOf);
    const [
      {
        kind,
        names: [name],
      } = missing(),
      ...more
    ] = targetsOf(context.names, slash ? names : [kindText, ...names]);
    if (kind.kind.kind !== 'cluster') throw new InvalidArgumentError(`a ${kind.kind.words} has no node sets`);
    if (name === undefined || names.length > 1 || more.length > 0) return missing();
    const api = await context.open(options);
    const cluster = await api.one(kind, name);
    const there = Object.keys(objectAt(objectAt(cluster, 'spec'), 'node_sets'));
    const unknown = sizes.find(({ set }) => !there.includes(set));
    if (unknown !== undefined)
      throw new CliFailure(
        EXIT.notFoundOrConflict,
        `${nameOf(kind, cluster)} has no node set '${unknown.set}'; it has ${there.join(', ')}`,
      );
    const body = { spec: { node_sets: Object.fromEntries(sizes.map(({ set, size }) => [set, { size }])) } };
    const mask = sizes.map(({ set }) => `spec.node_sets.${set}.size`);
    const { dryRun } = options;
    await api.update(kind, stringAt(cluster, 'id'), body, { key: context.newKey(), dryRun, mask });
    const done = sizes.map(({ set, size }) => `${set}=${size}`).join(' ');
    context.io.out(`${nameOf(kind, cluster)} scaled: ${done}${dryRun ? ' (dry run)' : ''}\n`);
  });
};

const SCALE_USAGE = {
  changes: 'say which node set gets how many nodes, for example workers=3',
  names: 'give the id or name of the cluster, for example: scale cluster web workers=3',
};

const missing = (): never => {
  throw new InvalidArgumentError(
    'give one cluster and <node set>=<nodes>, for example: cluster web workers=3',
  );
};

const sizeOf = ({ key, value = '' }: MapChange): { readonly set: string; readonly size: number } => ({
  set: key,
  size: wholeNumber(value),
});
