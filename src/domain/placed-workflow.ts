import type { ActingKind, AnyWorkflow, OrderWords, TimelineWords } from './acting-kind.ts';
import type { Decider, Decision, DomainEvent } from './decider.ts';
import { laneOf, type OwnedObject, SIMULATION_ANNOTATION } from './hubs/hub-object.ts';
import type { JsonObject } from './json.ts';
import { isObject, objectAt, own, stringAt, textsAt } from './json-tools.ts';
import {
  isSettled,
  type Place,
  type Placed,
  type PlacedCommand,
  type PlacedState,
} from './placed-document.ts';
import type { Call, Step } from './process/declaration.ts';
import { BACKOFF, later, OWN_BACKOFF } from './process/effects.ts';
import type { Run } from './process/run.ts';
import { stepWorkflow } from './process/step-workflow.ts';
import { UNDO } from './process/undo.ts';
import { because, quoted } from './sentences.ts';

/**
 * Carries out a document that is one object on a hub (`placedDocument`): once its own first steps are done, the object is
 * applied there and looked at until it is as wanted; at the end it is deleted, and whatever the first steps took is given
 * back after its absence was observed.
 */
export type PlacedRun<State extends PlacedState = PlacedState> = Run<State, Memo>;
export type PlacedStep<State extends PlacedState, Command> = Step<PlacedRun<State>, Command>;

/** How many answers there were when it was last time to ask again. */
type Memo = { readonly asked: number };

const READ_MS = 10_000;
const READ_FAILED_MS = 60_000;
const READY_DEADLINE_MS = 30 * 60_000;
/** What has to wait asks again this often, unless it knows when. */
const ASK_AGAIN_MS = 60_000;
export const ASK_AGAIN = 'ask-again';

export type WantedObject = {
  readonly spec: JsonObject;
  readonly annotations?: { readonly [key: string]: string };
};

export type PlacedWorkflow<State extends PlacedState, Command> = {
  readonly kind: string;
  /** What its events begin with. */
  readonly prefix: string;
  readonly words: string;
  readonly types: readonly string[];
  readonly decider: {
    readonly initialState: () => State;
    readonly evolve: (state: State, event: never) => State;
    readonly decide: (state: State, command: never) => Decision<DomainEvent>;
  };
  readonly object: OwnedObject;
  /** Before the object is applied; the place is one of them. */
  readonly first: readonly PlacedStep<State, Command | PlacedCommand>[];
  /** Name of the one of them whose answer may be that it has to wait: `{waiting, until?}`. */
  readonly mayWait?: string;
  /** Types of events that may end such a wait. */
  readonly wakes?: readonly string[];
  /** Once the object is there. */
  readonly following?: readonly PlacedStep<State, Command | PlacedCommand>[];
  readonly wanted: (run: PlacedRun<State>) => WantedObject;
  /** What its first steps saw. */
  readonly told?: (
    run: PlacedRun<State>,
    answer: JsonObject,
    at: string,
  ) => Command | PlacedCommand | undefined;
  /** The hub shows it as it should be. */
  readonly ready: (
    run: PlacedRun<State>,
    object: JsonObject,
    at: string,
  ) => Command | PlacedCommand | undefined;
};

/** Facts of a run that has begun. */
export const documentOf = ({ subject }: PlacedRun): JsonObject => (subject as Placed).document;
export const annotationOf = (run: PlacedRun, name: string): string | undefined =>
  own(textsAt(objectAt(documentOf(run), 'metadata'), 'annotations'), name);

/** The answer that it has to wait, if that was the last one. */
const waitOf = ({ done }: PlacedRun, step: string | undefined): JsonObject | undefined => {
  const { result } = (step === undefined ? undefined : done[step]) ?? {};
  return typeof result?.['waiting'] === 'string' ? result : undefined;
};

/** Asks what may have to wait; once it was told to wait, not before something may have changed. */
export const asking = <State extends PlacedState, Command>(
  name: string,
  call: (run: PlacedRun<State>) => Call,
  more: Partial<PlacedStep<State, Command>>,
): PlacedStep<State, Command> => ({
  name,
  rules: { backoff: OWN_BACKOFF },
  done: (run) => run.done[name] !== undefined && waitOf(run, name) === undefined,
  work: (run) => {
    const answers = run.done[name]?.times ?? 0;
    const waits = waitOf(run, name) !== undefined && run.memo.asked < answers;
    return waits ? undefined : { call: call(run), instance: `${answers}.${run.cycle}` };
  },
  ...more,
});

const onHub = (
  { subject, id }: PlacedRun,
  object: OwnedObject,
  operation: string,
  more: JsonObject = {},
): Call => {
  const { hub = '', namespace = '', objectName = '' } = subject.place ?? {};
  return {
    port: 'management-cluster',
    operation,
    lane: laneOf(hub, object),
    args: { object: object.kind, hub, namespace, name: objectName, id, ...more },
  };
};

const isThere = (answer: JsonObject): boolean => isObject(answer['object'] ?? null);

/** Nobody works on the objects of such a hub: what was stored there is as it should be. */
const isUnattended = ({ controller, simulated }: Place): boolean => controller === 'ledger' && !simulated;

export const placedWorkflow = <State extends PlacedState, Command>(
  declared: PlacedWorkflow<State, Command>,
): AnyWorkflow => {
  const { kind, prefix, words, object, first, following = [], mayWait } = declared;
  type Any = Command | PlacedCommand;
  type R = PlacedRun<State>;

  const applyArgs = (run: R): JsonObject => {
    const { simulated = false, tenantNamespace } = run.subject.place ?? {};
    const { spec, annotations = {} } = declared.wanted(run);
    // A tenant's annotation must never reach a real hub: its operator reads annotations as instructions.
    const simulation = simulated ? annotationOf(run, SIMULATION_ANNOTATION) : undefined;
    return {
      spec,
      annotations: {
        ...annotations,
        ...(simulation === undefined ? {} : { [SIMULATION_ANNOTATION]: simulation }),
      },
      ...(tenantNamespace === undefined ? {} : { tenantNamespace }),
    };
  };

  const look = (run: R, answer: JsonObject, at: string): Any | undefined => {
    const { place } = run.subject;
    const { object: shown, hub } = answer;
    if (run.ending !== undefined || run.done['apply'] === undefined || place === undefined) return undefined;
    // Until an attempt whose outcome nobody knows has its answer, nothing that is seen is news.
    if (run.problem !== undefined || shown === undefined || (hub !== undefined && hub !== place.hub))
      return undefined;
    if (!isObject(shown)) {
      const message = `the hub holds no object of this ${words} any more`;
      return { type: 'RecordFailure', at, reason: 'ObjectLost', message };
    }
    if (stringAt(shown, 'deletionTimestamp') !== '') return undefined;
    if (isUnattended(place) || stringAt(shown, 'phase') === 'Ready') return declared.ready(run, shown, at);
    if (stringAt(shown, 'phase') !== 'Failed') return undefined;
    const message = stringAt(shown, 'message') || `the hub could not make the ${words} ready`;
    return { type: 'RecordFailure', at, reason: 'ProvisioningFailed', message };
  };

  const steps: readonly PlacedStep<State, Any>[] = [
    ...first,
    {
      name: 'apply',
      after: first.map(({ name }) => name),
      rules: { backoff: BACKOFF },
      work: (run) => ({ call: onHub(run, object, 'applyObject', applyArgs(run)), instance: run.cycle }),
      undo: {
        call: (run) => onHub(run, object, 'deleteObject'),
        look: (run) => onHub(run, object, 'observeObject'),
        absent: (_run, answer) => answer['existed'] === false || answer['object'] === null,
        shown: (_run, answer) => isThere(answer),
        rules: { backoff: OWN_BACKOFF },
      },
    },
    ...following,
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
          message: `the hub did not make it ready within ${READY_DEADLINE_MS / 60_000} minutes`,
        }),
      },
    },
    {
      // What the watch of its hub missed.
      name: 'read',
      phase: 'live',
      after: ['apply'],
      done: ({ subject }) => isSettled(subject),
      work: (run) => ({
        call: onHub(run, object, 'observeObject'),
        everyMs: run.subject.failure === undefined ? READ_MS : READ_FAILED_MS,
      }),
    },
    {
      name: 'report-waiting',
      phase: 'live',
      tell: (run) => {
        const message = stringAt(waitOf(run, mayWait), 'waiting');
        const at = own(run.done, mayWait ?? '')?.at ?? '';
        return message === '' ? undefined : { type: 'ReportWaiting', at, message };
      },
    },
    {
      name: 'report-problem',
      phase: 'live',
      tell: ({ problem, subject }) =>
        problem === undefined || subject.failure !== undefined
          ? undefined
          : { type: 'RecordFailure', at: problem.at, reason: problem.reason, message: problem.message },
    },
    {
      name: 'confirm-absence',
      phase: 'deletion',
      after: [UNDO],
      tell: (_run, at) => ({ type: 'ConfirmAbsence', at }),
    },
  ];

  return stepWorkflow<State, Any & { readonly type: string }, DomainEvent, Memo>({
    name: `${kind}Order`,
    subject: {
      category: kind,
      types: declared.types,
      decider: declared.decider as unknown as Decider<State, Any & { readonly type: string }, DomainEvent>,
      idOf: (state) => (state as Placed).id,
    },
    begins: ({ status }) => status !== 'absent' && status !== 'abandoned',
    ends: ({ status }) => (status === 'deleting' ? 'undo' : status === 'retired' ? 'gone' : undefined),
    retries: (_run, { type }) => type === `${prefix}RetryRequested`,
    memo: {
      initial: { asked: 0 },
      evolve: (memo, { type, data }, { done }) =>
        type === 'TimerFired' && data['timerId'] === ASK_AGAIN
          ? { asked: own(done, mayWait ?? '')?.times ?? 0 }
          : memo,
    },
    timers: (run): { readonly [timerId: string]: string } => {
      const wait = waitOf(run, mayWait);
      const { at, times = 0 } = own(run.done, mayWait ?? '') ?? {};
      if (wait === undefined || at === undefined || run.ending !== undefined || run.memo.asked >= times)
        return {};
      return { [ASK_AGAIN]: stringAt(wait, 'until') || later(at, ASK_AGAIN_MS) };
    },
    ...(declared.wakes === undefined ? {} : { wakes: { types: declared.wakes, timerId: ASK_AGAIN } }),
    steps: steps as readonly Step<R, Any & { readonly type: string }>[],
    observe: (run, answer, at) =>
      (Object.hasOwn(answer, 'object') ? look(run, answer, at) : declared.told?.(run, answer, at)) as
        | (Any & { readonly type: string })
        | undefined,
    hubOf: ({ subject }) => subject.place?.hub,
  }) as unknown as AnyWorkflow;
};

/** Timeline, order view and log of such a kind, in its words. */
export const placedWords = (
  { prefix, words }: { readonly prefix: string; readonly words: string },
  own_: {
    readonly states: readonly string[];
    readonly enumPrefix: string;
    readonly sentences: TimelineWords['sentences'];
    readonly deeds: TimelineWords['deeds'];
  },
): Pick<ActingKind, 'logged'> & {
  readonly timeline: TimelineWords;
  readonly order: OrderWords<unknown, Extract<PlacedCommand, { type: 'RetryOrder' }>>;
} => ({
  timeline: {
    sentences: {
      [`${prefix}Ordered`]: (data) => `The ${words}${quoted(data['name'])} was ordered.`,
      [`${prefix}Revised`]: 'The document was changed.',
      [`${prefix}DeletionRequested`]: 'Deletion was requested.',
      [`${prefix}Withdrawn`]: 'Nothing of it is left on its hub; other finalizers hold it.',
      [`${prefix}Deleted`]: `The ${words} is gone.`,
      [`${prefix}Placed`]: (data) =>
        data['hub'] === undefined ? 'A hub was chosen.' : `It is placed on hub${quoted(data['hub'])}.`,
      [`${prefix}Waiting`]: (data) => `It waits${because(data)}.`,
      [`${prefix}Failed`]: (data) => `It failed${because(data)}.`,
      [`${prefix}RetryRequested`]: 'A retry was requested.',
      [`${prefix}StatusReported`]: 'A status was reported by a private caller.',
      ...own_.sentences,
    },
    deeds: { apply: 'send it to its hub', 'undo-apply': 'delete it from its hub', ...own_.deeds },
    timers: { [ASK_AGAIN]: 'It is time to ask again.' },
  },
  order: {
    prefix: own_.enumPrefix,
    states: own_.states,
    details: (state) => {
      const { place, waiting, failure } = state as PlacedState;
      return {
        conditions: {},
        waiting: waiting === undefined ? {} : { waiting: { message: waiting } },
        failure: failure === undefined ? {} : { failure: { ...failure } },
        place:
          place === undefined
            ? {}
            : { hub: place.hub, order_name: place.objectName, namespace: place.namespace },
      };
    },
    retry: (at) => ({ type: 'RetryOrder', at }),
  },
  logged: { [`${prefix}Failed`]: `${words} failed` },
});
