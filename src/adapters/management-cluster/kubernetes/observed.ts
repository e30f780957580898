import type {
  ClusterOrderSpec,
  Condition,
  ObservedClusterOrder,
  ObservedHostedCluster,
} from '../../../app/management-cluster.ts';
import { CLUSTER_ORDER_UUID_LABEL } from '../../../app/management-cluster.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../domain/json-tools.ts';
import { redacted } from '../../automation/redact.ts';
import { withoutSecretFields } from './api-errors.ts';

/**
 * Objects of a hub as its API server sends them, as what the service knows of them (management-cluster.md §1.1, §3).
 * A hub is a system of its own: a field may be missing, of another type, or far too long, and nothing here throws.
 * What cannot be used is left out, and texts are cut before they reach events.
 */
const MAX_TEXT = 2_000;
const MAX_ENTRIES = 100;
/** The operator keeps 10 jobs (§1.9). */
const MAX_JOBS = 50;

type Phase = NonNullable<ObservedClusterOrder['phase']>;
type Job = ObservedClusterOrder['jobs'][number];

const PHASES: readonly string[] = ['Progressing', 'Failed', 'Ready', 'Deleting'] satisfies readonly Phase[];
const JOB_TYPES: readonly string[] = ['provision', 'deprovision'] satisfies readonly Job['type'][];
const JOB_STATES: readonly string[] = [
  'Pending',
  'Waiting',
  'Running',
  'Succeeded',
  'Failed',
  'Canceled',
] satisfies readonly Job['state'][];
/** Host names and addresses become part of URLs that tenants follow. */
const HOST = /^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$|^[0-9A-Fa-f:]{2,39}$/;
const MAX_PORT = 65_535;
const RESOURCE_CLASS_LABEL = 'osac.openshift.io/resource_class';

/** A ClusterOrder. */
export const observedClusterOrder = (object: JsonValue): ObservedClusterOrder => {
  const metadata = objectAt(object, 'metadata');
  const status = objectAt(object, 'status');
  const phase = stringAt(status, 'phase');
  const nodes = nodeCounts(status, 'nodeRequests');
  return {
    name: text(metadata, 'name'),
    uid: text(metadata, 'uid'),
    ...filled({ clusterId: text(objectAt(metadata, 'labels'), CLUSTER_ORDER_UUID_LABEL) }),
    resourceVersion: text(metadata, 'resourceVersion'),
    generation: wholeNumber(metadata['generation']) ?? 0,
    creationTimestamp: text(metadata, 'creationTimestamp'),
    ...filled({ deletionTimestamp: text(metadata, 'deletionTimestamp') }),
    finalizers: entries(metadata, 'finalizers').flatMap((name) =>
      typeof name === 'string' ? [cut(name)] : [],
    ),
    annotations: annotationsOf(metadata),
    spec: specOf(objectAt(object, 'spec')),
    ...(PHASES.includes(phase) ? { phase: phase as Phase } : {}),
    conditions: conditionsOf(status),
    ...filled({ desiredConfigVersion: text(status, 'desiredConfigVersion') }),
    jobs: entries(status, 'provisioningJobs', MAX_JOBS).flatMap(jobOf),
    ...referenceOf(status),
    ...nodeSetsOf(status),
    ...(nodes.length === 0 ? {} : { observedNodes: nodes }),
    ...filled({
      apiEndpoint: text(status, 'apiEndpoint'),
      ingressEndpoint: text(status, 'ingressEndpoint'),
    }),
  };
};

/** A HostedCluster, with the NodePools beside it when they could be listed. */
export const observedHostedCluster = (
  object: JsonValue,
  nodePools?: readonly JsonValue[],
): ObservedHostedCluster => {
  const metadata = objectAt(object, 'metadata');
  const status = objectAt(object, 'status');
  const endpoint = objectAt(status, 'controlPlaneEndpoint');
  const host = stringAt(endpoint, 'host');
  const port = wholeNumber(endpoint['port']) ?? 0;
  const domain = stringAt(objectAt(objectAt(object, 'spec'), 'dns'), 'baseDomain');
  return {
    name: text(metadata, 'name'),
    namespace: text(metadata, 'namespace'),
    ...filled({
      uid: text(metadata, 'uid'),
      resourceVersion: text(metadata, 'resourceVersion'),
      deletionTimestamp: text(metadata, 'deletionTimestamp'),
    }),
    conditions: conditionsOf(status),
    ...(HOST.test(host) && port > 0 && port <= MAX_PORT ? { controlPlaneEndpoint: { host, port } } : {}),
    ...(HOST.test(domain) ? { baseDomain: domain } : {}),
    ...filled({
      kubeconfigSecret: text(objectAt(status, 'kubeconfig'), 'name'),
      passwordSecret: text(objectAt(status, 'kubeadminPassword'), 'name'),
    }),
    ...(nodePools === undefined ? {} : { nodePools: nodePools.slice(0, MAX_ENTRIES).map(nodePoolOf) }),
  };
};

/** Replicas of a NodePool are the nodes that are there (§3.2). */
const nodePoolOf = (object: JsonValue): NonNullable<ObservedHostedCluster['nodePools']>[number] => ({
  resourceClass: text(objectAt(objectAt(object, 'metadata'), 'labels'), RESOURCE_CLASS_LABEL),
  desired: count(objectAt(object, 'spec')['replicas']),
  ready: count(objectAt(object, 'status')['replicas']),
});

const specOf = (spec: JsonObject): ClusterOrderSpec => {
  const network = objectAt(spec, 'network');
  const ranges = filled({ podCIDR: text(network, 'podCIDR'), serviceCIDR: text(network, 'serviceCIDR') });
  return {
    templateID: stringAt(spec, 'templateID'),
    templateParameters: stringAt(spec, 'templateParameters'),
    nodeRequests: nodeCounts(spec, 'nodeRequests'),
    // Compared and hashed as a whole, and never recorded: these are not cut.
    ...filled({
      pullSecret: stringAt(spec, 'pullSecret'),
      sshPublicKey: stringAt(spec, 'sshPublicKey'),
      releaseImage: stringAt(spec, 'releaseImage'),
    }),
    ...(Object.keys(ranges).length === 0 ? {} : { network: ranges }),
  };
};

/** Counts as they are stored, negative ones too: the CRD has no minimum (operator-run.md §3). */
const nodeCounts = (holder: JsonObject, key: string): ClusterOrderSpec['nodeRequests'] =>
  entries(holder, key).flatMap((request) =>
    isObject(request)
      ? [
          {
            resourceClass: text(request, 'resourceClass'),
            numberOfNodes: wholeNumber(request['numberOfNodes']) ?? 0,
          },
        ]
      : [],
  );

const conditionsOf = (status: JsonObject): readonly Condition[] =>
  entries(status, 'conditions').flatMap((condition) => {
    const type = text(condition, 'type');
    if (type === '') return [];
    const shown = stringAt(condition, 'status');
    return [
      {
        type,
        status: shown === 'True' || shown === 'False' ? shown : 'Unknown',
        ...filled({
          reason: text(condition, 'reason'),
          message: explanation(condition),
          lastTransitionTime: text(condition, 'lastTransitionTime'),
        }),
      },
    ];
  });

const jobOf = (job: JsonValue): readonly Job[] => {
  const type = stringAt(job, 'type');
  const state = stringAt(job, 'state');
  if (!JOB_TYPES.includes(type)) return [];
  return [
    {
      jobId: text(job, 'jobID'),
      type: type as Job['type'],
      state: JOB_STATES.includes(state) ? (state as Job['state']) : 'Unknown',
      timestamp: text(job, 'timestamp'),
      ...filled({ message: lastWords(job), configVersion: text(job, 'configVersion') }),
    },
  ];
};

const referenceOf = (status: JsonObject): Pick<ObservedClusterOrder, 'clusterReference'> => {
  const reference = status['clusterReference'];
  if (!isObject(reference)) return {};
  return {
    clusterReference: {
      namespace: text(reference, 'namespace'),
      hostedClusterName: text(reference, 'hostedClusterName'),
    },
  };
};

/** Named after the resource class of a node request; only that there are hosts, and how many, is of use. */
const nodeSetsOf = (status: JsonObject): Pick<ObservedClusterOrder, 'nodeSets'> => {
  const nodeSets = entries(status, 'nodeSets').flatMap((set) => {
    const resourceClass = text(set, 'name');
    return resourceClass === '' ? [] : [{ resourceClass, hosts: listAt(set, 'agents').length }];
  });
  return nodeSets.length === 0 ? {} : { nodeSets };
};

const annotationsOf = (metadata: JsonObject): { readonly [key: string]: string } =>
  Object.fromEntries(
    Object.entries(objectAt(metadata, 'annotations'))
      .slice(0, MAX_ENTRIES)
      .flatMap(([key, value]) => (typeof value === 'string' ? [[cut(key), cut(value)]] : [])),
  );

/** Of a list that is too long the newest entries count: they are appended at its end. */
const entries = (holder: JsonValue, key: string, most = MAX_ENTRIES): readonly JsonValue[] =>
  listAt(holder, key).slice(-most);

const cut = (value: string): string =>
  value.length <= MAX_TEXT ? value : `${value.slice(0, MAX_TEXT - 1).toWellFormed()}…`;

const text = (holder: JsonValue, key: string): string => cut(stringAt(holder, key));

/** Beyond this no message is looked at. */
const MAX_EXPLANATION = 65_536;

/** Why something is as it is. Operators pass on what API servers say, and these repeat the value that they refuse. */
const explanation = (holder: JsonValue): string => cut(whole(holder));

/** The same of a job, whose last words may hold what it printed. */
const lastWords = (job: JsonValue): string => cut(redacted(whole(job)));

const whole = (holder: JsonValue): string =>
  withoutSecretFields(stringAt(holder, 'message').slice(0, MAX_EXPLANATION));

const wholeNumber = (value: JsonValue | undefined): number | undefined =>
  // The sum has no sign where there is nothing: -0 is not what JSON says of it.
  typeof value === 'number' && Number.isSafeInteger(value) ? value + 0 : undefined;

const count = (value: JsonValue | undefined): number => Math.max(0, wholeNumber(value) ?? 0);

/** Without empty texts: absent and empty mean the same to the operator. */
const filled = <Key extends string>(values: { readonly [K in Key]: string }): { [K in Key]?: string } =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')) as { [K in Key]?: string };
