import type { z } from 'zod';
import type { DataOf, DomainEvent } from '../decider.ts';
import type { EventOf } from '../schemas.ts';
import type * as shapes from './event-types.ts';

/** Types of the cluster's events and of what they hold, from their schemas in event-types.ts. */
export type NamedSecret = z.infer<typeof shapes.namedSecret>;
export type OrderedTemplate = z.infer<typeof shapes.orderedTemplate>;
export type NodeSet = z.infer<typeof shapes.nodeSet>;
export type MutableSpec = z.infer<typeof shapes.mutableSpec>;
export type ResolvedVersion = z.infer<typeof shapes.resolvedVersion>;
export type ConditionName = z.infer<typeof shapes.conditionName>;
export type ConditionState = z.infer<typeof shapes.conditionState>;
export type AutomationPurpose = z.infer<typeof shapes.automationPurpose>;
export type AutomationMode = z.infer<typeof shapes.automationMode>;
export type JobState = z.infer<typeof shapes.jobState>;
export type ObjectVersion = z.infer<typeof shapes.objectVersion>;
export type ObservedVersion = z.infer<typeof shapes.observedVersion>;
export type Seen = z.infer<typeof shapes.seen>;
export type Lost = NonNullable<Seen['missing']>;

export type ClusterEvent =
  | EventOf<typeof shapes.CLUSTER_SHAPES>
  /** A creation reserved its name and never came back: this id stays unused until its own command is repeated. */
  | DomainEvent<'CreationAbandoned', { readonly at: string; readonly commandId: string }>;

/** The event, where it is news. */
export const eventIf = <Type extends ClusterEvent['type']>(
  isNews: boolean,
  type: Type,
  data: DataOf<ClusterEvent, Type>,
): ClusterEvent[] => (isNews ? [{ type, data } as ClusterEvent] : []);
