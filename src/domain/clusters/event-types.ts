import { z } from 'zod';
import { USE } from '../exclusive-use.ts';
import type { EventType } from '../event-type.ts';
import { placementDecision } from '../hubs/event-types.ts';
import {
  count,
  counts,
  jsonObject,
  list,
  listOf,
  mayBe,
  secretRef,
  text,
  texts,
  time,
  typesOf,
  yes,
  type Shapes,
} from '../schemas.ts';

/**
 * Events of a cluster order's document stream `cluster-<id>`, written once: these names and fields are the storage
 * format,
 * so version them with care. Their types are in events.ts; audience and hidden fields stand in the registry.
 */

/** An object of kind secret. */
export const namedSecret = z.strictObject({ id: text, name: text });

/** The template as resolved at order time. */
export const orderedTemplate = z.strictObject({
  id: text,
  name: text,
  revision: count,
  /** Host types that node sets of the cluster may use, by id or name; absent: any. */
  allowedResourceClasses: list.exactOptional(),
});

/** A node set as resolved at order time: the template's host type by id and name (OSAC). */
export const nodeSet = z.strictObject({
  hostType: z.strictObject({ id: text, name: text }),
  size: count,
  /** First HostType interface with role `fabric`, if there is one. */
  fabricInterface: mayBe,
});

export const resolvedVersion = z.strictObject({ id: text, name: text, version: text, releaseImage: text });
const network = z.strictObject({ podCidr: mayBe, serviceCidr: mayBe }).exactOptional();

/** What of the spec may change after the order; everything else is immutable. */
const mutableShape = {
  sshPublicKey: mayBe,
  pullSecret: secretRef.exactOptional(),
  /** Object that `pullSecret` was taken from. */
  pullSecretSecret: namedSecret.exactOptional(),
  network,
  version: resolvedVersion.exactOptional(),
};
export const mutableSpec = z.strictObject(mutableShape);
const mutableField = z.enum(Object.keys(mutableShape) as (keyof typeof mutableShape)[]);

export const conditionName = z.enum([
  'ClusterAvailable',
  'NodesReady',
  'InfrastructureReady',
  'TemplateApplied',
]);
export const conditionState = z.strictObject({
  status: z.enum(['True', 'False', 'Unknown', 'NotObservable']),
  reason: text,
  message: text,
  since: time,
});

/** What a hub's automation is asked for (OSAC's operator). */
export const automationPurpose = z.enum(['provision', 'deprovision']);
export const automationMode = z.enum(['eda', 'aap']);
/** `Unknown`: its platform shows no state of it, or no longer knows it. */
const JOB_STATES = ['Pending', 'Waiting', 'Running', 'Succeeded', 'Failed', 'Canceled', 'Unknown'] as const;
export const jobState = z.enum(JOB_STATES);
/** A request as its workflow knows it, and the job that came of it (aap). */
const automationRun = {
  purpose: automationPurpose,
  /** How often it was asked for the same thing before. */
  repeats: count,
  /** The generation of the spec and the retry that it is for. */
  wording: text,
  again: z.enum(['nodes', 'other']).exactOptional(),
  job: mayBe,
  template: mayBe,
  /** The job is a workflow job. */
  workflow: yes,
  createdAt: mayBe,
  state: jobState.exactOptional(),
  outputTail: mayBe,
};

/** One state of one object on a hub. */
export const objectVersion = z.strictObject({ uid: text, resourceVersion: text });
/** That of an order, with that of its HostedCluster where there is one. */
export const observedVersion = objectVersion.extend({ hosted: objectVersion.exactOptional() });
/** What was seen, with the first event of all that a look leaves. */
const look = { version: observedVersion.exactOptional() };

const lost = z.enum(['cluster-order', 'hosted-cluster']);
/** What a look showed that no document does; everything that is absent is as it should be. */
const seenShape = {
  /** A look missed it; it counts as gone only after a check of its own. */
  missing: lost.exactOptional(),
  /** A HostedCluster that is there although its order is not. */
  left: mayBe,
  /** After its deletion was sent: whether the hub shows that. */
  deleting: z.boolean().exactOptional(),
  /** The hub's controller has not taken it up, although something was seen of it. */
  unaccepted: yes,
  /** Somebody changed the spec that is stored on the hub. */
  differs: yes,
  /** The hub could not ask its automation about its job. */
  jobUnknown: yes,
  /** Where we run the automation: what is to be seen of its work. */
  work: z.enum(['nothing', 'busy', 'resting', 'cleaning', 'finished']).exactOptional(),
  /** Further objects with the cluster's label. */
  duplicates: list.exactOptional(),
};
export const seen = z.strictObject(seenShape);

const hubAndOrder = { hub: text, orderName: text };

export const endpointName = z.enum(['API', 'INGRESS']);
const autoIds = z.strictObject({ ip: text, attachment: text });
const endpointUse = { endpoint: endpointName, ...USE };

export const CLUSTER_SHAPES = {
  /** Resolved facts: a later change of the catalog never changes a running order. */
  ClusterOrdered: {
    id: text,
    tenant: text,
    project: text,
    name: text,
    creator: text,
    labels: texts,
    annotations: texts,
    displayName: mayBe,
    description: mayBe,
    template: orderedTemplate,
    /** The catalogue item that it was ordered from, if it was; its template is the one above. */
    catalogItem: z.strictObject({ id: text, name: text, revision: count }).exactOptional(),
    /** After defaults; each value a protobuf Any in JSON form. */
    templateParameters: z.record(z.string(), jsonObject),
    nodeSets: z.record(z.string(), nodeSet),
    ...mutableShape,
    version: resolvedVersion,
    /** Requested zone, from annotation `fulfillment-ledger/zone`. */
    zone: mayBe,
    /** ISO duration that it may wait for a place: annotation `fulfillment-ledger/placement-deadline`, or the setting. */
    placementDeadline: mayBe,
    /** Where its nodes are attached: named, or its tenant's default. */
    networkAttachment: z
      .strictObject({ subnet: namedSecret, securityGroups: listOf(namedSecret), hub: mayBe })
      .exactOptional(),
    /** The external IPs that are made for it, and their attachments: ids by endpoint, and the hub of their pool. */
    externalIps: z
      .strictObject({
        pool: z.strictObject({ id: text, name: text }),
        hub: text,
        ids: z.strictObject({ API: autoIds, INGRESS: autoIds }),
      })
      .exactOptional(),
  },
  ClusterLabelled: { labels: texts },
  ClusterAnnotated: { annotations: texts },
  ClusterDescribed: { displayName: text, description: text },
  NodeSetAdded: { name: text, nodeSet },
  NodeSetResized: { name: text, from: count, to: count },
  NodeSetRemoved: { name: text },
  /** `spec`: all that may be changed, as it is from now on; `changed`: what of it differs from before. */
  ClusterSpecRevised: { spec: mutableSpec, changed: listOf(mutableField) },
  ClusterFinalizersChanged: { finalizers: list },
  /** An external IP is claimed for it, and given back. */
  ClusterEndpointAttached: endpointUse,
  ClusterEndpointDetached: endpointUse,
  /** A private caller wrote `status`: shown until the next observation of the hub. */
  ClusterStatusReported: { status: jsonObject },
  // --- placement and dispatch, issued by the cluster-order workflow
  HubSelected: {
    hub: text,
    namespace: text,
    mode: z.enum(['operator', 'eda', 'aap']),
    simulated: z.boolean(),
    /** Who reconciles ClusterOrders there. */
    controller: z.enum(['operator', 'ledger']),
    /** The namespace is the tenant's own and made when first needed. */
    tenantNamespace: yes,
    /** Which rule applies to each step that can be the hub's or ours. */
    steps: z.record(z.string(), z.enum(['ledger', 'hub', 'none'])),
    /** Name of the ClusterOrder on the hub. */
    orderName: text,
    decision: placementDecision,
    /** Where the ledger does some step: the site of the hub. */
    site: z.strictObject({ zone: text, baseDomain: text }).exactOptional(),
  },
  /**
   * No hub fits: the order waits, with the reason of each hub. Recorded when the reasons change, not on every try.
   * `runs`: a change of a cluster that runs waits, and it runs on as before.
   */
  PlacementDeferred: { message: text, decision: placementDecision, runs: yes },
  /** Adds our finalizer: from here on absence on the hub must be observed before the cluster is gone. */
  ClusterDispatchStarted: hubAndOrder,
  ClusterOrderPlaced: { ...hubAndOrder, uid: text },
  /** A changed spec (sizes, version …) is stored on the hub; what its controller makes of it is not known yet. */
  ClusterSpecSynced: { ...hubAndOrder, ...look },
  /** Where we are the controller of a hub's orders: what the order needed there was made (OSAC's operator). */
  ClusterSpacePrepared: { ...hubAndOrder, created: list },
  /** The hub's automation was asked to build, change or tear down the cluster: a webhook was taken, or a job launched. */
  AutomationRequested: { hub: text, mode: automationMode, ...automationRun, ...look },
  /** Another try to build it, or a state of one that says nothing new. Told with its count once it has succeeded. */
  AutomationTried: automationRun,
  /** aap only: a job that we launched changed its state. */
  AutomationJobChanged: {
    hub: text,
    purpose: automationPurpose,
    job: text,
    template: text,
    state: jobState,
    /** The platform no longer has a record of it. */
    vanished: yes,
    /** Of a failed job: the end of its output. */
    outputTail: mayBe,
  },
  /** Somebody had changed the order on the hub; these fields of its spec are as ordered again. */
  ClusterDriftCorrected: { ...hubAndOrder, fields: list },
  /** The hub holds further objects with this cluster's label, which we did not make. */
  ClusterOrdersDuplicated: { hub: text, names: list, ...look },
  // --- what was observed on the hub
  ClusterOrderSeen: { ...seenShape, ...look },
  /** What changed since the last look. `ready`: all counts of ready nodes; empty: the hub does not show them any more. */
  ClusterConditionsObserved: {
    conditions: z.partialRecord(conditionName, conditionState),
    ready: counts.optional(),
    ...look,
  },
  ControlPlaneBecameAvailable: {
    apiUrl: text,
    consoleUrl: text,
    apiEndpoint: text,
    ingressEndpoint: text,
    ...look,
  },
  /** The hub shows it as built. READY comes after the steps that the ledger does on a cluster that runs. */
  ClusterInstalled: look,
  ClusterBecameReady: look,
  /** READY no longer holds because the desired size or spec changed and is being worked on. */
  ClusterReconfiguring: look,
  ClusterDegraded: { reason: text, message: text, ...look },
  ClusterRecovered: look,
  ClusterFailed: {
    reason: text,
    /** For tenants: names no hub, no namespace and nobody else's objects. */
    message: text,
    /** What the hub or the adapter said in full; the provider's to know. */
    detail: mayBe,
    /** True: nothing will happen until somebody retries or deletes. False: the hub still retries. */
    permanent: z.boolean(),
    ...look,
  },
  /**
   * A change of a cluster that was built failed: the cluster runs on as before, and its spec stays open. `change`:
   * which
   * one, for tenants; empty: of the order on its hub only. Message and detail as of a failure.
   */
  ClusterChangeFailed: { change: text, reason: text, message: text, detail: mayBe, ...look },
  /** Of the order, or of its change. */
  ClusterFailureCleared: look,
  /** The hub holds the order but shows no phase past its deadline: an alarm of its own, not FAILED. */
  HubNotAccepting: { hub: text, since: time },
  /** The ClusterOrder or the HostedCluster vanished behind our back. */
  ClusterLostOnHub: { what: lost },
  // --- operator and end
  /** Before it was ever READY: whatever was taken and made for the order is given back. */
  ClusterAborted: { reason: text },
  /** It was aborted, and nothing of it is left: it may be retried or deleted. */
  ClusterWithdrawn: {},
  ClusterRetryRequested: {},
  /** Somebody was shown credentials of the cluster; recorded before they were answered. */
  ClusterCredentialsRevealed: { what: z.enum(['kubeconfig', 'password']) },
  ClusterDeletionRequested: {},
  ClusterDeletionBlocked: { waitingFor: list, ...look },
  /** An alarm of its own: the teardown goes on, but took longer than any should. */
  ClusterDeletionOverdue: { since: time, waitingFor: list },
  /** Never dispatched, or absence was observed on the hub. The name is free again after this. */
  ClusterDeleted: { how: z.enum(['not-dispatched', 'absence-confirmed']) },
} as const satisfies Shapes;

/** Where a cluster lives, and what was seen of it there, is the provider's to know. */
const HIDDEN: readonly string[] = ['hub', 'orderName', 'version'];
const hiding = (...fields: readonly string[]): Partial<EventType> => ({ providerOnly: fields });
/** Changes no document. */
const internal = (...fields: readonly string[]): Partial<EventType> => ({
  changesDocument: false,
  ...(fields.length === 0 ? {} : hiding(...fields)),
});
const ours = (audience: 'provider' | 'internal'): Partial<EventType> => ({
  changesDocument: false,
  audience,
});

const ABOUT: { readonly [Type in keyof typeof CLUSTER_SHAPES]?: Partial<EventType> } = {
  ClusterOrdered: hiding(
    'version.releaseImage',
    'pullSecret',
    'nodeSets.*.fabricInterface',
    'externalIps.hub',
    'networkAttachment.hub',
  ),
  NodeSetAdded: hiding('nodeSet.fabricInterface'),
  ClusterSpecRevised: hiding('spec.pullSecret', 'spec.version.releaseImage'),
  ClusterFinalizersChanged: { audience: 'provider' },
  ClusterEndpointAttached: internal(),
  ClusterEndpointDetached: internal(),
  ClusterStatusReported: hiding('status.hub', 'status.node_sets.*.fabric_interface'),
  HubSelected: hiding(...Object.keys(CLUSTER_SHAPES.HubSelected).filter((field) => field !== 'simulated')),
  PlacementDeferred: hiding('decision'),
  ClusterOrderPlaced: internal('hub', 'orderName', 'uid'),
  ClusterSpacePrepared: ours('provider'),
  AutomationRequested: internal(
    'hub',
    'mode',
    'version',
    ...Object.keys(automationRun).filter((field) => field !== 'purpose' && field !== 'repeats'),
  ),
  AutomationTried: ours('internal'),
  AutomationJobChanged: internal('hub', 'job', 'template', 'vanished', 'outputTail'),
  ClusterDriftCorrected: internal('hub', 'orderName'),
  ClusterOrdersDuplicated: ours('provider'),
  ClusterOrderSeen: ours('internal'),
  ClusterFailed: hiding('detail', 'version'),
  ClusterChangeFailed: hiding('detail', 'version'),
  ClusterCredentialsRevealed: internal(),
  ClusterDeletionBlocked: hiding('waitingFor', 'version'),
  ClusterDeletionOverdue: hiding('waitingFor'),
};

const aboutOf = (type: string, shape: z.ZodRawShape): Partial<EventType> => {
  const hidden = HIDDEN.filter((field) => field in shape);
  return ABOUT[type as keyof typeof ABOUT] ?? (hidden.length === 0 ? {} : hiding(...hidden));
};

export const clusterEventTypes: readonly EventType[] = typesOf(
  { context: 'clusters', audience: 'tenant', resource: 'cluster' },
  CLUSTER_SHAPES,
  Object.fromEntries(Object.entries(CLUSTER_SHAPES).map(([type, shape]) => [type, aboutOf(type, shape)])),
);
