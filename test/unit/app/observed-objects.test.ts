import { CLUSTER_ORDER, HOSTED_CLUSTER } from '../../../src/domain/clusters/hub-objects.ts';
import { expect } from 'chai';
import fc from 'fast-check';
import type { JsonValue } from '../../../src/domain/json.ts';
import { check } from '../../support/property.ts';

/** A HostedCluster, with the NodePools beside it. */
const shownHosted = (object: JsonValue, nodePools?: readonly JsonValue[]) =>
  HOSTED_CLUSTER.shown(object, nodePools === undefined ? {} : { nodePools });

/** Objects with the fields that are read, and anything in them. */
const anything = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<JsonValue>;
const order = fc.record(
  {
    metadata: fc.oneof(
      anything,
      fc.record({
        name: anything,
        labels: fc.dictionary(fc.constantFrom('__proto__', 'constructor', 'a'), anything),
        annotations: fc.dictionary(fc.constantFrom('__proto__', 'toString', 'a'), anything),
        finalizers: anything,
        generation: anything,
      }),
    ),
    spec: fc.oneof(
      anything,
      fc.record({ nodeRequests: fc.array(anything), network: anything, templateID: anything }),
    ),
    status: fc.oneof(
      anything,
      fc.record({
        phase: anything,
        conditions: fc.array(fc.oneof(anything, fc.record({ type: anything, status: anything }))),
        provisioningJobs: fc.array(fc.oneof(anything, fc.record({ type: anything, state: anything }))),
        clusterReference: anything,
      }),
    ),
  },
  { requiredKeys: [] },
);

describe('objects of a hub', () => {
  it('tell why something failed without the secrets that API servers repeat', () => {
    const secret = JSON.stringify('{"auths":{"quay.io":{"auth":"Y2FuYXJ5"}}}');
    const message = `HostedCluster is invalid: spec.pullSecret: Invalid value: ${secret}: too short`;
    const long = `spec.templateParameters: Invalid value: ${'x'.repeat(5_000)}`;
    const read = CLUSTER_ORDER.shown({
      status: {
        conditions: [{ type: 'TemplateApplied', status: 'False', reason: 'Invalid', message }],
        provisioningJobs: [{ type: 'provision', state: 'Failed', jobID: '1', message: long }],
      },
    });
    expect(read.conditions[0]?.message).to.equal(
      'HostedCluster is invalid: spec.pullSecret: Invalid value: ***: too short',
    );
    expect(read.jobs[0]?.message).to.equal('spec.templateParameters: Invalid value: ***');
    const torn = CLUSTER_ORDER.shown({
      status: {
        conditions: [{ type: 'A', message: 'spec.pullSecret: Invalid value: "{ Y2FuYXJ5 and more' }],
      },
    });
    expect(torn.conditions[0]?.message).to.equal('spec.pullSecret: Invalid value: ***');
    const hosted = shownHosted(
      { status: { conditions: [{ type: 'Available', status: 'False', message }] } },
      [],
    );
    expect(hosted.conditions[0]?.message).not.to.contain('Y2FuYXJ5');
  });

  it('tell what a job printed without the credentials in it', () => {
    const message = 'failed: login with password=hunter2 and Authorization: Bearer abc.def refused';
    const read = CLUSTER_ORDER.shown({
      status: { provisioningJobs: [{ type: 'provision', state: 'Failed', jobID: '1', message }] },
    });
    expect(read.jobs[0]?.message)
      .to.match(/^failed: login with password=\*\*\* /)
      .and.not.match(/hunter2|abc\.def/);
  });

  it('whatever they hold is read without a fault, and as JSON', () => {
    check(
      fc.property(order, (object) => {
        const read = CLUSTER_ORDER.shown(object as JsonValue);
        expect(JSON.parse(JSON.stringify(read))).to.deep.equal(read);
        expect(read.conditions.every(({ status }) => /^(True|False|Unknown)$/.test(status))).to.equal(true);
        shownHosted(object as JsonValue, [object as JsonValue]);
      }),
    );
  });
  it('hosts that an operator took are counted by class, and absent while it took none', () => {
    const agents = [{ agentName: 'a' }, { agentName: 'b' }];
    const read = CLUSTER_ORDER.shown({ status: { nodeSets: [{ name: 'h100', agents }, { agents }, 7] } });
    expect(read.nodeSets).to.deep.equal([{ resourceClass: 'h100', hosts: 2 }]);
    expect(CLUSTER_ORDER.shown({ status: { nodeSets: [] } })).to.not.have.property('nodeSets');
  });
  it('numbers are what JSON says they are', () => {
    const read = CLUSTER_ORDER.shown(JSON.parse('{"metadata":{"generation":-0}}') as JsonValue);
    expect(Object.is(read.generation, 0)).to.equal(true);
  });
  it('too much of anything is cut, the newest kept', () => {
    const jobs = Array.from({ length: 500 }, (_, i) => ({
      jobID: String(i),
      type: 'provision',
      state: 'Failed',
    }));
    const long = 'x'.repeat(100_000);
    const read = CLUSTER_ORDER.shown({
      spec: { sshPublicKey: long },
      status: {
        provisioningJobs: jobs,
        conditions: [{ type: 'Progressing', status: 'False', message: long }],
      },
    });
    expect(read.jobs).to.have.length(50);
    expect(read.jobs.at(-1)?.jobId).to.equal('499');
    expect(read.conditions[0]?.message?.length).to.be.at.most(2_000);
    expect(read.spec.sshPublicKey, 'it is compared as a whole').to.equal(long);
  });
  it('an address that is none makes no URL', () => {
    const at = (host: JsonValue, port: JsonValue) =>
      shownHosted({ status: { controlPlaneEndpoint: { host, port } } }).controlPlaneEndpoint;
    expect(at('api.example', 6443)).to.deep.equal({ host: 'api.example', port: 6443 });
    expect(at('fd00::1', 6443)).to.deep.equal({ host: 'fd00::1', port: 6443 });
    for (const host of ['evil.example/login@', 'a b', 'x?y', '', 7, null]) {
      expect(at(host, 6443), String(host)).to.equal(undefined);
    }
    for (const port of [0, -1, 70_000, 1.5, '6443']) expect(at('api.example', port)).to.equal(undefined);
  });
  it('reads jobs and phases of a later operator as unknown', () => {
    const read = CLUSTER_ORDER.shown({
      status: {
        phase: 'Hibernating',
        provisioningJobs: [
          { jobID: '1', type: 'provision', state: 'Paused' },
          { jobID: '2', type: 'audit', state: 'Failed' },
        ],
      },
    });
    expect(read.phase).to.equal(undefined);
    expect(read.jobs.map(({ jobId, state }) => [jobId, state])).to.deep.equal([['1', 'Unknown']]);
  });
  it('counts of a NodePool are its replicas', () => {
    const pool = {
      metadata: { labels: { 'osac.openshift.io/resource_class': 'fc430' } },
      spec: { replicas: 3 },
      status: { replicas: 2 },
    };
    expect(shownHosted({}, [pool, {}]).nodePools).to.deep.equal([
      { resourceClass: 'fc430', desired: 3, ready: 2 },
      { resourceClass: '', desired: 0, ready: 0 },
    ]);
  });
});
