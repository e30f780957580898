import { InvalidArgumentError, type Command } from 'commander';
import type { JsonObject } from '../../domain/json.ts';
import { examples } from '../examples.ts';
import { notFound } from '../exit.ts';
import { padded, table } from '../output.ts';
import { toYaml, typed } from '../resources/documents.ts';
import { nameOf, noSuch, type ResourceApi } from '../resources/resource-api.ts';
import { columnsFor, rowOf } from '../resources/table-view.ts';
import { watchChanges, type Change } from '../resources/watch.ts';
import {
  outputOption,
  painter,
  positive,
  printObjects,
  targetsOf,
  withScope,
  type Output,
  type ResourceContext,
  type Scope,
  type Targets,
} from './resource-context.ts';

type GetOptions = Scope & {
  readonly output?: Output;
  readonly filter?: string;
  readonly order?: string;
  readonly limit?: number;
  readonly watch: boolean;
  readonly headers: boolean;
};

const EXAMPLES = `
Examples:
  ledgerctl get clusters
  ledgerctl get cluster web -o yaml
  ledgerctl get clusters --filter 'this.status.state == CLUSTER_STATE_READY' --order 'metadata.name desc'
  ledgerctl get clusters --filter "this.metadata.labels['env'] == 'prod'" -o name
  ledgerctl get clusters --watch
  ledgerctl get hubs -o wide
`;

/** `ledgerctl get`: objects of one kind, all of them, in any form; live with --watch. */
export const addGetCommand = (program: Command, context: ResourceContext): void => {
  withScope(
    program
      .command('get')
      .description('list objects of a kind, or show those with these ids or names')
      .argument('<kind>', 'a kind, see `ledgerctl kinds`; or kind/name')
      .argument('[name...]', 'ids or names')
      .addOption(outputOption().default('table'))
      .option('--filter <cel>', 'only objects for which this holds')
      .option('--order <fields>', 'for example "metadata.name desc, id"')
      .option('--limit <n>', 'at most so many; default: all', positive)
      .option('-w, --watch', 'go on with every change until interrupted', false)
      .option('--no-headers', 'tables without their first line')
      .addHelpText('after', EXAMPLES),
  ).action(async (kind: string, names: string[], options: GetOptions) => {
    const targets = targetsOf(context.names, [kind, ...names]);
    const api = await context.open(options);
    if (options.watch) return watch(context, api, targets, options);
    for (const target of targets) await show(context, api, target, options);
  });
};

const show = async (
  context: ResourceContext,
  api: ResourceApi,
  { kind, names }: Targets,
  options: GetOptions,
): Promise<void> => {
  const { filter, order, limit, output = 'table' } = options;
  if (names.length > 0 && order !== undefined)
    throw new InvalidArgumentError('--order is for lists; named objects come as they are named');
  const query = {
    ...(filter === undefined ? {} : { filter }),
    ...(order === undefined ? {} : { order }),
    ...(limit === undefined ? {} : { limit }),
  };
  const { objects, missing, deleted } =
    names.length === 0
      ? { objects: await api.list(kind, query), missing: [], deleted: new Map<string, string>() }
      : await api.find(kind, names, filter);
  const single = names.length === 1 && objects.length < 2;
  const surface = api.surfaceOf(kind, 'List');
  if (objects.length > 0 || names.length === 0) {
    const tenants = seesTenants(context, options);
    const form = { output, surface, single, header: options.headers, tenants };
    await printObjects(context, kind, objects.slice(0, limit), form);
  }
  if (missing.length > 0) throw notFound(noSuch(kind, missing, deleted));
  if (objects.length === 0) context.io.err(`no ${kind.kind.words}s match\n`);
};

/** Whose each object is, to a caller who sees several tenants and did not choose one. */
const seesTenants = ({ isAdmin }: ResourceContext, scope: Scope): boolean =>
  scope.tenant === undefined && (scope.private || isAdmin());

const watch = async (
  context: ResourceContext,
  api: ResourceApi,
  targets: readonly Targets[],
  options: GetOptions,
): Promise<void> => {
  const [target, ...others] = targets;
  if (target === undefined || others.length > 0)
    throw new InvalidArgumentError('--watch takes objects of one kind');
  for (const name of ['order', 'limit'] as const)
    if (options[name] !== undefined)
      throw new InvalidArgumentError(`--watch and --${name} exclude each other`);
  const { kind, names } = target;
  const { filter, tenant } = options;
  let first: readonly JsonObject[] = [];
  let told = false;
  const named = async (): Promise<readonly JsonObject[]> => {
    const { objects, missing } = await api.find(kind, names, filter);
    if (missing.length > 0 && !told) context.io.err(`${noSuch(kind, missing)} yet; waiting for changes\n`);
    told = true;
    return objects;
  };
  const list = async (): Promise<readonly JsonObject[]> =>
    (first =
      names.length === 0 ? await api.list(kind, filter === undefined ? {} : { filter }) : await named());
  const print = await changePrinter(context, target, options, api, () => first);
  const changes = watchChanges({
    client: context.client,
    kind,
    surface: api.surfaceOf(kind, 'List'),
    names,
    ...(filter === undefined ? {} : { filter }),
    ...(tenant === undefined ? {} : { tenant }),
    list,
    lost: (why) => context.io.err(`${why}; trying again\n`),
    pause: context.pause,
    ...(context.io.interrupted === undefined ? {} : { signal: context.io.interrupted }),
  });
  for await (const change of changes) await print(change);
};

/** One line or document per change. Columns are as wide as what was listed first needs, then as each row needs. */
const changePrinter = async (
  context: ResourceContext,
  { kind }: Targets,
  { output = 'table', headers, ...options }: GetOptions,
  api: ResourceApi,
  first: () => readonly JsonObject[],
): Promise<(change: Change) => Promise<void>> => {
  const { io, now } = context;
  const surface = api.surfaceOf(kind, 'List');
  if (output === 'json')
    return async ({ type, id, object }) =>
      io.out(
        `${JSON.stringify({ type, ...(id === undefined ? {} : { id }), object: typed(kind, surface, object) })}\n`,
      );
  if (output === 'yaml')
    return async ({ object }) => io.out(`---\n${await toYaml([typed(kind, surface, object)])}`);
  if (output === 'name') return async ({ object }) => io.out(`${nameOf(kind, object)}\n`);
  const paint = painter(io);
  const setUp = () => {
    const view = { wide: output === 'wide', now: now(), tenants: seesTenants(context, options), live: true };
    const columns = columnsFor(kind.kind.kind, first(), view);
    const header = ['event', ...columns.map(({ title }) => title)];
    const rows = first().map((object) => ['LISTED', ...rowOf(object, columns, { now: now(), paint })]);
    return { columns, widths: padded.widths(header, [...rows, ['UPDATED']]), header };
  };
  let shape: ReturnType<typeof setUp> | undefined;
  return async ({ type, object }) => {
    if (shape === undefined) {
      shape = setUp();
      if (headers)
        io.out(
          `${padded.row(
            shape.header.map((title) => title.toUpperCase()),
            shape.widths,
          )}\n`,
        );
    }
    io.out(`${padded.row([type, ...rowOf(object, shape.columns, { now: now(), paint })], shape.widths)}\n`);
  };
};

/** `ledgerctl kinds`: what there is, and how it may be written. */
export const addKindsCommand = (program: Command, { names, io }: ResourceContext): void => {
  program
    .command('kinds')
    .description('kinds of objects, with the short forms that commands take')
    .addHelpText('after', examples('kinds'))
    .action(() => {
      const rows = names.all.map(({ kind, singular, alias }) => [
        singular,
        kind.collection,
        alias,
        kind.methods.public.map(short).join(''),
        kind.methods.private.map(short).join(''),
      ]);
      io.out(`${table(['kind', 'collection', 'short', 'tenants', 'providers'], rows)}\n\n${LEGEND}\n`);
    });
};

const short = (method: string): string => method[0] ?? '';
const LEGEND =
  'L list, G get, C create, U update, D delete; who may do it is decided by the roles of the caller.';
