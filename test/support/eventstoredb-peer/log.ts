import type { ServerVersion } from './context.ts';

/**
 * The server's log in memory: streams, `$all`, stream metadata and the idempotency check of KurrentDB
 * (ReaderIndex/IndexWriter CheckCommit).
 */
export type Expected = 'any' | 'no_stream' | 'stream_exists' | number;

export type ProposedEvent = {
  readonly id: string;
  readonly type: string;
  readonly contentType: string;
  readonly data: Uint8Array;
  readonly metadata: Uint8Array;
};

export type StoredEvent = ProposedEvent & {
  readonly stream: string;
  readonly revision: number;
  /** Byte offset in the log, commit and prepare position alike. */
  readonly offset: number;
  /** Milliseconds since the Unix epoch. */
  readonly created: number;
};

export type WriteResult =
  | { readonly kind: 'success'; readonly revision: number | undefined; readonly offset: number | undefined }
  | { readonly kind: 'wrong-version'; readonly current: number | 'no_stream' }
  | { readonly kind: 'deleted' }
  | { readonly kind: 'too-large'; readonly limit: number }
  | { readonly kind: 'event-too-large'; readonly id: string; readonly size: number; readonly limit: number };

export type LogOptions = {
  /** Bytes of one whole append. Default 1 MiB, as servers through 25.0. */
  readonly maxAppendSize?: number;
  /** Bytes of one event, from 24.10 on. Default: no limit, as of a server that is not told of one. */
  readonly maxAppendEventSize?: number;
  /** The release whose rules it follows. Default 24.10. */
  readonly version?: ServerVersion;
  /** False: ids are not compared, as when `any` fell out of the server's cache. Default true. */
  readonly idempotent?: boolean;
  readonly now?: () => number;
};

type Metadata = { maxCount?: number; maxAge?: number; truncateBefore?: number };

const SOFT_DELETED = 9_223_372_036_854_775_807n;
const METADATA_TYPE = '$metadata';

export const createLog = (options: LogOptions = {}) => {
  const { maxAppendSize = 1024 * 1024, maxAppendEventSize = Infinity, now = Date.now } = options;
  const isOld = options.version === '23.10';
  let idempotent = options.idempotent ?? true;
  const all: StoredEvent[] = [];
  const streams = new Map<string, StoredEvent[]>();
  const tombstones = new Set<string>();
  const wakers = new Set<() => void>();
  /** Where a record begins or began: a scavenge leaves its place. */
  let begins = new Set<number>();
  let end = 1;

  const eventsOf = (stream: string): readonly StoredEvent[] => streams.get(stream) ?? [];

  const metadataOf = (stream: string): Metadata => {
    const text = eventsOf(`$$${stream}`).at(-1);
    if (text === undefined) return {};
    const raw = JSON.parse(Buffer.from(text.data).toString('utf8')) as {
      $maxCount?: number;
      $maxAge?: number;
      $tb?: number;
    };
    return {
      ...(raw.$maxCount !== undefined && { maxCount: raw.$maxCount }),
      ...(raw.$maxAge !== undefined && { maxAge: raw.$maxAge }),
      ...(raw.$tb !== undefined && { truncateBefore: raw.$tb >= Number(SOFT_DELETED) ? Infinity : raw.$tb }),
    };
  };
  const softDeleted = (stream: string): boolean => metadataOf(stream).truncateBefore === Infinity;

  /** `not-found` and `deleted` are answers of their own; truncated events are simply not returned. */
  const read = (stream: string): readonly StoredEvent[] | 'not-found' | 'deleted' => {
    if (tombstones.has(stream)) return 'deleted';
    const events = eventsOf(stream);
    const last = events.at(-1);
    if (last === undefined || softDeleted(stream)) return 'not-found';
    const { maxCount = Infinity, maxAge = Infinity, truncateBefore = 0 } = metadataOf(stream);
    const oldest = now() - maxAge * 1000;
    return events.filter(
      (e) => e.revision > last.revision - maxCount && e.revision >= truncateBefore && !(e.created < oldest),
    );
  };

  const store = (stream: string, proposed: readonly ProposedEvent[]): StoredEvent | undefined => {
    const events = streams.get(stream) ?? [];
    streams.set(stream, events);
    for (const event of proposed) {
      const stored = { ...event, stream, revision: events.length, offset: end, created: now() };
      begins.add(end);
      end += sizeOf(event);
      events.push(stored);
      all.push(stored);
    }
    for (const wake of wakers) wake();
    return events.at(-1);
  };

  const writeMetadata = (stream: string, text: string): void => {
    const data = Buffer.from(text, 'utf8');
    const id = crypto.randomUUID();
    store(`$$${stream}`, [
      { id, type: METADATA_TYPE, contentType: 'application/json', data, metadata: Buffer.alloc(0) },
    ]);
  };

  /** The original answer when exactly these ids are stored where this append would have put them. */
  const alreadyStored = (
    stream: string,
    expected: Expected,
    proposed: readonly ProposedEvent[],
  ): WriteResult | undefined => {
    const events = eventsOf(stream);
    const firstId = proposed[0]?.id;
    const from =
      expected === 'no_stream'
        ? 0
        : typeof expected === 'number'
          ? expected + 1
          : events.findIndex((e) => e.id === firstId);
    if (!idempotent || from < 0 || proposed.length === 0) return undefined;
    const same = events.slice(from, from + proposed.length);
    const last = same.at(-1);
    if (last === undefined || same.length < proposed.length) return undefined;
    if (!same.every((e, i) => e.id === proposed[i]?.id)) return undefined;
    // Of events that `$maxCount` took the position is not known any more.
    const kept = read(stream);
    const isKept = typeof kept !== 'string' && kept.includes(last);
    return { kind: 'success', revision: last.revision, offset: isKept ? last.offset : undefined };
  };

  /** What counts against the limit: up to 23.10 the data alone. */
  const countOf = ({ type, data, metadata }: ProposedEvent): number =>
    isOld ? data.length : data.length + metadata.length + 2 * type.length;

  const append = (stream: string, expected: Expected, proposed: readonly ProposedEvent[]): WriteResult => {
    if (tombstones.has(stream)) return { kind: 'deleted' };
    const sizes = proposed.map(countOf);
    if (sizes.reduce((sum, size) => sum + size, 0) > maxAppendSize)
      return { kind: 'too-large', limit: maxAppendSize };
    const large = isOld ? -1 : sizes.findIndex((size) => size > maxAppendEventSize);
    if (large >= 0)
      return {
        kind: 'event-too-large',
        id: proposed[large]?.id ?? '',
        size: sizes[large] ?? 0,
        limit: maxAppendEventSize,
      };
    const last = eventsOf(stream).at(-1);
    const absent = last === undefined || softDeleted(stream);
    const fits =
      expected === 'any'
        ? true
        : expected === 'no_stream'
          ? absent
          : expected === 'stream_exists'
            ? !absent
            : last?.revision === expected;
    const earlier =
      fits && typeof expected === 'number' ? undefined : alreadyStored(stream, expected, proposed);
    if (earlier !== undefined && !(expected === 'no_stream' && absent)) return earlier;
    if (!fits) return { kind: 'wrong-version', current: absent ? 'no_stream' : last.revision };
    if (last !== undefined && absent) writeMetadata(stream, `{"$tb":${last.revision + 1}}`);
    const stored = store(stream, proposed);
    return { kind: 'success', revision: stored?.revision, offset: stored?.offset };
  };

  /** Takes out of the log what metadata and deletions freed. Revisions and positions stay as they are. */
  const scavenge = (): void => {
    const kept = [...streams.keys()].flatMap((stream) => {
      const events = read(stream);
      return typeof events === 'string' ? eventsOf(stream).slice(-1) : events;
    });
    const remains = new Set(kept);
    all.splice(0, all.length, ...all.filter((event) => remains.has(event)));
  };

  /** An older copy takes the place of the log: the newest `records` never were. */
  const goBack = (records: number): void => {
    all.splice(Math.max(0, all.length - records));
    streams.clear();
    for (const event of all) streams.set(event.stream, [...eventsOf(event.stream), event]);
    begins = new Set(all.map(({ offset }) => offset));
    const last = all.at(-1);
    end = last === undefined ? 1 : last.offset + sizeOf(last);
  };

  return {
    append,
    read,
    scavenge,
    goBack,
    /** Whether a record begins here, or the log ends before. The record at 0 is an epoch, which no read shows. */
    isPlace: (offset: number): boolean => offset === 0 || offset >= end || begins.has(offset),
    /** Every event in log order; grows in place. */
    all: all as readonly StoredEvent[],
    /** Both return the offset that the answer names. */
    softDelete: (stream: string): number => {
      writeMetadata(stream, `{"$tb":${SOFT_DELETED}}`);
      return eventsOf(`$$${stream}`).at(-1)?.offset ?? 0;
    },
    tombstone: (stream: string): number => {
      tombstones.add(stream);
      return end;
    },
    /** Stores an event past every check, for what only foreign writers do (broken JSON, system events). */
    inject: (stream: string, event: Partial<ProposedEvent> & { type: string }): void =>
      void store(stream, [
        {
          id: crypto.randomUUID(),
          contentType: 'application/json',
          data: Buffer.from('{}'),
          metadata: Buffer.alloc(0),
          ...event,
        },
      ]),
    forgetIds: (forget: boolean): void => {
      idempotent = !forget;
    },
    onAppend: (wake: () => void): (() => void) => {
      wakers.add(wake);
      return () => wakers.delete(wake);
    },
  };
};

const sizeOf = ({ type, data, metadata }: ProposedEvent): number =>
  64 + type.length + data.length + metadata.length;

export type Log = ReturnType<typeof createLog>;
