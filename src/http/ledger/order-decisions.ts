import { z } from 'zod';
import type { CommandContext } from '../../app/commands/command.ts';
import type { EventStore, ExpectedRevision, Position } from '../../app/log/event-store.ts';
import { staleRevision } from '../../app/commands/refusals.ts';
import { foldRun } from '../../app/process-runner/fold-run.ts';
import type { RunCodec } from '../../app/process-runner/types.ts';
import type { ActingKind } from '../../domain/acting-kind.ts';
import { reject, type Rejection } from '../../domain/decider.ts';
import type { JsonObject } from '../../domain/json.ts';
import { refusedBy, shownDecisions, type RunDecision } from '../../domain/process/decisions.ts';
import type { AnyRun } from '../../domain/process/run.ts';
import { rejected } from '../errors.ts';
import type { WriteServices } from '../osac/write-context.ts';
import type { Positions } from '../positions.ts';
import { readBody } from './forms.ts';
import type { LedgerAnswer } from './serve.ts';

/** What an operator decides about the work on an order: events of its run, which the workflow folds. */
export type DecisionServices = Pick<WriteServices, 'runner'> & {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly codec: RunCodec;
  readonly positions: Pick<Positions, 'applied' | 'format'>;
};

const text = (most: number) => {
  const error = `must be a text of 1 to ${most} characters`;
  return z.string({ error }).trim().min(1, { error }).max(most, { error });
};
const WHY = z.strictObject({ reason: text(200) });
const OF_STEP = WHY.extend({ step: text(100) });
export const decisionBodies = { skip: OF_STEP, resume: OF_STEP, abort: WHY };

export type DecisionName = keyof typeof decisionBodies;
export const DECISION_NAMES = Object.keys(decisionBodies) as DecisionName[];

const TYPES = { skip: 'SkipStep', resume: 'ResumeStep', abort: 'AbortRun' } as const;

/** Throws ApiError 400. */
export const readDecision = (
  name: DecisionName,
  body: JsonObject,
  made: { readonly at: string; readonly by: string },
): RunDecision => ({ type: TYPES[name], ...made, ...readBody(body, decisionBodies[name]) }) as RunDecision;

/** It can still be looked at, so that it were not found would be strange. */
export const orderDeleted = (id: string): Rejection =>
  reject(
    'failed-precondition',
    'ORDER_DELETED',
    `order '${id}' is deleted: nothing can be done about it any more`,
  );

type Answer = Extract<LedgerAnswer, { readonly json: object }>;

/** The answer of an act, once this instance shows it. */
export const applied = async (
  json: JsonObject,
  position: Position | undefined,
  { positions }: Pick<DecisionServices, 'positions'>,
): Promise<Answer> => {
  if (position === undefined) return { json };
  await positions.applied(position);
  return { json, headers: { 'x-ledger-position': positions.format(position) } };
};

export type Decided = { readonly kind: ActingKind; readonly id: string; readonly revision: ExpectedRevision };

/**
 * Appends it to the run's stream: a runner that works on the run folds it, whichever instance that is. `ifRevision`: of the
 * object.
 */
export const decideRun = async (
  { kind: { workflow }, id, revision }: Decided,
  decision: RunDecision,
  { ifRevision, ...context }: CommandContext,
  services: DecisionServices,
): Promise<Answer> => {
  const { runner, store, codec } = services;
  const aggregate = { category: workflow.name, decider: workflow.decisions, stateVersion: 1 };
  const outcome = await runner.execute(aggregate, id, decision, context, {
    beforeAppend: async () => {
      const stale = staleRevision(ifRevision, revision);
      if (stale !== undefined) return stale;
      const { state } = await foldRun(workflow, id, store, codec);
      return workflow.isClosed(state) ? orderDeleted(id) : refusedBy(state as AnyRun, decision);
    },
  });
  if (outcome.outcome === 'rejected') throw rejected(outcome.rejection);
  const { position, state } = outcome.loaded;
  return applied({ id, ...shownDecisions(state) }, position, services);
};
