import type { DomainEvent } from './decider.ts';
import type { EventType } from './event-type.ts';
import type { CapacityClaim } from './hubs/capacity-events.ts';
import type { WithoutConsole } from './consoles.ts';
import type { HubObject, ObjectPlace, OwnedObject } from './hubs/hub-object.ts';
import type { JsonObject } from './json.ts';
import type { Meter } from './metering/meter.ts';
import type { ResourceKind } from './resource.ts';
import type { SecretRef } from './secret-ref.ts';
import type { Sentences } from './sentences.ts';
import type { Decidable } from './process/decisions.ts';
import type { ShownStep } from './process/shown-steps.ts';
import type { AnyWorkflow as UntypedWorkflow } from './workflow.ts';

/** A workflow whose runs people may decide about; its type parameters are of no interest to whoever walks over all. */
export type AnyWorkflow = UntypedWorkflow &
  Decidable & { readonly shownSteps: (state: unknown) => readonly ShownStep[] };

/**
 * A kind whose objects are carried out by a workflow: a resource and what else its declaration holds. Timeline, orders,
 * capacity, secrets and usage walk the list of these (`acting-kinds.ts`); none of them names one.
 */
export type ActingKind<
  State = unknown,
  Command extends { readonly type: string } = { readonly type: string },
  Event extends DomainEvent = DomainEvent,
> = ResourceKind<State, Command, Event> & {
  /** Registry entries of its context; kinds of one context may share a list. */
  readonly eventTypes: readonly EventType[];
  /** One run for each object, with the id of the object. */
  readonly workflow: AnyWorkflow;
  /** What stands for it on a hub. */
  readonly hubObjects: readonly HubObject[];
  /** What the scheduler reserves for one object where its workflow names nothing. Absent: no room, only a place. */
  readonly claims?: (state: State) => CapacityClaim;
  /** It was aborted and nothing of it is left, though it may be retried. Absent: its objects end instead. */
  readonly isWithdrawn?: (state: State) => boolean;
  /** Beside those that every kind has. */
  readonly routes?: readonly KindRoute[];
  readonly timeline: TimelineWords;
  readonly order: OrderWords<State, Command>;
  /** What the log of the process says at `info` when such an event is stored, by its type. */
  readonly logged: { readonly [type: string]: string };
  /** Secret values that an object has taken over from others, beside those that its view shows. */
  readonly secretsOf?: (state: State) => readonly SecretRef[];
  /** What is added to a command of its workflow before it is decided. */
  readonly completed?: (command: Command, facts: CommandFacts) => Command;
  /** Absent: nobody is billed for it. */
  readonly meter?: Meter<State>;
  /** Absent: its objects have no consoles. */
  readonly consoles?: MachineConsoles<State>;
};

/** Consoles of machines: the events are those of `domain/consoles.ts`. */
export type MachineConsoles<State> = {
  /** As OSAC's `ConsoleResourceType` names it. */
  readonly resourceType: string;
  /** Stands for the machine on its hub, which opens its consoles by it. */
  readonly object: OwnedObject;
  readonly place: (state: State) => ({ readonly hub: string } & ObjectPlace) | undefined;
  readonly without: (state: State) => WithoutConsole | undefined;
};

/** `GET …/{id}/{path}` on the public surface, for those who may change the object. */
export type KindRoute = {
  readonly path: string;
  /** As rights and errors name it. */
  readonly method: `Get${string}`;
  readonly summary: string;
  readonly contentType: 'application/yaml' | 'text/plain';
};

/** `deeds`: what an effect is for, by its name; `timers`: a sentence for one that fired, by its id. */
export type TimelineWords = {
  readonly sentences: Sentences;
  readonly deeds: { readonly [effect: string]: string };
  readonly timers: { readonly [timer: string]: string };
};

export type CommandFacts = { readonly correlationId: string; readonly tenantsSeeJobErrors: boolean };

/** How an operator sees an object that is worked on. */
export type OrderWords<State, Command> = {
  /** Of the enums in its document: `CLUSTER` of `CLUSTER_STATE_READY`. */
  readonly prefix: string;
  /** What its state may be in one word: that of its document, `accepted` before it says any, `deleting`. */
  readonly states: readonly string[];
  readonly details: (state: State) => OrderDetails;
  /** Absent: its run is retried. */
  readonly retry?: (at: string) => Command;
  /** Absent: operators cannot. */
  readonly cancel?: (at: string) => Command;
  /** Operators may have what was begun undone: by a command to the object, or of its run. Absent: deletion is the way. */
  readonly abort?: true | ((at: string, reason: string) => Command);
};

export type OrderDetails = {
  readonly conditions: JsonObject;
  /** What stands in its way. */
  readonly waiting: JsonObject;
  /** Why it failed, or a change of it did. */
  readonly failure: JsonObject;
  /** On which hub it is, and as what. */
  readonly place: JsonObject;
};
