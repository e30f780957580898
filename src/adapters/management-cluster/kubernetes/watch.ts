import { HubError, isForbidden } from '../../../app/hubs/management-cluster.ts';
import type { Timers } from '../../../app/ports.ts';
import { pause } from '../../../app/process-runner/pause.ts';
import type { HubObjectEvent, OwnedObject, OwnedShown } from '../../../domain/hubs/hub-object.ts';
import { isObject, numberAt, objectAt, stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isExpired, refusal, retryAfterMs, silence, statusOf } from './api-errors.ts';
import { pathOf, type Api } from './api.ts';
import { NoAnswer } from './connection.ts';

/** Events told at once: few enough that taking them over does not hold the thread that answers HTTP. */
const MAX_BATCH = 50;
const MAX_BATCH_BYTES = 262_144;

const SYNCED = ' synced';

type PendingEvents = {
  /** Of one object only its newest state waits; a new object of the same name is another one. */
  push(event: HubObjectEvent, bytes: number): void;
  /** Events that wait, oldest first; waits for the first. Undefined: the watch is over. Throws what it ended by. */
  take(): Promise<readonly HubObjectEvent[] | undefined>;
  /** Resolves when there is room for more: what waits is bounded by number and size. */
  room(): Promise<void>;
  end(error?: Error): void;
};

/** Between the stream of a hub and whoever reads it: bounded, in order per object, changes coalesced. */
export const createPendingEvents = (limits: {
  readonly events: number;
  readonly bytes: number;
}): PendingEvents => {
  const waiting = new Map<string, { readonly event: HubObjectEvent; readonly bytes: number }>();
  let bytes = 0;
  let ended = false;
  let failure: Error | undefined;
  let changed = Promise.withResolvers<void>();
  const signal = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const drop = (key: string): void => {
    bytes -= waiting.get(key)?.bytes ?? 0;
    waiting.delete(key);
  };
  const batch = (): readonly HubObjectEvent[] => {
    const taken: HubObjectEvent[] = [];
    let size = 0;
    for (const [key, one] of waiting) {
      if (taken.length >= MAX_BATCH || (taken.length > 0 && size + one.bytes > MAX_BATCH_BYTES)) break;
      taken.push(one.event);
      size += one.bytes;
      drop(key);
    }
    return taken;
  };

  return {
    push: (event, size) => {
      const key = event.type === 'synced' ? SYNCED : event.object.uid;
      // A later list replaces an earlier one and stands behind everything that it holds.
      if (event.type === 'synced') drop(key);
      else bytes -= waiting.get(key)?.bytes ?? 0;
      waiting.set(key, { event, bytes: size });
      bytes += size;
      signal();
    },
    take: async () => {
      while (waiting.size === 0 && !ended) await changed.promise;
      if (waiting.size === 0 && failure !== undefined) throw failure;
      if (waiting.size === 0) return undefined;
      const taken = batch();
      signal();
      return taken;
    },
    room: async () => {
      while ((waiting.size >= limits.events || bytes >= limits.bytes) && !ended) await changed.promise;
    },
    end: (error) => {
      ended = true;
      failure = error;
      waiting.clear();
      bytes = 0;
      signal();
    },
  };
};

/** The stream cannot be read on: a line that is not JSON or has no end. */
export class UnreadableWatch extends Error {
  override readonly name = 'UnreadableWatch';
}

/** An object with a pull secret and long status is below 1 MiB, what an API server stores at most about 1.5 MiB. */
const MAX_LINE_BYTES = 8_388_608;
const NEWLINE = 0x0a;

/**
 * Lines of a watch, each a JSON object with its size in bytes. What is left when the stream ends in the middle of a
 * line is dropped: that connection was cut, and the event comes again. Throws UnreadableWatch.
 */
export async function* watchLines(
  chunks: AsyncIterable<Buffer>,
): AsyncGenerator<{ readonly value: JsonObject; readonly bytes: number }> {
  let parts: Buffer[] = [];
  let length = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, from)) {
      const line = Buffer.concat([...parts, chunk.subarray(from, end)]);
      parts = [];
      length = 0;
      from = end + 1;
      if (line.length > 0) yield { value: parsed(line), bytes: line.length };
    }
    if (from < chunk.length) {
      parts.push(chunk.subarray(from));
      length += chunk.length - from;
    }
    if (length > MAX_LINE_BYTES) throw new UnreadableWatch(`a line has more than ${MAX_LINE_BYTES} bytes`);
  }
}

const parsed = (line: Buffer): JsonObject => {
  try {
    const value = JSON.parse(line.toString('utf8')) as JsonValue;
    if (isObject(value)) return value;
  } catch {
    // Said below; the parser's own message quotes the line.
  }
  throw new UnreadableWatch('a line is not a JSON object');
};

export type WatchSettings = {
  /** Milliseconds between full lists. Default 300,000, ± 10 %. */
  readonly relistMs?: number;
  /** Milliseconds of silence after which a stream is opened anew; bookmarks come each minute. Default 120,000. */
  readonly idleMs?: number;
  /** First pause after an error, doubling to the longest. Default 500 and 30,000. */
  readonly backoffMs?: number;
  readonly backoffMaxMs?: number;
  /** Milliseconds for the headers of an answer and for one page of a list. Default 30,000. */
  readonly callMs?: number;
};

export type WatchNote = (level: 'debug' | 'warn', fields: object, message: string) => void;

export type ObjectWatch = {
  /** Some events, in order; waits for the first. Undefined: closed. Throws HubError once the rights do not allow it. */
  next(): Promise<readonly HubObjectEvent[] | undefined>;
  /** The connection was replaced: list and follow with the new one. */
  restart(): void;
  close(): void;
};

/** What waits for its reader: 2,000 orders or 8 MiB of them. */
const PENDING = { events: 2_000, bytes: 8_388_608 };
/** A server ends a watch by itself after so many seconds, so that connections move to where there is room. */
const SERVER_SECONDS = 290;
/** Streams that failed one after the other without an event; then a list tells whether the version still stands. */
const MAX_FRUITLESS = 2;

/** The version is gone: list. */
class Expired extends Error {
  override readonly name = 'Expired';
}
/** Deliberate end of a stream, to list or to use another connection. */
class Renew extends Error {
  override readonly name = 'Renew';
}

type Known = { readonly uid: string; readonly resourceVersion: string };

/**
 * Follows the objects of one kind in one namespace for ever (OSAC's operator): lists in pages, watches from
 * there with bookmarks, and lists again on 410, every few minutes, and when the stream keeps failing. Held in memory
 * are names, uids and versions, not objects. Each version of an object is told at most once and never an older one
 * after a newer; what vanished between two lists is what a `synced` does not name.
 */
export const watchObjects = (options: {
  /** The connection of the moment. Throws HubError while there is none. */
  readonly api: () => Promise<Api>;
  readonly kind: OwnedObject;
  readonly namespace: string;
  readonly timers: Timers;
  /** 0 to 1, for jitter. */
  readonly random: () => number;
  readonly note: WatchNote;
  readonly settings?: WatchSettings;
}): ObjectWatch => {
  const { api, kind, namespace, timers, random, note } = options;
  const { relistMs = 300_000, idleMs = 120_000, callMs = 30_000 } = options.settings ?? {};
  const { backoffMs = 500, backoffMaxMs = 30_000 } = options.settings ?? {};
  const known = new Map<string, Known>();
  const pending = createPendingEvents(PENDING);
  const closing = new AbortController();
  let renewing = new AbortController();
  let newest = '';
  const path = pathOf(kind, { namespace });
  const what = `watch ${kind.plural} ${namespace}`;

  const see = async (object: OwnedShown, bytes: number): Promise<void> => {
    if (object.name === '' || object.uid === '') return;
    const before = known.get(object.name);
    if (before !== undefined && !isNewer(object.resourceVersion, before.resourceVersion)) return;
    known.set(object.name, { uid: object.uid, resourceVersion: object.resourceVersion });
    await pending.room();
    pending.push({ type: 'applied', object }, bytes);
  };

  const lose = (object: OwnedShown, bytes: number): void => {
    // Of an object that was never told, or that another one has replaced, there is nothing to take back.
    if (known.get(object.name)?.uid !== object.uid) return;
    known.delete(object.name);
    pending.push({ type: 'deleted', object }, bytes);
  };

  /** Versions that went back are those of a hub that was restored from a backup: what is known of it counts no more. */
  const startedAt = (version: string): void => {
    if (newest !== '' && version !== newest && !isNewer(version, newest)) {
      note(
        'warn',
        { namespace },
        'versions of a hub went back, as after a restore; reading everything again',
      );
      known.clear();
    }
    newest = version;
  };

  /** Tells what changed since the last list or event, then what there is. Returns the version to watch from. */
  const list = async (signal: AbortSignal): Promise<string> => {
    let names = new Set<string>();
    let resourceVersion = '';
    const by = { effectId: 'watch', deadlineMs: callMs, signal };
    for await (const page of (await api()).list(kind, { namespace }, by)) {
      if (page.first) {
        names = new Set();
        startedAt(page.resourceVersion);
      }
      for (const item of page.items) {
        const shown = kind.shown(item);
        names.add(shown.name);
        await see(shown, sizeOf(shown));
      }
      // All pages show the hub as it was at the first one.
      resourceVersion = page.resourceVersion;
    }
    for (const name of known.keys()) if (!names.has(name)) known.delete(name);
    pending.push({ type: 'synced', names: [...names], resourceVersion }, names.size * 24);
    return resourceVersion;
  };

  /** One stream from `position.version` on, which it moves. Returns when the server ended it. */
  const follow = async (
    position: { version: string; fruitful: boolean },
    until: AbortSignal,
  ): Promise<void> => {
    const idle = new AbortController();
    const signal = AbortSignal.any([until, idle.signal]);
    let cancelIdle = (): void => undefined;
    const heard = (): void => {
      cancelIdle();
      cancelIdle = timers.after(idleMs, () => idle.abort());
    };
    try {
      const connection = await api();
      const query = {
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: position.version,
        timeoutSeconds: String(Math.round(SERVER_SECONDS * (0.9 + 0.2 * random()))),
      };
      const request = { method: 'GET', path, query } as const;
      const { answer, chunks } = await connection.connection.stream(request, { deadlineMs: callMs, signal });
      if (chunks === undefined) {
        if (isExpired(answer.status, statusOf(answer.body))) throw new Expired('the version is gone');
        throw refusal(answer, what, false, connection.redact);
      }
      heard();
      for await (const { value, bytes } of watchLines(chunks)) {
        heard();
        await take(value, bytes, position);
        // While its reader is slow nothing is read, and that is not the hub's silence.
        heard();
      }
    } catch (error) {
      if (idle.signal.aborted && !until.aborted) {
        note('warn', { namespace, idleMs }, 'watch silent without bookmarks; opening it again');
        throw new HubError('unavailable', `${what}: nothing was heard for ${idleMs} ms`);
      }
      throw error instanceof NoAnswer ? silence(error, what, false) : error;
    } finally {
      cancelIdle();
    }
  };

  const take = async (
    value: JsonObject,
    bytes: number,
    position: { version: string; fruitful: boolean },
  ): Promise<void> => {
    const object = objectAt(value, 'object');
    const type = stringAt(value, 'type');
    if (type === 'ERROR') throw errorInStream(object, what);
    if (type !== 'BOOKMARK') {
      const shown = kind.shown(object);
      if (type === 'DELETED') lose(shown, bytes);
      else if (type === 'ADDED' || type === 'MODIFIED') await see(shown, bytes);
    }
    // Moved only now: what was not taken in comes again.
    position.version = stringAt(objectAt(object, 'metadata'), 'resourceVersion') || position.version;
    position.fruitful = true;
    if (isNewer(position.version, newest)) newest = position.version;
  };

  /** From one list to the next. */
  const round = async (settled: () => void): Promise<void> => {
    const until = AbortSignal.any([closing.signal, renewing.signal]);
    const position = { version: await list(until), fruitful: true };
    const relist = new AbortController();
    const cancel = timers.after(relistMs * (0.9 + 0.2 * random()), () =>
      relist.abort(new Renew('time to list')),
    );
    const signal = AbortSignal.any([until, relist.signal]);
    try {
      for (let failures = 0; !signal.aborted; ) {
        position.fruitful = false;
        const problem = await follow(position, signal).catch((error: unknown) => error);
        if (position.fruitful) {
          failures = 0;
          settled();
        }
        if (signal.aborted) return;
        if (problem instanceof Expired) throw problem;
        if (problem !== undefined) note('debug', { namespace, err: problem }, 'stream of a watch failed');
        failures += 1;
        if (failures > MAX_FRUITLESS && problem !== undefined) throw problem;
        // A stream that lived and ended is opened at once; one that brought nothing is not, or it would spin.
        if (!position.fruitful || problem !== undefined)
          await pause(timers, delayOf(problem, failures), signal);
      }
    } finally {
      cancel();
    }
  };

  const delayOf = (problem: unknown, failures: number): number => {
    const asked = problem instanceof HubError ? (problem.retryAfterMs ?? 0) : 0;
    const own = Math.min(backoffMaxMs, backoffMs * 2 ** Math.min(failures - 1, 16));
    return Math.max(asked, own * (0.5 + random()));
  };

  const run = async (): Promise<void> => {
    let failures = 0;
    while (!closing.signal.aborted) {
      try {
        await round(() => {
          failures = 0;
        });
      } catch (error) {
        if (closing.signal.aborted) return;
        if (renewing.signal.aborted) continue;
        const until = AbortSignal.any([closing.signal, renewing.signal]);
        // Of objects that may not be seen none is gone. Whoever reads is told which right is missing, and begins anew.
        if (isForbidden(error)) return pending.end(error);
        if (kind.required !== true && error instanceof HubError && error.kind === 'not-ready') {
          // It has no such kind, hence no such objects, until somebody installs it.
          known.clear();
          pending.push({ type: 'synced', names: [], resourceVersion: '' }, 0);
          await pause(timers, relistMs, until);
          continue;
        }
        failures += 1;
        if (error instanceof Expired && failures === 1) {
          note('debug', { namespace }, 'version of a watch gone; listing again');
          continue;
        }
        note(
          'warn',
          { namespace, err: error, failures },
          `watching ${kind.plural} of a hub failed; listing again`,
        );
        await pause(timers, delayOf(error, failures), until);
      } finally {
        if (renewing.signal.aborted) renewing = new AbortController();
      }
    }
  };

  run().catch((error: unknown) =>
    note('warn', { namespace, err: error }, 'watch ended by an unexpected fault'),
  );
  return {
    next: pending.take,
    restart: () => renewing.abort(),
    close: () => {
      closing.abort();
      pending.end();
    },
  };
};

/** Errors come as events of an answer that began as a success. */
const errorInStream = (status: JsonObject, what: string): Error => {
  const code = numberAt(status, 'code');
  if (isExpired(code, status)) return new Expired('the version is gone');
  const seconds = numberAt(objectAt(status, 'details'), 'retryAfterSeconds');
  const after = retryAfterMs({ headers: seconds > 0 ? { 'retry-after': String(seconds) } : {} });
  return new HubError(code === 429 ? 'throttled' : 'unavailable', `${what}: error ${code} in the stream`, {
    facts: { status: code },
    ...(after === undefined ? {} : { retryAfterMs: after }),
  });
};

/** Versions are numbers that rise on every API server; where one is not, another text is another version. */
const isNewer = (version: string, than: string): boolean => {
  if (!/^\d+$/.test(version) || !/^\d+$/.test(than)) return version !== than;
  return BigInt(version) > BigInt(than);
};

/** Roughly what an object takes; the longest parts are texts of its spec. */
const sizeOf = ({ spec }: OwnedShown): number =>
  Object.values(spec).reduce<number>(
    (bytes, value: unknown) => bytes + (typeof value === 'string' ? value.length : 0),
    2_000,
  );
