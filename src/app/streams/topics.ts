import { meteredKinds } from '../../domain/acting-kinds.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import type { Registry } from '../../domain/registry.ts';
import { EVERYTHING, type TopicSpec } from './stream.ts';

const DAY_MS = 24 * 60 * 60 * 1000;
const PARTITIONS = 3;

export const eventsTopic = (context: string): string => `osac.events.${context}.v1`;
export const stateTopic = (kind: string): string => `osac.state.${kind}.v1`;
export const CHECKPOINTS_TOPIC = 'osac.audit.checkpoints';
/** OSAC's own names. */
export const METERING_TOPICS = {
  lifecycle: 'osac.metering.lifecycle',
  heartbeat: 'osac.metering.heartbeat',
  corrections: 'osac.metering.corrections',
  /** Ours: its consumers never meet a resource type that OSAC does not know. */
  extra: 'osac.metering.extra',
} as const;

/** Signed tree heads; their stream is the service's own and is asked for by name. */
export const TREE_HEADS_STREAM = 'sys-auditTree';

/** Every topic of the service: one per context and per kind that has a public document, checkpoints and metering. */
export const topicsOf = (registry: Registry, kinds: readonly AnyKind[]): readonly TopicSpec[] => [
  ...contextsOf(registry).map(eventsSpec),
  ...publicKinds(kinds).map(({ kind }) => stateSpec(kind)),
  {
    name: CHECKPOINTS_TOPIC,
    kind: 'checkpoints',
    cleanup: 'delete',
    partitions: 1,
    retentionMs: -1,
    filter: { streamPrefixes: [TREE_HEADS_STREAM] },
  },
  ...meteringSpecs(),
];

/** Contexts with events that are not internal: each has a topic. */
export const contextsOf = ({ types }: Registry): readonly string[] => [
  ...new Set(types.filter(({ audience }) => audience !== 'internal').map(({ context }) => context)),
];

/** Kinds that the public surface shows; what only the provider may see has no state topic. */
export const publicKinds = (kinds: readonly AnyKind[]): readonly AnyKind[] =>
  kinds.filter(({ methods }) => methods.public.includes('Get'));

/**
 * Reads the whole log: with a filter by types, those that a newer release wrote would be passed over for good, and
 * one by
 * streams would miss its new kinds of objects.
 */
const eventsSpec = (context: string): TopicSpec => ({
  name: eventsTopic(context),
  kind: 'events',
  cleanup: 'delete',
  partitions: PARTITIONS,
  retentionMs: 365 * DAY_MS,
  filter: EVERYTHING,
});

const stateSpec = (kind: string): TopicSpec => ({
  name: stateTopic(kind),
  kind: 'state',
  cleanup: 'compact',
  partitions: PARTITIONS,
  retentionMs: -1,
  filter: { streamPrefixes: [`${kind}-`] },
});

/** Where the records of what a meter says go. */
export const meteringTopicOf = ({ isOurs }: { readonly isOurs?: true }): string =>
  isOurs === true ? METERING_TOPICS.extra : METERING_TOPICS.lifecycle;

/** Topics that tell what is billed, each with its kinds. */
export const meteredTopics = (
  kinds: typeof meteredKinds = meteredKinds,
): readonly (readonly [string, typeof meteredKinds])[] => [
  ...Map.groupBy(kinds, ({ meter }) => meteringTopicOf(meter)),
];

/** Partitions and retention as OSAC's chart creates them. */
const meteringSpecs = (): readonly TopicSpec[] => {
  const spec = {
    kind: 'metering',
    cleanup: 'delete',
    partitions: PARTITIONS,
    retentionMs: 30 * DAY_MS,
  } as const;
  return [
    ...meteredTopics().map(([name, kinds]) => ({
      name,
      ...spec,
      filter: { streamPrefixes: kinds.map(({ kind }) => `${kind}-`) },
    })),
    { name: METERING_TOPICS.heartbeat, ...spec },
    { name: METERING_TOPICS.corrections, ...spec },
  ];
};
