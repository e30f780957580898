import type { OrderDetails, TimelineItem } from '../../http/ledger/order-operations.ts';
import type { Lane } from '../../http/ledger/upkeep-operations.ts';
import { table } from '../output.ts';
import { stateOf } from './lanes.ts';

type Decision = NonNullable<NonNullable<OrderDetails['run']>['aborted']>;

/**
 * Everything that an operator decides by: state and reason, conditions, what it waits for, what is outstanding, history.
 * `lanes`: those with work or trouble.
 */
export const orderText = (order: OrderDetails, lanes: readonly Lane[] = []): string =>
  [
    table(
      ['kind', 'id', 'name', 'tenant', 'state', 'hub'],
      [[order.kind, order.id, order.name, order.tenant, order.state, order.hub]],
    ),
    ...stopped(order),
    ...decided(order),
    ...why(order),
    ...held(order, lanes),
    ...failingNow(order, lanes),
    ...stepsText(order),
    ...conditionsText(order),
    outstanding(order),
    table(
      ['time', 'event', 'what'],
      order.timeline.map((item) => [item.at, item.type, `${item.summary}${byWhom(item)}`]),
    ),
  ].join('\n\n');

const isGone = ({ state }: OrderDetails): boolean => state === 'deleted';

/** The way of an order whose steps the service does by itself; of others the hub tells. */
const stepsText = ({ run }: OrderDetails): string[] => {
  const steps = run?.steps ?? [];
  if (!steps.some(({ rule }) => rule !== undefined)) return [];
  const rows = steps.map(({ step, rule, state, attempts, started, ended, effect, waiting }) => [
    step,
    rule === undefined ? '' : `ledger (${rule})`,
    waiting === undefined ? state : `${state}: ${waiting}`,
    attempts,
    started,
    ended,
    effect,
  ]);
  return [table(['step', 'rule', 'state', 'attempts', 'started', 'ended', 'effect'], rows)];
};

/** Kinds that are one object on a hub have none. */
const conditionsText = (order: OrderDetails): string[] => {
  const rows = Object.entries(order.conditions).map(([name, { status, reason, message }]) => [
    name,
    status,
    reason,
    message,
  ]);
  if (rows.length === 0) return isGone(order) ? ['Conditions: none was observed before it was deleted'] : [];
  return [table([isGone(order) ? 'last condition' : 'condition', 'status', 'reason', 'message'], rows)];
};

/** Who decided it, where that was not the service itself. */
const byWhom = ({ actor }: TimelineItem): string =>
  actor === '' || actor === 'system' ? '' : ` By user ${actor}.`;

const stopped = ({ run }: OrderDetails): string[] =>
  run?.parked === undefined
    ? []
    : [
        `Stopped by a fault: ${run.parked} (nothing happens for it until it is retried or the service restarts)`,
      ];

const decided = ({ run }: OrderDetails): string[] => [
  ...(run?.aborted === undefined ? [] : [`Aborted ${sayOf(run.aborted)}`]),
  ...(run?.skipped ?? []).map((decision) => `Step ${decision.step} skipped ${sayOf(decision)}`),
];

const sayOf = ({ by, at, reason }: Decision): string => `by user ${by} at ${at}: ${reason}`;

/** Why it is not further: it failed, no hub fits, or its hub has not let go. */
const why = (order: OrderDetails): string[] => {
  const { failure, waiting, waiting_for: waitingFor = [], message, timeline } = order;
  if (isGone(order))
    return failure === undefined
      ? []
      : [`Had failed before it was deleted: ${failure.reason}: ${failure.message}`];
  if (failure !== undefined) {
    const end = failure.permanent === true ? 'it waits for a retry or a deletion' : 'it is still being tried';
    return [
      `Failed: ${failure.reason}: ${failure.message} (${end})`,
      ...said(failure.detail),
      ...lastTrouble(timeline),
    ];
  }
  if (waiting !== undefined && waiting.decision === undefined)
    return [
      `Waits${waiting.since === undefined ? '' : ` since ${waiting.since}`}: ${waiting.message}`,
      ...said(waiting.detail),
    ];
  if (waiting?.decision !== undefined)
    return [
      `Waits for ${order.hub === undefined ? 'a hub' : 'room on its hub'}: ${waiting.message}`,
      candidatesText(waiting.decision.candidates),
    ];
  const held = order.run?.effects.find(({ held_back: because }) => because !== undefined)?.held_back;
  if (held !== undefined) return [`Waits: ${held}`];
  if (waitingFor.length > 0) return [`Waits for its hub to remove: ${waitingFor.join(', ')}`];
  return [...(message === undefined ? [] : [message]), ...said(order.change_failed?.detail)];
};

type Candidates = NonNullable<NonNullable<OrderDetails['waiting']>['decision']>['candidates'];

const candidatesText = (candidates: Candidates): string =>
  table(
    ['candidate', 'fits', 'reasons'],
    candidates.map(({ hub, fits, reasons }) => [hub, fits ? 'yes' : 'no', reasons.join('; ')]),
  );

const said = (detail: string | undefined): string[] =>
  detail === undefined ? [] : [`The hub said: ${detail}`];

/** The next try of an effect is due and does not come while its lane is closed. */
const held = ({ run }: OrderDetails, lanes: readonly Lane[]): string[] =>
  lanes
    .filter((lane) => stateOf(lane) !== 'working' && run?.effects.some((effect) => effect.lane === lane.lane))
    .map((lane) => {
      const { lane: name, last_reason: reason = '' } = lane;
      return `Waits for lane ${name}: ${stateOf(lane)}${reason === '' ? '' : `, ${reason}`} (ledgerctl lanes list)`;
    });

/** It goes on by itself; the timeline keeps only its first failure for each reason. */
const failingNow = ({ id, run }: OrderDetails, lanes: readonly Lane[]): string[] =>
  run === undefined
    ? []
    : lanes.flatMap(({ lane, failing = [] }) =>
        failing
          .filter(({ order }) => order === id)
          .map(({ failures, reason, message, set_aside: aside }) => {
            const where = `lane ${lane}${aside ? ' (set aside)' : ''}`;
            return `Failing in ${where}: ${reason}: ${message} (failures: ${failures}; the service retries by itself)`;
          }),
      );

const TROUBLE = ['EffectRefused', 'EffectFailed', 'EffectStalled', 'EffectOutcomeUnknown'];

/** The last step that did not succeed, with the number of its tries. */
const lastTrouble = (timeline: readonly TimelineItem[]): string[] => {
  const last = timeline.findLast(({ type }) => TROUBLE.includes(type));
  if (last === undefined) return [];
  const tries = last.data['attempt'] ?? last.data['attempts'];
  return [`Last step: ${last.summary}${typeof tries === 'number' ? ` (attempt ${tries})` : ''}`];
};

const outstanding = (order: OrderDetails): string => {
  const { run } = order;
  if (run === undefined)
    return isGone(order) ? 'Outstanding: nothing' : 'Outstanding: nothing, work on it has not begun';
  const rows = [
    ...run.effects.map(({ operation, attempt, mode, lane, not_before: notBefore }) => [
      'effect',
      operation,
      attempt,
      mode,
      lane,
      notBefore === undefined ? 'now' : `not before ${notBefore}`,
    ]),
    ...run.timers.map(({ timer, due_at: dueAt }) => ['timer', timer, '', '', '', `due ${dueAt}`]),
    ...run.commands.map((command) => ['command', command, '', '', '', 'now']),
  ];
  return rows.length === 0
    ? 'Outstanding: nothing'
    : table(['outstanding', 'name', 'attempt', 'mode', 'lane', 'when'], rows);
};
