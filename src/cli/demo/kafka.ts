import { setTimeout as pause } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { METERING_TOPICS, eventsTopic, stateTopic } from '../../app/streams/topics.ts';
import type { JsonObject } from '../../domain/json.ts';
import { objectAt, stringAt } from '../../domain/json-tools.ts';
import type { ApiClient } from '../api-client.ts';
import { ClaimFailed, type Narrator } from './narrator.ts';

export type DemoRecord = {
  readonly topic: string;
  readonly key: string;
  readonly value: string | null;
  readonly headers: { readonly [name: string]: string };
};

/** Reads what comes to the topics from now on; the composition root brings it. */
export type FollowRecords = (
  brokers: readonly string[],
  topics: readonly string[],
  onRecord: (record: DemoRecord) => void,
) => Promise<{ close(): Promise<void> }>;

/** What a consumer of the brokers sees of the demo. Without brokers each step does nothing. */
export type DemoKafka = {
  /** Shows the records of a cluster and compares them with what the service shows of it. */
  showOrder(cluster: string): Promise<void>;
  /** Waits until the topic of documents says that these are gone. */
  showGone(clusters: readonly string[]): Promise<void>;
  close(): Promise<void>;
};

const EVENTS = eventsTopic('clusters');
const STATE = stateTopic('cluster');
const { lifecycle: METERING } = METERING_TOPICS;
const CLUSTERS = '/api/fulfillment/v1/clusters';
const LOOK_MS = 100;
const NONE: DemoKafka = {
  showOrder: async () => {},
  showGone: async () => {},
  close: async () => {},
};

export type DemoKafkaOptions = {
  readonly brokers: readonly string[] | undefined;
  readonly follow: FollowRecords;
  readonly narrator: Narrator;
  readonly tenant: () => ApiClient;
  readonly admin: () => ApiClient;
  readonly patienceMs: number;
  /** Told of topics that were made, whatever becomes of the reading. */
  readonly onMade: (topics: readonly string[]) => void;
};

/** Makes the topics that are missing, and begins to read those of clusters. */
export const followOnKafka = async (options: DemoKafkaOptions): Promise<DemoKafka> => {
  const { brokers, narrator, tenant, admin, patienceMs } = options;
  if (brokers === undefined) return NONE;
  narrator.chapter(`Kafka: a consumer of ${brokers.join(',')}`);
  const { created } = await admin().send<{ created: readonly string[] }>(
    'POST',
    '/api/ledger/v1/kafka/topics',
  );
  options.onMade(created);
  narrator.say(`${created.length} topics were made; those that were there are left as they are`);
  const records: DemoRecord[] = [];
  const reader = await options.follow(brokers, [EVENTS, STATE, METERING], (record) => records.push(record));

  const recordsOf = (topic: string, cluster: string): readonly DemoRecord[] =>
    newerOnly(records.filter((record) => record.topic === topic && record.key === cluster));
  const arrives = async (claim: string, holds: () => Promise<boolean> | boolean): Promise<void> => {
    const deadline = performance.now() + patienceMs;
    while (!(await holds())) {
      if (performance.now() > deadline) throw new ClaimFailed(`${claim}: not within ${patienceMs / 1000} s`);
      await pause(LOOK_MS);
    }
  };

  return {
    showOrder: async (cluster) => {
      const path = `${CLUSTERS}/${cluster}`;
      const shown = (): Promise<JsonObject> => tenant().get<JsonObject>(path);
      const name = stringAt(objectAt(await shown(), 'metadata'), 'name');
      narrator.chapter(`Kafka: what arrived of ${name}`);
      const told = (): readonly JsonObject[] =>
        recordsOf(EVENTS, cluster)
          .map(eventOf)
          .filter(({ osacaudience: audience }) => audience === 'tenant');
      // Both go on meanwhile, so that they are compared until they are the same.
      await arrives('each entry of its timeline arrives, in its order', async () => {
        const { items = [] } = await tenant().get<{ items?: { type: string }[] }>(`${path}/timeline`);
        const types = items.map(({ type }) => type);
        return isDeepStrictEqual(told().map(typeOf), types);
      });
      for (const event of told())
        narrator.event(stringAt(event, 'time'), typeOf(event), stringAt(event, 'id'));
      narrator.check(
        'each entry of its timeline arrived, in its order',
        true,
        `${told().length} on ${EVENTS}`,
      );
      await arrives('its newest document comes to be what GET shows', async () => {
        const newest = recordsOf(STATE, cluster).map(eventOf).at(-1);
        return isDeepStrictEqual(objectAt(newest ?? {}, 'data'), await shown());
      });
      narrator.check('its newest document is what GET shows', true, STATE);
      const metered = (): readonly string[] => recordsOf(METERING, cluster).map(eventOf).map(typeOf);
      await arrives('metering begins', () => metered().length > 1);
      narrator.check(
        'metering begins with its creation and the start of its parts',
        metered()[0] === 'created' && metered().includes('started'),
        metered().join(', '),
      );
    },
    showGone: async (clusters) => {
      narrator.chapter('Kafka: what arrived of the deletions');
      const isGone = (cluster: string): boolean => recordsOf(STATE, cluster).at(-1)?.value === null;
      await arrives('the tombstones', () => clusters.every(isGone));
      narrator.check('a tombstone is the last of each', clusters.every(isGone), STATE);
      narrator.check('repeated records were equal', areEqual(records), `${records.length} records`);
    },
    close: () => reader.close(),
  };
};

/** The contract with consumers (docs/streams.md): apply what is newer than the last of its stream; one event may be several records. */
const newerOnly = (records: readonly DemoRecord[]): readonly DemoRecord[] => {
  const seen = new Set<string>();
  let newest = -1;
  return records.filter((record) => {
    const revision = revisionOf(record);
    const id = idOf(record);
    if (revision < newest || seen.has(id)) return false;
    newest = revision;
    seen.add(id);
    return true;
  });
};

const eventOf = ({ value }: DemoRecord): JsonObject =>
  value === null ? {} : (JSON.parse(value) as JsonObject);
/** Records of metering have it in the event alone. */
const revisionOf = (record: DemoRecord): number =>
  Number(record.headers['osacrevision'] ?? eventOf(record)['osacrevision']);
const idOf = (record: DemoRecord): string =>
  record.value === null ? `tombstone@${revisionOf(record)}` : stringAt(eventOf(record), 'id');

/** `osac.clusters.ClusterOrdered.v1` → `ClusterOrdered`. */
const typeOf = (event: JsonObject): string => stringAt(event, 'type').split('.').at(-2) ?? '';

const areEqual = (records: readonly DemoRecord[]): boolean => {
  const known = new Map<string, string | null>();
  return records.every((record) => {
    const id = `${record.topic} ${record.key} ${idOf(record)}`;
    const before = known.get(id);
    known.set(id, record.value);
    return before === undefined || before === record.value;
  });
};
