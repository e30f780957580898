import type { ClusterObservation } from '../../../src/domain/clusters/observed.ts';
import { CLUSTER_ORDER, HOSTED_CLUSTER } from '../../../src/domain/clusters/hub-objects.ts';
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { observationAt } from '../../../src/app/hubs/hub-looks.ts';
import { evolveCluster } from '../../../src/domain/clusters/cluster.ts';
import { clusterOrderSpec } from '../../../src/domain/clusters/cluster-order-manifest.ts';
import { cluster } from '../../../src/domain/clusters/cluster.resource.ts';
import type { ClusterReport } from '../../../src/domain/clusters/commands.ts';
import { clusterDecider } from '../../../src/domain/clusters/decide.ts';
import { type ClusterEvent, initialCluster, type ClusterState } from '../../../src/domain/clusters/state.ts';
import { assess, configVersion } from '../../../src/domain/clusters/observation.ts';
import type { DesiredCluster } from '../../../src/domain/clusters/observed.ts';
import { isRejection } from '../../../src/domain/decider.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { fakeCluster } from '../../support/hubs/hub-fixture.ts';
import { onHub, ordered, time } from '../domain/clusters/samples.ts';

const FOLDER = new URL('../../../fixtures/operator/snapshots/', import.meta.url);
const files = readdirSync(FOLDER)
  .filter((file) => file.endsWith('.json'))
  .toSorted();
const read = (file: string): JsonValue =>
  JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as JsonValue;
const rawOrder = (file: string): JsonObject => {
  const value = read(file);
  if (!isObject(value)) throw new Error(`${file} is no object`);
  return value;
};

/** A HostedCluster with these conditions, in the words of the recorded one. */
const hosted = (conditions: { readonly [type: string]: 'True' | 'False' }) => ({
  conditions: Object.entries(conditions).map(([type, status]) => ({
    type,
    status,
    reason: `${type}${status}`,
  })),
});
const HEALTHY = hosted({ Available: 'True', Degraded: 'False', ClusterVersionSucceeding: 'True' });
const COMING_UP = hosted({ Available: 'False', Degraded: 'False', ClusterVersionSucceeding: 'False' });
const RECORDED = {
  conditions: listAt(
    objectAt(rawOrder('16-degraded-after-ready-hostedcluster.json'), 'status'),
    'conditions',
  ),
};

type Hosted = { readonly conditions: readonly JsonValue[] };
type Case = {
  /** Absent: there is none. */
  readonly hosted?: Hosted;
  /** Nodes by class where the rights allow to list NodePools; stock rights do not. */
  readonly pools?: { readonly [resourceClass: string]: number };
  /** We run the automation by webhooks, and the operator is told to keep its hands off. */
  readonly manual?: true;
  readonly was?: 'ready';
  /** It was READY with these nodes; what the file shows is a change of that. */
  readonly before?: { readonly [resourceClass: string]: number };
  /** What was ordered, where it is not what the hub holds. */
  readonly ordered?: { readonly [resourceClass: string]: number };
  readonly expect: Seen;
};

/** What the tenant reads; conditions as `TYPE reason` of those that are true, PROGRESSING always. */
type Seen = {
  readonly state: string;
  readonly progressing: string;
  /** Message of READY or PROGRESSING where it says what is waited for, or what failed. */
  readonly why?: string;
  readonly is: readonly string[];
  readonly nodes?: { readonly [resourceClass: string]: number };
  readonly api?: true;
  readonly waitingFor?: readonly string[];
};

const PROGRESSING: Seen = { state: 'PROGRESSING', progressing: 'Progressing', is: ['PROGRESSING'] };
const NOT_ACCEPTED: Seen = { state: 'PROGRESSING', progressing: 'HubNotAccepting', is: ['PROGRESSING'] };
const READY: Seen = { state: 'READY', progressing: 'AsExpected', is: ['READY'], api: true };
const failed = (reason: string): Seen => ({ state: 'FAILED', progressing: reason, is: [`FAILED ${reason}`] });
const deleting = (...waitingFor: string[]): Seen => ({
  state: 'DELETING',
  progressing: 'Deleting',
  is: ['PROGRESSING'],
  waitingFor,
});
const waitingForHosts = (counts: string): Seen => ({
  ...PROGRESSING,
  progressing: 'WaitingForHosts',
  why: `waiting for hosts (${counts})`,
});
const FINALIZER = 'finalizer osac.openshift.io/finalizer';
const INFRASTRUCTURE = 'finalizer osac.openshift.io/infrastructure';

const CASES: { readonly [file: string]: Case } = {
  '01-no-aap-stuck.json': { expect: NOT_ACCEPTED },
  '02-normal-launched.json': { expect: NOT_ACCEPTED },
  '03-normal-control-plane-created.json': {
    hosted: COMING_UP,
    expect: { ...PROGRESSING, nodes: { fc430: 0 } },
  },
  // All is there, yet the playbook still works on it.
  '04-normal-available-job-running.json': {
    hosted: HEALTHY,
    expect: { ...PROGRESSING, nodes: { fc430: 2 }, api: true },
  },
  '05-normal-ready.json': { hosted: HEALTHY, expect: { ...READY, nodes: { fc430: 2 } } },
  // Its phase stays Progressing for ever.
  '06-manual-available.json': { hosted: HEALTHY, manual: true, expect: { ...READY, nodes: { fc430: 2 } } },
  '07-manual-hosted-cluster-degraded.json': {
    hosted: RECORDED,
    manual: true,
    was: 'ready',
    expect: { ...READY, is: ['DEGRADED EtcdDown'], nodes: { fc430: 3 } },
  },
  '08-job-failed.json': { expect: failed('JobFailed') },
  // Failed until a try succeeds: that one runs says nothing yet.
  '09-job-failed-retry-running.json': { hosted: COMING_UP, expect: failed('JobFailed') },
  // The phase says Progressing; nothing but the job tells it.
  '10-job-canceled.json': { expect: failed('JobCanceled') },
  // The platform was not able to tell: nothing is known, and nothing has changed.
  '11-job-record-404.json': { expect: PROGRESSING },
  '12-job-failed-hosted-cluster-exists.json': {
    hosted: HEALTHY,
    expect: { ...failed('JobFailed'), api: true },
  },
  '13-scaling-job-running.json': {
    hosted: HEALTHY,
    before: { fc430: 2 },
    expect: { ...PROGRESSING, nodes: { fc430: 3 }, api: true },
  },
  '14-scale-job-failed.json': {
    hosted: HEALTHY,
    before: { fc430: 2 },
    expect: {
      ...READY,
      progressing: 'ChangeFailed',
      why: "new node set 'h100' of 2 h100 failed: the provider's automation failed",
    },
  },
  // The order has not changed at all: only the HostedCluster of the next file shows it.
  '15-degraded-after-ready.json': {
    hosted: RECORDED,
    was: 'ready',
    expect: { ...READY, is: ['DEGRADED EtcdDown'], nodes: { fc430: 2 } },
  },
  '17-deleting-job-running.json': {
    hosted: HEALTHY,
    expect: deleting('job 114 Running: running', 'HostedCluster ord-anormal1', FINALIZER, INFRASTRUCTURE),
  },
  '18-deleting-last-seen.json': { expect: deleting(FINALIZER) },
  '19-deleting-infrastructure-left.json': { expect: deleting(INFRASTRUCTURE) },
  '20-deleting-namespace-held.json': { expect: deleting(FINALIZER) },
  '21-delete-during-job.json': {
    hosted: HEALTHY,
    expect: deleting('job 116 Running: running', 'HostedCluster ord-fcanc01', FINALIZER, INFRASTRUCTURE),
  },
  '22-deprovision-failed.json': {
    expect: deleting('job 123 Failed: failed: cannot detach', FINALIZER, INFRASTRUCTURE),
  },
  '23-no-hosts.json': { hosted: HEALTHY, expect: { ...waitingForHosts('0 of 2 h100'), api: true } },
  '24-ready-without-hosts.json': { expect: waitingForHosts('0 of 1 x1, 0 of 1 y1') },
  // The order names no HostedCluster and never will; by convention it is there.
  '25-manual-no-hosts-hosted-cluster-available.json': {
    hosted: HEALTHY,
    manual: true,
    pools: { w1: 1 },
    expect: { ...waitingForHosts('0 of 1 w1'), nodes: { w1: 1 }, api: true },
  },
  '26-ready-for-older-spec.json': {
    hosted: HEALTHY,
    expect: { ...PROGRESSING, nodes: { fc430: 2 }, api: true },
  },
  '27-name-too-long.json': { expect: NOT_ACCEPTED },
  '28-negative-nodes.json': { ordered: { fc430: 1 }, expect: NOT_ACCEPTED },
  '29-killed-between-launch-and-status.json': { expect: NOT_ACCEPTED },
  // The order shows addresses and nodes for ever.
  '33-hosted-cluster-lost.json': { was: 'ready', expect: failed('HostedClusterLost') },
};

const name = (order: JsonObject): string => stringAt(objectAt(order, 'metadata'), 'name');

const shownHosted = (object: JsonObject, nodePools?: readonly JsonObject[]) =>
  HOSTED_CLUSTER.shown(object, nodePools === undefined ? {} : { nodePools });

const look = async (order: JsonObject, { hosted: shown, pools }: Case) => {
  const observed = CLUSTER_ORDER.shown(order);
  const raw = shown === undefined ? undefined : hostedObject(name(order), shown);
  const hub = fakeCluster('east-1', {
    getClusterOrder: async () => observed,
    // Only where it is: the place is read off the order, or known by convention.
    getHostedCluster: async ({ namespace, name: asked }) =>
      raw !== undefined && namespace === `osac-hub-${name(order)}` && asked === name(order)
        ? shownHosted(raw, pools === undefined ? undefined : Object.entries(pools).map(nodePool))
        : undefined,
  });
  const place = {
    hub: 'east-1',
    namespace: 'osac-hub',
    name: observed.name,
    id: observed.id ?? '',
  };
  const by = { effectId: 'look', deadlineMs: 1_000, signal: new AbortController().signal };
  const { observation } = await observationAt(hub, CLUSTER_ORDER, place, by);
  return observation as ClusterObservation;
};

const hostedObject = (called: string, { conditions }: Hosted): JsonObject => {
  const recorded = rawOrder('16-degraded-after-ready-hostedcluster.json');
  return {
    ...recorded,
    metadata: { ...objectAt(recorded, 'metadata'), name: called, namespace: `osac-hub-${called}` },
    status: { ...objectAt(recorded, 'status'), conditions: [...conditions] },
  };
};
const nodePool = ([resourceClass, replicas]: [string, number]): JsonObject => ({
  metadata: { labels: { 'osac.openshift.io/resource_class': resourceClass } },
  spec: { replicas },
  status: { replicas },
});

/** The cluster as its tenant ordered it: what the recorded order holds. */
const orderOf = (order: JsonObject, given: Pick<Case, 'ordered'>) => {
  const { spec } = CLUSTER_ORDER.shown(order);
  const counts = Object.fromEntries(
    spec.nodeRequests.map(({ resourceClass, numberOfNodes }) => [resourceClass, numberOfNodes]),
  );
  const { sshPublicKey: _key, templateParameters: _parameters, ...rest } = ordered;
  return {
    ...rest,
    template: { ...ordered.template, id: spec.templateID },
    templateParameters: {},
    ...(spec.sshPublicKey === undefined ? {} : { sshPublicKey: spec.sshPublicKey }),
    version: { ...ordered.version, releaseImage: spec.releaseImage ?? '' },
    nodeSets: Object.fromEntries(
      Object.entries(given.ordered ?? counts).map(([type, size]) => [
        type,
        { hostType: { id: type, name: type }, size },
      ]),
    ),
  };
};

/** What was recorded before the moment of the file. */
const wasUp = (): ClusterEvent[] => {
  const endpoints = {
    apiUrl: 'https://api.example:6443',
    consoleUrl: '',
    apiEndpoint: '',
    ingressEndpoint: '',
  };
  return [
    { type: 'ControlPlaneBecameAvailable', data: { at: time(8), ...endpoints } },
    { type: 'ClusterBecameReady', data: { at: time(9) } },
  ];
};

const changeTo = (
  wanted: ReturnType<typeof orderOf>['nodeSets'],
  before: { readonly [resourceClass: string]: number },
): ClusterEvent[] => [
  ...Object.entries(wanted).map(
    ([set, nodeSet]): ClusterEvent => ({
      type: 'NodeSetAdded',
      data: { at: time(9), name: set, nodeSet },
    }),
  ),
  ...Object.keys(before)
    .filter((set) => !Object.hasOwn(wanted, set))
    .map((set): ClusterEvent => ({ type: 'NodeSetRemoved', data: { at: time(9), name: set } })),
  { type: 'ClusterReconfiguring', data: { at: time(9) } },
];

const seen = async (file: string, given: Case): Promise<Seen> => {
  const order = rawOrder(file);
  const wanted = orderOf(order, given);
  const { was, before, manual } = given;
  const desired: DesiredCluster = {
    spec: clusterOrderSpec(wanted),
    nodeSets: wanted.nodeSets,
    controller: 'operator',
    wasAvailable: was !== undefined || before !== undefined,
    wasReady: was === 'ready',
    ...(was === undefined && before === undefined
      ? {}
      : { built: orderOf(order, before === undefined ? given : { ordered: before }).nodeSets }),
    ...(manual === undefined ? {} : { automation: { mode: 'eda', asked: true } }),
  };
  const assessment = assess(await look(order, given), desired);
  if (!assessment.found) throw new Error(`${file}: nothing found`);
  const history: ClusterEvent[] = [
    { type: 'ClusterOrdered', data: before === undefined ? wanted : orderOf(order, { ordered: before }) },
    ...onHub.slice(1),
    ...(was === undefined && before === undefined ? [] : wasUp()),
    ...(before === undefined ? [] : changeTo(wanted.nodeSets, before)),
    ...(assessment.deleting ? [{ type: 'ClusterDeletionRequested' as const, data: { at: time(10) } }] : []),
  ];
  let state = history.reduce<ClusterState>(evolveCluster, initialCluster());
  const report = (given_: ClusterReport): void => {
    const decided = clusterDecider.decide(state, given_);
    if (isRejection(decided)) throw new Error(decided.message);
    state = decided.reduce(clusterDecider.evolve, state);
  };
  const at = time(11);
  report({ type: 'RecordObservation', at, assessment });
  // What the workflow reports besides, past its deadlines and after a look of its own.
  const { kind } = assessment.verdict;
  if (kind === 'not-accepted') report({ type: 'ReportNotAccepting', at, since: time(3) });
  if (kind === 'hosted-cluster-lost') report({ type: 'ReportLost', at, what: 'hosted-cluster' });
  if (kind === 'deleting') report({ type: 'BlockDeletion', at, waitingFor: assessment.waitingFor });
  return shown(state);
};

const SAID = ['ChangeFailed', 'WaitingForHosts'];

const shown = (state: ClusterState): Seen => {
  const view = cluster.view(state);
  if (!view.exists) throw new Error('nothing is shown');
  const status = objectAt(view.document, 'status');
  const conditions = listAt(status, 'conditions').map((condition) => ({
    type: stringAt(condition, 'type').replace('CLUSTER_CONDITION_TYPE_', ''),
    holds: stringAt(condition, 'status') === 'CONDITION_STATUS_TRUE',
    reason: stringAt(condition, 'reason'),
    message: stringAt(condition, 'message'),
  }));
  const told = conditions.find(({ type, holds }) => holds && (type === 'READY' || type === 'PROGRESSING'));
  // Of orders that are not taken up, or torn down, these words are always the same.
  const why = SAID.includes(told?.reason ?? '') ? told?.message : undefined;
  const sets = Object.entries(objectAt(status, 'node_sets')).map(([set, value]) => [
    set,
    isObject(value) && typeof value['size'] === 'number' ? value['size'] : 0,
  ]);
  const waitingFor = state.status === 'dispatched' ? state.waitingFor : [];
  return {
    state: stringAt(status, 'state').replace('CLUSTER_STATE_', ''),
    progressing: conditions.find(({ type }) => type === 'PROGRESSING')?.reason ?? '',
    ...(why === undefined ? {} : { why }),
    is: conditions
      .filter(({ holds }) => holds)
      .map(({ type, reason }) => (type === 'FAILED' || type === 'DEGRADED' ? `${type} ${reason}` : type)),
    ...(sets.length === 0 ? {} : { nodes: Object.fromEntries(sets) as { [type: string]: number } }),
    ...(stringAt(status, 'api_url') === '' ? {} : { api: true }),
    ...(waitingFor.length === 0 ? {} : { waitingFor }),
  };
};

describe('what a tenant sees of each recorded order', () => {
  for (const [file, given] of Object.entries(CASES)) {
    it(`${file}: ${given.expect.state} ${given.expect.progressing}`, async () => {
      expect(await seen(file, given)).to.deep.equal(given.expect);
    });
  }
  it('every recorded file is looked at', () => {
    const looked = [
      ...Object.keys(CASES),
      '16-degraded-after-ready-hostedcluster.json',
      '30-aap-launch-bodies.json',
    ];
    expect(files).to.deep.equal(looked.toSorted());
  });
  it('the version of a spec is the operator’s own', () => {
    for (const file of Object.keys(CASES)) {
      const { spec, desiredConfigVersion } = CLUSTER_ORDER.shown(rawOrder(file));
      if (desiredConfigVersion === undefined || file.startsWith('26')) continue;
      expect(configVersion(spec), file).to.equal(desiredConfigVersion);
    }
  });
  it('the orders that were sent to the automation platform read like those on the hub', () => {
    const bodies = read('30-aap-launch-bodies.json');
    const resources = (Array.isArray(bodies) ? bodies : []).map((entry) => {
      const vars = objectAt(objectAt(objectAt(entry, 'body'), 'extra_vars'), 'osac_job_vars');
      return CLUSTER_ORDER.shown(objectAt(vars, 'resource'));
    });
    expect(resources.length).to.be.greaterThan(1);
    for (const order of resources) {
      expect(order.name).to.match(/^ord-/);
      expect(order.id).to.be.a('string');
      expect(order.desiredConfigVersion).to.equal(configVersion(order.spec));
    }
    expect(resources.some(({ deletionTimestamp }) => deletionTimestamp !== undefined)).to.equal(true);
  });
});
