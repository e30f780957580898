import type { EventCodec } from '../app/log/event-codec.ts';
import type { EventStore } from '../app/log/event-store.ts';
import { foldRun } from '../app/process-runner/fold-run.ts';
import { isKnown } from '../app/process-runner/run.ts';
import { secretRefsIn, type StoredValue } from '../app/secrets/stored-secrets.ts';
import type { ActingKind } from '../domain/acting-kind.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import { shownDecisions } from '../domain/process/decisions.ts';
import type { AnyRun } from '../domain/process/run.ts';
import { isUnwinding } from '../domain/process/undo.ts';
import type { PendingEffect } from '../domain/workflow.ts';
import { defined } from '../domain/json-tools.ts';

/** What the run of an order still means to hand to a hub; nothing once it is closed. */
export const refsOfRun = async (
  { workflow }: ActingKind,
  runId: string,
  store: EventStore,
  codec: EventCodec,
): Promise<readonly StoredValue[]> => {
  const { state } = await foldRun(workflow, runId, store, codec);
  return workflow.isClosed(state) ? [] : [...secretRefsIn(state as JsonValue)];
};

/** What a workflow's run has outstanding; undefined when there is no such run. */
export const describeRun = async (
  { workflow }: ActingKind,
  runId: string,
  store: EventStore,
  codec: EventCodec,
  /** Why an effect is not tried; undefined: it is. */
  heldBack: (effect: PendingEffect) => string | undefined,
): Promise<JsonObject | undefined> => {
  const run = await foldRun(workflow, runId, store, codec);
  if (!isKnown(run)) return undefined;
  const { state, revision } = run;
  const { commands, effects, timers } = workflow.pending(state);
  const isIdle = commands.length + effects.length + timers.length === 0;
  const isHalted = (state as AnyRun).halted !== undefined && !isUnwinding(state as AnyRun);
  return {
    closed: workflow.isClosed(state),
    idle: isIdle || isHalted,
    events: revision + 1,
    ...shownDecisions(state as AnyRun),
    commands: commands.map(({ command }) => command.type),
    effects: effects.map((effect) => {
      const { operation, attempt, mode, lane, notBefore } = effect;
      const held = heldBack(effect);
      return {
        operation,
        attempt,
        mode,
        lane,
        ...defined({ not_before: notBefore, held_back: held }),
      };
    }),
    timers: timers.map(({ timerId, dueAt }) => ({ timer: timerId, due_at: dueAt })),
  };
};
