import type { CallOptions } from '../../../app/hubs/management-cluster.ts';
import { HubError } from '../../../app/hubs/management-cluster.ts';
import type { ObjectType } from '../../../domain/hubs/hub-object.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../domain/json-tools.ts';
import { isExpired, redactor, refusal, silence, type Redact } from './api-errors.ts';
import { NoAnswer, type ApiAnswer, type ApiConnection, type ApiRequest } from './connection.ts';

/** Where the objects of a kind are. */
export type Kind = Pick<ObjectType, 'group' | 'version' | 'plural'>;

/** Path of a kind's objects, of one of them, or of a part of it. Names are encoded: they cannot leave their place. */
export const pathOf = (
  { group, version, plural }: Kind,
  at: { readonly namespace?: string; readonly name?: string; readonly part?: 'status' } = {},
): string =>
  [
    group === '' ? `/api/${version}` : `/apis/${group}/${version}`,
    ...(at.namespace === undefined ? [] : ['namespaces', encodeURIComponent(at.namespace)]),
    plural,
    ...(at.name === undefined ? [] : [encodeURIComponent(at.name)]),
    ...(at.part === undefined ? [] : [at.part]),
  ].join('/');

/** Who wrote a field, in the hub's managedFields. */
const FIELD_MANAGER = 'fulfillment-ledger';
/** Of a read, when connections that were kept turn out to be closed. */
const MAX_ATTEMPTS = 4;
const PAGE = 500;
const SMALLEST_PAGE = 10;
/** Lists that expire so often are asked for in one piece. */
const MAX_EXPIRED = 3;

export type Call = Omit<ApiRequest, 'body' | 'effectId'> & {
  /** Names call and object in errors. */
  readonly what: string;
  readonly body?: JsonObject;
  /** Values that must not come back in an error. */
  readonly secrets?: readonly (string | undefined)[];
  /** A POST that changes nothing. */
  readonly reads?: true;
};

/** What a list is about. `metadataOnly`: whoever counts or names objects does not fetch their pull secrets. */
export type Listed = {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly metadataOnly?: true;
};

/** Servers that cannot leave the rest out send it. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';

export type ListedPage = { readonly items: readonly JsonObject[]; readonly resourceVersion: string };

export type Api = {
  /** The answer's object. Throws HubError. */
  ask(call: Call, by: CallOptions): Promise<JsonObject>;
  get(kind: Kind, at: { namespace?: string; name: string }, by: CallOptions): Promise<JsonObject | undefined>;
  create(
    kind: Kind,
    object: JsonObject,
    by: CallOptions,
    secrets?: readonly (string | undefined)[],
  ): Promise<JsonObject>;
  /** PUT of the whole object; with `metadata.resourceVersion` over that version only (HubError `conflict`). */
  replace(kind: Kind, object: JsonObject, by: CallOptions): Promise<JsonObject>;
  /** RFC 7396; only the fields in `patch` change. */
  mergePatch(
    kind: Kind,
    at: { namespace?: string; name: string; part?: 'status' },
    patch: JsonObject,
    by: CallOptions,
    secrets?: readonly (string | undefined)[],
  ): Promise<JsonObject>;
  /** False: it was not there. `uid`: only that object. */
  remove(
    kind: Kind,
    at: { namespace?: string; name: string },
    by: CallOptions,
    uid?: string,
  ): Promise<boolean>;
  /** Every object, page by page; `first` says that a list starts (again: it expired on the way). */
  list(kind: Kind, at: Listed, by: CallOptions): AsyncGenerator<ListedPage & { readonly first: boolean }>;
  /** The raw answer, whatever its status. Throws HubError for no answer. */
  raw(call: Call, by: CallOptions): Promise<ApiAnswer>;
  readonly connection: ApiConnection;
  readonly redact: Redact;
};

/** Calls of one API server with errors by what a caller can do about them. */
export const createApi = (connection: ApiConnection, credentials: readonly (string | undefined)[]): Api => {
  const raw = async (call: Call, by: CallOptions): Promise<ApiAnswer> => {
    const { what: _what, secrets: _secrets, reads: _reads, body, ...given } = call;
    const text = body === undefined ? {} : { body: JSON.stringify(body) };
    const request = { ...given, effectId: by.effectId, ...text };
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await connection.call(request, by);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        // Servers close idle connections; what only reads is asked again on another one.
        if (error.kept && !isWrite(call) && attempt < MAX_ATTEMPTS) continue;
        throw silence(error, call.what, isWrite(call));
      }
    }
  };

  const ask = async (call: Call, by: CallOptions): Promise<JsonObject> => {
    const answer = await raw(call, by);
    if (answer.status < 200 || answer.status > 299)
      throw refusal(answer, call.what, isWrite(call), redactor([...credentials, ...(call.secrets ?? [])]));
    return objectOf(answer, call);
  };

  const page = (
    kind: Kind,
    at: Listed,
    by: CallOptions,
    limit: number,
    token: string,
  ): Promise<JsonObject> => {
    const { labelSelector } = at;
    const query = {
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(limit === 0 ? {} : { limit: String(limit) }),
      ...(token === '' ? {} : { continue: token }),
    };
    const call = {
      what: sayOf('list', kind, at),
      method: 'GET',
      path: pathOf(kind, namespaceOf(at)),
      query,
      ...(at.metadataOnly === undefined ? {} : { accept: METADATA_ONLY }),
    } as const;
    return ask(call, by);
  };

  const list: Api['list'] = async function* (kind, at, by) {
    let limit = PAGE;
    let token = '';
    let expired = 0;
    for (let first = true; first || token !== ''; ) {
      try {
        const told = await page(kind, at, by, limit, token);
        token = stringAt(objectAt(told, 'metadata'), 'continue');
        yield {
          first,
          items: listAt(told, 'items').filter(isObject),
          resourceVersion: stringAt(objectAt(told, 'metadata'), 'resourceVersion'),
        };
        first = false;
      } catch (error) {
        if (isTooLarge(error) && limit > SMALLEST_PAGE) limit = Math.ceil(limit / 5);
        else if (isExpiredError(error) && token !== '') {
          expired += 1;
          if (expired >= MAX_EXPIRED) limit = 0;
          token = '';
          first = true;
        } else throw error;
      }
    }
  };

  return {
    raw,
    ask,
    list,
    connection,
    redact: redactor(credentials),
    get: async (kind, at, by) => {
      try {
        return await ask({ what: sayOf('get', kind, at), method: 'GET', path: pathOf(kind, at) }, by);
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },
    create: (kind, object, by, secrets = []) => {
      const namespace = stringAt(objectAt(object, 'metadata'), 'namespace');
      const name = stringAt(objectAt(object, 'metadata'), 'name');
      const at = namespace === '' ? {} : { namespace };
      return ask(
        {
          what: sayOf('create', kind, { ...at, name }),
          method: 'POST',
          path: pathOf(kind, at),
          query: { fieldManager: FIELD_MANAGER },
          body: object,
          secrets,
        },
        by,
      );
    },
    replace: (kind, object, by) => {
      const at = {
        namespace: stringAt(objectAt(object, 'metadata'), 'namespace'),
        name: stringAt(objectAt(object, 'metadata'), 'name'),
      };
      const query = { fieldManager: FIELD_MANAGER };
      const call = { what: sayOf('update', kind, at), method: 'PUT', path: pathOf(kind, at), query } as const;
      return ask({ ...call, body: object }, by);
    },
    mergePatch: (kind, at, patch, by, secrets = []) =>
      ask(
        {
          what: sayOf('patch', kind, at),
          method: 'PATCH',
          path: pathOf(kind, at),
          query: { fieldManager: FIELD_MANAGER },
          contentType: 'application/merge-patch+json',
          body: patch,
          secrets,
        },
        by,
      ),
    remove: async (kind, at, by, uid) => {
      const options = {
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        propagationPolicy: 'Background',
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      };
      try {
        const what = sayOf('delete', kind, at);
        await ask({ what, method: 'DELETE', path: pathOf(kind, at), body: options }, by);
        return true;
      } catch (error) {
        if (isMissing(error)) return false;
        throw error;
      }
    },
  };
};

export const isMissing = (error: unknown): boolean => error instanceof HubError && error.kind === 'not-found';

const isWrite = ({ method, reads }: Pick<Call, 'method' | 'reads'>): boolean =>
  method !== 'GET' && reads !== true;

const isTooLarge = (error: unknown): boolean =>
  error instanceof HubError && error.facts['code'] === 'TOO_LARGE';
const isExpiredError = (error: unknown): boolean =>
  error instanceof HubError &&
  isExpired(Number(error.facts['status'] ?? 0), { reason: error.facts['reason'] ?? '' });

const namespaceOf = ({ namespace }: Listed) => (namespace === undefined ? {} : { namespace });

const sayOf = (verb: string, { plural }: Kind, at: { namespace?: string; name?: string }): string =>
  [verb, plural, [at.namespace, at.name].filter((part) => part !== undefined && part !== '').join('/')]
    .filter((part) => part !== '')
    .join(' ');

/** A success whose body cannot be read was done all the same. */
const objectOf = (answer: ApiAnswer, call: Call): JsonObject => {
  const unreadable = (): never => {
    const kind = isWrite(call) ? 'unknown-outcome' : 'unavailable';
    throw new HubError(kind, `${call.what}: the answer is not a JSON object`, {
      facts: { status: answer.status },
    });
  };
  try {
    const value = JSON.parse(answer.body) as JsonValue;
    return isObject(value) ? value : unreadable();
  } catch {
    return unreadable();
  }
};
