import type { AnyKind } from '../../domain/kinds.ts';
import type { Registry } from '../../domain/registry.ts';
import type { ReadForward, RecordedEvent } from '../log/event-store.ts';
import { createCheckpointMapper } from './checkpoint-records.ts';
import { createEventMapper, isNoEventOf, type TopicAudience } from './event-records.ts';
import { createLifecycleMapper, emptyMeter, foldMeter, type MeterFold } from './metering-records.ts';
import { emptyDocument, foldDocument } from './public-document.ts';
import { createStateMapper } from './state-records.ts';
import { createFoldMemory, createStreamFolds, type FoldMemoryOptions } from './stream-folds.ts';
import type { RecordMapper, TopicStream } from './stream.ts';
import {
  CHECKPOINTS_TOPIC,
  contextsOf,
  eventsTopic,
  meteredTopics,
  publicKinds,
  stateTopic,
  topicsOf,
} from './topics.ts';

export type StreamsOptions = {
  readonly registry: Registry;
  readonly kinds: readonly AnyKind[];
  readonly store: { readonly storeId: string; readonly readStream: ReadForward };
  /** See `createEventMapper`. Default: `tenant`. */
  readonly audience?: TopicAudience;
  /** Keeps folds of long streams from holding the thread, see `createTurns`. Absent: nothing else runs on it. */
  readonly turn?: () => Promise<void> | undefined;
  /** How much of streams stays folded in memory. */
  readonly memory?: FoldMemoryOptions;
};

/**
 * Every topic that the log fills, each with a mapper of its own; mappers keep folded streams, so that two publishers in
 * one process each need theirs. Heartbeats come from the clock (`heartbeatsOf`), and corrections never arise here, see
 * docs/streams.md.
 */
export const createStreams = (options: StreamsOptions): readonly TopicStream[] => {
  const mappers = mappersOf(options);
  const passing = new Map(
    contextsOf(options.registry).map((context) => [
      eventsTopic(context),
      isNoEventOf({ registry: options.registry, context }),
    ]),
  );
  return topicsOf(options.registry, options.kinds).flatMap((topic) => {
    const map = mappers.get(topic.name);
    if (map === undefined) return [];
    const isNothing = passing.get(topic.name);
    return [{ topic, map, ...(isNothing === undefined ? {} : { isNothing }) }];
  });
};

const mappersOf = ({
  registry,
  kinds,
  store,
  audience = 'tenant',
  turn = () => undefined,
  memory: bounds,
}: StreamsOptions): ReadonlyMap<string, RecordMapper> => {
  const origin = originOf(store.storeId);
  const memory = createFoldMemory(bounds);
  const readStream: ReadForward = (stream, how) => store.readStream(stream, how);
  const mappers = new Map<string, RecordMapper>();
  for (const context of contextsOf(registry)) {
    const topic = eventsTopic(context);
    mappers.set(topic, createEventMapper({ registry, source: origin, topic, context, audience }));
  }
  for (const kind of publicKinds(kinds)) {
    const topic = stateTopic(kind.kind);
    const folds = createStreamFolds({
      initial: () => emptyDocument(kind),
      fold: (before, event) => foldDocument(kind, registry, before, event),
      readStream,
      turn,
      memory,
      name: topic,
    });
    mappers.set(topic, createStateMapper({ kind, registry, folds, source: `${origin}/state`, topic }));
  }
  for (const [name] of meteredTopics()) {
    const fold = (before: MeterFold, event: RecordedEvent): MeterFold => foldMeter(registry, before, event);
    const folds = createStreamFolds({ initial: emptyMeter, fold, readStream, turn, memory, name });
    mappers.set(name, createLifecycleMapper({ folds }));
  }
  const checkpoints = { source: `${origin}/checkpoints`, topic: CHECKPOINTS_TOPIC };
  mappers.set(CHECKPOINTS_TOPIC, createCheckpointMapper(checkpoints));
  return mappers;
};

/** Source of the CloudEvents, also the origin of the audit tree: ids are unique within it. */
export const originOf = (storeId: string): string => `fulfillment-ledger/${storeId}`;
