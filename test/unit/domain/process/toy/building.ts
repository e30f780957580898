import { listAt, textOf } from '../../../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../../../src/domain/json.ts';
import type { Call, Declaration, Step, Undo } from '../../../../../src/domain/process/declaration.ts';
import type { Run } from '../../../../../src/domain/process/run.ts';
import { stepWorkflow } from '../../../../../src/domain/process/step-workflow.ts';
import { UNDO } from '../../../../../src/domain/process/undo.ts';
import { createStepRun } from '../../../../support/domain/step-run.ts';
import { SHED_EVENTS, shedDecider, type Part, type Shed, type ShedCommand, type ShedEvent } from './shed.ts';

export type ShedRun = Run<Shed, { readonly nudges: number }>;
type ShedDeclaration = Declaration<Shed, ShedCommand, ShedEvent, ShedRun['memo']>;

export const WALLS_DEADLINE_MS = 60_000;
export const NUDGE = 'nudge';

const inYard = (operation: string, args: JsonObject = {}): Call => ({
  port: 'yard',
  operation,
  args,
  lane: 'yard',
});

/** Base and roof are recorded by the shed; that the walls stand is known to the run only. */
const part = (name: Part, after: readonly string[]): Step<ShedRun, ShedCommand> => ({
  name,
  after,
  work: () => ({ call: inYard('build', { part: name }), facts: { colour: 'red' } }),
  ...(name === 'walls' ? {} : { record: (_run, _result, at) => ({ type: 'NotePart', at, part: name }) }),
  undo: undoOf(name),
});

export const undoOf = (name: Part): Undo<ShedRun, ShedCommand> => ({
  call: () => inYard('remove', { part: name }),
  look: () => inYard('look', { part: name }),
  absent: (_run, answer) => answer['there'] === false,
  shown: (_run, observation) => partsIn(observation).includes(name),
  record: (_run, _answer, at) => ({ type: 'NoteRemoval', at, part: name }),
});

const partsIn = (observation: JsonObject): readonly string[] => listAt(observation, 'parts').map(textOf);

const STEPS: readonly Step<ShedRun, ShedCommand>[] = [
  part('base', []),
  {
    ...part('walls', ['base']),
    mayBeSkipped: true,
    deadline: {
      ms: WALLS_DEADLINE_MS,
      onOverdue: (_run, { since, at }) => ({ type: 'ReportLate', at, step: 'walls', since }),
    },
  },
  part('roof', ['walls']),
  { name: 'open', after: ['roof'], tell: (_run, at) => ({ type: 'Open', at }) },
  {
    name: 'report-problem',
    phase: 'live',
    needed: ({ problem }) => problem !== undefined,
    tell: ({ problem }) =>
      problem === undefined ? undefined : { type: 'ReportProblem', at: problem.at, reason: problem.reason },
  },
  {
    name: 'watch',
    phase: 'live',
    needed: ({ subject }) => subject.status === 'open',
    work: () => ({ call: inYard('list'), everyMs: 10_000 }),
  },
  {
    // What a deletion does once nothing can be undone.
    name: 'demolish',
    phase: 'deletion',
    needed: ({ passed }) => passed === true,
    work: () => ({ call: inYard('demolish') }),
  },
  {
    name: 'confirm',
    phase: 'deletion',
    after: [UNDO, 'demolish'],
    done: ({ subject }) => subject.status === 'gone',
    tell: (_run, at) => ({ type: 'ConfirmGone', at }),
  },
];

/** Every step with what the test says of it instead. */
export type Changes = { readonly [step: string]: Partial<Step<ShedRun, ShedCommand>> };

export const shedDeclaration = (changes: Changes = {}): ShedDeclaration => ({
  name: 'shedBuilding',
  subject: {
    category: 'shed',
    types: SHED_EVENTS,
    decider: shedDecider,
    idOf: ({ id }) => id,
  },
  begins: ({ status }) => status !== 'none',
  ends: ({ status }) => (status === 'gone' ? 'gone' : status === 'ending' ? 'undo' : undefined),
  retries: (_run, { type }) => type === 'RetryRequested',
  lifts: (_run, { type }) => type === 'HaltLifted',
  memo: {
    initial: { nudges: 0 },
    evolve: (memo, { type, data }) =>
      type === 'TimerFired' && data['timerId'] === NUDGE ? { nudges: memo.nudges + 1 } : memo,
  },
  timers: ({ memo, since }): { readonly [timerId: string]: string } =>
    memo.nudges === 0 && since['base'] !== undefined ? { [NUDGE]: since['base'] } : {},
  observe: (_run, observation, at) => ({ type: 'NoteYard', at, parts: partsIn(observation) }),
  check: { call: () => inYard('list') },
  steps: STEPS.map((step) => ({ ...step, ...changes[step.name] })),
});

/** A shed that somebody ordered, and the run that builds it. */
export const createBuilding = (changes: Changes = {}, more: Partial<ShedDeclaration> = {}) => {
  const declaration = { ...shedDeclaration(changes), ...more };
  const run = createStepRun(stepWorkflow(declaration), shedDecider, declaration);
  run.command({ type: 'Order', at: run.now(), id: run.id });
  const by = (): { at: string; by: string; reason: string } => ({
    at: run.now(),
    by: 'ann',
    reason: 'because',
  });
  return {
    ...run,
    retry: () => run.decided({ type: 'RetryRun', ...by() }),
    skip: (step: string) => run.decided({ type: 'SkipStep', step, ...by() }),
    resume: (step: string) => run.decided({ type: 'ResumeStep', step, ...by() }),
    abort: () => run.decided({ type: 'AbortRun', ...by() }),
    remove: () => run.command({ type: 'Delete', at: run.now() }),
  };
};
