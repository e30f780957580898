import type { Condition } from '../hubs/hub-codecs.ts';
import { HUB_NEWS } from '../hubs/health-events.ts';
import type { JsonObject } from '../json.ts';
import { listAt, numberAt, objectAt, stringAt, textOf, withoutEmpty } from '../json-tools.ts';
import { attachmentsOf, groupsIn, subnetIn } from '../machines/attachments.ts';
import { driftIn } from '../machines/observed.ts';
import { plainParameters } from '../machines/order.ts';
import { USER_DATA_DEEDS, userDataBeside, userDataOf } from '../machines/user-data.ts';
import { placeByScheduler } from '../placed-by-scheduler.ts';
import { placeWithParent, wokenByParent, type Parent } from '../placed-with-parent.ts';
import { documentOf, type PlacedRun } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import {
  bareMetalAddress,
  bareMetalInstance,
  type BareMetalCommand,
  type BareMetalEvent,
  type BareMetalState,
} from './bare-metal-instance.resource.ts';
import { bareMetalMeter } from './bare-metal-meter.ts';
import { triggerOf } from './bare-metal-spec.ts';
import type { ObservedBareMetal } from './event-shapes.ts';
import { bareMetalEventTypes } from './event-types.ts';
import { BARE_METAL_INSTANCE, BARE_METAL_USER_DATA } from './hub-objects.ts';
import { interfaceIn, isPrimary } from './interfaces.ts';
import { conditionOf, isHalted, shownBy } from './power.ts';

type BareMetalRun = PlacedRun<BareMetalState>;

/** It stands where its first subnet is; the others are in the same network. */
const FIRST_SUBNET: Parent = {
  kind: 'subnet',
  path: 'spec.network_attachments.0.subnet',
  words: 'subnet',
  ready: 'SUBNET_STATE_READY',
  message: 'Subnet',
  done: 'BecameReady',
};
const isAttached = (run: PlacedRun): boolean => attachmentsOf(documentOf(run)).length > 0;
const WOKEN = wokenByParent(FIRST_SUBNET);

/** As OSAC's own service calls every host: its operator finds hosts by their labels. */
const HOST_TYPE = 'default';

/** What its template is given besides the customer's parameters (OSAC). */
const parametersOf = (run: BareMetalRun, spec: JsonObject): string => {
  const image = objectAt(spec, 'image');
  return JSON.stringify({
    ...plainParameters(spec),
    ...withoutEmpty({
      sshPublicKey: stringAt(spec, 'ssh_public_key'),
      userDataSecret: userDataOf(run) === undefined ? '' : BARE_METAL_USER_DATA.nameOf(run.id),
      imageURL: stringAt(image, 'source_ref'),
      imageSourceType: stringAt(image, 'source_type'),
    }),
  });
};

/** Its object as it should be. */
const wantedSpec = (run: BareMetalRun): JsonObject => {
  const document = documentOf(run);
  const spec = objectAt(document, 'spec');
  const { resolved } = run.subject;
  const attachments = attachmentsOf(document);
  const trigger = Number(triggerOf(spec));
  return {
    hostType: HOST_TYPE,
    externalHostID: '',
    templateID: resolved?.template.id ?? '',
    templateParameters: parametersOf(run, spec),
    runStrategy: isHalted(document) ? 'Halted' : 'Always',
    ...(trigger === 0 ? {} : { restartTrigger: trigger }),
    ...(resolved?.instanceType === undefined
      ? {}
      : { selector: { hostSelector: { ...resolved.instanceType.selector } } }),
    ...(attachments.length === 0
      ? {}
      : {
          // It names subnets and groups by their ids, where other objects name those of the hub.
          networkAttachments: attachments.map((attachment) => ({
            subnetRef: subnetIn(attachment),
            securityGroupRefs: [...groupsIn(attachment)],
            ...(interfaceIn(attachment) === '' ? {} : { interface: interfaceIn(attachment) }),
            ...(isPrimary(attachment) ? { primary: true } : {}),
          })),
        }),
  };
};

/** Those that its state follows from; what they say besides is for the hub's own people. */
const CONDITIONS: readonly string[] = ['Allocated', 'Available', 'PowerSynced', 'ProvisionTemplateComplete'];

const observedIn = (object: JsonObject): ObservedBareMetal => {
  const trigger = numberAt(object, 'restartTrigger');
  const message = stringAt(object, 'message');
  const conditions = listAt(object, 'conditions') as unknown as readonly Condition[];
  return {
    phase: stringAt(object, 'phase'),
    conditions: conditions
      .filter(({ type }) => CONDITIONS.includes(type))
      .map(({ message: _message, ...condition }) => condition),
    nics: listAt(object, 'nics').map(textOf),
    attachments: listAt(object, 'attachments') as unknown as ObservedBareMetal['attachments'],
    ...(trigger === 0 ? {} : { restartTrigger: String(trigger) }),
    ...(message === '' ? {} : { message }),
  };
};

const NO_HOST = 'its hub has no free host that matches it';
const SAID: { readonly [state: string]: string } = {
  PROVISIONING: 'Its host is being made ready.',
  RUNNING: 'It runs',
  FAILED: 'Its hub shows it as failed.',
  DELETING: 'Its hub returns it.',
  STARTING: 'Its power is being changed.',
  STOPPED: 'It is powered off.',
};
/** From the ordered machine to its objects on a hub, and back. */
export const actingBareMetalInstance = placedKind<BareMetalState, BareMetalCommand, BareMetalEvent>(
  bareMetalInstance,
  {
    eventTypes: bareMetalEventTypes,
    object: BARE_METAL_INSTANCE,
    beside: [userDataBeside(BARE_METAL_USER_DATA)],
    wakes: {
      ...WOKEN,
      of: (run) => (isAttached(run) ? WOKEN.of(run) : undefined),
      elsewhere: HUB_NEWS,
    },
    first: [
      { ...placeWithParent<BareMetalState>(FIRST_SUBNET, BARE_METAL_INSTANCE), needed: isAttached },
      {
        ...placeByScheduler<BareMetalState>(
          bareMetalInstance.kind,
          BARE_METAL_INSTANCE,
          [BARE_METAL_INSTANCE.kind],
          { name: 'choose-hub' },
        ),
        needed: (run) => !isAttached(run),
      },
    ],
    makes: { objects: bareMetalAddress.makes, bound: bareMetalAddress.bound },
    changes: true,
    again: ['BareMetalInstanceDriftSeen'],
    wanted: (run) => ({ spec: wantedSpec(run) }),
    observed: true,
    ready: (run, object, at) => {
      const fields = driftIn(run, object, BARE_METAL_INSTANCE, wantedSpec(run));
      if (fields.length > 0) return { type: 'RecordDrift', at, fields };
      const observed = observedIn(object);
      // Nobody works on it there yet.
      if (observed.phase === '') return undefined;
      const { message = '' } = observed;
      const hasNone = conditionOf(observed, 'Allocated')?.status === 'False';
      // One that lost its host is recorded first: nobody pays for it any more.
      return observed.phase === 'Allocating' && hasNone && run.subject.reserved !== true
        ? { type: 'ReportWaiting', at, message: NO_HOST, ...withoutEmpty({ detail: message }) }
        : { type: 'RecordObserved', at, observed };
    },
    meter: bareMetalMeter,
    states: ['accepted', 'provisioning', 'starting', 'running', 'stopping', 'stopped', 'failed', 'deleting'],
    deeds: {
      place: 'find the hub of its subnet',
      'choose-hub': 'find a hub for it',
      'undo-choose-hub': 'give its place back',
      ...USER_DATA_DEEDS,
      'make-objects': 'make its external IP and the attachment',
      'remove-objects': 'remove what is attached to it',
    },
    sentences: {
      BareMetalInstanceResolved: (data) =>
        `It is made from template '${stringAt(objectAt(data, 'template'), 'name')}' of catalog item '${stringAt(objectAt(data, 'catalogItem'), 'name')}'.`,
      BareMetalInstanceObserved: (data) => {
        const conditions = listAt(data, 'conditions') as unknown as readonly Condition[];
        const state = shownBy({}, { phase: stringAt(data, 'phase'), conditions });
        const addresses = listAt(data, 'attachments').map((one) => stringAt(one, 'address'));
        const address = addresses.find((one) => one !== '');
        const said = SAID[state] ?? '';
        if (state !== 'RUNNING') return said;
        return address === undefined ? `${said}.` : `${said}, with address ${address}.`;
      },
      ...bareMetalAddress.sentences,
      BareMetalInstanceDriftSeen: (data) =>
        `Its object on the hub was changed (${listAt(data, 'fields').map(textOf).join(', ')}); it is sent again.`,
    },
  },
);
