import { InvalidArgumentError } from 'commander';
import { isObject, listAt, numberAt, objectAt, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { Method } from '../../domain/resource.ts';
import { ApiError, queryText, type ApiClient } from '../api-client.ts';
import { CliFailure, EXIT, notFound } from '../exit.ts';
import type { NamedKind } from './kind-names.ts';

export type Surface = 'public' | 'private';

/** Prefixes of the two surfaces (OSAC). */
export const PREFIX: Readonly<Record<Surface, string>> = {
  public: '/api/fulfillment/v1',
  private: '/api/private/v1',
};

export type ListQuery = {
  /** CEL text. */
  readonly filter?: string;
  readonly order?: string;
  /** At most so many objects; default: all. */
  readonly limit?: number;
};

export type WriteOptions = {
  readonly dryRun?: boolean;
  /** Makes repetitions of the same write harmless. */
  readonly key: string;
};

export type UpdateOptions = WriteOptions & {
  readonly ifMatch?: string;
  /** Compare `metadata.version` of the body with the stored one. */
  readonly lock?: boolean;
  readonly mask?: readonly string[];
};

/** Objects of every kind over the two OSAC surfaces, as the commands need them. */
export type ResourceApi = {
  /** The surface that this method of the kind is called on. Throws InvalidArgumentError when there is none. */
  surfaceOf(kind: NamedKind, method: Method): Surface;
  /** Every match, page after page to the end. */
  list(kind: NamedKind, query?: ListQuery): Promise<JsonObject[]>;
  /** Objects by id or name, in the order of what was asked for; `missing` is what nothing was found for. */
  find(kind: NamedKind, wanted: readonly string[], filter?: string): Promise<Found>;
  /** The one object with this id or name. Throws CliFailure when there is none, or more than one. */
  one(kind: NamedKind, wanted: string): Promise<JsonObject>;
  /** The object by id as it is now, with the tag of its state; undefined when there is none. */
  read(kind: NamedKind, id: string): Promise<Tagged | undefined>;
  create(kind: NamedKind, document: JsonObject, options: WriteOptions): Promise<JsonObject>;
  update(kind: NamedKind, id: string, document: JsonObject, options: UpdateOptions): Promise<JsonObject>;
  remove(kind: NamedKind, id: string, options: WriteOptions): Promise<void>;
  /** Entries of an order's timeline, oldest first. */
  timeline(kind: NamedKind, id: string): Promise<readonly JsonValue[]>;
  /** How to get into a cluster, as text (OSAC). */
  credential(kind: NamedKind, id: string, which: 'kubeconfig' | 'password'): Promise<string>;
};

export type Found = {
  readonly objects: readonly JsonObject[];
  readonly missing: readonly string[];
  /** When those of the missing were deleted of which the caller may know it. */
  readonly deleted: ReadonlyMap<string, string>;
};
export type Tagged = { readonly object: JsonObject; readonly etag?: string };

export type ResourceApiOptions = {
  readonly client: ApiClient;
  /** Only the private surface. */
  readonly private: boolean;
  /** Only objects of this tenant. */
  readonly tenant?: string;
};

/** Objects per page, and names per filter: both well below what the service accepts. */
const PAGE = 500;
const NAMES_PER_CALL = 50;

export const createResourceApi = ({
  client,
  private: onlyPrivate,
  tenant,
}: ResourceApiOptions): ResourceApi => {
  const surfaceOf = ({ kind, singular }: NamedKind, method: Method): Surface => {
    if (!onlyPrivate && kind.methods.public.includes(method)) return 'public';
    if (kind.methods.private.includes(method)) return 'private';
    throw new InvalidArgumentError(`${singular}: ${method.toLowerCase()} is not offered`);
  };
  const collection = (kind: NamedKind, method: Method): string =>
    `${PREFIX[surfaceOf(kind, method)]}/${kind.kind.collection}`;
  const object = (kind: NamedKind, method: Method, id: string): string =>
    `${collection(kind, method)}/${encodeURIComponent(id)}`;

  const list = async (kind: NamedKind, query: ListQuery = {}): Promise<JsonObject[]> => {
    const filter = allOf([inTenant(tenant), query.filter]);
    const wanted = query.limit ?? Number.POSITIVE_INFINITY;
    const seen = new Map<string, JsonObject>();
    let total: number | undefined;
    for (let offset = 0; seen.size < wanted; ) {
      const limit = Math.min(PAGE, wanted - seen.size);
      const parameters = queryText({ offset, limit, filter, order: query.order });
      const page = await client.get<JsonObject>(`${collection(kind, 'List')}${parameters}`);
      const items = listAt(page, 'items').filter(isObject);
      for (const item of items) seen.set(stringAt(item, 'id'), item);
      const now = numberAt(page, 'total');
      // What was deleted meanwhile moved the rest towards the front: that much is read again, nothing is passed over.
      const moved = Math.max(0, (total ?? now) - now);
      total = now;
      offset = moved > 0 ? Math.max(0, offset - moved) : offset + items.length;
      if (moved === 0 && (items.length === 0 || offset >= now)) break;
    }
    return [...seen.values()].slice(0, query.limit);
  };

  const read = async (
    kind: NamedKind,
    id: string,
    deleted?: Map<string, string>,
  ): Promise<Tagged | undefined> => {
    if (!addressable(id)) return undefined;
    try {
      const { value, ...tag } = await client.tagged<JsonObject>(object(kind, 'Get', id));
      return { object: value, ...tag };
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) throw error;
      const at = deletedAt(error);
      if (at !== '') deleted?.set(id, at);
      return undefined;
    }
  };

  const find = async (kind: NamedKind, wanted: readonly string[], filter?: string): Promise<Found> => {
    const names = [...new Set(wanted)];
    const found: JsonObject[] = [];
    for (let at = 0; at < names.length; at += NAMES_PER_CALL) {
      const some = names.slice(at, at + NAMES_PER_CALL);
      const shown = surfaceOf(kind, 'List') === 'public' ? hiddenToo(kind) : undefined;
      found.push(...(await list(kind, { filter: allOf([isOneOf('this', some), shown, filter]) ?? '' })));
    }
    const objects = new Map<string, JsonObject>();
    const missing: string[] = [];
    const deleted = new Map<string, string>();
    for (const name of names) {
      const matches = found.filter((candidate) => named(candidate, name));
      // Lists leave out what may be read by id all the same, for example an obsolete instance type.
      const only =
        matches.length === 0 && filter === undefined ? (await read(kind, name, deleted))?.object : undefined;
      for (const match of only === undefined ? matches : [only]) objects.set(stringAt(match, 'id'), match);
      if (matches.length === 0 && only === undefined) missing.push(name);
    }
    return { objects: [...objects.values()], missing, deleted };
  };

  return {
    surfaceOf,
    list,
    find,
    read: (kind, id) => read(kind, id),
    one: async (kind, wanted) => {
      const { objects, missing, deleted } = await find(kind, [wanted]);
      if (missing.length > 0) throw notFound(noSuch(kind, missing, deleted));
      return onlyOne(kind, wanted, objects);
    },
    create: async (kind, document, options) =>
      unwrapped(kind, await client.send('POST', collection(kind, 'Create'), document, headersOf(options))),
    update: async (kind, id, document, options) => {
      const lock = options.lock === true ? 'true' : undefined;
      const query = queryText({ lock, update_mask: options.mask?.join(',') });
      const path = `${object(kind, 'Update', id)}${query}`;
      const headers = {
        ...headersOf(options),
        ...(options.ifMatch === undefined ? {} : { 'if-match': options.ifMatch }),
      };
      return unwrapped(kind, await client.send('PATCH', path, document, headers));
    },
    remove: async (kind, id, options) => {
      await client.send('DELETE', object(kind, 'Delete', id), undefined, headersOf(options));
    },
    credential: (kind, id, which) => client.text(`${object(kind, 'Get', id)}/${which}`),
    timeline: async (kind, id) => {
      const entries: JsonValue[] = [];
      for (;;) {
        const after = stringAt(entries.at(-1), 'position') || undefined;
        const path = `${object(kind, 'Get', id)}/timeline${queryText({ after })}`;
        const page = await client.get<JsonObject>(path);
        const items = listAt(page, 'items');
        if (items.length === 0) return entries;
        entries.push(...items);
      }
    },
  };
};

/** `cluster 'web'`: how texts name an object. */
export const nameOf = (kind: NamedKind, object: JsonObject): string =>
  `${kind.singular}/${stringAt(objectAt(object, 'metadata'), 'name') || stringAt(object, 'id')}`;

export const noSuch = (
  kind: NamedKind,
  missing: readonly string[],
  deleted: ReadonlyMap<string, string> = new Map(),
): string => {
  const named = missing.map((name) => {
    const at = deleted.get(name);
    return at === undefined ? `'${name}'` : `'${name}' (deleted at ${at})`;
  });
  return `${kind.kind.words} ${named.join(', ')} not found`;
};

/** A caller who could read an object is told that it was deleted; empty: nothing is told. */
const deletedAt = ({ body }: ApiError): string => {
  const details = listAt(body as JsonObject, 'details');
  return stringAt(
    objectAt(
      details.find((one) => stringAt(one, 'reason') === 'DELETED'),
      'metadata',
    ),
    'deleted_at',
  );
};

/**
 * The one of these objects that has this id, else this name. Throws CliFailure when there is none, or when several have
 * the name.
 */
export const onlyOne = (kind: NamedKind, wanted: string, objects: readonly JsonObject[]): JsonObject => {
  const byId = objects.find((candidate) => stringAt(candidate, 'id') === wanted);
  if (byId !== undefined) return byId;
  const [only, ...others] = objects.filter((candidate) => named(candidate, wanted));
  if (only === undefined) throw notFound(noSuch(kind, [wanted]));
  if (others.length > 0) throw ambiguous(kind, wanted, [only, ...others]);
  return only;
};

const ambiguous = (kind: NamedKind, wanted: string, objects: readonly JsonObject[]): CliFailure => {
  const lines = objects.map((found) => {
    const metadata = objectAt(found, 'metadata');
    const project = stringAt(metadata, 'project');
    return `\n  ${stringAt(found, 'id')}  tenant ${stringAt(metadata, 'tenant') || '-'}${project === '' ? '' : `, project ${project}`}`;
  });
  return new CliFailure(
    EXIT.failed,
    `${objects.length} ${kind.kind.words}s have the name '${wanted}'; give the id of one:${lines.join('')}`,
  );
};

const named = (object: JsonObject, wanted: string): boolean =>
  stringAt(object, 'id') === wanted || stringAt(objectAt(object, 'metadata'), 'name') === wanted;

/** A URL cannot hold these as one step of a path. */
const addressable = (id: string): boolean => !['', '.', '..'].includes(id);

const unwrapped = ({ kind }: NamedKind, reply: JsonObject): JsonObject =>
  kind.wrapsReplies === true ? objectAt(reply, 'object') : reply;

const headersOf = ({ key, dryRun }: WriteOptions): Record<string, string> => ({
  'idempotency-key': JSON.stringify(key),
  ...(dryRun === true ? { 'x-dry-run': 'true' } : {}),
});

/** A text as a CEL literal. */
export const literal = (text: string): string => JSON.stringify(text);

/** The CEL text for objects with one of these ids or names, of the form that OSAC's own command line sends. */
export const isOneOf = (variable: string, names: readonly string[]): string => {
  const [only] = names;
  if (only !== undefined && names.length === 1)
    return `${variable}.id == ${literal(only)} || ${variable}.metadata.name == ${literal(only)}`;
  const list = `[${names.map(literal).join(', ')}]`;
  return `${variable}.id in ${list} || ${variable}.metadata.name in ${list}`;
};

const inTenant = (tenant: string | undefined): string | undefined =>
  tenant === undefined ? undefined : `this.metadata.tenant == ${literal(tenant)}`;

/**
 * Always true, and speaks of the fields by which the tenants' lists leave objects out unless a filter does (OSAC):
 * whoever names an object wants it, obsolete or not. Undefined for kinds that hide nothing in this way.
 */
export const hiddenToo = ({ kind }: NamedKind): string | undefined =>
  allOf(
    (kind.publicList ?? []).map(({ when }) =>
      when === 'always'
        ? undefined
        : `has(this.${when.unlessMentioned}) || !has(this.${when.unlessMentioned})`,
    ),
  );

/** All that are given, joined by "and"; undefined when none is. */
export const allOf = (filters: readonly (string | undefined)[]): string | undefined => {
  const given = filters.filter((filter) => filter !== undefined && filter.trim() !== '');
  return given.length < 2 ? given[0] : given.map((filter) => `(${filter})`).join(' && ');
};
