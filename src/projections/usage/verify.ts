import type { DatabaseSync } from 'node:sqlite';
import type { Meter, OpenInterval } from '../../domain/metering/meter.ts';
import { streamName } from '../../domain/stream-name.ts';
import type { Decode } from '../resources/fold.ts';
import type { ReadStream } from '../view.ts';

const SAMPLES = 50;

/** Checks a freshly built file: sampled objects, folded again from the log, must give the stored intervals. */
export const verifyUsage = async (
  db: DatabaseSync,
  codec: Pick<Decode, 'decode'>,
  kinds: readonly { readonly kind: string; readonly meter: Meter }[],
  readStream: ReadStream,
): Promise<readonly string[]> => {
  const problems: string[] = [];
  const step = Math.max(
    1,
    Math.floor(Number(db.prepare('SELECT count(*) AS n FROM meters').get()?.['n']) / SAMPLES),
  );
  const sampled = db
    .prepare('SELECT kind, resource, revision FROM meters WHERE rowid % ? = 0 LIMIT ?')
    .all(step, SAMPLES);
  const stored = db.prepare(
    'SELECT component, node_set, since_ms, until_ms, delivered_ms FROM intervals WHERE kind = ? AND resource = ?',
  );
  for (const row of sampled) {
    const [kind, id] = [String(row['kind']), String(row['resource'])];
    const meter = kinds.find((each) => each.kind === kind)?.meter;
    if (meter === undefined) continue;
    const events = readStream(streamName(kind, id));
    const folded = await foldedIntervals(meter, events, Number(row['revision']), codec);
    const rows = stored
      .all(kind, id)
      .map((interval) => JSON.stringify(Object.values(interval)))
      .toSorted();
    if (rows.join() !== folded.join())
      problems.push(`the intervals of ${kind} ${id} are not those that its stream gives`);
  }
  return problems;
};

const foldedIntervals = async (
  rules: Meter,
  events: ReturnType<ReadStream>,
  revision: number,
  codec: Pick<Decode, 'decode'>,
): Promise<readonly string[]> => {
  let meter = rules.initial();
  const rows: (readonly (string | number | null)[])[] = [];
  const add = ({ component: { component, nodeSet }, sinceMs }: OpenInterval, until: number | null): void =>
    void rows.push([component, nodeSet, sinceMs, until]);
  for await (const event of events) {
    if (event.revision > revision) break;
    const step = rules.fold(meter, codec.decode(event));
    for (const interval of step.closed)
      if (interval.untilMs > interval.sinceMs) add(interval, interval.untilMs);
    meter = step.meter;
  }
  for (const interval of meter.open) add(interval, null);
  return rows.map((row) => JSON.stringify([...row, meter.deliveredMs ?? null])).toSorted();
};
