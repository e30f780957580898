import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { finalizersOf, isDeleting, labelsOf } from '../../support/kube-controllers/api.ts';
import { manualClock } from '../../support/kube-controllers/clock.ts';
import { jobsOf } from '../../support/kube-controllers/jobs.ts';
import { playHub } from '../../support/kube-controllers/hub.ts';

const NAMESPACE = 'osac-hub';
const LABELS = { 'osac.openshift.io/clusterorder-uuid': '11111111-2222-4333-8444-555555555555' };
const SPEC = {
  nodeRequests: [{ numberOfNodes: 2, resourceClass: 'fc430' }],
  pullSecret: '{}',
  releaseImage: 'registry.example/ocp/release:4.22.0',
  sshPublicKey: 'ssh-ed25519 AAAA bench',
  templateID: 'osac.templates.ocp_small',
  templateParameters: '{}',
};

const recorded = (file: string): JsonObject =>
  JSON.parse(
    readFileSync(new URL(`../../../fixtures/operator/snapshots/${file}`, import.meta.url), 'utf8'),
  ) as JsonObject;

/** A status without what differs from run to run: times, job ids, the order's name, the order of conditions. */
const shape = (order: JsonObject): JsonValue => {
  const name = stringAt(objectAt(order, 'metadata'), 'name');
  const text = JSON.stringify(objectAt(order, 'status'), (key, value: JsonValue) =>
    key === 'lastTransitionTime' || key === 'timestamp' || key === 'jobID' ? 'any' : value,
  );
  const status = JSON.parse(text.replaceAll(name, 'ORDER')) as JsonObject;
  const conditions = (status['conditions'] ?? []) as JsonObject[];
  return {
    ...status,
    conditions: conditions.toSorted((a, b) => (stringAt(a, 'type') < stringAt(b, 'type') ? -1 : 1)),
  };
};

const phaseOf = (order: JsonObject): string => stringAt(objectAt(order, 'status'), 'phase');
const conditionOf = (order: JsonObject, type: string): string => {
  const { conditions } = objectAt(order, 'status');
  const list = Array.isArray(conditions) ? (conditions as JsonValue[]).filter(isObject) : [];
  return stringAt(list.find((one) => one['type'] === type) ?? {}, 'status');
};

describe('the played hub does what the recorded operator did', () => {
  let server: KubeApiServer;
  let clock: ReturnType<typeof manualClock>;
  let hub: ReturnType<typeof playHub>;

  beforeEach(async () => {
    server = await startKubeApiServer({ namespaces: [NAMESPACE] });
    clock = manualClock();
    hub = playHub({ call: server.call, clock });
    await hub.prepare({ fc430: 4, h100: 3 });
  });
  afterEach(() => server.close());

  const create = (name: string, spec: JsonObject = SPEC, annotations: { [key: string]: string } = {}) =>
    server.seed({
      apiVersion: 'osac.openshift.io/v1alpha1',
      kind: 'ClusterOrder',
      metadata: { name, namespace: NAMESPACE, labels: LABELS, annotations },
      spec,
    });
  const found = (name: string): JsonObject | undefined =>
    server.find('clusterorders', NAMESPACE, name) as JsonObject | undefined;
  const order = (name: string): JsonObject => {
    const one = found(name);
    if (one === undefined) throw new Error(`${name} is gone`);
    return one;
  };
  const patch = (name: string, body: JsonObject) => hub.api.merge('clusterorders', NAMESPACE, name, body);
  const remove = (name: string) => hub.api.remove('clusterorders', NAMESPACE, name);
  /** Moves the clock in small steps and lets everybody act after each. */
  const run = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 200) {
      clock.advance(Math.min(200, ms - passed));
      await hub.settle();
      await server.settled();
    }
    await hub.settle();
  };
  const jobStates = (name: string): string[] =>
    jobsOf(order(name)).map((job) => `${stringAt(job, 'type')} ${stringAt(job, 'state')}`);
  const states = { manual: { 'osac.openshift.io/management-state': 'manual' } };

  it('a: from nothing over the launch to Ready, each status as it was recorded', async () => {
    create('ord-a');
    await hub.step();
    expect(shape(order('ord-a'))).to.deep.equal(
      withAgents(shape(recorded('02-normal-launched.json')), order('ord-a')),
    );
    expect(order('ord-a')).to.have.nested.property('metadata.generation', 1);
    await hub.step();
    expect(phaseOf(order('ord-a'))).to.equal('Progressing');
    await run(3000);
    expect(conditionOf(order('ord-a'), 'ControlPlaneAvailable')).to.equal('True');
    expect(phaseOf(order('ord-a'))).to.equal('Progressing');
    await run(4000);
    expect(shape(order('ord-a'))).to.deep.equal(shape(recorded('05-normal-ready.json')));
    expect(hub.aap.launches()).to.have.length(1);
    const secret = server.find('secrets', 'osac-hub-ord-a', 'ord-a-admin-kubeconfig');
    expect(secret).to.have.nested.property('data.kubeconfig');
  });

  it('b: manual mode: readiness shows as a condition, the phase stays Progressing', async () => {
    create('ord-b', SPEC, states.manual);
    await run(400);
    expect(hub.aap.launches()).to.have.length(0);
    const run1 = hub.ansible.start('create', order('ord-b'));
    await run(6000);
    expect(run1.result()).to.equal('successful');
    const status = withoutEndpoints(shape(order('ord-b')));
    expect(status).to.deep.equal(shape(recorded('06-manual-available.json')));
  });

  it('without AAP the status stays empty, also when it is deleted; manual lets it go', async () => {
    hub.aap.down();
    create('ord-n');
    await run(1000);
    expect(order('ord-n')).not.to.have.property('status');
    expect(finalizersOf(order('ord-n'))).to.deep.equal(['osac.openshift.io/finalizer']);
    expect(hub.operator.problem('ord-n')).to.include('503');
    await remove('ord-n');
    await run(1000);
    expect(phaseOf(order('ord-n'))).to.equal('');
    await patch('ord-n', { metadata: { annotations: states.manual } });
    await run(1000);
    expect(found('ord-n')).to.equal(undefined);
  });

  it('c1: a job that fails before a HostedCluster exists; its retry comes two minutes after the launch', async () => {
    hub.ansible.failNext('create', {
      result: 'failed',
      afterMs: 1000,
      traceback: 'Traceback: task 12 failed',
      idle: true,
    });
    create('ord-c', { templateID: 'osac.templates.ocp_small', templateParameters: '{}' });
    await run(3000);
    expect(shape(order('ord-c'))).to.deep.equal(shape(recorded('08-job-failed.json')));
    await run(115_000);
    expect(hub.aap.launches()).to.have.length(1);
    await run(3000);
    expect(hub.aap.launches()).to.have.length(2);
    expect(phaseOf(order('ord-c'))).to.equal('Failed');
    await run(6000);
    expect(phaseOf(order('ord-c'))).to.equal('Ready');
  });

  it('c, d: another hash launches at once, whatever it says; only that of the latest job is compared', async () => {
    const failing = { result: 'failed', afterMs: 1000, idle: true } as const;
    for (let failure = 0; failure < 3; failure += 1) hub.ansible.failNext('create', failing);
    create('ord-c', { templateID: 'osac.templates.ocp_small', templateParameters: '{}' });
    await run(3000);
    await patch('ord-c', { spec: { templateParameters: '{}' } });
    await run(3000);
    expect(hub.aap.launches()).to.have.length(1);
    for (const templateParameters of ['{ }', '{}']) {
      await patch('ord-c', { spec: { templateParameters } });
      await run(3000);
    }
    expect(hub.aap.launches()).to.have.length(3);
    // While a job runs another hash waits for its end.
    for (const templateParameters of ['{ }', '{  }']) {
      await patch('ord-c', { spec: { templateParameters } });
      await run(400);
    }
    expect(hub.aap.launches()).to.have.length(4);
    await run(10_000);
    expect(hub.aap.launches()).to.have.length(5);
  });

  it('c3, c4: a canceled job and a lost record never show in the phase', async () => {
    const spec = { templateID: 'osac.templates.ocp_small', templateParameters: '{}' };
    create('ord-d', spec);
    await run(200);
    hub.aap.cancel('101');
    await run(1000);
    expect(shape(order('ord-d'))).to.deep.equal(shape(recorded('10-job-canceled.json')));
    create('ord-e', spec);
    await hub.step();
    hub.aap.forget('102');
    await run(1000);
    const [job] = jobsOf(order('ord-e'));
    expect(job).to.include({ state: 'Pending' });
    expect(stringAt(job ?? {}, 'message')).to.match(/^Failed to get job status: .*resource not found/);
    expect(phaseOf(order('ord-e'))).to.equal('Progressing');
    create('ord-away', spec);
    await hub.step();
    hub.aap.down();
    await run(1000);
    expect(stringAt(jobsOf(order('ord-away'))[0] ?? {}, 'message')).to.match(
      /^Failed to get job status: .*503/,
    );
    hub.aap.up();
    await run(1000);
    expect(stringAt(jobsOf(order('ord-away'))[0] ?? {}, 'message')).to.not.contain('Failed to get');
  });

  it('c5: a failure after the HostedCluster exists shows in the job only', async () => {
    hub.ansible.failNext('create', { result: 'error', afterMs: 3000, traceback: 'boom' });
    create('ord-f');
    await run(5000);
    expect(jobsOf(order('ord-f'))[0]).to.include({ state: 'Failed', message: 'error: boom' });
    expect(phaseOf(order('ord-f'))).to.equal('Progressing');
  });

  it('d: a changed spec launches again, keeps Ready and takes no more hosts', async () => {
    create('ord-g');
    await run(7000);
    const before = objectAt(order('ord-g'), 'status')['desiredConfigVersion'];
    await patch('ord-g', { spec: { nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 4 }] } });
    await run(500);
    expect(phaseOf(order('ord-g'))).to.equal('Ready');
    expect(objectAt(order('ord-g'), 'status')['desiredConfigVersion']).not.to.equal(before);
    expect(jobStates('ord-g')).to.have.length(2);
    await run(6000);
    const status = objectAt(order('ord-g'), 'status');
    expect(status['nodeRequests']).to.deep.equal([{ numberOfNodes: 4, resourceClass: 'fc430' }]);
    const taken = server
      .list('agents')
      .filter((one) => labelsOf(one as JsonObject)['osac.openshift.io/clusterorder']);
    expect(taken).to.have.length(2);
  });

  it('e: a HostedCluster that degrades after Ready changes nothing in the order', async () => {
    create('ord-h');
    await run(7000);
    const before = order('ord-h');
    hub.hypershift.afflict('ord-h', { type: 'Degraded', reason: 'EtcdDown', message: 'one member lost' });
    await run(1000);
    expect(order('ord-h')).to.equal(before);
    const hosted = server.find('hostedclusters', 'osac-hub-ord-h', 'ord-h') as JsonObject;
    expect(conditionOf(hosted, 'Degraded')).to.equal('True');
    hub.hypershift.heal('ord-h');
    await run(200);
    expect(
      conditionOf(server.find('hostedclusters', 'osac-hub-ord-h', 'ord-h') as JsonObject, 'Degraded'),
    ).to.equal('False');
  });

  it('f1: deletion frees the hosts first, runs the delete job and goes with the namespace', async () => {
    create('ord-i');
    await run(7000);
    await remove('ord-i');
    await hub.step();
    expect(
      server.list('agents').some((one) => labelsOf(one as JsonObject)['osac.openshift.io/clusterorder']),
    ).to.equal(false);
    expect(phaseOf(order('ord-i'))).to.equal('Deleting');
    expect(jobStates('ord-i')).to.deep.equal(['provision Succeeded', 'deprovision Pending']);
    await run(6000);
    expect(found('ord-i')).to.equal(undefined);
    expect(server.find('namespaces', '', 'osac-hub-ord-i')).to.equal(undefined);
  });

  it('f2, f3: what Ansible leaves behind holds the order or its namespace', async () => {
    create('ord-j');
    await run(7000);
    hub.ansible.keepFinalizer('clusterorders', 'ord-j');
    await remove('ord-j');
    await run(6000);
    expect(finalizersOf(order('ord-j'))).to.deep.equal(['osac.openshift.io/infrastructure']);
    hub.ansible.release('clusterorders', 'ord-j');
    await hub.ansible.letGo('clusterorders', NAMESPACE, 'ord-j');
    expect(found('ord-j')).to.equal(undefined);

    create('ord-k');
    await run(7000);
    hub.ansible.keepFinalizer('namespaces', 'osac-hub-ord-k');
    await remove('ord-k');
    await run(6000);
    expect(finalizersOf(order('ord-k'))).to.deep.equal(['osac.openshift.io/finalizer']);
    expect(isDeleting(server.find('namespaces', '', 'osac-hub-ord-k') as JsonObject)).to.equal(true);
  });

  it('f4, f5: a running job is canceled first; a delete job that fails is tried again two minutes later', async () => {
    hub.ansible.failNext('delete', {
      result: 'failed',
      afterMs: 500,
      traceback: 'cannot detach',
      idle: true,
    });
    create('ord-l');
    await run(2500);
    await remove('ord-l');
    await run(3000);
    expect(jobStates('ord-l')).to.deep.equal(['provision Canceled', 'deprovision Failed']);
    expect(jobsOf(order('ord-l'))[1]).to.include({
      message: 'failed: cannot detach',
      blockDeletionOnFailure: true,
    });
    expect(phaseOf(order('ord-l'))).to.equal('Deleting');
    await run(125_000);
    expect(found('ord-l')).to.equal(undefined);
  });

  it('k: two jobs after a lost launch; what happened while the operator was down comes at once', async () => {
    hub.aap.loseNext();
    create('ord-p');
    await run(1000);
    expect(hub.aap.launches().map(({ id }) => id)).to.deep.equal(['101', '102']);
    expect(jobsOf(order('ord-p')).map((job) => job['jobID'])).to.deep.equal(['102']);
    hub.stopOperator();
    await run(7000);
    expect(phaseOf(order('ord-p'))).to.equal('Progressing');
    hub.startOperator();
    await hub.step();
    expect(phaseOf(order('ord-p'))).to.equal('Ready');
    expect(conditionOf(order('ord-p'), 'ClusterAvailable')).to.equal('True');
  });

  it('j: a namespace that exists is taken over; a second one with the label stops everything', async () => {
    server.seed({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'osac-hub-ord-q' } });
    create('ord-q');
    await run(7000);
    expect(phaseOf(order('ord-q'))).to.equal('Ready');
    const labels = { 'osac.openshift.io/clusterorder': 'ord-q' };
    server.seed({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'second', labels } });
    await remove('ord-q');
    await run(6000);
    expect(phaseOf(order('ord-q'))).to.equal('Ready');
    expect(hub.operator.problem('ord-q')).to.equal('found multiple matching namespaces');
    await hub.api.remove('namespaces', '', 'second');
    await run(6000);
    expect(found('ord-q')).to.equal(undefined);
    expect(server.find('namespaces', '', 'osac-hub-ord-q')).to.equal(undefined);
  });

  it('g: hosts are short: the job is launched all the same and the order stays frozen until hosts are free', async () => {
    const spec = { ...SPEC, nodeRequests: [{ resourceClass: 'h100', numberOfNodes: 2 }] };
    create('ord-m', spec);
    create('ord-o', spec);
    await run(3000);
    expect(hub.aap.launches()).to.have.length(2);
    expect(conditionOf(order('ord-o'), 'ControlPlaneCreated')).to.equal('False');
    await run(4000);
    expect(phaseOf(order('ord-o'))).to.equal('Ready');
    expect(order('ord-o')).not.to.have.nested.property('status.nodeSets');
    await remove('ord-m');
    await run(6000);
    expect(conditionOf(order('ord-o'), 'ControlPlaneCreated')).to.equal('True');
  });

  it('h, j: nonsense that the CRD accepts freezes the order', async () => {
    create('ord-neg', { ...SPEC, nodeRequests: [{ resourceClass: 'a', numberOfNodes: -1 }] });
    await run(1000);
    expect(phaseOf(order('ord-neg'))).to.equal('');
    expect(jobStates('ord-neg')).to.deep.equal(['provision Pending']);
    expect(hub.operator.problem('ord-neg')).to.include('panic');
    const long = `ord-${'x'.repeat(60)}`;
    create(long);
    const metadata = { name: 'ord-empty', namespace: NAMESPACE };
    server.seed({ apiVersion: 'osac.openshift.io/v1alpha1', kind: 'ClusterOrder', metadata });
    await run(400);
    expect(order(long)).not.to.have.property('status');
    expect(finalizersOf(order(long))).to.deep.equal(['osac.openshift.io/finalizer']);
    expect(finalizersOf(order('ord-empty'))).to.deep.equal([]);
    create('ord-un', SPEC, { 'osac.openshift.io/management-state': 'unmanaged' });
    await run(400);
    expect(finalizersOf(order('ord-un'))).to.deep.equal([]);
  });
});

/** The recording of the first patch was taken before the hosts were patched in; here it is one pass. */
const withAgents = (status: JsonValue, order: JsonObject): JsonObject => ({
  ...(status as JsonObject),
  nodeSets: objectAt(order, 'status')['nodeSets'] ?? [],
});

/** The recorded playbook of this run set no endpoints. */
const withoutEndpoints = (status: JsonValue): JsonObject => {
  const { apiEndpoint: _api, ingressEndpoint: _ingress, ...rest } = status as JsonObject;
  return rest;
};
