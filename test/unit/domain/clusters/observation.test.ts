import { expect } from 'chai';
import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import {
  assess,
  configVersion,
  latestJob,
  type Assessment,
} from '../../../../src/domain/clusters/observation.ts';
import type {
  ClusterObservation,
  DesiredCluster,
  ObservedJob,
} from '../../../../src/domain/clusters/observed.ts';
import { healthy, hosted, ORDER_NAME, observedOrder, ordered, time } from './samples.ts';

const spec = clusterOrderSpec(ordered);
const desired: DesiredCluster = {
  spec,
  nodeSets: ordered.nodeSets,
  controller: 'operator',
  wasAvailable: false,
  wasReady: false,
};
const seen = (
  observation: ClusterObservation,
  change: Partial<DesiredCluster> = {},
): Extract<Assessment, { found: true }> => {
  const assessment = assess(observation, { ...desired, ...change });
  if (!assessment.found) throw new Error('nothing was found');
  return assessment;
};
const job = (change: Partial<ObservedJob>): ObservedJob => ({
  jobId: '102',
  type: 'provision',
  state: 'Succeeded',
  timestamp: time(4),
  configVersion: configVersion(spec),
  ...change,
});
const kind = (observation: ClusterObservation, change: Partial<DesiredCluster> = {}): string =>
  seen(observation, change).verdict.kind;

describe('clusters: what a hub shows and what it means', () => {
  it('is READY only when the hosted cluster, the nodes, the job and the spec say so', () => {
    expect(kind(healthy())).to.equal('ready');
    for (const conditions of [
      { Available: 'False' },
      { Degraded: 'True' },
      { ClusterVersionSucceeding: 'False' },
    ]) {
      expect(kind(healthy({ hostedCluster: hosted(conditions) })), JSON.stringify(conditions)).to.equal(
        'progressing',
      );
    }
    expect(kind(healthy({ hostedCluster: hosted({}, { fc430: 2, g5: 2 }) }))).to.equal('progressing');
    expect(kind(healthy({ hostedCluster: null }))).to.equal('progressing');
    expect(kind(healthy({ order: observedOrder({ jobs: [job({ state: 'Running' })] }) }))).to.equal(
      'progressing',
    );
  });
  it('takes neither the phase nor a sticky condition for READY', () => {
    const conditions = [{ type: 'ClusterAvailable', status: 'True' }];
    const order = observedOrder({ phase: 'Ready', conditions });
    expect(kind({ order, hostedCluster: hosted({ Available: 'False' }) })).to.equal('progressing');
    expect(kind({ order: observedOrder({ phase: 'Progressing' }), hostedCluster: hosted() })).to.equal(
      'ready',
    );
  });
  it('wants the operator to have seen the spec that is stored', () => {
    const stale = observedOrder({ desiredConfigVersion: '0000000000000000' });
    expect(kind(healthy({ order: stale }))).to.equal('progressing');
    expect(kind(healthy({ order: stale }), { controller: 'ledger' })).to.equal('ready');
    const { desiredConfigVersion: _none, ...unseen } = observedOrder();
    expect(kind(healthy({ order: unseen }))).to.equal('progressing');
  });
  it('wants the stored spec to be ours, the pull secret aside', () => {
    const other = observedOrder({ spec: { ...spec, releaseImage: 'r/other:1' } });
    expect(seen(healthy({ order: other })).specMatches).to.equal(false);
    expect(kind(healthy({ order: other }))).to.equal('progressing');
    const withSecret = observedOrder({ spec: { ...spec, pullSecret: 'value' } });
    expect(kind(healthy({ order: withSecret }))).to.equal('ready');
    const redacted = { ...observedOrder(), desiredConfigVersion: 'aaaaaaaaaaaaaaaa', jobs: [] };
    expect(kind(healthy({ order: redacted, specVersion: 'aaaaaaaaaaaaaaaa' }))).to.equal('ready');
  });
  it('does without jobs where none are run, and wants the latest one for the stored spec', () => {
    expect(kind(healthy({ order: observedOrder({ jobs: [] }) }))).to.equal('ready');
    const { configVersion: _none, ...unversioned } = job({});
    expect(kind(healthy({ order: observedOrder({ jobs: [unversioned] }) }))).to.equal('ready');
    const older = observedOrder({ jobs: [job({ configVersion: '0000000000000000' })] });
    expect(kind(healthy({ order: older }))).to.equal('progressing');
    expect(latestJob([job({ jobId: 'a' }), job({ jobId: 'b' })], 'provision')?.jobId).to.equal('b');
    expect(
      latestJob([job({ jobId: 'a' }), job({ jobId: 'b', timestamp: time(1) })], 'provision')?.jobId,
    ).to.equal('a');
    expect(latestJob([], 'provision')).to.equal(undefined);
  });
  it('takes FAILED from the latest job that has ended, also while a newer one runs', () => {
    const cases: [Partial<ObservedJob>, string, string][] = [
      [{ state: 'Failed', message: 'boom' }, 'JobFailed', 'job 102 ended as Failed: boom'],
      [{ state: 'Canceled' }, 'JobCanceled', 'job 102 ended as Canceled'],
    ];
    for (const [change, reason, detail] of cases) {
      const order = observedOrder({ phase: 'Progressing', jobs: [job(change)] });
      const message = "the provider's automation failed";
      expect(seen(healthy({ order })).verdict).to.deep.equal({ kind: 'failed', reason, message, detail });
    }
    const unanswered = job({ state: 'Running', message: 'Failed to get job status: https://aap.internal' });
    const unknown = seen(healthy({ order: observedOrder({ phase: 'Progressing', jobs: [unanswered] }) }));
    expect(unknown).to.deep.include({ jobUnknown: true, verdict: { kind: 'progressing' } });
    expect(unknown.conditions.TemplateApplied.reason).to.equal('Applying');
    const retrying = observedOrder({
      phase: 'Failed',
      jobs: [job({ state: 'Failed' }), job({ jobId: '103', state: 'Running', timestamp: time(6) })],
    });
    const known = { message: "the provider's automation failed", reason: 'JobFailed' };
    expect(seen(healthy({ order: retrying })).verdict).to.deep.include({ kind: 'failed', ...known });
    expect(seen(healthy({ order: retrying }), { since: time(6) }).verdict, 'a person’s retry').to.deep.equal({
      kind: 'progressing',
    });
    const conditions = [
      { type: 'Progressing', status: 'False', reason: 'ProvisioningFailed', message: 'traceback' },
    ];
    expect(
      seen(healthy({ order: observedOrder({ phase: 'Failed', jobs: [], conditions }) })).verdict,
    ).to.deep.equal({
      kind: 'failed',
      reason: 'ProvisioningFailed',
      message: 'the hub reports the order as failed',
      detail: 'traceback',
    });
    expect(
      seen(healthy({ order: observedOrder({ phase: 'Failed', jobs: [], conditions: [] }) })).verdict,
    ).to.deep.include({ kind: 'failed', reason: 'ProvisioningFailed' });
  });
  it('calls a fault of a cluster that was READY a degradation', () => {
    const was = { wasAvailable: true, wasReady: true };
    const degraded = healthy({ hostedCluster: hosted({ Degraded: 'True' }) });
    expect(seen(degraded, was).verdict).to.deep.equal({
      kind: 'degraded',
      reason: 'DegradedReason',
      message: 'Degraded is True',
    });
    const missing = healthy({ hostedCluster: hosted({}, { fc430: 3, g5: 1 }) });
    expect(seen(missing, was).verdict).to.deep.include({ kind: 'degraded', reason: 'NodesNotReady' });
    expect(kind(healthy({ hostedCluster: null }), was)).to.equal('hosted-cluster-lost');
    const newSpec = healthy({ order: observedOrder({ desiredConfigVersion: '0000000000000000' }) });
    expect(kind(newSpec, was)).to.equal('progressing');
  });
  it('knows an order that the hub has not taken up, and one that is gone', () => {
    const { phase: _phase, ...unaccepted } = observedOrder({ jobs: [], conditions: [] });
    const silent = seen({ order: unaccepted, hostedCluster: null });
    expect(silent.verdict.kind).to.equal('not-accepted');
    expect(silent.accepted).to.equal(false);
    expect(assess({ order: null }, desired)).to.deep.equal({ found: false });
  });
  it('tells while deleting what is left to do', () => {
    const order = observedOrder({
      deletionTimestamp: time(20),
      jobs: [job({ jobId: '9', type: 'deprovision', state: 'Failed', message: 'no' })],
    });
    expect(seen(healthy({ order }))).to.deep.include({
      deleting: true,
      waitingFor: [
        'job 9 Failed: no',
        `HostedCluster ${ORDER_NAME}`,
        'finalizer osac.openshift.io/finalizer',
      ],
      verdict: { kind: 'deleting' },
    });
    const done = observedOrder({
      deletionTimestamp: time(20),
      finalizers: [],
      jobs: [job({ type: 'deprovision' })],
    });
    expect(seen({ order: done, hostedCluster: null }).waitingFor).to.deep.equal([]);
    const running = observedOrder({
      deletionTimestamp: time(20),
      finalizers: [],
      jobs: [job({ type: 'deprovision', state: 'Running' })],
    });
    expect(seen({ order: running, hostedCluster: null }).waitingFor).to.deep.equal(['job 102 Running']);
  });
  it('keeps four conditions, and names what a hub cannot show', () => {
    const { nodePools: _pools, ...noPools } = hosted() ?? {};
    const blind = seen(healthy({ hostedCluster: noPools as ReturnType<typeof hosted> }));
    expect(blind.conditions.NodesReady.status).to.equal('NotObservable');
    expect(blind.verdict.kind).to.equal('ready');
    expect(blind.ready).to.deep.equal({});
    const order = observedOrder({ conditions: [] });
    expect(seen({ order }).conditions).to.deep.include({
      ClusterAvailable: {
        status: 'True',
        reason: 'ReportedByOrder',
        message: 'the hub reports it; its hosted cluster cannot be read',
      },
      InfrastructureReady: {
        status: 'Unknown',
        reason: 'NotReported',
        message: 'the hub has not reported it yet',
      },
    });
    const progressing = observedOrder({ phase: 'Progressing', conditions: [] });
    expect(seen({ order: progressing }).conditions.ClusterAvailable.reason).to.equal('NotReported');
    const sticky = [{ type: 'ClusterAvailable', status: 'True' }];
    expect(seen({ order: { ...progressing, conditions: sticky } }).verdict.kind).to.equal('ready');
  });
  it('takes infrastructure and template from where they show', () => {
    const own = seen(healthy({ hostedCluster: hosted({ InfrastructureReady: 'True' }) }));
    expect(own.conditions.InfrastructureReady.status).to.equal('True');
    const not = seen(healthy({ hostedCluster: hosted({ InfrastructureReady: 'False' }) }));
    expect(not.conditions.InfrastructureReady.status).to.equal('False');
    const created = [{ type: 'ControlPlaneCreated', status: 'False' }];
    const order = observedOrder({ phase: 'Progressing', conditions: created });
    expect(seen({ order, hostedCluster: null }).conditions.InfrastructureReady).to.deep.equal({
      status: 'False',
      reason: 'ControlPlaneCreated',
      message: '',
    });
    const withHosts = { ...order, nodeSets: [{ resourceClass: 'fc430', hosts: 3 }] };
    expect(seen(healthy({ order: withHosts })).conditions.InfrastructureReady.status).to.equal('True');
    // An operator that is short of hosts stays with that, whatever is there.
    const short = seen(healthy({ order }));
    expect(short.conditions.InfrastructureReady).to.deep.equal({
      status: 'False',
      reason: 'WaitingForHosts',
      message: 'waiting for hosts (0 of 2 g5, 0 of 3 fc430)',
    });
    expect(short.verdict.kind).to.equal('progressing');
    const template = (order: ClusterObservation['order']): string =>
      seen(healthy({ order })).conditions.TemplateApplied.reason;
    expect(template(observedOrder({ jobs: [job({ state: 'Failed' })] }))).to.equal('JobFailed');
    expect(template(observedOrder({ spec: { ...spec, releaseImage: 'r/o:1' } }))).to.equal('SpecNotStored');
    expect(template(observedOrder({ desiredConfigVersion: '0' }))).to.equal('SpecNotSeen');
    expect(template(observedOrder({ jobs: [job({ state: 'Waiting' })] }))).to.equal('Applying');
  });
  it('gives nodes of a class to its sets in the order of their names', () => {
    const host = { id: 'fc430', name: 'fc430' };
    const nodeSets = { b: { hostType: host, size: 2 }, a: { hostType: host, size: 2 } };
    const shared = seen(healthy({ hostedCluster: hosted({}, { fc430: 3 }) }), { nodeSets });
    expect(shared.ready).to.deep.equal({ a: 2, b: 1 });
    const leaving = seen(healthy({ hostedCluster: hosted({}, { fc430: 7 }) }), { nodeSets });
    expect(leaving.ready, 'what is left over is there').to.deep.equal({ a: 2, b: 5 });
    expect(leaving.conditions.NodesReady).to.deep.equal({
      status: 'False',
      reason: 'NodesNotReady',
      message: 'ready nodes: a 2 of 2, b 5 of 2',
    });
    expect(leaving.verdict.kind).to.equal('progressing');
    const was = { nodeSets, wasAvailable: true, wasReady: true };
    const more = healthy({ hostedCluster: hosted({}, { fc430: 7 }) });
    expect(seen(more, was).verdict.kind, 'more than ordered').to.equal('ready');
  });
  it('builds addresses only from what is there', () => {
    const { controlPlane } = seen(healthy());
    expect(controlPlane).to.deep.equal({
      apiUrl: 'https://api.example:6443',
      consoleUrl: `https://console-openshift-console.apps.${hosted()?.name}.example.test`,
      apiEndpoint: '10.0.0.5',
      ingressEndpoint: '10.0.0.6',
    });
    const { apiEndpoint: _api, ingressEndpoint: _ingress, ...bareOrder } = observedOrder();
    const bare = { name: 'x', conditions: [{ type: 'Available', status: 'True' }] };
    expect(seen({ order: bareOrder, hostedCluster: bare }).controlPlane).to.deep.equal({
      apiUrl: '',
      consoleUrl: '',
      apiEndpoint: '',
      ingressEndpoint: '',
    });
  });
});

describe('clusters: the operator’s config hash', () => {
  it('is the one recorded from a real operator', () =>
    expect(
      configVersion({
        templateID: 'osac.templates.ocp_small',
        templateParameters: '{}',
        nodeRequests: [{ resourceClass: 'fc430', numberOfNodes: 2 }],
        pullSecret: '{}',
        sshPublicKey: 'ssh-ed25519 AAAA bench',
        releaseImage: 'registry.example/ocp/release:4.22.0',
      }),
    ).to.equal('af406f401c63b8e9'));
  it('depends on every field, and not on empty ones', () => {
    const base = { templateID: 't', templateParameters: '{}', nodeRequests: [] };
    const versions = [
      configVersion(base),
      configVersion({ ...base, sshPublicKey: '<a&b>' }),
      configVersion({ ...base, network: { podCIDR: '10.0.0.0/8' } }),
      configVersion({ ...base, network: { serviceCIDR: '10.0.0.0/8' } }),
    ];
    expect(new Set(versions).size).to.equal(versions.length);
    expect(configVersion({ ...base, network: {}, pullSecret: '' })).to.equal(versions[0]);
  });
});
