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
        orderName: text,
        decision,
      },
      { providerOnly: ['hub', 'namespace', 'mode', 'orderName', 'decision'] },
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
    ['ClusterSpecSynced', hubAndOrder, HUB_FIELDS],
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
        purpose,
        repeats: count,
        job: text.exactOptional(),
        template: text.exactOptional(),
      },
      { ...INTERNAL, providerOnly: ['hub', 'mode', 'job', 'template'] },
    ],
    [
      'AutomationJobChanged',
      {
        hub: text,
        purpose,
        job: text,
        template: text,
        state: z.enum(['Pending', 'Waiting', 'Running', 'Succeeded', 'Failed', 'Canceled', 'Unknown']),
        outputTail: text.exactOptional(),
      },
      { ...INTERNAL, providerOnly: ['hub', 'job', 'template', 'outputTail'] },
    ],
    [
      'ClusterDriftCorrected',
      { ...hubAndOrder, fields: z.array(text) },
      { ...INTERNAL, providerOnly: ['hub', 'orderName'] },
    ],
    ['ClusterOrdersDuplicated', { hub: text, names: z.array(text) }, { ...INTERNAL, audience: 'provider' }],
    ['ClusterConditionsObserved', { conditions: z.partialRecord(conditionName, condition) }],
    [
      'ControlPlaneBecameAvailable',
      { apiUrl: text, consoleUrl: text, apiEndpoint: text, ingressEndpoint: text },
    ],
    ['NodesObserved', { ready: counts }],
    ['ClusterBecameReady', {}],
    ['ClusterReconfiguring', {}],
    ['ClusterDegraded', { reason: text, message: text }],
    ['ClusterRecovered', {}],
    [
      'ClusterFailed',
      { reason: text, message: text, detail: text.exactOptional(), permanent: z.boolean() },
      { providerOnly: ['detail'] },
    ],
    [
      'ClusterChangeFailed',
      { change: text, reason: text, message: text, detail: text.exactOptional() },
      { providerOnly: ['detail'] },
    ],
    ['ClusterFailureCleared', {}],
    ['HubNotAccepting', { hub: text, since: time }, { providerOnly: ['hub'] }],
    ['ClusterLostOnHub', { what: z.enum(['cluster-order', 'hosted-cluster']) }],
    ['ClusterRetryRequested', {}],
    ['ClusterCredentialsRevealed', { what: z.enum(['kubeconfig', 'password']) }, INTERNAL],
    ['ClusterDeletionRequested', {}],
    ['ClusterDeletionBlocked', { waitingFor: z.array(text) }, { providerOnly: ['waitingFor'] }],
    ['ClusterDeletionOverdue', { since: time, waitingFor: z.array(text) }, { providerOnly: ['waitingFor'] }],
    ['ClusterDeleted', { how: z.enum(['not-dispatched', 'absence-confirmed']) }],
  ],
);
