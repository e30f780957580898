import type { EventToAppend, ExpectedRevision } from '../../../app/log/event-store.ts';
import type { PackedError } from './errors.ts';

/**
 * What passes between the threads. A batch is one flat list, [stream, expected, after, count, {id, type, data, metadata}…]
 * per append, and so is its answer: cloning one list of texts costs a fraction of cloning as many objects. `after` is the
 * place in the batch of an append that this one rests on, or NO_APPEND.
 */
export type Batch = (string | number)[];
export const HEAD_FIELDS = 4;
export const EVENT_FIELDS = 4;

export const NO_APPEND = -1;

export const NO_STREAM = -1;

export const encodeRevision = (revision: ExpectedRevision): number =>
  revision === 'no_stream' ? NO_STREAM : revision;

export const decodeRevision = (revision: number): ExpectedRevision =>
  revision === NO_STREAM ? 'no_stream' : revision;

export const encodeAppend = (
  batch: Batch,
  stream: string,
  expected: ExpectedRevision,
  events: readonly EventToAppend[],
  after: number,
): void => {
  batch.push(stream, encodeRevision(expected), after, events.length);
  for (const event of events) batch.push(event.id, event.type, event.data, event.metadata);
};

/** Codes of an answer: three numbers per append, [code, revision, position]. */
export const STORED = 0;
export const DUPLICATE = 1;
/** The revision is the actual one; the position means nothing. Neither does where the append that it rests on has one. */
export const CONFLICT = 2;

export type BatchAnswer =
  | {
      readonly kind: 'settled';
      readonly answers: readonly number[];
      /** Number of the last event of the log. */
      readonly last: number;
    }
  /** Nothing of the batch was stored. */
  | { readonly kind: 'refused'; readonly reason: 'full' | 'down'; readonly message: string }
  /** COMMIT failed and it could not be found out what is stored. */
  | { readonly kind: 'unknown'; readonly message: string };

/** Values of `PRAGMA`s on the live writing connection. */
export type WriterPragmas = {
  readonly journalMode: string;
  /** 2 is FULL: COMMIT returns after the log was synced to disk. */
  readonly synchronous: number;
  readonly pageSize: number;
  readonly pageCount: number;
  readonly walAutocheckpoint: number;
  readonly userVersion: number;
};

/** Everything but batches is a request with a number, answered by that number. */
export type Request =
  | { readonly kind: 'set-max-count'; readonly stream: string; readonly maxCount: number }
  | { readonly kind: 'ping' }
  | { readonly kind: 'pragmas' }
  | { readonly kind: 'close' };

export type ToWriter = Batch | { readonly id: number; readonly request: Request };

export type FromWriter =
  | { readonly kind: 'ready'; readonly storeId: string; readonly last: number }
  | { readonly kind: 'start-failed'; readonly error: PackedError }
  | { readonly kind: 'batch'; readonly answer: BatchAnswer }
  | { readonly kind: 'done'; readonly id: number; readonly result: unknown }
  | {
      readonly kind: 'failed';
      readonly id: number;
      readonly reason: 'full' | 'down';
      readonly message: string;
    };

export type WriterData = {
  readonly file: string;
  readonly busyMs: number;
  readonly checkNewest: number;
  readonly faults: SharedArrayBuffer | undefined;
};

/** Word of growth after `each` COMMIT, or `gathered`: one for all COMMITs of so many milliseconds. */
export type GrowthPace = 'each' | 'gathered';
export const GATHERED_MS = 15;

/** Name of the channel on which the writer says how far the log reaches. */
export const growthChannel = (storeId: string, pace: GrowthPace): string => `event-log-${storeId}-${pace}`;
