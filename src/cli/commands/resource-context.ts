import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { styleText } from 'node:util';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { stringAt } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ApiClient } from '../api-client.ts';
import type { CliIo, Connection } from '../connection.ts';
import { toYaml, typed } from '../resources/documents.ts';
import type { KindNames, NamedKind } from '../resources/kind-names.ts';
import { createResourceApi, nameOf, type ResourceApi, type Surface } from '../resources/resource-api.ts';
import { tableView, type Paint } from '../resources/table-view.ts';

export type ResourceContext = {
  readonly names: KindNames;
  readonly io: CliIo;
  readonly client: () => Promise<ApiClient>;
  readonly isAdmin: () => boolean;
  readonly open: (scope: Scope) => Promise<ResourceApi>;
  readonly newKey: () => string;
  readonly now: () => number;
  readonly pause: (ms: number) => Promise<unknown>;
};

/** Which surface and whose objects; options of every command about resources. */
export type Scope = { readonly private: boolean; readonly tenant?: string };

export const resourceContext = ({ client, io, isAdmin }: Connection, names: KindNames): ResourceContext => ({
  names,
  io,
  client,
  isAdmin,
  open: async (scope) =>
    createResourceApi({
      client: await client(),
      private: scope.private,
      ...(scope.tenant === undefined ? {} : { tenant: scope.tenant }),
    }),
  newKey: randomUUID,
  now: Date.now,
  pause,
});

export const withTenant = (command: Command): Command =>
  command.option('--tenant <name>', 'only objects of this tenant');

export const withScope = (command: Command): Command =>
  withTenant(command).option(
    '--private',
    'the surface of providers, with everything that tenants do not see',
    false,
  );

export const OUTPUTS = ['table', 'wide', 'json', 'yaml', 'name'] as const;
export type Output = (typeof OUTPUTS)[number];

export const outputOption = (): Option =>
  new Option('-o, --output <form>', 'how it is printed').choices(OUTPUTS);

export type Targets = { readonly kind: NamedKind; readonly names: readonly string[] };

/**
 * `<kind> [name…]`, or `kind/name…` as `get -o name` prints them, also of several kinds.
 * Throws InvalidArgumentError.
 */
export const targetsOf = (kinds: KindNames, [first = '', ...rest]: readonly string[]): readonly Targets[] => {
  if (!first.includes('/')) return [{ kind: kinds.find(first), names: rest }];
  const targets = new Map<NamedKind, string[]>();
  for (const text of [first, ...rest]) {
    const at = text.indexOf('/');
    if (at <= 0 || at === text.length - 1)
      throw new InvalidArgumentError(`"${text}" is not of the form kind/name, as the first one is`);
    const kind = kinds.find(text.slice(0, at));
    targets.set(kind, [...(targets.get(kind) ?? []), text.slice(at + 1)]);
  }
  return [...targets].map(([kind, names]) => ({ kind, names }));
};

/** The one object of a command line that is about one. Throws InvalidArgumentError. */
export const targetOf = (
  kinds: KindNames,
  args: readonly string[],
): { readonly kind: NamedKind; readonly name: string } => {
  const targets = targetsOf(kinds, args);
  const [only] = targets;
  const [name] = only?.names ?? [];
  if (only === undefined || name === undefined || targets.length > 1 || only.names.length > 1)
    throw new InvalidArgumentError('give one kind and the id or name of one object');
  return { kind: only.kind, name };
};

/** A whole number of at least 1. Throws InvalidArgumentError. */
export const positive = (text: string): number => {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError(`"${text}" is not a whole number above 0`);
  return Number(text);
};

/** A whole number, 0 too. Throws InvalidArgumentError. */
export const wholeNumber = (text: string): number => {
  if (!/^(0|[1-9]\d{0,8})$/.test(text))
    throw new InvalidArgumentError(`"${text}" is not a whole number: 0 or more, up to 9 digits`);
  return Number(text);
};

export type PrintOptions = {
  readonly output: Output;
  readonly surface: Surface;
  /** The caller asked for one object, and gets it rather than a list of it. */
  readonly single: boolean;
  readonly header: boolean;
  /** Tables name the tenant even when it is the same everywhere. */
  readonly tenants: boolean;
};

export const printObjects = async (
  { io, now }: Pick<ResourceContext, 'io' | 'now'>,
  kind: NamedKind,
  objects: readonly JsonObject[],
  { output, surface, single, header, tenants }: PrintOptions,
): Promise<void> => {
  const documents = objects.map((object) => typed(kind, surface, object));
  if (output === 'json') io.out(`${JSON.stringify(single ? documents[0] : documents, null, 2)}\n`);
  else if (output === 'yaml') io.out(await toYaml(documents));
  else if (objects.length === 0) return;
  else if (output === 'name') io.out(`${uniqueNames(kind, objects).join('\n')}\n`);
  else {
    const view = { wide: output === 'wide', now: now(), tenants, header, paint: painter(io) };
    io.out(`${tableView(kind.kind.kind, objects, view)}\n`);
  }
};

/** `cluster/web`, or the id where several have the name. */
const uniqueNames = (kind: NamedKind, objects: readonly JsonObject[]): string[] => {
  const names = objects.map((object) => nameOf(kind, object));
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return names.map((name, i) =>
    counts.get(name) === 1 ? name : `${kind.singular}/${stringAt(objects[i], 'id')}`,
  );
};

const GOOD = ['READY', 'ACTIVE', 'AVAILABLE'];
const BAD = ['FAILED', 'DEGRADED', 'OBSOLETE'];

/** Colours of states on a terminal; nothing elsewhere. */
export const painter = ({ colour = false }: CliIo): Paint =>
  colour
    ? (state) => {
        const style = GOOD.includes(state) ? 'green' : BAD.includes(state) ? 'red' : 'yellow';
        return styleText(style, state, { validateStream: false });
      }
    : (state) => state;
