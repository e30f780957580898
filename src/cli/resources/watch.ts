import { InvalidArgumentError } from 'commander';
import { isObject, numberAt, objectAt, own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { ApiError, Unreachable, type ApiClient } from '../api-client.ts';
import { CliFailure, EXIT } from '../exit.ts';
import type { NamedKind } from './kind-names.ts';
import { allOf, isOneOf, literal, type Surface } from './resource-api.ts';

/** Where changes are told on each surface (OSAC). */
const PATHS: Readonly<Record<Surface, string>> = {
  public: '/api/events/v1/events',
  private: '/api/private/v1/events/watch',
};

export type Change = {
  /** `LISTED` is how it stood when watching began; the others are OSAC's event types without their prefix. */
  readonly type: 'LISTED' | 'CREATED' | 'UPDATED' | 'DELETED' | (string & {});
  /** Id of the event, after which a watch can go on; none of what was listed. */
  readonly id?: string;
  readonly object: JsonObject;
};

export type WatchOptions = {
  /** Asked for with every connection, so that a token may have been renewed. */
  readonly client: () => Promise<ApiClient>;
  readonly kind: NamedKind;
  readonly surface: Surface;
  /** Ids or names; none: all. */
  readonly names: readonly string[];
  /** The list filter, with `this`. */
  readonly filter?: string;
  readonly tenant?: string;
  /** How the matching objects stand now. */
  readonly list: () => Promise<readonly JsonObject[]>;
  /** Told when the connection was lost, before it is tried again. */
  readonly lost: (why: string) => void;
  readonly signal?: AbortSignal;
  readonly pause: (ms: number) => Promise<unknown>;
};

/** Connections that may fail one after the other before it is given up. */
const MOST_FAILURES = 8;
const FIRST_DELAY_MS = 250;
const GOOD_CONNECTION_MS = 30_000;

/** What was told last, by id. */
type Shown = Map<string, JsonObject>;

/**
 * How the objects stand, then every change of them, for ever. The stream is open before the list is read, so nothing
 * falls between; what the list already showed is not told twice. After a lost connection it goes on after the last
 * event that was seen, or, where the service no longer knows that one, lists anew and tells what is different.
 */
export const watchChanges = async function* (options: WatchOptions): AsyncGenerator<Change> {
  const { kind, surface, list, lost, pause, signal } = options;
  if (
    surface === 'public' &&
    kind.kind.event?.public === false &&
    kind.kind.methods.public.includes('List')
  ) {
    yield* relisted(options);
    return;
  }
  const path = pathOf(options);
  const shown: Shown = new Map();
  let last: string | undefined;
  let toList = true;
  let failures = 0;
  for (;;) {
    const began = performance.now();
    let why: unknown;
    try {
      const from = last === undefined ? '' : `&${new URLSearchParams({ from: last }).toString()}`;
      const stream = await (await options.client()).open<JsonObject>('GET', `${path}${from}`, signal);
      last ??= stream.headers.get(WATCH_ID) ?? undefined;
      if (toList) yield* listed(await list(), shown, options.filter === undefined);
      toList = false;
      for await (const line of stream.lines) {
        const event = eventOf(line);
        failures = 0;
        last = stringAt(event, 'id') || last;
        const change = changeOf(event, kind);
        if (change !== undefined && isNews(change, shown)) yield change;
      }
      why = new Unreachable('the service ended the stream');
    } catch (error) {
      why = error;
    }
    if (signal?.aborted === true) return;
    if (!isPassing(why) && !isForgotten(why, last)) throw why;
    // Without a place to go on after, what happened meanwhile is found by listing.
    if (last === undefined || isForgotten(why, last)) [last, toList] = [undefined, true];
    // A connection that lasted was a good one, even if there was nothing to tell.
    failures = performance.now() - began > GOOD_CONNECTION_MS ? 1 : failures + 1;
    if (failures > MOST_FAILURES) throw giveUp(why);
    lost(messageOf(why));
    await pause(FIRST_DELAY_MS * 2 ** Math.min(failures - 1, 5));
  }
};

const RELIST_MS = 2_000;

/** Of kinds that public watches tell nothing of (OSAC): what differs from one list to the next. */
const relisted = async function* ({
  list,
  filter,
  lost,
  pause,
  signal,
}: WatchOptions): AsyncGenerator<Change> {
  const shown: Shown = new Map();
  for (let [isFirst, failures] = [true, 0]; signal?.aborted !== true; await pause(RELIST_MS))
    try {
      const known = new Set(shown.keys());
      const later = (id: string): string => (known.has(id) ? 'UPDATED' : 'CREATED');
      for (const change of listed(await list(), shown, filter === undefined))
        yield isFirst || change.type === 'DELETED'
          ? change
          : { ...change, type: later(stringAt(change.object, 'id')) };
      [isFirst, failures] = [false, 0];
    } catch (why) {
      if (!isPassing(why)) throw why;
      if ((failures += 1) > MOST_FAILURES) throw giveUp(why);
      lost(messageOf(why));
    }
};

/** Where a stream begins; `from` with it misses nothing of what came since. */
const WATCH_ID = 'x-ledger-watch-id';

const pathOf = ({ kind: { kind, singular }, surface, names, filter, tenant }: WatchOptions): string => {
  const { event } = kind;
  if (event === undefined || (surface === 'public' && !event.public))
    throw new InvalidArgumentError(
      `${singular}: changes are not told ${event === undefined ? '' : 'on the public surface; use --private'}`.trimEnd(),
    );
  const variable = `event.${event.field}`;
  const text = allOf([
    `has(${variable})`,
    names.length === 0 ? undefined : isOneOf(variable, names),
    tenant === undefined ? undefined : `${variable}.metadata.tenant == ${literal(tenant)}`,
    filter === undefined ? undefined : forEvents(filter, variable),
  ]);
  return `${PATHS[surface]}?${new URLSearchParams({ filter: text ?? '' }).toString()}`;
};

/** A list filter as the filter of a watch: `this` becomes the payload, but not inside of literals. */
export const forEvents = (filter: string, variable: string): string =>
  filter.replaceAll(
    /"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|(?<![\w.])this\b/g,
    (found) => (found === 'this' ? variable : found),
  );

/** What is there and was not told yet; also what is gone, where the list would show it if it were not. */
const listed = function* (
  objects: readonly JsonObject[],
  shown: Shown,
  complete: boolean,
): Generator<Change> {
  const present = new Set(objects.map((object) => stringAt(object, 'id')));
  for (const [id, object] of shown)
    if (!present.has(id)) {
      shown.delete(id);
      if (complete) yield { type: 'DELETED', object };
    }
  for (const object of objects) {
    const change: Change = { type: 'LISTED', object };
    if (isNews(change, shown)) yield change;
  }
};

/** Remembers the object; false for one that was told in this version before. */
const isNews = ({ type, object }: Change, shown: Shown): boolean => {
  const id = stringAt(object, 'id');
  const before = shown.get(id);
  if (type === 'DELETED') {
    shown.delete(id);
    return true;
  }
  const old = before !== undefined && versionOf(before) >= versionOf(object);
  if (old && isDeleting(before) === isDeleting(object)) return false;
  shown.set(id, object);
  return true;
};

const versionOf = (object: JsonObject): number => numberAt(objectAt(object, 'metadata'), 'version');

/** A request to delete changes no version (OSAC). */
const isDeleting = (object: JsonObject): boolean =>
  stringAt(objectAt(object, 'metadata'), 'deletion_timestamp') !== '';

/** The event of a line; throws StreamError for an error line. */
const eventOf = (line: JsonValue): JsonObject => {
  if (isObject(line) && own(line, 'error') !== undefined) throw new StreamError(objectAt(line, 'error'));
  return objectAt(objectAt(line, 'result'), 'event');
};

/** Undefined for events that tell nothing of the kind, for example those that only keep the connection alive. */
const changeOf = (event: JsonObject, { kind }: NamedKind): Change | undefined => {
  const object = kind.event === undefined ? undefined : own(event, kind.event.field);
  if (!isObject(object)) return undefined;
  const id = stringAt(event, 'id');
  return {
    type: stringAt(event, 'type').replace(/^EVENT_TYPE_OBJECT_/, ''),
    ...(id === '' ? {} : { id }),
    object,
  };
};

/** A stream that the service ended with an error line. */
class StreamError extends Error {
  override readonly name = 'StreamError';
  readonly code: number;
  constructor(error: JsonObject) {
    super(stringAt(error, 'message') || 'the service ended the stream');
    this.code = numberAt(error, 'code');
  }
}

/** ABORTED and OUT_OF_RANGE: the place to go on after is not kept, or what the caller may see has changed. */
const FORGOTTEN_CODES = [10, 11];

const isForgotten = (why: unknown, last: string | undefined): boolean =>
  why instanceof StreamError
    ? FORGOTTEN_CODES.includes(why.code)
    : last !== undefined && why instanceof ApiError && [400, 410].includes(why.status);

/** RESOURCE_EXHAUSTED, UNAVAILABLE, UNAUTHENTICATED: read too slowly, a service that is going, a token whose time is over. */
const PASSING_CODES = [8, 14, 16];

const isPassing = (why: unknown): boolean => {
  if (why instanceof ApiError) return [429, 502, 503, 504].includes(why.status);
  if (why instanceof StreamError) return PASSING_CODES.includes(why.code);
  // What `fetch` throws when a connection breaks in the middle of a stream.
  return why instanceof Unreachable || (why instanceof TypeError && why.cause !== undefined);
};

const giveUp = (why: unknown): CliFailure =>
  new CliFailure(
    EXIT.unavailable,
    `the connection was lost ${MOST_FAILURES} times in a row: ${messageOf(why)}`,
    {
      cause: why,
    },
  );

const messageOf = (why: unknown): string => (why instanceof Error ? why.message : String(why));
