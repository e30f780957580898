import type { MachineConsoles, TimelineWords } from './acting-kind.ts';
import type { EventType } from './event-type.ts';
import type { OwnedObject } from './hubs/hub-object.ts';
import type { JsonObject } from './json.ts';
import type { Placed, PlacedCommand, PlacedState } from './placed-document.ts';
import type { PlacedRun, PlacedStep } from './placed-run.ts';
import type { Holder } from './holder.ts';
import type { MadeObject } from './made-objects.ts';
import type { Meter } from './metering/meter.ts';

export type Told<Command> = Command | PlacedCommand | undefined;
/** What a kind says beside its resource. */
export type PlacedDeclaration<State extends PlacedState, Command> = Pick<
  TimelineWords,
  'sentences' | 'deeds'
> & {
  /** Of its context: those of its resource are its own. */
  readonly eventTypes: readonly EventType[];
  readonly states: readonly string[];
  readonly object: OwnedObject;
  readonly consoles?: Pick<MachineConsoles<State>, 'resourceType' | 'without'>;
  /** Objects that are on the hub before it and go after it, each by a step of this name. */
  readonly beside?: readonly {
    readonly step: string;
    readonly object: OwnedObject;
    readonly needed: (run: PlacedRun<State>) => boolean;
    readonly wanted: (run: PlacedRun<State>) => JsonObject;
  }[];
  /** Before the object is applied; the place is one of them. One that has to wait keeps `{waiting, until?}`. */
  readonly first: readonly PlacedStep<State, Command | PlacedCommand>[];
  /** Types of events that may end such a wait; `of`: id of the stream that they must be in. */
  readonly wakes: {
    readonly types: readonly string[];
    readonly of?: (run: PlacedRun<State>) => string | undefined;
    /** Where `of` names no stream: types of events of any stream. */
    readonly elsewhere?: readonly string[];
    /** How many one event wakes. Default: a few, for most often it frees one thing. */
    readonly most?: number;
    /** Types that wake all of them. */
    readonly all?: readonly string[];
  };
  /** Once the object is there. */
  readonly following?: readonly PlacedStep<State, Command | PlacedCommand>[];
  /**
   * What the service makes for it, which it does not wait for; and what goes before it in a deletion, each group once nothing
   * is left of the one before (`isBound` of its document).
   */
  readonly makes?: {
    readonly objects: (state: Placed & State) => readonly MadeObject[];
    readonly bound: (state: Placed & State) => readonly (readonly Holder[])[];
  };
  /** A changed document is sent to its hub again. */
  readonly changes?: true;
  readonly wanted: (run: PlacedRun<State>) => {
    readonly spec: JsonObject;
    readonly labels?: JsonObject;
    readonly annotations?: JsonObject;
    /** What of its status is ours to write. */
    readonly status?: JsonObject;
  };
  /** Types of its own events after which it is sent to its hub again. */
  readonly again?: readonly string[];
  /** What is to be told to the object at a time, ISO. */
  readonly due?: {
    readonly at: (run: PlacedRun<State>) => string | undefined;
    readonly tell: (run: PlacedRun<State>, at: string) => Command;
  };
  /** A failure that one of them reports and that may pass by itself: asked again as what waits is. */
  readonly passing?: { readonly step: string; readonly reason: string };
  /** Absent: nobody is billed for it. */
  readonly meter?: Meter<State>;
  /** The hub shows it as it should be; with `observed`: whatever it shows of one that lives on there. */
  readonly ready: (run: PlacedRun<State>, object: JsonObject, at: string) => Told<Command>;
  readonly observed?: true;
};
