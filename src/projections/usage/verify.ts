import type { DatabaseSync } from 'node:sqlite';
import { CLUSTER_CATEGORY } from '../../domain/clusters/cluster.ts';
import type { ClusterEvent } from '../../domain/clusters/events.ts';
import { initialMeter, meterEvent, type OpenInterval } from '../../domain/metering/cluster-meter.ts';
import { streamName } from '../../domain/stream-name.ts';
import type { Decode } from '../resources/fold.ts';
import type { ReadStream } from '../view.ts';

const SAMPLES = 50;

/** Checks a freshly built file: sampled clusters, folded again from the log, must give the stored intervals. */
export const verifyUsage = async (
  db: DatabaseSync,
  codec: Pick<Decode, 'decode'>,
  readStream: ReadStream,
): Promise<readonly string[]> => {
  const problems: string[] = [];
  const step = Math.max(
    1,
    Math.floor(Number(db.prepare('SELECT count(*) AS n FROM meters').get()?.['n']) / SAMPLES),
  );
  const sampled = db
    .prepare('SELECT resource, revision FROM meters WHERE rowid % ? = 0 LIMIT ?')
    .all(step, SAMPLES);
  const stored = db.prepare(
    'SELECT component, node_set, since_ms, until_ms, delivered_ms FROM intervals WHERE resource = ?',
  );
  for (const { resource, revision } of sampled) {
    const id = String(resource);
    const folded = await foldedIntervals(id, Number(revision), codec, readStream);
    const rows = stored
      .all(id)
      .map((row) => JSON.stringify(Object.values(row)))
      .toSorted();
    if (rows.join() !== folded.join())
      problems.push(`the intervals of cluster ${id} are not those that its stream gives`);
  }
  return problems;
};

const foldedIntervals = async (
  id: string,
  revision: number,
  codec: Pick<Decode, 'decode'>,
  readStream: ReadStream,
): Promise<readonly string[]> => {
  let meter = initialMeter();
  const rows: (readonly (string | number | null)[])[] = [];
  const add = ({ component: { component, nodeSet }, sinceMs }: OpenInterval, until: number | null): void =>
    void rows.push([component, nodeSet, sinceMs, until]);
  for await (const event of readStream(streamName(CLUSTER_CATEGORY, id))) {
    if (event.revision > revision) break;
    const step = meterEvent(meter, codec.decode(event) as ClusterEvent);
    for (const interval of step.closed)
      if (interval.untilMs > interval.sinceMs) add(interval, interval.untilMs);
    meter = step.meter;
  }
  for (const interval of meter.open) add(interval, null);
  return rows.map((row) => JSON.stringify([...row, meter.deliveredMs ?? null])).toSorted();
};
