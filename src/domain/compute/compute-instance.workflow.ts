import { consoleSentences } from '../consoles.ts';
import type { JsonObject } from '../json.ts';
import { defined, listAt, numberAt, objectAt, stringAt, textOf } from '../json-tools.ts';
import type { Condition } from '../hubs/hub-codecs.ts';
import { OSAC_GROUP } from '../hubs/hub-object.ts';
import { attachmentsOf, groupsIn, subnetIn } from '../machines/attachments.ts';
import { plainParameters } from '../machines/order.ts';
import { driftIn } from '../machines/observed.ts';
import { USER_DATA_DEEDS, userDataBeside, userDataOf } from '../machines/user-data.ts';
import { SECURITY_GROUP, SUBNET } from '../networks/hub-objects.ts';
import { placeWithParent, wokenByParent, type Parent } from '../placed-with-parent.ts';
import type { Placed } from '../placed-document.ts';
import { documentOf, type PlacedRun } from '../placed-run.ts';
import { placedKind } from '../placed-workflow.ts';
import {
  computeInstance,
  instanceAddress,
  pendingRestart,
  withoutConsole,
  type InstanceCommand,
  type InstanceEvent,
  type InstanceState,
} from './compute-instance.resource.ts';
import { computeEventTypes } from './event-types.ts';
import type { ObservedInstance } from './event-shapes.ts';
import { COMPUTE_INSTANCE, USER_DATA_SECRET } from './hub-objects.ts';
import { specOf } from './instance-spec.ts';
import { instanceMeter } from './instance-meter.ts';

type InstanceRun = PlacedRun<InstanceState>;

/** It stands where its first subnet is; the others are in the same network. */
const FIRST_SUBNET: Parent = {
  kind: 'subnet',
  path: 'spec.network_attachments.0.subnet',
  words: 'subnet',
  ready: 'SUBNET_STATE_READY',
  message: 'Subnet',
  done: 'BecameReady',
};

const diskOf = (disk: JsonObject): JsonObject =>
  defined({
    sizeGiB: numberAt(disk, 'size_gib'),
    storageTier: stringAt(disk, 'storage_tier') || undefined,
  }) as JsonObject;

/** Its object as it should be. */
const wantedSpec = (run: InstanceRun): JsonObject => {
  const document = documentOf(run);
  const spec = specOf(document);
  const { resolved, restart } = run.subject;
  const disks = listAt(spec, 'additional_disks').map((disk) => diskOf(disk as JsonObject));
  const sshKey = stringAt(spec, 'ssh_public_key');
  return {
    templateID: stringAt(objectAt(spec, 'template'), 'id'),
    templateParameters: JSON.stringify(plainParameters(spec)),
    cores: resolved?.instanceType.cores ?? 0,
    memoryGiB: resolved?.instanceType.memoryGib ?? 0,
    image: { sourceType: 'registry', sourceRef: resolved?.diskImage.sourceRef ?? '' },
    bootDisk: diskOf(objectAt(spec, 'boot_disk')),
    runStrategy: stringAt(spec, 'run_strategy'),
    networkAttachments: attachmentsOf(document).map((attachment) => ({
      subnetRef: SUBNET.nameOf(subnetIn(attachment)),
      securityGroupRefs: groupsIn(attachment).map((id) => SECURITY_GROUP.nameOf(id)),
    })),
    ...(disks.length === 0 ? {} : { additionalDisks: disks }),
    ...(resolved?.instanceType.gpu === undefined ? {} : { gpu: { ...resolved.instanceType.gpu } }),
    ...(resolved === undefined ? {} : { guestOSFamily: resolved.diskImage.guestOs }),
    ...(sshKey === '' ? {} : { sshKey }),
    ...(userDataOf(run) === undefined
      ? {}
      : { userDataSecretRef: { name: USER_DATA_SECRET.nameOf(run.id) } }),
    ...(restart === undefined ? {} : { restartRequestedAt: restart }),
  };
};

const observedIn = (object: JsonObject): ObservedInstance => {
  const said = (field: string): string | undefined => stringAt(object, field) || undefined;
  return {
    phase: stringAt(object, 'phase'),
    conditions: listAt(object, 'conditions') as unknown as readonly Condition[],
    ...defined({
      internalIp: said('ipAddress'),
      externalIp: said('externalIPAddress'),
      lastRestartedAt: said('lastRestartedAt'),
      message: said('message'),
    }),
  };
};

const PHASES: { readonly [phase: string]: string } = {
  Starting: 'It starts.',
  Running: 'It runs',
  Stopping: 'It stops.',
  Stopped: 'It is stopped.',
  Paused: 'It is paused.',
  Failed: 'Its hub shows it as failed.',
};

/** From the ordered machine to its objects on the hub of its subnet, and back. */
export const actingComputeInstance = placedKind<InstanceState, InstanceCommand, InstanceEvent>(
  computeInstance,
  {
    eventTypes: computeEventTypes,
    object: COMPUTE_INSTANCE,
    beside: [userDataBeside(USER_DATA_SECRET)],
    wakes: wokenByParent(FIRST_SUBNET),
    first: [placeWithParent(FIRST_SUBNET, COMPUTE_INSTANCE)],
    makes: { objects: instanceAddress.makes, bound: instanceAddress.bound },
    changes: true,
    again: ['ComputeInstanceRestartDue', 'ComputeInstanceDriftSeen'],
    due: {
      at: ({ subject }) => pendingRestart(subject as Placed & InstanceState),
      tell: (run, at) => ({
        type: 'RecordRestartDue',
        at,
        requestedAt: pendingRestart(run.subject as Placed & InstanceState) ?? '',
      }),
    },
    wanted: (run) => ({
      spec: wantedSpec(run),
      labels: { [`${OSAC_GROUP}/instance-type-name`]: run.subject.resolved?.instanceType.name ?? '' },
    }),
    observed: true,
    ready: (run, object, at) => {
      const fields = driftIn(run, object, COMPUTE_INSTANCE, wantedSpec(run));
      if (fields.length > 0) return { type: 'RecordDrift', at, fields };
      // Nobody works on it there yet.
      return stringAt(object, 'phase') === ''
        ? undefined
        : { type: 'RecordObserved', at, observed: observedIn(object) };
    },
    meter: instanceMeter,
    states: ['accepted', 'starting', 'running', 'stopping', 'stopped', 'paused', 'failed', 'deleting'],
    deeds: {
      place: 'find the hub of its subnet',
      ...USER_DATA_DEEDS,
      'make-objects': 'make its external IP and the attachment',
      'remove-objects': 'remove what is attached to it',
    },
    consoles: { resourceType: 'CONSOLE_RESOURCE_TYPE_COMPUTE_INSTANCE', without: withoutConsole },
    sentences: {
      ...consoleSentences('ComputeInstance'),
      ComputeInstanceResolved: (data) =>
        `It is a '${stringAt(objectAt(data, 'instanceType'), 'name')}' with image '${stringAt(objectAt(data, 'diskImage'), 'name')}'.`,
      ComputeInstanceObserved: (data) => {
        const phase = stringAt(data, 'phase');
        const address = stringAt(data, 'internalIp');
        const said = PHASES[phase] ?? `Its hub shows it as ${phase}.`;
        return phase !== 'Running' ? said : address === '' ? `${said}.` : `${said}, with address ${address}.`;
      },
      ...instanceAddress.sentences,
      ComputeInstanceRestartDue: 'It is to be restarted now.',
      ComputeInstanceDriftSeen: (data) =>
        `Its object on the hub was changed (${listAt(data, 'fields').map(textOf).join(', ')}); it is sent again.`,
    },
  },
);
