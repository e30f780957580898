import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, counts, jsonObject, secretRef, text, texts, time, typesOf } from '../schemas.ts';

/** Registry entries of the cluster stream (events.ts); audience and hidden fields as design §4 says. */
const nodeSet = z.strictObject({
  hostType: z.strictObject({ id: text, name: text }),
  size: count,
  fabricInterface: text.exactOptional(),
});

const version = z.strictObject({ id: text, name: text, version: text, releaseImage: text });
const namedSecret = z.strictObject({ id: text, name: text });
const network = z.strictObject({ podCidr: text.exactOptional(), serviceCidr: text.exactOptional() });

const MUTABLE = ['sshPublicKey', 'pullSecret', 'pullSecretSecret', 'network', 'version'] as const;
const mutableSpec = z.strictObject({
  sshPublicKey: text.exactOptional(),
  pullSecret: secretRef.exactOptional(),
  pullSecretSecret: namedSecret.exactOptional(),
  network: network.exactOptional(),
  version: version.exactOptional(),
});

const decision = z.strictObject({
  weightsVersion: count,
  candidates: z.array(
    z.strictObject({
      hub: text,
      fits: z.boolean(),
      reasons: z.array(text),
      scores: z.record(z.string(), z.number()),
      total: z.number(),
    }),
  ),
});

const condition = z.strictObject({
  status: z.enum(['True', 'False', 'Unknown', 'NotObservable']),
  reason: text,
  message: text,
  since: time,
});

const conditionName = z.enum(['ClusterAvailable', 'NodesReady', 'InfrastructureReady', 'TemplateApplied']);

const hubAndOrder = { hub: text, orderName: text };
/** Where a cluster lives is the provider's to know. */
const HUB_FIELDS = { providerOnly: ['hub', 'orderName'] };
const INTERNAL = { changesDocument: false };
const purpose = z.enum(['provision', 'deprovision']);
const jobState = z.enum(['Pending', 'Waiting', 'Running', 'Succeeded', 'Failed', 'Canceled', 'Unknown']);
const automationRun = {
  purpose,
  repeats: count,
  wording: text,
  again: z.enum(['nodes', 'other']).exactOptional(),
  job: text.exactOptional(),
  template: text.exactOptional(),
  workflow: z.literal(true).exactOptional(),
  createdAt: text.exactOptional(),
  state: jobState.exactOptional(),
  outputTail: text.exactOptional(),
};
const AUTOMATION_FIELDS = [
  'wording',
  'again',
  'job',
  'template',
  'workflow',
  'createdAt',
  'state',
  'outputTail',
];
const objectVersion = z.strictObject({ uid: text, resourceVersion: text });
/** Which state of which objects was seen: with the first event of what a look leaves. */
const look = { version: objectVersion.extend({ hosted: objectVersion.exactOptional() }).exactOptional() };
const LOOK = { providerOnly: ['version'] };

const lost = z.enum(['cluster-order', 'hosted-cluster']);
const seen = {
  missing: lost.exactOptional(),
  left: text.exactOptional(),
  deleting: z.boolean().exactOptional(),
  unaccepted: z.literal(true).exactOptional(),
  differs: z.literal(true).exactOptional(),
  jobUnknown: z.literal(true).exactOptional(),
  work: z.enum(['nothing', 'busy', 'resting', 'cleaning', 'finished']).exactOptional(),
  duplicates: z.array(text).exactOptional(),
};

export const clusterEventTypes: readonly EventType[] = typesOf(
  { context: 'clusters', audience: 'tenant', resource: 'cluster' },
  [
    [
      'ClusterOrdered',
      {
        id: text,
        tenant: text,
        project: text,
        name: text,
        creator: text,
        labels: texts,
        annotations: texts,
        displayName: text.exactOptional(),
        description: text.exactOptional(),
        template: z.strictObject({
          id: text,
          name: text,
          revision: count,
          allowedResourceClasses: z.array(text).exactOptional(),
        }),
        catalogItem: z.strictObject({ id: text, name: text, revision: count }).exactOptional(),
        templateParameters: z.record(z.string(), jsonObject),
        nodeSets: z.record(z.string(), nodeSet),
        version,
        sshPublicKey: text.exactOptional(),
        pullSecret: secretRef.exactOptional(),
        pullSecretSecret: namedSecret.exactOptional(),
        network: network.exactOptional(),
        zone: text.exactOptional(),
        placementDeadline: text.exactOptional(),
      },
      { providerOnly: ['version.releaseImage', 'pullSecret', 'nodeSets.*.fabricInterface'] },
    ],
    ['ClusterLabelled', { labels: texts }],
    ['ClusterAnnotated', { annotations: texts }],
    ['ClusterDescribed', { displayName: text, description: text }],
    ['NodeSetAdded', { name: text, nodeSet }, { providerOnly: ['nodeSet.fabricInterface'] }],
    ['NodeSetResized', { name: text, from: count, to: count }],
    ['NodeSetRemoved', { name: text }],
    [
      'ClusterSpecRevised',
      { spec: mutableSpec, changed: z.array(z.enum(MUTABLE)) },
      { providerOnly: ['spec.pullSecret', 'spec.version.releaseImage'] },
    ],
    ['ClusterFinalizersChanged', { finalizers: z.array(text) }, { audience: 'provider' }],
    [
      'ClusterStatusReported',
      { status: jsonObject },
      { providerOnly: ['status.hub', 'status.node_sets.*.fabric_interface'] },
    ],
    [
      'HubSelected',
      {
        hub: text,
        namespace: text,
        mode: z.enum(['operator', 'eda', 'aap']),
        simulated: z.boolean(),
        controller: z.enum(['operator', 'ledger']),
        tenantNamespace: z.literal(true).exactOptional(),
        steps: z.record(z.string(), z.enum(['ledger', 'hub', 'none'])),
        orderName: text,
        decision,
      },
      {
        providerOnly: [
          'hub',
          'namespace',
          'mode',
          'controller',
          'tenantNamespace',
          'steps',
          'orderName',
          'decision',
        ],
      },
    ],
    [
      'PlacementDeferred',
      { message: text, decision, runs: z.literal(true).exactOptional() },
      { providerOnly: ['decision'] },
    ],
    ['ClusterDispatchStarted', hubAndOrder, HUB_FIELDS],
    [
      'ClusterOrderPlaced',
      { ...hubAndOrder, uid: text },
      { ...INTERNAL, providerOnly: ['hub', 'orderName', 'uid'] },
    ],
    ['ClusterSpecSynced', { ...hubAndOrder, ...look }, { providerOnly: ['hub', 'orderName', 'version'] }],
    [
      'ClusterSpacePrepared',
      { ...hubAndOrder, created: z.array(text) },
      { ...INTERNAL, audience: 'provider' },
    ],
    [
      'AutomationRequested',
      {
        hub: text,
        mode: z.enum(['eda', 'aap']),
        ...automationRun,
      },
      { ...INTERNAL, providerOnly: ['hub', 'mode', ...AUTOMATION_FIELDS] },
    ],
    ['AutomationTried', automationRun, { ...INTERNAL, audience: 'internal' }],
    [
      'AutomationJobChanged',
      {
        hub: text,
        purpose,
        job: text,
        template: text,
        state: jobState,
        vanished: z.literal(true).exactOptional(),
        outputTail: text.exactOptional(),
      },
      { ...INTERNAL, providerOnly: ['hub', 'job', 'template', 'vanished', 'outputTail'] },
    ],
    [
      'ClusterDriftCorrected',
      { ...hubAndOrder, fields: z.array(text) },
      { ...INTERNAL, providerOnly: ['hub', 'orderName'] },
    ],
    [
      'ClusterOrdersDuplicated',
      { hub: text, names: z.array(text), ...look },
      { ...INTERNAL, audience: 'provider' },
    ],
    ['ClusterOrderSeen', { ...seen, ...look }, { ...INTERNAL, audience: 'internal' }],
    ['ClusterConditionsObserved', { conditions: z.partialRecord(conditionName, condition), ...look }, LOOK],
    [
      'ControlPlaneBecameAvailable',
      { apiUrl: text, consoleUrl: text, apiEndpoint: text, ingressEndpoint: text, ...look },
      LOOK,
    ],
    ['NodesObserved', { ready: counts, ...look }, LOOK],
    ['ClusterBecameReady', look, LOOK],
    ['ClusterReconfiguring', look, LOOK],
    ['ClusterDegraded', { reason: text, message: text, ...look }, LOOK],
    ['ClusterRecovered', look, LOOK],
    [
      'ClusterFailed',
      { reason: text, message: text, detail: text.exactOptional(), permanent: z.boolean(), ...look },
      { providerOnly: ['detail', 'version'] },
    ],
    [
      'ClusterChangeFailed',
      { change: text, reason: text, message: text, detail: text.exactOptional(), ...look },
      { providerOnly: ['detail', 'version'] },
    ],
    ['ClusterFailureCleared', look, LOOK],
    ['HubNotAccepting', { hub: text, since: time }, { providerOnly: ['hub'] }],
    ['ClusterLostOnHub', { what: lost }],
    ['ClusterRetryRequested', {}],
    ['ClusterCredentialsRevealed', { what: z.enum(['kubeconfig', 'password']) }, INTERNAL],
    ['ClusterDeletionRequested', {}],
    [
      'ClusterDeletionBlocked',
      { waitingFor: z.array(text), ...look },
      { providerOnly: ['waitingFor', 'version'] },
    ],
    ['ClusterDeletionOverdue', { since: time, waitingFor: z.array(text) }, { providerOnly: ['waitingFor'] }],
    ['ClusterDeleted', { how: z.enum(['not-dispatched', 'absence-confirmed']) }],
  ],
);
