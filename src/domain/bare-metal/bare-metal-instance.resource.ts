import { invalid, isRejection, reject, type Decider, type Rejection } from '../decider.ts';
import type { UseCommand } from '../exclusive-use.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, sameJson, valueAt, without, withoutEmpty } from '../json-tools.ts';
import {
  attached,
  detached,
  machineAddress,
  withoutOwnAddress,
  type Addressed,
} from '../machines/address.ts';
import { attachmentsOf, attachmentsRejection, subnetIn } from '../machines/attachments.ts';
import { MACHINE } from '../machines/declared.ts';
import { momentOf, timeOf } from '../machines/moment.ts';
import { driftEvents, observedEvents, undone, type Drifted } from '../machines/observed.ts';
import { USER_DATA } from '../machines/user-data.ts';
import {
  isAborted,
  isUnderWay,
  messageOf,
  placedDocument,
  type Placed,
  type PlacedCommand,
  type PlacedEvent,
  type PlacedState,
} from '../placed-document.ts';
import { placedResource } from '../placed-resource.ts';
import type { ResourceKind } from '../resource.ts';
import type { EventOf } from '../schemas.ts';
import { ALWAYS, imageRejection, strategyRejection, triggerOf, triggerRejection } from './bare-metal-spec.ts';
import type { BARE_METAL_SHAPES, ObservedBareMetal, ResolvedBareMetal } from './event-shapes.ts';
import { interfaceIn, isPrimary, keptInterfaces } from './interfaces.ts';
import { conditionOf, hasHost, isHalted, powerOf, shownBy, type Shown } from './power.ts';

/** Whole servers of tenants (OSAC): on the hub of their subnets, or on one that the scheduler chooses. */
const IMMUTABLE = [
  'catalog_item',
  'ssh_public_key',
  'template_parameters',
  'image',
  'auto_external_ip_attachment',
].map((field) => `spec.${field}`);
const POWER = ['spec.run_strategy', 'spec.restart_trigger'];
export const BARE_METAL_PRIVATE_ONLY = ['metadata.finalizers', 'status.hub'];
const WORDS = { words: 'bare metal instance', prefix: 'BareMetalInstance' };

export type BareMetalState = PlacedState &
  Addressed &
  Drifted & {
    readonly resolved?: ResolvedBareMetal;
    /** Since its hub said so last, for certain. */
    readonly powered?: true;
    readonly observed?: ObservedBareMetal;
    /** When it entered the state that it shows, and when it became or ceased to be ready. */
    readonly since?: string;
    readonly readySince?: string;
    /** When its hub first showed that its host was made ready: what was once done stays so. */
    readonly provisionedAt?: string;
    /** It has a host. */
    readonly reserved?: boolean;
  };
type PlacedBareMetal = Placed & BareMetalState;

export type BareMetalCommand =
  | Exclude<PlacedCommand, { type: 'CreateDocument' }>
  | (Extract<PlacedCommand, { type: 'CreateDocument' }> & { readonly resolved?: ResolvedBareMetal })
  | UseCommand
  | { readonly type: 'RecordObserved'; readonly at: string; readonly observed: ObservedBareMetal }
  | { readonly type: 'RecordDrift'; readonly at: string; readonly fields: readonly string[] };

export type BareMetalEvent = PlacedEvent<'BareMetalInstance', EventOf<typeof BARE_METAL_SHAPES>>;

const specOf = (document: JsonObject): JsonObject => objectAt(document, 'spec');
const restarted = ({ restartTrigger = '0' }: Partial<ObservedBareMetal> = {}): string => restartTrigger;

/** Its hub shows what is wanted of it. */
const isAsWanted = ({ document, observed }: PlacedBareMetal): boolean => {
  const shown = observed && shownBy(document, observed);
  if (isHalted(document)) return shown === 'STOPPED';
  return shown === 'RUNNING' && restarted(observed) === triggerOf(specOf(document));
};

/** As its document shows it, without what a private caller wrote. */
export const bareMetalStateOf = (state: BareMetalState): Shown | '' => {
  if (state.status === 'absent' || state.status === 'abandoned') return '';
  const { status, failure, observed, place, waiting, document } = state;
  if (status !== 'present') return 'DELETING';
  // What failed may be a change of a machine that runs.
  if (isAborted(state) || (failure !== undefined && observed === undefined)) return 'FAILED';
  if (observed !== undefined) return shownBy(document, observed);
  return place === undefined && waiting === undefined ? '' : 'PROVISIONING';
};
const POWERLESS: readonly unknown[] = ['', 'FAILED', 'DELETING'];
/** From when it is on until it is off: whatever lies between, late looks too, takes nothing from it. */
export const isPoweredOn = (state: BareMetalState): boolean =>
  state.powered === true && !POWERLESS.includes(bareMetalStateOf(state));
/** Until its hub says for certain that it changed, it is what it was. */
const withPower = <State extends BareMetalState>(state: State, observed: ObservedBareMetal): State => {
  const { powered, ...others } = state;
  const power = powerOf(observed);
  const is = power?.status === 'True' ? power.reason !== 'PowerOff' : powered === true;
  return (is ? { ...others, powered: true } : others) as State;
};

const NOT_READY: readonly unknown[] = ['', 'PROVISIONING', 'DELETING', 'FAILED'];
const isReady = (state: BareMetalState): boolean => !NOT_READY.includes(bareMetalStateOf(state));

/** What hubs say of their inner life stays with the provider (OSAC): the texts are ours. */
const conditionsOf = (state: PlacedBareMetal): readonly JsonObject[] => {
  if (bareMetalStateOf(state) === '') return [];
  const { provisionedAt, readySince, observed, failure, waiting, document, since } = state;
  const one = (type: string, is: boolean, at: string, reason: string, message = ''): JsonObject =>
    withoutEmpty({
      type: `BARE_METAL_INSTANCE_CONDITION_TYPE_${type}`,
      status: `CONDITION_STATUS_${is ? 'TRUE' : 'FALSE'}`,
      last_transition_time: at,
      reason,
      message,
    });
  const why = messageOf(state);
  const reason = (waiting ?? failure) === undefined ? 'Progressing' : (failure?.reason ?? 'Waiting');
  const restarts = restarted(observed) !== triggerOf(specOf(document)) && !isHalted(document);
  return [
    provisionedAt === undefined
      ? one('PROVISIONED', false, (waiting ?? failure)?.at ?? '', reason, why)
      : one('PROVISIONED', true, provisionedAt, 'Provisioned'),
    isReady(state)
      ? one('READY', true, readySince ?? '', 'Ready')
      : one('READY', false, readySince ?? '', reason, provisionedAt === undefined ? '' : why),
    ...(provisionedAt === undefined
      ? []
      : [one('RESTART_IN_PROGRESS', restarts, since ?? '', restarts ? 'RestartRequested' : 'NoRestart')]),
  ];
};

export const bareMetalAddress = machineAddress({ ...WORDS, field: 'baremetal_instance' });

/** What of an attachment stays as it was ordered. */
const fixedOf = (attachment: JsonObject): JsonObject => ({
  subnet: subnetIn(attachment),
  interface: interfaceIn(attachment),
  primary: isPrimary(attachment),
});

/** Without a strategy it is powered on; an attachment that is sent without its interface keeps it. */
const completed = (document: JsonObject, previous?: JsonObject): JsonObject => {
  const spec = specOf(document);
  const attachments = attachmentsOf(document);
  const before = previous === undefined ? [] : attachmentsOf(previous);
  return {
    ...document,
    spec: {
      ...spec,
      run_strategy: spec['run_strategy'] ?? ALWAYS,
      ...(attachments.length === 0 ? {} : { network_attachments: [...keptInterfaces(attachments, before)] }),
    },
  };
};

const documents = placedDocument({
  ...WORDS,
  done: 'Observed',
  immutable: IMMUTABLE,
  secrets: [{ path: USER_DATA, reads: '***' }],
  reportable: ['state', 'conditions', 'restart_trigger', 'hub', 'network_attachment_statuses', 'hardware'],
  carriedOut: [...POWER, 'spec.network_attachments'],
  status: (state) => {
    const { observed } = state as PlacedBareMetal;
    const shown = bareMetalStateOf(state);
    const nics = (observed?.nics ?? []).map((mac) => ({ mac }));
    return {
      state: shown && `BARE_METAL_INSTANCE_STATE_${shown}`,
      conditions: [...conditionsOf(state)],
      restart_trigger: restarted(observed) === '0' ? '' : restarted(observed),
      hub: state.place?.hub ?? '',
      network_attachment_statuses: (observed?.attachments ?? []).map(
        ({ interface: name, subnet, address, primary }) => ({
          ...withoutEmpty({ interface: name, subnet_ref: subnet, ip_address: address }),
          ...(primary ? { primary } : {}),
        }),
      ),
      hardware: nics.length === 0 ? {} : { nics },
    };
  },
  normalize: (document, { previous }) => completed(document, previous),
  check: (document, { previous }) =>
    strategyRejection(specOf(document)) ??
    triggerRejection(specOf(document)) ??
    imageRejection(specOf(document), 'spec.image') ??
    attachmentsRejection(document, previous, {
      of: fixedOf,
      words: 'subnets, interfaces and primaries',
    }),
  isBound: bareMetalAddress.isBound,
});

/** What is being returned is powered neither on nor off, and user data is read once, by a host that is made ready. */
const changeRejection = (
  state: BareMetalState,
  { document, secrets = {} }: Extract<BareMetalCommand, { type: 'ReviseDocument' }>,
): Rejection | undefined => {
  if (state.status !== 'present' && state.status !== 'deleting') return undefined;
  const given = secrets[USER_DATA];
  if (USER_DATA in secrets && given?.fingerprint !== state.secrets[USER_DATA]?.fingerprint)
    return invalid('IMMUTABLE_FIELD', USER_DATA, `field '${USER_DATA}' is immutable`);
  const field = POWER.find((path) => {
    const wanted = valueAt(document, path);
    return wanted !== undefined && !sameJson(wanted, valueAt(state.document, path));
  });
  return state.status === 'deleting' && field !== undefined
    ? reject(
        'failed-precondition',
        'DELETION_REQUESTED',
        `bare metal instance '${state.name}' is being returned: field '${field}' can no longer be changed`,
        { field },
      )
    : undefined;
};

const isFailedIn = (state: PlacedBareMetal, observed: ObservedBareMetal): boolean =>
  shownBy(state.document, observed) === 'FAILED';

/** When it got its host or lost it, and when its power changed: each as its hub says. */
const momentsIn = (state: PlacedBareMetal, observed: ObservedBareMetal, at: string) => {
  const next = withPower({ ...without(state, 'failure'), observed } as PlacedBareMetal, observed);
  const [power, host] = [powerOf(observed), conditionOf(observed, 'Allocated')];
  const times = { since: state.since ?? state.createdAt, at };
  const [wasOn, isOn] = [isPoweredOn(state), isPoweredOn(next)];
  const [had, has] = [state.reserved === true, hasHost(observed, state.reserved === true)];
  const runs = power?.status === 'True' && power.reason !== 'PowerOff';
  return {
    next,
    isSwitched: wasOn !== isOn,
    isGained: !had && has,
    isLost: had && !has,
    ofPower: momentOf([wasOn, isOn], { at: power?.lastTransitionTime, runs }, times),
    ofHost: momentOf([had, has], { at: host?.lastTransitionTime, runs: host?.status === 'True' }, times),
  };
};

/** One look may show two changes of which each is billed from its own time: the first of them, where that is so. */
const firstOfTwo = (
  state: PlacedBareMetal,
  observed: ObservedBareMetal,
  at: string,
): (ObservedBareMetal & { readonly at: string }) | undefined => {
  const { isSwitched, isGained, isLost, ofPower, ofHost } = momentsIn(state, observed, at);
  const isMore = isSwitched || isFailedIn(state, observed);
  if (isGained && isMore && timeOf(ofHost) < timeOf(isSwitched ? ofPower : at)) {
    const conditions = observed.conditions.filter(({ type }) => type === 'Allocated');
    return { at: ofHost, phase: 'Progressing', conditions, nics: [], attachments: [] };
  }
  const [before, power] = [state.observed, powerOf(observed)];
  if (!isLost || !isSwitched || before === undefined || power === undefined) return undefined;
  const others = before.conditions.filter(({ type }) => type !== power.type);
  return timeOf(ofPower) < timeOf(ofHost)
    ? { ...before, at: ofPower, conditions: [...others, power] }
    : undefined;
};

const record = (
  state: BareMetalState,
  { at, observed }: Extract<BareMetalCommand, { type: 'RecordObserved' }>,
): readonly BareMetalEvent[] => {
  if (!isUnderWay(state)) return [];
  const first = firstOfTwo(state as PlacedBareMetal, observed, at);
  if (first !== undefined) {
    const begun: BareMetalEvent = { type: 'BareMetalInstanceObserved', data: first };
    const second = record(evolve(state, begun), { type: 'RecordObserved', at, observed });
    return [begun, ...second];
  }
  const { next, isSwitched, ofPower, ofHost } = momentsIn(state as PlacedBareMetal, observed, at);
  const isFailed = isFailedIn(state as PlacedBareMetal, observed);
  const told = { isFailed, isAsWanted: isAsWanted(next), moment: isSwitched ? ofPower : ofHost };
  return observedEvents(state, observed, told, WORDS) as readonly BareMetalEvent[];
};

type Decided = readonly BareMetalEvent[] | Rejection;
const decide = (state: BareMetalState, command: BareMetalCommand): Decided => {
  switch (command.type) {
    case 'CreateDocument': {
      const { resolved, ...creation } = command;
      const made = documents.decide(state, creation) as Decided;
      return isRejection(made) || made.length === 0 || resolved === undefined
        ? made
        : [...made, { type: 'BareMetalInstanceResolved', data: { at: command.at, ...resolved } }];
    }
    case 'ReviseDocument':
      return changeRejection(state, command) ?? (documents.decide(state, command) as Decided);
    case 'AttachTo':
    case 'DetachFrom':
      return bareMetalAddress.use(state, command) as Decided;
    case 'RecordObserved':
      return record(state, command);
    case 'RecordDrift':
      return driftEvents(state, command, WORDS) as Decided;
    default:
      return documents.decide(state, command) as Decided;
  }
};

const fold = (state: BareMetalState, event: BareMetalEvent): BareMetalState => {
  const next: BareMetalState = documents.evolve(state, event);
  switch (event.type) {
    case 'BareMetalInstanceResolved': {
      const { at: _at, ...resolved } = event.data;
      return { ...next, resolved };
    }
    case 'BareMetalInstanceObserved': {
      const { at, ...observed } = event.data;
      const isDone = conditionOf(observed, 'ProvisionTemplateComplete');
      const provisionedAt =
        next.provisionedAt ?? (isDone?.status === 'True' ? (isDone.lastTransitionTime ?? at) : undefined);
      const shown: BareMetalState = {
        ...withPower(next, observed),
        observed,
        ...(provisionedAt === undefined ? {} : { provisionedAt }),
        reserved: hasHost(observed, next.reserved === true),
      };
      return isAsWanted(shown as PlacedBareMetal) ? shown : undone(shown);
    }
    case 'BareMetalInstanceDriftSeen': {
      const { at, fields } = event.data;
      return undone({ ...next, drift: { at, fields } });
    }
    case 'BareMetalInstanceAddressAttached':
      return attached(next, event.data);
    case 'BareMetalInstanceAddressDetached':
      return detached(next);
    case 'BareMetalInstanceWithdrawn': {
      const {
        observed: _observed,
        provisionedAt: _provisioned,
        reserved: _reserved,
        powered: _powered,
        ...left
      } = next;
      return withoutOwnAddress(left as BareMetalState);
    }
    default:
      return next;
  }
};

const evolve = (state: BareMetalState, event: BareMetalEvent): BareMetalState => {
  const next = fold(state, event);
  const { at } = event.data;
  const moved = bareMetalStateOf(next) === bareMetalStateOf(state) ? next : { ...next, since: at };
  return isReady(next) === isReady(state) && moved.readySince !== undefined
    ? moved
    : { ...moved, readySince: at };
};

export const bareMetalDecider: Decider<BareMetalState, BareMetalCommand, BareMetalEvent> = {
  initialState: documents.initialState,
  evolve,
  decide,
};

export const bareMetalInstance: ResourceKind<BareMetalState, BareMetalCommand, BareMetalEvent> = {
  ...placedResource({
    kind: 'bareMetalInstance',
    message: 'BareMetalInstance',
    words: WORDS.words,
    privateOnly: BARE_METAL_PRIVATE_ONLY,
    immutable: [...IMMUTABLE, USER_DATA],
    references: [
      { path: 'spec.catalog_item', kind: 'bareMetalInstanceCatalogItem', scope: 'full' },
      { path: 'spec.network_attachments.*.subnet', kind: 'subnet', scope: 'local' },
      { path: 'spec.network_attachments.*.security_groups.*', kind: 'securityGroup', scope: 'local' },
    ],
  }),
  collection: 'baremetal_instances',
  ...MACHINE,
  event: { field: 'bare_metal_instance', public: true },
  lends: bareMetalAddress.lends,
  decider: bareMetalDecider,
  view: documents.view,
};
