import type { Decider, DomainEvent } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import type { FoldedEvent, Workflow } from '../workflow.ts';
import type { EffectRules } from './effects.ts';
import type { OverdueTimes, Problem, Run } from './run.ts';

/**
 * What a kind that acts declares: how its subject is folded, and a table of steps. Everything that every run needs
 * (attempts, doubt, deadlines, halt, people's decisions, undo) is the engine's. A step is added by a row.
 */
export type Declaration<
  Subject,
  Command extends { readonly type: string },
  Event extends DomainEvent,
  Memo = null,
> = Pick<Workflow<unknown>, 'name' | 'stateVersion' | 'wakes'> & {
  readonly subject: {
    /** Of its streams, and its name as an aggregate. */
    readonly category: string;
    readonly types: readonly string[];
    readonly decider: Decider<Subject, Command, Event>;
    readonly idOf: (subject: Subject) => string;
  };
  /** There is a run to carry out. */
  readonly begins: (subject: Subject) => boolean;
  /** Deletion was asked for; `gone`: the run is closed once no step is active. Default: never. */
  readonly ends?: (subject: Subject) => 'undo' | 'gone' | undefined;
  /**
   * The subject says that what was begun is to be undone. It must say so until it was told that nothing is left; from then
   * on it may be begun anew. Absent: people abort the run itself, for good.
   */
  readonly aborts?: (subject: Subject) => boolean;
  /** The event begins a new cycle, as an operator's retry does. The run has it folded, but for the memo. */
  readonly retries?: (run: Run<Subject, Memo>, event: FoldedEvent) => boolean;
  /** The event lifts the halt after a refusal, in the same cycle. */
  readonly lifts?: (run: Run<Subject, Memo>, event: FoldedEvent) => boolean;
  /** What halts the forward steps besides a refused effect, as long as it is there. */
  readonly halts?: (run: Run<Subject, Memo>) => Problem | undefined;
  /**
   * What is special about this kind: small, folded from both streams. The run has the event folded already.
   * `success`: the kind of effect that the event shows to have succeeded.
   */
  readonly memo?: {
    readonly initial: Memo;
    readonly evolve: (memo: Memo, event: FoldedEvent, run: Run<Subject, Memo>, success?: string) => Memo;
  };
  /** In the order in which commands and effects are offered. */
  readonly steps: readonly Step<Run<Subject, Memo>, Command>[];
  /** Times of its own, besides the deadlines of steps; one that fired must vanish by the memo. */
  readonly timers?: (run: Run<Subject, Memo>) => { readonly [timerId: string]: string };
  /** What a watch, a timed read or a check tells the subject. */
  readonly observe?: (run: Run<Subject, Memo>, observation: JsonObject, now: string) => Command | undefined;
  /** The look that follows a deadline that passed, before anybody is told. Absent: they are told at once. */
  readonly check?: {
    readonly call: (run: Run<Subject, Memo>) => Call;
    /** Asks for a look besides; another text asks for another look. */
    readonly wanted?: (run: Run<Subject, Memo>) => string | undefined;
    /** What the answer tells the subject. Default: as any other look. */
    readonly record?: (run: Run<Subject, Memo>, answer: JsonObject, now: string) => Command | undefined;
    /** What of the answer is kept where the subject had nothing to record of it. Default: nothing. */
    readonly keep?: (run: Run<Subject, Memo>, answer: JsonObject) => JsonObject;
    readonly rules?: Partial<EffectRules>;
  };
  readonly hubOf?: (run: Run<Subject, Memo>) => string | undefined;
};

/**
 * A step is active while its phase applies, it is needed, everything it comes after is done, and it is neither done nor
 * skipped. A step that is not needed or skipped passes on what it waits for.
 */
export type Step<R, Command> = {
  readonly name: string;
  /** Named by a declaration that lets others do some of its steps: whose turn it is shows beside the step. */
  readonly rule?: string;
  /**
   * `forward` (default): not while a refusal halts the run, nor once it is aborted; `live`: until deletion is asked for;
   * `deletion`: from then on; `undo`: in a deletion or an abort, unless the pivot is done.
   */
  readonly phase?: 'forward' | 'live' | 'deletion' | 'undo';
  readonly after?: readonly string[];
  readonly needed?: (run: R) => boolean;
  /**
   * Default: of `tell`, that the subject's decider has nothing to record; of an effect, that it succeeded (with the
   * present instance, where the step names one); otherwise never.
   */
  readonly done?: (run: R) => boolean;
  /** Offered exactly while the subject's decider answers it with events. `since`: when the step became active. */
  readonly tell?: (run: R, since: string) => Command | undefined;
  /** Kind of the effect: its book-keeping is found under this name. Default: the step's name. */
  readonly effect?: string;
  readonly work?: (run: R, since: string) => Work | undefined;
  /** What a success of the effect tells the subject; where that records it, the run's stream does not. */
  readonly record?: (run: R, result: JsonObject, at: string) => Command | undefined;
  /** What of a result is stored where the subject records nothing. Default: all of it. */
  readonly keep?: (run: R, result: JsonObject) => JsonObject;
  /** Of this kind of effect; the first row of a kind counts. Default: DEFAULT_RULES. */
  readonly rules?: Partial<EffectRules> | ((run: R) => Partial<EffectRules>);
  readonly mayBeSkipped?: true;
  readonly deadline?: {
    readonly ms: number;
    /** Told until the subject's decider has nothing to record. Absent: that it passed is all. */
    readonly onOverdue?: (run: R, times: OverdueTimes) => Command | undefined;
  };
  readonly undo?: Undo<R, Command>;
  /** Once it is done nothing is undone any more. One with an effect needs `undo`, for an abort before that. */
  readonly pivot?: true;
};

/** How the effect of a step is undone, at the end of the run or when it is aborted. Never refused for good. */
export type Undo<R, Command> = {
  /** Removes what was made under this effect id. Repeated in mode `observe` until it is seen to be absent. */
  readonly call: (run: R, effectId: string) => Call;
  /** Looks whether it is there and changes nothing: settles an attempt that has no answer. */
  readonly look: (run: R, effectId: string) => Call;
  /** An answer of either call shows that nothing is there. */
  readonly absent: (run: R, answer: JsonObject) => boolean;
  /** An observation shows that it is there, whatever is known of it. */
  readonly shown?: (run: R, observation: JsonObject) => boolean;
  /** An observation shows that it is not there: as good as such an answer, once the removal was asked for. */
  readonly gone?: (run: R, observation: JsonObject) => boolean;
  readonly record?: (run: R, answer: JsonObject, at: string) => Command | undefined;
  /** Steps of a deletion or an abort that come before it. */
  readonly after?: readonly string[];
  readonly rules?: Partial<Omit<EffectRules, 'mayBeRefused'>>;
};

export type Call = {
  readonly port: string;
  readonly operation: string;
  readonly args: JsonObject;
  readonly lane: string;
};

export type Work = {
  readonly call: Call;
  /**
   * Names one carrying out; another one is another effect id. Default: the cycle. An attempt that may have happened is
   * settled under its own id first.
   */
  readonly instance?: string | number;
  /** What the run is to remember of what was sent. */
  readonly facts?: JsonObject;
  /** Not before this time, whatever becomes of earlier attempts. */
  readonly notBefore?: string;
  /** A timed read, every so often while the step is active: the answers are observations. */
  readonly everyMs?: number;
  /** Of a timed read: the operation that compares many of them at once (`PendingEffect.together`). */
  readonly together?: string;
};
