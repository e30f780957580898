import type { ClusterMeter } from '../../domain/metering/cluster-meter.ts';
import { heartbeatsOf } from './metering-records.ts';
import type { KafkaRecord } from './stream.ts';

/** A page of clusters that are billed at present, by id after `after`; the read model `usage` gives it. */
export type BilledClusters = (page: {
  readonly after: string;
  readonly limit: number;
}) => readonly { readonly resource: string; readonly meter: ClusterMeter }[];

/** Clusters whose meters are read in one turn of the thread. */
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
  billed: BilledClusters,
  { nowMs, intervalMs }: { readonly nowMs: number; readonly intervalMs: number },
): Generator<readonly KafkaRecord[]> {
  const startMs = windowStart(nowMs, intervalMs);
  for (let after = ''; ; ) {
    const page = billed({ after, limit: PAGE });
    const last = page.at(-1);
    if (last === undefined) return;
    yield page.flatMap(({ meter }) => heartbeatsOf(meter, startMs));
    after = last.resource;
  }
}
