import type { KafkaSettings } from '../adapters/kafka/kafkajs-client.ts';
import type { Leases } from '../adapters/ownership/lease-ownership.ts';
import { createKafkaCluster } from '../adapters/kafka/kafkajs-cluster.ts';
import { createLeafGuard, heldLog } from '../app/audit/verified-reads.ts';
import type { EventStore } from '../app/log/event-store.ts';
import type { Runtime } from '../app/ports.ts';
import { PUBLISHER_LEASE } from '../app/publisher/ports.ts';
import { createPublisher, type Publisher, type PublisherOptions } from '../app/publisher/publisher.ts';
import { createTurns } from '../app/fairness/slicer.ts';
import { createStreams } from '../app/streams/streams.ts';
import { heartbeats } from '../app/streams/heartbeats.ts';
import { METERING_TOPICS, topicsOf } from '../app/streams/topics.ts';
import type { Config } from '../config.ts';
import { defined } from '../domain/json-tools.ts';
import { kinds } from '../domain/kinds.ts';
import { registry } from '../domain/registry.ts';
import type { ReadModels } from '../projections/read-models.ts';

export type PublishingOptions = {
  readonly store: EventStore;
  readonly leases: Leases;
  readonly hooks: NonNullable<PublisherOptions['hooks']>;
  readonly readModels: Pick<ReadModels, 'audit' | 'usage' | 'status'>;
} & Runtime;

/** The publisher of the brokers that the settings name. Does not wait for any. */
export const openPublisher = (config: Config, options: PublishingOptions): Publisher => {
  const { store, clock, readModels } = options;
  const logger = options.logger.child({ component: 'publisher' });
  return createPublisher({
    ...options,
    streams: (from = store) => createStreams({ registry, kinds, store: from, turn: createTurns(clock) }),
    recorded: heldLog(
      store,
      createLeafGuard(() => readModels.audit),
    ),
    topics: topicsOf(registry, kinds),
    ...heartbeatsOf(config.kafkaHeartbeatMs, readModels),
    cluster: createKafkaCluster(kafkaSettings(config), { logger, clock }),
    ownership: options.leases(PUBLISHER_LEASE),
    logger,
  });
};

/** While the read model is behind, clusters would be left out. */
const heartbeatsOf = (
  intervalMs: number,
  readModels: Pick<ReadModels, 'usage' | 'status'>,
): Pick<PublisherOptions, 'heartbeats'> => {
  if (intervalMs === 0) return {};
  const recordsAt = (nowMs: number) => {
    const { usage } = readModels;
    const isCaughtUp = readModels.status().some(({ name, caughtUp }) => name === USAGE_VIEW && caughtUp);
    return usage === undefined || !isCaughtUp ? undefined : heartbeats(usage.billed, { nowMs, intervalMs });
  };
  return { heartbeats: { topic: METERING_TOPICS.heartbeat, intervalMs, recordsAt } };
};

const USAGE_VIEW = 'usage';

const kafkaSettings = (config: Config): KafkaSettings => {
  const { kafkaBrokers: brokers, kafkaClientId: clientId, kafkaTlsCa: tlsCa } = config;
  const {
    kafkaSaslMechanism: mechanism,
    kafkaSaslUsername: username,
    kafkaSaslPasswordFile: passwordFile,
  } = config;
  const isSigned = mechanism !== undefined && passwordFile !== undefined;
  const sasl = isSigned ? { mechanism, username, passwordFile } : undefined;
  return { brokers, clientId, ...defined({ tlsCa, sasl }) };
};
