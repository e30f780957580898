import type { Holder } from '../../domain/holder.ts';
import type { Metering } from '../../domain/metering/meter.ts';
import { heartbeatsOf } from './metering-records.ts';
import type { KafkaRecord } from './stream.ts';

/** A page of what is billed at present, by kind and id after `after`; the read model `usage` gives it. */
export type Billed = (page: {
  readonly after: Holder;
  readonly limit: number;
}) => readonly { readonly place: Holder; readonly meter: Metering }[];

/** Objects whose meters are read in one turn of the thread. */
const PAGE = 50;

/** Start of the window that a moment lies in, milliseconds since 1970: the same for every publisher. */
export const windowStart = (nowMs: number, intervalMs: number): number =>
  Math.floor(nowMs / intervalMs) * intervalMs;

/**
 * Records of `osac.metering.heartbeat` at one moment, a page of clusters at a time. A function of state and clock: nothing
 * of it is stored, and a window that nobody sent is not made up for. Times and durations are those of the window's start: what
 * is sent twice for one window, by whomever, has equal ids and tells the same of the same state.
 */
export function* heartbeats(
  billed: Billed,
  { nowMs, intervalMs }: { readonly nowMs: number; readonly intervalMs: number },
): Generator<readonly KafkaRecord[]> {
  const startMs = windowStart(nowMs, intervalMs);
  for (let after = { kind: '', id: '' }; ; ) {
    const page = billed({ after, limit: PAGE });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page.flatMap(({ meter }) => heartbeatsOf(meter, startMs));
    after = last.place;
  }
}
