import { isObject, own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import type { EventStore } from '../log/event-store.ts';
import { timeOf } from '../streams/cloud-event.ts';
import type { TopicSpec } from '../streams/stream.ts';
import { originOf } from '../streams/streams.ts';
import type { KafkaAdmin, LastRecord } from './ports.ts';

/**
 * Whether what a topic holds is of this log. A log that was restored from an older backup goes on from an earlier point: a
 * revision of a stream then says something else than consumers have seen, and they pass over it (docs/streams.md, rule 3).
 * The newest records of a topic tell it: each is of an event that the log has, or it has lost it.
 */
export type HistoryCheck = (topics: readonly TopicSpec[], signal: AbortSignal) => Promise<Compared>;

export type Compared = {
  /** By topic: what it holds that this log does not have. */
  readonly others: ReadonlyMap<string, string>;
  /** By topic: why it was not compared. */
  readonly not: ReadonlyMap<string, NotCompared>;
};

/** `unauthorized`: we have no right to read the topic; `failed`: the look went wrong, and is repeated. */
export type NotCompared = { readonly reason: 'unauthorized' | 'failed'; readonly message: string };

/**
 * Where consumers apply by revision, what is new would be passed over, so that nothing is sent. Bills may have been made of
 * metering, and whoever keeps signed heads is meant to notice: there it goes on.
 */
export const stopsAtOtherHistory = ({ kind }: Pick<TopicSpec, 'kind'>): boolean =>
  kind === 'events' || kind === 'state';

export type HistoryOptions = {
  readonly admin: Pick<KafkaAdmin, 'lastRecords'>;
  readonly store: Pick<EventStore, 'storeId' | 'readStream' | 'currentRevision'>;
};

/** Topics that we may not read are not compared, nor records that are not ours. Throws KafkaFault, and what the store throws. */
export const createHistoryCheck =
  ({ admin, store }: HistoryOptions): HistoryCheck =>
  async (topics, signal) => {
    const fromLog = topics.filter(({ filter }) => filter !== undefined);
    const others = new Map<string, string>();
    const not = new Map<string, NotCompared>();
    if (fromLog.length === 0) return { others, not };
    const newest = await admin.lastRecords(
      fromLog.map(({ name }) => name),
      signal,
    );
    for (const topic of fromLog) {
      const records = newest.get(topic.name);
      if (records === undefined) not.set(topic.name, NO_RIGHT);
      for (const record of records ?? []) {
        const other = await otherOf(record, store, signal);
        if (other === undefined) continue;
        others.set(topic.name, messageOf(other, topic));
        // Of several partitions this one says most.
        if (other.startsWith(FOREIGN)) break;
      }
    }
    return { others, not };
  };

const NO_RIGHT: NotCompared = { reason: 'unauthorized', message: 'we have no right to read it (`Read`)' };

const messageOf = (other: string, topic: TopicSpec): string => {
  if (!stopsAtOtherHistory(topic)) return `holds ${other}: its records stay, and what is new follows them`;
  // Whoever deletes a topic of another deployment takes its records from their consumers.
  return other.startsWith(FOREIGN)
    ? `holds ${other}: nothing is sent to it; find out who else publishes there before it is deleted (runbook LedgerKafkaTopicsWrong)`
    : `holds ${other}: nothing is sent to it; if the log was restored from an older backup, delete the topic and run \`ledgerctl kafka create-topics\` (docs/streams.md)`;
};

const FOREIGN = 'records of another log';

/** Where in the log a record says that it is from. */
type Place = {
  readonly stream: string;
  readonly revision: number;
  /** Empty: the record has none. */
  readonly position: string;
  readonly time: string;
  readonly log: string;
};

const placeOf = ({ value, headers }: LastRecord): Place | undefined => {
  const event = value === null ? {} : parsed(value);
  const stream = stringAt(event, 'osacstream') || (own(headers, 'osacstream') ?? '');
  const revision = Number(own(event, 'osacrevision') ?? own(headers, 'osacrevision') ?? Number.NaN);
  if (stream === '' || !Number.isSafeInteger(revision)) return undefined;
  const source = /^(fulfillment-ledger\/[^/]+)/.exec(stringAt(event, 'source'))?.[1] ?? '';
  const position = stringAt(event, 'osacposition');
  // Metering records have a time of their own, and a source that names no log.
  return { stream, revision, position, log: source, time: source === '' ? '' : stringAt(event, 'time') };
};

/** What a record is of that this log does not have; undefined: it has it, or that cannot be known. */
const otherOf = async (
  record: LastRecord,
  store: HistoryOptions['store'],
  signal: AbortSignal,
): Promise<string | undefined> => {
  const place = placeOf(record);
  if (place === undefined) return undefined;
  const { stream, revision, position, time, log } = place;
  if (log !== '' && log !== originOf(store.storeId)) return `${FOREIGN}, ${log}`;
  const other = `${stream}@${revision}, which this log does not have`;
  for await (const event of store.readStream(stream, { from: revision, limit: 1, signal })) {
    // A bounded stream begins later than that.
    if (event.revision !== revision) return undefined;
    const isSame =
      (position === '' || position === event.position) && (time === '' || time === timeOf(event));
    return isSame ? undefined : `${stream}@${revision} of another time than this log has it`;
  }
  const current = await store.currentRevision(stream, signal);
  return current !== 'no_stream' && current >= revision ? undefined : other;
};

const parsed = (value: string): JsonObject => {
  try {
    const event = JSON.parse(value) as JsonValue;
    return isObject(event) ? event : {};
  } catch {
    return {};
  }
};
