import type { RecordedEvent } from '../log/event-store.ts';
import type { Registry } from '../../domain/registry.ts';
import { eventIdOf, extensionsOf, recordOf, structured, timeOf } from './cloud-event.ts';
import { liftEvent } from './current-version.ts';
import type { RecordMapper } from './stream.ts';

/** Who reads `osac.events.*`; see `createEventMapper`. */
export type TopicAudience = 'tenant' | 'provider';

export type EventRecordOptions = {
  readonly registry: Registry;
  readonly source: string;
  readonly topic: string;
  readonly context: string;
  readonly audience: TopicAudience;
};

export const eventTypeName = (context: string, type: string, version: number): string =>
  `osac.${context}.${type}.v${version}`;

/** Streams of the service itself: what they hold is internal, in a newer release too. */
const OWN_STREAMS = 'sys-';

/** What becomes no record of a context: events of the service itself, of other contexts, and internal ones. */
export const isNoEventOf =
  ({ registry, context }: Pick<EventRecordOptions, 'registry' | 'context'>) =>
  ({ stream, type }: Pick<RecordedEvent, 'stream' | 'type'>): boolean => {
    if (stream.startsWith(OWN_STREAMS)) return true;
    const entry = registry.get(type);
    // One that is not known here may be of this context.
    return entry !== undefined && (entry.context !== context || entry.audience === 'internal');
  };

/**
 * Records of `osac.events.<context>.v1`: every event of the context that is not internal, at the current version of its
 * type. `audience: 'tenant'` shows what a tenant may know of itself as the tenant sees it, so that a topic can be handed
 * on; events that only the provider may see keep their fields and say so (`osacaudience`). `provider` shows all fields.
 * Personal data stays the ciphertext that the log holds.
 */
export const createEventMapper = ({
  registry,
  source,
  topic,
  context,
  audience,
}: EventRecordOptions): RecordMapper => {
  const isNothing = isNoEventOf({ registry, context });
  return (event) => {
    if (isNothing(event)) return [];
    const entry = registry.get(event.type);
    // Throws for a type that is not known here: it may be of this context, so that its stream waits.
    const lifted = liftEvent(registry, event);
    if (entry === undefined) return [];
    const reader = entry.audience === 'provider' ? 'provider' : audience;
    const shown = registry.redact(lifted, reader);
    if (shown === undefined) return [];
    const value = structured({
      id: eventIdOf(event),
      source,
      type: eventTypeName(context, event.type, entry.version),
      time: timeOf(event),
      extensions: { ...extensionsOf(event, { site: reader === 'provider' }), osacaudience: entry.audience },
      data: shown.data,
    });
    return [recordOf(topic, event, value)];
  };
};
