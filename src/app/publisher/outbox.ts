import type { Position } from '../log/event-store.ts';
import type { KafkaRecord } from '../streams/stream.ts';
import { sizeOf } from './ports.ts';

/** What one event became, on its way to the brokers. */
export type Parcel = {
  readonly position: Position;
  readonly stream: string;
  readonly revision: number;
  readonly recordedAt: string;
  readonly records: readonly KafkaRecord[];
  readonly bytes: number;
};

export type Limits = { readonly records: number; readonly bytes: number };

/**
 * What is read of the log and not yet confirmed by the brokers, in log order and bounded: when it is full the reader
 * waits, and the log itself is the buffer.
 */
export type Outbox = {
  /**
   * Waits for room; one parcel is taken however large it is. Left out once the signal is aborted, and when there is room
   * and it is not wanted any more.
   */
  put(parcel: Omit<Parcel, 'bytes'>, signal: AbortSignal, isWanted?: () => boolean): Promise<void>;
  /** Takes it when there is room, without waiting: false when there is none. */
  offer(parcel: Omit<Parcel, 'bytes'>): boolean;
  /**
   * Nothing is to be sent up to this position: what is in front of it still is. Of many in a row only some wake whoever
   * waits for a change: each topic passes nearly the whole log. `events`: how many are passed at once.
   */
  pass(position: Position, events?: number): void;
  /** The oldest parcels, within the limits but at least one; empty: there is nothing. They stay until `sent`. */
  head(limits: Limits): readonly Parcel[];
  /** The oldest `count` parcels are done with. */
  sent(count: number): void;
  /** Takes out every parcel of a stream. */
  drop(stream: string): void;
  /** Everything up to here is done with; undefined: nothing was read yet. */
  reached(): Position | undefined;
  /**
   * Resolves when something was put, sent or dropped, much was passed, or the signal is aborted. `arm` is given what ends
   * the wait, and returns what takes that back.
   */
  changed(signal: AbortSignal, arm?: (end: () => void) => () => void): Promise<void>;
  readonly size: () => { readonly parcels: number; readonly records: number; readonly bytes: number };
};

/** Passed positions after which somebody may want to store how far it is. */
const WAKE_EVERY = 250;

export const createOutbox = (limits: Limits): Outbox => {
  let parcels: Parcel[] = [];
  let records = 0;
  let bytes = 0;
  /** Everything that was read lies up to here; with no parcels left it is done with, too. */
  let read: Position | undefined;
  let done: Position | undefined;
  let passed = 0;
  const waiting = new Set<() => void>();
  const wake = (): void => {
    passed = 0;
    for (const each of waiting) each();
  };
  /** Signals that wake: one listener each, since waiting is what is done most. */
  const heard = new WeakSet<AbortSignal>();
  const changed = (signal: AbortSignal, arm?: (end: () => void) => () => void): Promise<void> =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      if (!heard.has(signal)) {
        heard.add(signal);
        signal.addEventListener('abort', wake, { once: true });
      }
      let disarm: (() => void) | undefined;
      const end = (): void => {
        waiting.delete(end);
        disarm?.();
        resolve();
      };
      waiting.add(end);
      disarm = arm?.(end);
    });
  const count = (removed: readonly Parcel[]): void => {
    for (const parcel of removed) {
      records -= parcel.records.length;
      bytes -= parcel.bytes;
    }
    wake();
  };

  const hasRoom = (size: number): boolean =>
    parcels.length === 0 || (records < limits.records && bytes + size <= limits.bytes);
  const add = (parcel: Omit<Parcel, 'bytes'>, size: number): void => {
    read = parcel.position;
    parcels.push({ ...parcel, bytes: size });
    records += parcel.records.length;
    bytes += size;
    wake();
  };

  return {
    put: async (parcel, signal, isWanted = () => true) => {
      const size = sizeOfAll(parcel.records);
      while (!hasRoom(size)) {
        if (signal.aborted) return;
        await changed(signal);
      }
      if (signal.aborted) return;
      if (isWanted()) add(parcel, size);
      else read = parcel.position;
    },
    offer: (parcel) => {
      const size = sizeOfAll(parcel.records);
      if (!hasRoom(size)) return false;
      add(parcel, size);
      return true;
    },
    pass: (position, events = 1) => {
      read = position;
      passed += events;
      if (parcels.length === 0 && passed >= WAKE_EVERY) wake();
    },
    head: (most) => {
      let taken = 0;
      let [sumRecords, sumBytes] = [0, 0];
      for (const parcel of parcels) {
        sumRecords += parcel.records.length;
        sumBytes += parcel.bytes;
        if (taken > 0 && (sumRecords > most.records || sumBytes > most.bytes)) break;
        taken += 1;
      }
      return parcels.slice(0, taken);
    },
    sent: (number) => {
      const removed = parcels.slice(0, number);
      parcels = parcels.slice(number);
      done = removed.at(-1)?.position ?? done;
      count(removed);
    },
    drop: (stream) => {
      const removed = parcels.filter((parcel) => parcel.stream === stream);
      parcels = parcels.filter((parcel) => parcel.stream !== stream);
      count(removed);
    },
    reached: () => (parcels.length === 0 ? (read ?? done) : done),
    changed,
    size: () => ({ parcels: parcels.length, records, bytes }),
  };
};

const sizeOfAll = (records: readonly KafkaRecord[]): number =>
  records.reduce((sum, record) => sum + sizeOf(record), 0);
