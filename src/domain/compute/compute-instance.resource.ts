import { invalid, isRejection, type Decider, type Rejection } from '../decider.ts';
import { withConsoles, type ConsoleCommand, type Consoles, type WithoutConsole } from '../consoles.ts';
import type { UseCommand } from '../exclusive-use.ts';
import type { JsonObject } from '../json.ts';
import { defined, stringAt, valueAt } from '../json-tools.ts';
import {
  attached,
  detached,
  machineAddress,
  withoutOwnAddress,
  type Addressed,
} from '../machines/address.ts';
import { attachmentsRejection } from '../machines/attachments.ts';
import { MACHINE } from '../machines/declared.ts';
import { momentOf, timeOf } from '../machines/moment.ts';
import { driftEvents, observedEvents, undone, type Drifted } from '../machines/observed.ts';
import { USER_DATA } from '../machines/user-data.ts';
import {
  isAborted,
  isUnderWay,
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
export const INSTANCE_PRIVATE_ONLY = ['metadata.finalizers', 'status.hub'];
const CARRIED_OUT = ['run_strategy', 'restart_requested_at', 'network_attachments'];

export type InstanceState = PlacedState &
  Addressed &
  Consoles &
  Drifted & {
    readonly resolved?: ResolvedInstance;
    readonly observed?: ObservedInstance;
    /** When it entered the state that it shows. */
    readonly since?: string;
    /** The last restart whose time has come. */
    readonly restart?: string;
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
  // What failed may be a change of a machine that runs.
  if (isAborted(state) || (failure !== undefined && observed === undefined)) return 'FAILED';
  if (observed !== undefined) return observed.phase.toUpperCase();
  return place === undefined && waiting === undefined ? '' : 'STARTING';
};

const WORDS = { words: 'compute instance', prefix: 'ComputeInstance' };
export const instanceAddress = machineAddress({ ...WORDS, field: 'compute_instance' });

const documents = placedDocument({
  ...WORDS,
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
  isBound: instanceAddress.isBound,
});

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
  const unseen = unseenRestart(state as PlacedInstance, observed);
  if (unseen !== undefined) {
    const begun: InstanceEvent = { type: 'ComputeInstanceObserved', data: unseen };
    const ended = record(evolve(state, begun), { type: 'RecordObserved', at, observed });
    return [begun, ...ended];
  }
  const ready = readyIn(observed);
  const moment = momentOf(
    [state.observed?.phase === 'Running', observed.phase === 'Running'],
    { at: ready?.lastTransitionTime, runs: ready?.status === 'True' },
    { since: state.since ?? state.createdAt, at },
  );
  const told = {
    isFailed: observed.phase === 'Failed',
    isAsWanted: isAsWanted({ ...state, observed }),
    moment,
  };
  return observedEvents(state, observed, told, WORDS) as readonly InstanceEvent[];
};

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
      return instanceAddress.use(state, command) as readonly InstanceEvent[] | Rejection;
    case 'RecordObserved':
      return record(state, command);
    case 'RecordRestartDue': {
      const { at, requestedAt } = command;
      return isUnderWay(state) && pendingRestart(state) === requestedAt
        ? [{ type: 'ComputeInstanceRestartDue', data: { at, requestedAt } }]
        : [];
    }
    case 'RecordDrift':
      return driftEvents(state, command, WORDS) as readonly InstanceEvent[];
    default:
      return documents.decide(state, command) as readonly InstanceEvent[] | Rejection;
  }
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
    case 'ComputeInstanceAddressAttached':
      return attached(next, event.data);
    case 'ComputeInstanceAddressDetached':
      return detached(next);
    case 'ComputeInstanceWithdrawn': {
      const { observed: _observed, ...left } = next;
      return withoutOwnAddress(left as InstanceState);
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
export const withoutConsole = (state: InstanceState): WithoutConsole | undefined => {
  if (!isUnderWay(state)) return 'deleted';
  if (stateOf(state) !== 'RUNNING') return 'stopped';
  return runs((state as PlacedInstance).document) ? undefined : 'stopping';
};

export const instanceDecider: Decider<InstanceState, InstanceCommand, InstanceEvent> = withConsoles(
  { initialState: documents.initialState, evolve, decide },
  { prefix: WORDS.prefix, words: WORDS.words, without: withoutConsole },
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
  ...MACHINE,
  stateVersion: 2,
  event: { field: 'compute_instance', public: true },
  lends: instanceAddress.lends,
  decider: instanceDecider,
  view: documents.view,
};
