import { invalid, isRejection, reject, type Decider, type Rejection } from '../decider.ts';
import { withConsoles, type ConsoleCommand, type ConsoleEnd, type Consoles } from '../consoles.ts';
import { creationUnderWay, isHeldBy, lendsItself, type UseCommand, type User } from '../exclusive-use.ts';
import type { Holder } from '../holder.ts';
import type { JsonObject } from '../json.ts';
import { defined, listAt, objectAt, sameJson, stringAt, valueAt, without } from '../json-tools.ts';
import type { MadeObject } from '../made-objects.ts';
import { autoAddresses, boundTo } from '../networks/auto-addresses.ts';
import {
  isAborted,
  isSettled,
  isUnderWay,
  OVERDUE,
  placedDocument,
  type Placed,
  type PlacedCommand,
  type PlacedEvent,
  type PlacedState,
} from '../placed-document.ts';
import { placedResource } from '../placed-resource.ts';
import type { ResourceKind } from '../resource.ts';
import type { EventOf } from '../schemas.ts';
import type { INSTANCE_SHAPES, ObservedInstance, ResolvedInstance } from './event-shapes.ts';
import { conditionsOf } from './instance-conditions.ts';
import { ALWAYS, runStrategyRejection, specOf } from './instance-spec.ts';

/** Virtual machines of tenants (OSAC), which stand in subnets and on the hub of these. */
const IMMUTABLE = [
  'template',
  'template_parameters',
  'catalog_item',
  'instance_type',
  'disk_image',
  'boot_disk',
  'additional_disks',
  'auto_external_ip_attachment',
].map((field) => `spec.${field}`);
export const USER_DATA = 'spec.user_data';
const MAX_USER_DATA = 65_536;
export const INSTANCE_PRIVATE_ONLY = ['metadata.finalizers', 'status.hub'];
const CARRIED_OUT = ['run_strategy', 'restart_requested_at', 'network_attachments'];

export type InstanceState = PlacedState &
  Consoles & {
    readonly resolved?: ResolvedInstance;
    readonly observed?: ObservedInstance;
    /** When it entered the state that it shows. */
    readonly since?: string;
    /** The last restart whose time has come. */
    readonly restart?: string;
    readonly drift?: { readonly at: string; readonly fields: readonly string[] };
    /** What has an external IP attached to it, and the number of claims so far. */
    readonly user?: User & { readonly address?: string };
    readonly claims?: number;
  };
type PlacedInstance = Placed & InstanceState;

type MachineCommand =
  | Exclude<PlacedCommand, { type: 'CreateDocument' }>
  | (Extract<PlacedCommand, { type: 'CreateDocument' }> & { readonly resolved?: ResolvedInstance })
  | UseCommand
  | { readonly type: 'RecordObserved'; readonly at: string; readonly observed: ObservedInstance }
  | { readonly type: 'RecordDrift'; readonly at: string; readonly fields: readonly string[] }
  | { readonly type: 'RecordRestartDue'; readonly at: string; readonly requestedAt: string };
export type InstanceCommand = MachineCommand | ConsoleCommand;

export type InstanceEvent = PlacedEvent<'ComputeInstance', EventOf<typeof INSTANCE_SHAPES>>;

const runs = (document: JsonObject): boolean => stringAt(specOf(document), 'run_strategy') === ALWAYS;
export const attachmentsOf = (document: JsonObject): readonly JsonObject[] =>
  listAt(specOf(document), 'network_attachments') as readonly JsonObject[];
export const subnetIn = (attachment: JsonObject): string => stringAt(objectAt(attachment, 'subnet'), 'id');
export const groupsIn = (attachment: JsonObject): readonly string[] =>
  listAt(attachment, 'security_groups').map((group) => stringAt(group, 'id'));

const timeOf = (text: string | undefined): number => (text === undefined ? Number.NaN : Date.parse(text));

/** The wanted restart that has not come about yet: an ISO time. What is older than the order says nothing. */
export const pendingRestart = (state: PlacedInstance): string | undefined => {
  const wanted = timeOf(stringAt(specOf(state.document), 'restart_requested_at') || undefined);
  if (Number.isNaN(wanted) || wanted <= timeOf(state.createdAt)) return undefined;
  const iso = new Date(wanted).toISOString();
  return state.restart === iso ? undefined : iso;
};

/** Times of a hub have whole seconds. */
const secondOf = (text: string | undefined): number => Math.floor(timeOf(text) / 1000);

const readyIn = (observed: ObservedInstance | undefined) =>
  observed?.conditions.find(({ type }) => type === 'Ready');

/** Its hub shows what is wanted of it. A machine that was off when its restart was due is as good as restarted. */
const isAsWanted = ({ document, observed, restart }: PlacedInstance): boolean => {
  if (!runs(document)) return observed?.phase === 'Stopped';
  const begun = [observed?.lastRestartedAt, readyIn(observed)?.lastTransitionTime];
  return (
    observed?.phase === 'Running' &&
    (restart === undefined || begun.some((at) => secondOf(at) >= secondOf(restart)))
  );
};

/** As its document shows it, without what a private caller wrote. */
const stateOf = (state: InstanceState): string => {
  if (state.status === 'absent' || state.status === 'abandoned') return '';
  const { status, failure, observed, place, waiting } = state;
  if (status !== 'present') return 'DELETING';
  // A change that failed leaves it as it is: what stands in the way is said by a condition.
  if (failure !== undefined && (isAborted(state) || observed === undefined || observed.phase === 'Failed'))
    return 'FAILED';
  if (observed !== undefined) return observed.phase.toUpperCase();
  return place === undefined && waiting === undefined ? '' : 'STARTING';
};

const attachmentsRejection = (document: JsonObject, previous?: JsonObject): Rejection | undefined => {
  const field = 'spec.network_attachments';
  const subnets = attachmentsOf(document).map(subnetIn);
  if (previous !== undefined && !sameJson(attachmentsOf(previous).map(subnetIn), subnets))
    return invalid(
      'IMMUTABLE_FIELD',
      field,
      `subnets of field '${field}' are immutable, and so is their number: only security groups may change`,
    );
  const empty = subnets.indexOf('');
  if (empty >= 0) return invalid('FIELD_REQUIRED', `${field}.${empty}.subnet`, 'subnet is required');
  if (subnets.length > MAX_ATTACHMENTS)
    return invalid(
      'TOO_MANY_ATTACHMENTS',
      field,
      `field '${field}' may hold at most ${MAX_ATTACHMENTS} entries`,
    );
  const twice = subnets.find((id, index) => subnets.indexOf(id) !== index);
  return twice === undefined
    ? undefined
    : invalid('SUBNET_TWICE', field, `field '${field}' names subnet '${twice}' twice`);
};
const MAX_ATTACHMENTS = 8;

const documents = placedDocument({
  words: 'compute instance',
  prefix: 'ComputeInstance',
  done: 'Observed',
  immutable: IMMUTABLE,
  secrets: [{ path: USER_DATA, reads: '***' }],
  reportable: [
    'state',
    'conditions',
    'internal_ip_address',
    'hub',
    'last_restarted_at',
    'external_ip_address',
    'state_transition_time',
  ],
  carriedOut: CARRIED_OUT.map((field) => `spec.${field}`),
  status: (state) => {
    const { observed, since, user } = state as PlacedInstance;
    const shown = stateOf(state);
    return {
      state: shown && `COMPUTE_INSTANCE_STATE_${shown}`,
      conditions: [...conditionsOf(state)],
      internal_ip_address: observed?.internalIp ?? '',
      hub: state.place?.hub ?? '',
      last_restarted_at: observed?.lastRestartedAt ?? '',
      external_ip_address: observed?.externalIp ?? user?.address ?? '',
      state_transition_time: shown === '' ? '' : (since ?? ''),
    };
  },
  check: (document, { previous }) =>
    runStrategyRejection(specOf(document), 'spec.run_strategy') ?? attachmentsRejection(document, previous),
  isBound: (state) => instanceBound(state).some((group) => group.length > 0),
});

/** The external IP and its attachment that the service makes for it and removes with it (OSAC). */
export const instanceMakes = ({ id, name, resolved }: PlacedInstance): readonly MadeObject[] => {
  const { externalIp } = resolved ?? {};
  if (externalIp === undefined) return [];
  return autoAddresses({ field: 'compute_instance', id, name }, externalIp.pool, [['', externalIp]]);
};

/** What goes before it: each group once nothing is left of the one before. */
export const instanceBound = (state: PlacedInstance): readonly (readonly Holder[])[] =>
  boundTo(state.user === undefined ? [] : [state.user], instanceMakes(state));

/** Clocks of clients may be behind. */
const LATE_MS = 5 * 60_000;

const restartRejection = (
  state: InstanceState,
  command: Extract<InstanceCommand, { type: 'CreateDocument' | 'ReviseDocument' }>,
): Rejection | undefined => {
  const field = 'spec.restart_requested_at';
  const before = 'document' in state ? stringAt(specOf(state.document), 'restart_requested_at') : '';
  const wanted = valueAt(command.document, field);
  if (typeof wanted !== 'string' || wanted === before) return undefined;
  const { restart } = state;
  if (timeOf(wanted) < timeOf(command.at) - LATE_MS)
    return invalid('RESTART_IN_THE_PAST', field, `field '${field}' must not lie in the past`);
  return timeOf(wanted) <= timeOf(restart)
    ? invalid(
        'RESTART_IN_THE_PAST',
        field,
        `field '${field}' must be later than the last restart, '${restart}'`,
      )
    : undefined;
};

/** When a machine began to run or ceased to: as its hub says, if that can be. What it says of other changes is not their time. */
const momentOf = (state: PlacedInstance, observed: ObservedInstance, at: string): string => {
  const [was, is] = [state.observed, observed].map((one) => one?.phase === 'Running');
  if (was === is) return at;
  const ready = readyIn(observed);
  const told = timeOf(ready?.lastTransitionTime);
  if (Number.isNaN(told) || (ready?.status === 'True') !== is || told > timeOf(at)) return at;
  const earliest = timeOf(state.since ?? state.createdAt);
  return new Date(Math.max(told, earliest)).toISOString();
};

/** A restart that nobody saw: its hub tells when it began, and since when the machine runs again. */
const unseenRestart = (
  { observed: former, since }: PlacedInstance,
  observed: ObservedInstance,
): (ObservedInstance & { readonly at: string }) | undefined => {
  if (former?.phase !== 'Running' || observed.phase !== 'Running') return undefined;
  const off = Math.max(timeOf(observed.lastRestartedAt), timeOf(since));
  const ready = readyIn(observed);
  return observed.lastRestartedAt !== former.lastRestartedAt && off < timeOf(ready?.lastTransitionTime)
    ? {
        ...former,
        ...defined({ lastRestartedAt: observed.lastRestartedAt }),
        phase: 'Starting',
        at: new Date(off).toISOString(),
      }
    : undefined;
};

const record = (
  state: InstanceState,
  { at, observed }: Extract<InstanceCommand, { type: 'RecordObserved' }>,
): readonly InstanceEvent[] => {
  if (!isUnderWay(state)) return [];
  const failed = observed.phase === 'Failed';
  const isTold = failed
    ? state.failure !== undefined
    : isSettled(state) ||
      (state.failure === undefined && !isAsWanted({ ...state, observed } as PlacedInstance));
  if (isTold && state.reported === undefined && sameJson(state.observed, observed)) return [];
  const unseen = unseenRestart(state as PlacedInstance, observed);
  if (unseen !== undefined) {
    const begun: InstanceEvent = { type: 'ComputeInstanceObserved', data: unseen };
    const ended = record(evolve(state, begun), { type: 'RecordObserved', at, observed });
    return [begun, ...ended];
  }
  const moment = momentOf(state as PlacedInstance, observed, at);
  const told: InstanceEvent = { type: 'ComputeInstanceObserved', data: { at: moment, ...observed } };
  if (!failed) return [told];
  const why = { reason: 'ProvisioningFailed', message: 'the hub shows the compute instance as failed' };
  const detail = defined({ detail: observed.message });
  return [told, { type: 'ComputeInstanceFailed', data: { at: moment, ...why, ...detail } }];
};

/** One user at a time, and none of what is about to go. */
const use = (state: InstanceState, command: UseCommand): readonly InstanceEvent[] | Rejection => {
  const { user, claims = 0 } = state;
  const { at, holder } = command;
  const isUser = isHeldBy(user, holder);
  if (command.type === 'DetachFrom')
    return isUser && user.generation === command.generation
      ? [
          {
            type: 'ComputeInstanceAddressDetached',
            data: { at, holder, generation: command.generation },
          },
        ]
      : [];
  const { by, address } = command;
  const refuse = (kind: Rejection['kind'], code: string, message: string): Rejection =>
    reject(kind, code, message, { field: 'spec.compute_instance' });
  if (isUser && by === undefined) {
    if (address === undefined || address === user.address) return [];
    const { generation } = user;
    return [{ type: 'ComputeInstanceAddressAttached', data: { at, holder, generation, address } }];
  }
  if (isUser && user.by !== by) return creationUnderWay(holder);
  if (!isUnderWay(state))
    return refuse(
      'failed-precondition',
      'INSTANCE_GONE',
      'the compute instance is being deleted or was given up',
    );
  const own = claims === 0 ? state.resolved?.externalIp?.attachment : undefined;
  const isFree = user === undefined && (own === undefined || own === holder.id);
  return isFree || isUser
    ? [
        {
          type: 'ComputeInstanceAddressAttached',
          data: { at, holder, generation: claims + 1, ...defined({ by }) },
        },
      ]
    : refuse(
        'already-exists',
        'ALREADY_EXISTS',
        `compute instance '${state.name}' already has an external IP: detach that one first`,
      );
};

/** Of what somebody changes again and again. */
const DRIFT_AGAIN_MS = 60_000;

const decide = (state: InstanceState, command: MachineCommand): readonly InstanceEvent[] | Rejection => {
  switch (command.type) {
    case 'CreateDocument': {
      const { resolved, ...creation } = command;
      const made =
        restartRejection(state, command) ??
        (documents.decide(state, creation) as readonly InstanceEvent[] | Rejection);
      return isRejection(made) || made.length === 0 || resolved === undefined
        ? made
        : [...made, { type: 'ComputeInstanceResolved', data: { at: command.at, ...resolved } }];
    }
    case 'ReviseDocument': {
      const wrong = restartRejection(state, command);
      return wrong ?? (documents.decide(state, command) as readonly InstanceEvent[] | Rejection);
    }
    case 'AttachTo':
    case 'DetachFrom':
      return use(state, command);
    case 'RecordObserved':
      return record(state, command);
    case 'RecordRestartDue': {
      const { at, requestedAt } = command;
      return isUnderWay(state) && pendingRestart(state) === requestedAt
        ? [{ type: 'ComputeInstanceRestartDue', data: { at, requestedAt } }]
        : [];
    }
    case 'RecordDrift': {
      const { at, fields } = command;
      const isEarly = state.drift !== undefined && timeOf(at) - timeOf(state.drift.at) < DRIFT_AGAIN_MS;
      return !isUnderWay(state) || isEarly
        ? []
        : [{ type: 'ComputeInstanceDriftSeen', data: { at, fields } }];
    }
    default:
      return documents.decide(state, command) as readonly InstanceEvent[] | Rejection;
  }
};

const undone = <State extends InstanceState>(state: State): State => {
  const { done: _done, ...begun } = state;
  return begun as State;
};

const fold = (state: InstanceState, event: InstanceEvent): InstanceState => {
  const next: InstanceState = documents.evolve(state, event);
  switch (event.type) {
    case 'ComputeInstanceResolved': {
      const { at: _at, ...resolved } = event.data;
      return { ...next, resolved };
    }
    case 'ComputeInstanceObserved': {
      const { at: _at, ...observed } = event.data;
      const shown = { ...next, observed };
      return isAsWanted(shown as PlacedInstance) ? shown : undone(shown);
    }
    case 'ComputeInstanceRestartDue':
      return undone({ ...next, restart: event.data.requestedAt });
    case 'ComputeInstanceDriftSeen': {
      const { at, fields } = event.data;
      return undone({ ...next, drift: { at, fields } });
    }
    case 'ComputeInstanceAddressAttached': {
      const { at: _at, ...user } = event.data;
      return { ...next, user, claims: user.generation };
    }
    case 'ComputeInstanceAddressDetached': {
      const { user: _user, ...free } = next;
      return free;
    }
    case 'ComputeInstanceWithdrawn': {
      const { observed: _observed, ...left } = next;
      // What was made for it is gone too, unless it was only aborted.
      return next.status === 'deleting' && next.resolved !== undefined
        ? { ...left, resolved: without(next.resolved, 'externalIp') }
        : left;
    }
    default:
      return next;
  }
};

const evolve = (state: InstanceState, event: InstanceEvent): InstanceState => {
  const next = fold(state, event);
  return stateOf(next) === stateOf(state) ? next : { ...next, since: event.data.at };
};

/** What a private caller reports is no machine that runs. */
export const withoutConsole = (
  state: InstanceState,
): Extract<ConsoleEnd, 'stopped' | 'deleted'> | undefined => {
  if (!isUnderWay(state)) return 'deleted';
  return stateOf(state) === 'RUNNING' ? undefined : 'stopped';
};

export const instanceDecider: Decider<InstanceState, InstanceCommand, InstanceEvent> = withConsoles(
  {
    initialState: documents.initialState,
    evolve,
    decide,
  },
  { prefix: 'ComputeInstance', words: 'compute instance', without: withoutConsole },
);

export const computeInstance: ResourceKind<InstanceState, InstanceCommand, InstanceEvent> = {
  ...placedResource({
    kind: 'computeInstance',
    message: 'ComputeInstance',
    words: 'compute instance',
    privateOnly: INSTANCE_PRIVATE_ONLY,
    immutable: IMMUTABLE,
    references: [
      { path: 'spec.template', kind: 'computeInstanceTemplate', scope: 'full' },
      { path: 'spec.catalog_item', kind: 'computeInstanceCatalogItem', scope: 'full' },
      { path: 'spec.instance_type', kind: 'instanceType', scope: 'full' },
      { path: 'spec.disk_image', kind: 'diskImage', scope: 'full' },
      { path: 'spec.network_attachments.*.subnet', kind: 'subnet', scope: 'local' },
      { path: 'spec.network_attachments.*.security_groups.*', kind: 'securityGroup', scope: 'local' },
    ],
  }),
  rights: 'owned',
  event: { field: 'compute_instance', public: true },
  defaultTenant: '',
  methods: {
    public: ['List', 'Get', 'Create', 'Update', 'Delete'],
    private: ['List', 'Get', 'Create', 'Update', 'Delete'],
  },
  secrets: [{ path: USER_DATA, kind: 'user-data', reads: '***', encoding: 'text', maxBytes: MAX_USER_DATA }],
  // What is attached to it goes before it.
  protectedWhileReferenced: false,
  lends: {
    ...lendsItself,
    held: ({ user }) => (user === undefined ? [] : [user]),
    heldBy: ({ user }, holder) => (isHeldBy(user, holder) ? user.generation : undefined),
  },
  marks: (document) =>
    listAt(objectAt(document, 'status'), 'conditions').some((one) =>
      stringAt(one, 'message').startsWith(OVERDUE),
    )
      ? ['deletion-overdue']
      : [],
  decider: instanceDecider,
  view: documents.view,
};
