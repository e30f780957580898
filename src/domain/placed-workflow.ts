import type { ActingKind, AnyWorkflow } from './acting-kind.ts';
import { cutOffSessions, type Consoles } from './consoles.ts';
import type { Decider, DomainEvent } from './decider.ts';
import { failureSentence } from './failure-sentences.ts';
import { filled } from './hubs/hub-codecs.ts';
import { SIMULATION_ANNOTATION } from './hubs/hub-object.ts';
import type { JsonObject } from './json.ts';
import { defined, isObject, own, stringAt, without } from './json-tools.ts';
import {
  HELD,
  holdersOf,
  isAborted,
  isSettled,
  isUnderWay,
  messageOf,
  OVERDUE,
  type Placed,
  type PlacedCommand,
  type PlacedState,
} from './placed-document.ts';
import {
  type PlacedRun,
  type PlacedStep,
  type Memo,
  annotationOf,
  answersOf,
  waitOf,
  APPLY,
  isApplied,
  placeOf,
  onHubOf,
  isGoneFrom,
  onItsHub,
} from './placed-run.ts';
import type { PlacedDeclaration } from './placed-declaration.ts';
import { GONE_SOON, MAKING_BACKOFF, makeObjects, removeObjects } from './made-objects.ts';
import type { Step } from './process/declaration.ts';
import { delayAfter, later, type Backoff } from './process/effects.ts';
import type { Problem } from './process/run.ts';
import { stepWorkflow } from './process/step-workflow.ts';
import { UNDO } from './process/undo.ts';
import { tenantSpaceId } from './tenancy/tenant-space.ts';
import { HUB_CARRIES, HUB_WAKE, TENANT_READY, TENANT_WAKE } from './tenancy/tenant-wake.ts';
import type { ResourceKind } from './resource.ts';
import { because, quoted } from './sentences.ts';

const MINUTE = 60_000;
const READ_MS = 10_000;
const READ_FAILED_MS = MINUTE;
const READY_DEADLINE_MS = 30 * MINUTE;
/** From the deletion or the abort until nothing is left. */
const ABSENCE_DEADLINE_MS = 60 * MINUTE;
/** Between two removals: looks, which leave no events, show the absence earlier. */
const REMOVAL_BACKOFF: Backoff = { firstMs: MINUTE, maxMs: 30 * MINUTE };
/** Of what has to wait, unless it is woken or knows when something changes. */
const WAITING_BACKOFF: Backoff = { firstMs: MINUTE, maxMs: 90 * MINUTE };
/** By one event: most often it frees one thing, and whoever is asked first may not want it any more. */
const MOST_WOKEN = 3;
const ALL_WOKEN = 1_000;
const ASK_AGAIN = 'ask-again';
const DUE = 'due';
const CONSOLES = 'consoles';
const MAKE_OBJECTS = 'make-objects';
const REMOVE_OBJECTS = 'remove-objects';
/** Of an object beside, which nobody watches. */
const BESIDE_REMOVAL: Backoff = { firstMs: 1_000, maxMs: MINUTE };

/** Refusals of our own deciders, which are written for callers, have such codes. */
const OUR_CODE = /^[A-Z]+(_[A-Z]+)+$/;

/** What tenants read of it, and what its hub or an adapter said. */
const toldOf = ({ effect, reason, message }: Problem, before = '') =>
  OUR_CODE.test(reason) && !effect.endsWith('apply')
    ? { message: before + message }
    : { message: before + failureSentence(reason), detail: message };

/** What cannot be made for it stands in its way nowhere. */
const problemOf = ({ problem }: PlacedRun): Problem | undefined =>
  problem?.effect === MAKE_OBJECTS ? undefined : problem;

/**
 * Carries out a document that is one object on a hub (`placedDocument`): once its own first steps are done, the object is
 * applied there and looked at until it is as wanted; at the end it is deleted, and whatever the first steps took is given
 * back after its absence was observed.
 */
const workflowOf = <State extends PlacedState, Command extends { readonly type: string }>(
  { kind, message: prefix, words, decider, apart }: ResourceKind<State, Command>,
  declared: PlacedDeclaration<State, Command>,
): AnyWorkflow => {
  const { object, first, beside = [], following = [], wakes, makes } = declared;
  type Any = Command | PlacedCommand;
  type R = PlacedRun<State>;

  const retry = `${prefix}RetryRequested`;
  const failureOf = (run: R) => {
    const { step = '', reason } = declared.passing ?? {};
    const { at = '', times = 0 } = own(run.done, step) ?? {};
    return reason === undefined || run.subject.failure?.reason !== reason
      ? []
      : [
          {
            step,
            at,
            times,
            message: '',
            until: '',
            detail: '',
            isForHub: false,
            isOver: (own(run.memo.answers, step) ?? 0) >= times,
          },
        ];
  };
  const held = [...beside.map(({ step }) => step), APPLY];
  const restOf = (run: R) =>
    [
      ...[...first.map(({ name }) => name), ...held].flatMap((name) => waitOf(run, name) ?? []),
      ...failureOf(run),
    ].find(({ isOver }) => !isOver);

  const making = ({ objects, bound }: NonNullable<typeof makes>): readonly PlacedStep<State, Any>[] => {
    const of = ({ subject }: R) => subject as Placed & State;
    return [
      {
        // What somebody else attached instead stops nothing.
        name: MAKE_OBJECTS,
        rules: { backoff: MAKING_BACKOFF, attempts: 1, mayBeRefused: false },
        needed: (run) => objects(of(run)).length > 0,
        work: (run) => ({ call: makeObjects({ kind, id: run.id }, objects(of(run))), instance: 0 }),
      },
      {
        name: 'report-lacking',
        phase: 'live',
        tell: ({ problem, done: { [MAKE_OBJECTS]: made } }) => {
          if (made !== undefined) return { type: 'ReportLacking', at: made.at, message: '' };
          return problem?.effect === MAKE_OBJECTS
            ? { type: 'ReportLacking', at: problem.at, message: problem.message }
            : undefined;
        },
      },
      {
        name: REMOVE_OBJECTS,
        phase: 'deletion',
        rules: { backoff: GONE_SOON, attempts: 3 },
        // An abort leaves them: they serve it again after a retry.
        needed: (run) => run.ending !== undefined && bound(of(run)).some((group) => group.length > 0),
        work: (run) => ({ call: removeObjects({ kind, id: run.id }, bound(of(run))), instance: 0 }),
      },
    ];
  };
  const firstToGo = makes === undefined ? [] : [REMOVE_OBJECTS];

  const dueStep = (due: NonNullable<typeof declared.due>): PlacedStep<State, Any> => ({
    name: 'tell-due',
    phase: 'live',
    after: [APPLY],
    needed: (run) => run.memo.due !== undefined && due.at(run) === run.memo.due,
    tell: due.tell,
  });

  const cutOffIn = ({ subject, memo: { consoles = '' } }: R) =>
    cutOffSessions(subject as Consoles).find(({ at }) => at <= consoles);
  const consolesStep: PlacedStep<State, Any> = {
    name: 'close-consoles',
    phase: 'live',
    needed: (run) => cutOffIn(run) !== undefined,
    tell: (run, at) => {
      const session = cutOffIn(run)?.session ?? '';
      return { type: 'CloseConsole', at, session, reason: 'interrupted' } as unknown as Command;
    },
  };

  const applyArgs = (run: R): JsonObject => {
    const { simulated } = run.subject.place ?? {};
    const { spec, labels, annotations, status } = declared.wanted(run);
    // A tenant's annotation must never reach a real hub: its operator reads annotations as instructions.
    const simulation = simulated === true ? annotationOf(run, SIMULATION_ANNOTATION) : undefined;
    const all = defined({ ...annotations, [SIMULATION_ANNOTATION]: simulation }) as JsonObject;
    return { spec, annotations: all, ...defined({ labels, status }) };
  };

  const look = (run: R, answer: JsonObject, at: string): Any | undefined => {
    const { place } = run.subject;
    const { object: shown, hub } = answer;
    if (run.ending !== undefined || run.aborted !== undefined || !isApplied(run) || place === undefined)
      return undefined;
    // Until an attempt whose outcome nobody knows has its answer, nothing that is seen is news.
    if (problemOf(run) !== undefined || shown === undefined || (hub !== undefined && hub !== place.hub))
      return undefined;
    if (!isObject(shown)) {
      const message = `the hub holds no object of this ${words} any more`;
      return { type: 'RecordFailure', at, reason: 'ObjectLost', message };
    }
    if (stringAt(shown, 'deletionTimestamp') !== '') return undefined;
    if (declared.observed === true) return declared.ready(run, shown, at);
    if (stringAt(shown, 'phase') === 'Ready') return declared.ready(run, shown, at);
    const said = stringAt(shown, 'message');
    if (stringAt(shown, 'phase') !== 'Failed')
      // What it waits for there, such as its tenant (`TenantNotReady`), it says while nothing has failed.
      return said === ''
        ? undefined
        : { type: 'ReportWaiting', at, message: `the hub has not begun the ${words} yet`, detail: said };
    const message = `the hub could not make the ${words} ready`;
    const detail = said === '' ? {} : { detail: said };
    return { type: 'RecordFailure', at, reason: 'ProvisioningFailed', message, ...detail };
  };

  const applied = onItsHub<State>(APPLY, object, applyArgs, REMOVAL_BACKOFF);
  const steps: readonly PlacedStep<State, Any>[] = [
    ...first,
    ...beside.map(
      (one): PlacedStep<State, Any> => ({
        ...onItsHub(one.step, one.object, one.wanted, BESIDE_REMOVAL, one.object.nameOf),
        after: first.map(({ name }) => name),
        needed: one.needed,
      }),
    ),
    {
      ...applied,
      after: [...first.map(({ name }) => name), ...beside.map(({ step }) => step)],
      undo: {
        ...applied.undo,
        shown: (_run, answer) => isObject(answer['object']),
        gone: isGoneFrom,
        after: firstToGo,
      },
    },
    ...following,
    ...(makes === undefined ? [] : making(makes)),
    ...(declared.due === undefined ? [] : [dueStep(declared.due)]),
    ...(declared.consoles === undefined ? [] : [consolesStep]),
    {
      // Only waited for.
      name: 'ready',
      after: ['apply'],
      done: ({ subject: { done, failure } }) => done === true || failure !== undefined,
      deadline: {
        ms: READY_DEADLINE_MS,
        onOverdue: (_run, { at }) => ({
          type: 'ReportWaiting',
          at,
          message: `the hub did not make it ready within ${READY_DEADLINE_MS / MINUTE} minutes`,
        }),
      },
    },
    {
      // What the watch of its hub missed.
      name: 'read',
      phase: 'live',
      after: ['apply'],
      done: ({ subject, aborted }) => isSettled(subject) || aborted !== undefined,
      work: (run) => ({
        call: onHubOf(object, run, 'observeObject'),
        everyMs: run.subject.failure === undefined ? READ_MS : READ_FAILED_MS,
      }),
    },
    {
      name: 'report-waiting',
      tell: (run) => {
        const wait = restOf(run);
        return wait === undefined || wait.message === ''
          ? undefined
          : { type: 'ReportWaiting', at: wait.at, message: wait.message, ...filled({ detail: wait.detail }) };
      },
    },
    {
      name: 'report-problem',
      phase: 'live',
      tell: (run) => {
        const problem = problemOf(run);
        return problem === undefined || run.subject.failure !== undefined
          ? undefined
          : { type: 'RecordFailure', at: problem.at, reason: problem.reason, ...toldOf(problem) };
      },
    },
    {
      name: 'look-for-absence',
      phase: 'undo',
      needed: (run) => (run.effects['undo-apply']?.status ?? 'done') !== 'done',
      work: (run) => ({ call: onHubOf(object, run, 'observeObject'), everyMs: READ_MS }),
    },
    {
      name: 'report-blocked',
      phase: 'undo',
      needed: ({ subject }) => !messageOf(subject).startsWith(OVERDUE),
      tell: ({ problem }) =>
        problem === undefined
          ? undefined
          : { type: 'ReportWaiting', at: problem.at, ...toldOf(problem, 'it is not gone yet: ') },
    },
    {
      // Only waited for.
      name: 'absence',
      phase: 'undo',
      done: ({ subject: { place, status } }) => place === undefined || status === 'retired',
      deadline: {
        ms: ABSENCE_DEADLINE_MS,
        onOverdue: ({ problem }, { at }) => {
          const why = problem === undefined ? { message: OVERDUE } : toldOf(problem, `${OVERDUE}: `);
          return { type: 'RecordFailure', at, reason: 'DeletionOverdue', ...why };
        },
      },
    },
    {
      name: 'confirm-absence',
      phase: 'undo',
      after: [UNDO, ...firstToGo],
      tell: (_run, at) => ({ type: 'ConfirmAbsence', at }),
    },
  ];

  return stepWorkflow<State, Any & { readonly type: string }, DomainEvent, Memo>({
    name: `${kind}Order`,
    subject: {
      category: kind,
      types: declared.eventTypes
        // Of the many that lend, its run has nothing to fold.
        .filter(({ resource, type }) => resource === kind && apart?.events.includes(type) !== true)
        .map(({ type }) => type),
      decider: decider as unknown as Decider<State, Any & { readonly type: string }, DomainEvent>,
      idOf: (state) => (state as Placed).id,
    },
    begins: ({ status }) => status !== 'absent' && status !== 'abandoned',
    ends: ({ status }) => (status === 'deleting' ? 'undo' : status === 'retired' ? 'gone' : undefined),
    aborts: isAborted,
    retries: ({ subject }, { type }) =>
      type === retry ||
      (isUnderWay(subject) &&
        (declared.again?.includes(type) === true ||
          (declared.changes === true && type === `${prefix}Revised`))),
    memo: {
      initial: { answers: {} },
      evolve: (memo, { type, data }, run) => {
        const timerId = type === 'TimerFired' ? stringAt(data, 'timerId') : '';
        if (timerId.startsWith(`${CONSOLES}:`))
          return { ...memo, consoles: timerId.slice(CONSOLES.length + 1) };
        if (timerId.startsWith(`${DUE}:`)) return { ...memo, due: timerId.slice(DUE.length + 1) };
        if (
          type !== retry &&
          ![ASK_AGAIN, TENANT_READY, HUB_CARRIES].some((name) => timerId.startsWith(name))
        )
          return memo;
        const { until = '' } = restOf(run) ?? {};
        const hasCome = until !== '' && until <= stringAt(data, 'at');
        const answers = Object.fromEntries(
          [...first, { name: APPLY }, ...following].map(({ name }) => [name, answersOf(run, name)]),
        );
        return { ...memo, answers, ...(hasCome ? { came: until } : {}) };
      },
    },
    timers: (run): { readonly [timerId: string]: string } => {
      if (run.ending !== undefined || run.aborted !== undefined) return {};
      const wait = restOf(run);
      const next = declared.due?.at(run);
      const due = {
        ...(next === undefined || next === run.memo.due ? {} : { [`${DUE}:${next}`]: next }),
        ...Object.fromEntries(
          cutOffSessions(run.subject as Consoles)
            .filter(({ at }) => at > (run.memo.consoles ?? ''))
            .map(({ at }) => [`${CONSOLES}:${at}`, at]),
        ),
      };
      if (wait === undefined) return due;
      const { at, until, times } = wait;
      const { came } = run.memo;
      // It asks at the time that it was told of, whoever woke it before. Where others were faster there are more of them.
      const rest = until === '' || until === came ? delayAfter(run.id, times, WAITING_BACKOFF) : MINUTE;
      const soonest = until !== '' && came === undefined ? until : later(at, rest);
      const awaited = wakes.of?.(run);
      const asked = awaited === undefined ? ASK_AGAIN : `${ASK_AGAIN}:${awaited}`;
      const { hub = '' } = placeOf(run) ?? {};
      const byHub = wait.isForHub
        ? `${HUB_CARRIES}:${hub}`
        : `${TENANT_READY}:${tenantSpaceId(hub, run.tenant)}`;
      const timerId = held.includes(wait.step) ? byHub : asked;
      return { ...due, [timerId]: until > soonest ? until : soonest };
    },
    wakes: [
      {
        types: wakes.types,
        timerId: ASK_AGAIN,
        ...(wakes.of === undefined ? {} : { perStream: wakes.most ?? MOST_WOKEN }),
      },
      ...(wakes.all === undefined ? [] : [{ types: wakes.all, timerId: ASK_AGAIN, perStream: ALL_WOKEN }]),
      ...(wakes.elsewhere === undefined ? [] : [{ types: wakes.elsewhere, timerId: ASK_AGAIN }]),
      TENANT_WAKE,
      HUB_WAKE,
    ],
    steps: steps as readonly Step<R, Any & { readonly type: string }>[],
    observe: look as (...of: Parameters<typeof look>) => (Any & { readonly type: string }) | undefined,
    hubOf: (run) => placeOf(run)?.hub,
  }) as unknown as AnyWorkflow;
};

/** A kind that is carried out so. */
export const placedKind = <
  State extends PlacedState,
  Command extends { readonly type: string },
  Event extends DomainEvent,
>(
  resource: ResourceKind<State, Command, Event>,
  declared: PlacedDeclaration<State, Command>,
): ActingKind<State, Command, Event> => {
  const { message: prefix, words, event } = resource;
  const asked = (command: PlacedCommand): Command => command as unknown as Command;
  return {
    ...resource,
    eventTypes: declared.eventTypes,
    workflow: workflowOf(resource as unknown as ResourceKind<State, Command>, declared),
    hubObjects: [declared.object, ...(declared.beside ?? []).map((one) => one.object)],
    isWithdrawn: ({ withdrawn }) => withdrawn === true,
    timeline: {
      sentences: {
        [`${prefix}Ordered`]: (data) => `The ${words}${quoted(data['name'])} was ordered.`,
        [`${prefix}Revised`]: 'The document was changed.',
        [`${prefix}DeletionRequested`]: 'Deletion was requested.',
        [`${prefix}Withdrawn`]: `Its hub holds nothing of the ${words} any more.`,
        [`${prefix}Deleted`]: `The ${words} is gone.`,
        [`${prefix}Placed`]: (data) =>
          data['hub'] === undefined ? 'A hub was chosen.' : `It is placed on hub${quoted(data['hub'])}.`,
        [`${prefix}Waiting`]: (data) => `It waits${because(data)}.`,
        [`${prefix}Failed`]: (data) => `It failed${because(data)}.`,
        [`${prefix}Lacking`]: (data) =>
          data['message'] === ''
            ? 'What it lacked was made.'
            : `Something that belongs to it cannot be made${because(data)}.`,
        [`${prefix}RetryRequested`]: 'A retry was requested.',
        [`${prefix}StatusReported`]: 'A private caller reported a status.',
        ...declared.sentences,
      },
      deeds: { apply: 'send it to its hub', 'undo-apply': 'delete it from its hub', ...declared.deeds },
      timers: {
        [ASK_AGAIN]: 'The wait is over; the ledger asks again.',
        ...(declared.consoles === undefined
          ? {}
          : { [CONSOLES]: 'A console session should be over; the ledger closes one that was cut off.' }),
        ...(declared.due === undefined
          ? {}
          : { [DUE]: 'The time of something that was wanted later has come.' }),
        [TENANT_READY]: 'Its hub may know its tenant by now; the ledger sends it again.',
        [HUB_CARRIES]: 'Its hub may carry it by now; the ledger sends it again.',
      },
    },
    order: {
      prefix: (event?.field ?? '').toUpperCase(),
      states: declared.states,
      details: (state) => {
        const { place, waiting, failure } = state;
        const held = holdersOf(state).join(', ');
        const why = waiting ?? state.lacking;
        const wait = held === '' ? why && without(why, 'at') : { message: `${HELD}: ${held}` };
        return {
          conditions: {},
          waiting: wait === undefined ? {} : { waiting: wait },
          failure: failure === undefined ? {} : { failure: without(failure, 'at') },
          place:
            place === undefined
              ? {}
              : { hub: place.hub, order_name: place.objectName, namespace: place.namespace },
        };
      },
      retry: (at) => asked({ type: 'RetryOrder', at }),
      abort: (at, reason) => asked({ type: 'AbortOrder', at, reason }),
    },
    logged: { [`${prefix}Failed`]: `${words} failed` },
    ...(declared.meter === undefined ? {} : { meter: declared.meter }),
    ...(declared.consoles === undefined
      ? {}
      : {
          consoles: {
            ...declared.consoles,
            object: declared.object,
            place: ({ place }) =>
              place && { hub: place.hub, namespace: place.namespace, name: place.objectName },
          },
        }),
  };
};
