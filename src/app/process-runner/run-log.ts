import type { DomainEvent } from '../../domain/decider.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type RecordedEvent,
} from '../log/event-store.ts';
import { ReferencesBusy } from '../references/reference-guard.ts';
import { derivedCommandId, eventId } from '../log/identifiers.ts';
import type { CommandContext, CommandMetadata } from '../log/metadata.ts';
import { pause } from './pause.ts';
import { foldRun } from './fold-run.ts';
import { askedOf, fold, foldRecorded, type Run } from './run.ts';
import type { PartOptions } from './types.ts';

/** Thrown out of every wait when the runner stops. */
export class Stopped extends Error {
  override readonly name = 'Stopped';
}

export type AppendCause = {
  /** What makes this append the same one when it is repeated: kind of input and its identity. */
  readonly identity: readonly (string | number)[];
  /** Name of the cause, for metadata: `effect-result`, `timer-due` … */
  readonly name: string;
  readonly causationId: string;
};

/** Where a command left the stream that it was given to. */
export type CommandEnd = {
  readonly stream: string;
  /** -1: the stream is empty. */
  readonly revision: number;
  /** What it stored just now, under the ids that follow from `context`. */
  readonly events: readonly DomainEvent[];
  readonly context: CommandContext;
};

export type RunLog = {
  /**
   * Appends at the run's revision and folds the events. `conflict`: somebody else wrote; the run was folded again,
   * and the caller decides again. Waits out an unavailable store; an unknown outcome is settled by repeating.
   * Throws Stopped, EventTooLarge, and what the codec throws for events that their schema refuses.
   */
  append(run: Run, events: readonly DomainEvent[], cause: AppendCause): Promise<'appended' | 'conflict'>;
  /** Forgets what was folded and reads both streams. */
  refold(run: Run): Promise<void>;
  /** Folds an event of the subject; where others come first, those as well. */
  take(run: Run, event: RecordedEvent): Promise<void>;
  /** Folds the subject up to what a command left there. */
  follow(run: Run, end: CommandEnd): Promise<void>;
  /** Repeats while the store is unavailable or its answer is lost. */
  insist<T>(attempt: () => Promise<T>): Promise<T>;
};

/**
 * An order takes a dozen appends to READY, and nobody waits for a single one: committed together with those of
 * other orders they cost a fraction of the disk's and the processor's time.
 */
export const PATIENCE_MS = 4;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 5_000;

export const createRunLog = (
  options: {
    /** Told in the same turn that a run was folded further, before anybody else can go on. */
    readonly folded: (run: Run) => void;
    /** Ends every wait. */
    readonly signal: AbortSignal;
  } & PartOptions,
): RunLog => {
  const { store, codec, clock, timers, instance, logger, failpoint, folded, signal } = options;

  const insist = async <T>(attempt: () => Promise<T>): Promise<T> => {
    for (let tries = 0; ; tries += 1) {
      if (signal.aborted) throw new Stopped();
      try {
        return await attempt();
      } catch (error) {
        // Whatever it says: it was given up.
        if (signal.aborted) throw new Stopped();
        const busy = error instanceof ReferencesBusy;
        const transient = busy || error instanceof StoreUnavailable || error instanceof OutcomeUnknown;
        if (!transient || (error instanceof StoreUnavailable && error.reason === 'closed')) throw error;
        const what = busy ? 'a deletion is in the way' : 'event store does not answer';
        if (tries === 0) logger.warn({ err: error }, `${what}; retrying`);
        const advised = error instanceof StoreUnavailable ? error.retryAfterMs : RETRY_FIRST_MS;
        await pause(timers, Math.min(RETRY_MAX_MS, Math.max(advised, RETRY_FIRST_MS * 2 ** tries)), signal);
      }
    }
  };

  const refold = async (run: Run): Promise<void> => {
    const again = await insist(() => foldRun(run.workflow, run.runId, store, codec));
    // People's decisions, too, are something from which more may follow.
    Object.assign(run, again, { unsettled: true });
    folded(run);
  };

  const readSubject = async (run: Run): Promise<void> =>
    insist(async () => {
      for await (const event of store.readStream(run.subject, { from: run.subjectRevision + 1 })) {
        foldRecorded(run, event, codec);
        folded(run);
      }
    });

  const metadataOf = (run: Run, cause: AppendCause): CommandMetadata => {
    const commandId = derivedCommandId(run.key, run.revision, ...cause.identity);
    const hub = run.workflow.hubOf?.(run.state);
    return {
      tenant: run.tenant,
      project: run.project,
      command: cause.name,
      commandId,
      // The same append is recognised by its ids; there is no caller who could send another body under them.
      requestHash: commandId,
      correlationId: run.correlationId,
      causationId: cause.causationId,
      ...askedOf(run.workflow.name, run.asked),
      occurredAt: clock.now(),
      instance,
      ...(hub !== undefined && { hub }),
      ...(run.subjectRevision >= 0 && { inputs: { [run.subject]: run.subjectRevision } }),
    };
  };

  return {
    insist,
    refold,
    take: async (run, event) => {
      if (event.revision <= run.subjectRevision) return;
      if (event.revision > run.subjectRevision + 1) return readSubject(run);
      foldRecorded(run, event, codec);
      folded(run);
    },
    follow: async (run, { stream, revision, events, context }) => {
      if (stream !== run.subject || revision <= run.subjectRevision) return;
      const first = revision - events.length + 1;
      const types = run.workflow.subjectTypes;
      if (first !== run.subjectRevision + 1 || !events.every(({ type }) => types.includes(type)))
        return readSubject(run);
      events.forEach((event, i) =>
        fold(
          run,
          'subject',
          event,
          { id: eventId(context.commandId, stream, i), revision: first + i },
          { ...context, instance },
        ),
      );
      folded(run);
    },
    append: async (run, events, cause) => {
      const metadata = metadataOf(run, cause);
      const encoded = codec.encodeAll(events, run.key, metadata);
      const expected = run.revision < 0 ? 'no_stream' : run.revision;
      await failpoint('before-run-append');
      try {
        const appended = await insist(() =>
          store.append(run.key, expected, encoded, { patienceMs: PATIENCE_MS }),
        );
        await failpoint('after-run-append');
        if (appended.duplicate) await refold(run);
        else {
          const first = run.revision + 1;
          events.forEach((event, i) =>
            fold(run, 'run', event, { id: encoded[i]?.id ?? '', revision: first + i }, metadata),
          );
          folded(run);
        }
        return 'appended';
      } catch (error) {
        if (!(error instanceof WrongExpectedRevision)) throw error;
        await refold(run);
        if (error.onlyStoreRecords) run.revision = Math.max(run.revision, Number(error.actual));
        return 'conflict';
      }
    },
  };
};
