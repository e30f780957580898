import { expect } from 'chai';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { publicDocument } from '../../../../src/domain/resource.ts';
import {
  assessment,
  deletionRequested,
  HUB,
  ID,
  noRoom,
  onHub,
  order,
  ordered,
  readyHistory,
  time,
} from './samples.ts';

const fold = (...events: ClusterEvent[]) =>
  events.reduce(clusterDecider.evolve, clusterDecider.initialState());
const view = (...events: ClusterEvent[]) => {
  const shown = cluster.view(fold(...events));
  if (!shown.exists) throw new Error('nothing is shown');
  return shown;
};
const status = (...events: ClusterEvent[]): JsonObject => view(...events).document['status'] as JsonObject;
const condition = (of: JsonObject, type: string): JsonObject | undefined =>
  (of['conditions'] as JsonObject[]).find((each) => each['type'] === `CLUSTER_CONDITION_TYPE_${type}`);
const observed = (history: ClusterEvent[], seen = assessment()): ClusterEvent[] => {
  const events = clusterDecider.decide(fold(...history), {
    type: 'RecordObservation',
    at: time(10),
    assessment: seen,
  });
  return [...history, ...(events as ClusterEvent[])];
};
const AT = time(30);

describe('clusters: what is shown', () => {
  it('shows a new order as OSAC does, but for its state, with secrets as stars', () => {
    expect(view(order).document).to.deep.equal({
      id: ID,
      metadata: {
        creation_timestamp: time(0),
        creator: 'user-1',
        tenant: 't1',
        name: 'my-cluster',
        labels: { env: 'dev' },
      },
      spec: {
        template: { id: 'osac.templates.small', name: 'small' },
        template_parameters: ordered.templateParameters,
        node_sets: {
          workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 3, fabric_interface: 'nic1' },
          gpu: { host_type: { id: 'g5', name: 'g5' }, size: 2 },
        },
        pull_secret: '***',
        ssh_public_key: 'ssh-ed25519 AAAA',
        version: { id: 'v1', name: '4-20-3-abcd' },
      },
      status: { state: 'CLUSTER_STATE_PROGRESSING' },
    });
  });
  it('leaves out what is not there', () => {
    const { pullSecret: _secret, sshPublicKey: _key, ...plain } = ordered;
    const network = { podCidr: '10.0.0.0/14' };
    const bare: ClusterEvent = { type: 'ClusterOrdered', data: { ...plain, network, displayName: 'Mine' } };
    const resized: ClusterEvent = {
      type: 'NodeSetResized',
      data: { at: AT, name: 'workers', from: 3, to: 0 },
    };
    const { spec, metadata } = view(bare, resized).document as { spec: JsonObject; metadata: JsonObject };
    expect(spec).to.not.have.any.keys('pull_secret', 'ssh_public_key');
    expect(spec['network']).to.deep.equal({ pod_cidr: '10.0.0.0/14' });
    expect((spec['node_sets'] as JsonObject)['workers']).to.not.have.property('size');
    expect(metadata['display_name']).to.equal('Mine');
  });
  it('says why an order waits, without naming hubs', () => {
    const deferred: ClusterEvent = {
      type: 'PlacementDeferred',
      data: { at: AT, message: 'waiting for 3 × fc430', decision: noRoom },
    };
    const shown = status(order, deferred);
    expect(shown['state']).to.equal('CLUSTER_STATE_PROGRESSING');
    expect(condition(shown, 'PROGRESSING')).to.deep.include({
      status: 'CONDITION_STATUS_FALSE',
      reason: 'WaitingForCapacity',
    });
    expect(JSON.stringify(shown)).to.not.contain(HUB);
  });
  it('shows progress, endpoints and nodes of a ready cluster', () => {
    expect(status(...onHub)).to.deep.include({ state: 'CLUSTER_STATE_PROGRESSING', hub: HUB });
    const shown = status(...observed(onHub));
    expect(shown).to.deep.include({
      state: 'CLUSTER_STATE_READY',
      state_transition_time: time(10),
      api_url: 'https://api.example:6443',
      console_url: 'https://console.example',
      api_endpoint: '10.0.0.5',
      ingress_endpoint: '10.0.0.6',
    });
    expect(shown['node_sets']).to.deep.equal({
      workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 3, fabric_interface: 'nic1' },
      gpu: { host_type: { id: 'g5', name: 'g5' }, size: 2 },
    });
    expect(condition(shown, 'READY')).to.deep.include({
      status: 'CONDITION_STATUS_TRUE',
      last_transition_time: time(10),
    });
    expect(condition(shown, 'PROGRESSING')).to.deep.include({ status: 'CONDITION_STATUS_FALSE' });
    expect(condition(shown, 'FAILED')?.['last_transition_time']).to.equal(time(1));
  });
  it('leaves out a node set whose nodes the hub does not show', () => {
    const shown = status(...observed(onHub, assessment({ ready: { workers: 1 } })));
    expect(shown['node_sets']).to.deep.equal({
      workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 1, fabric_interface: 'nic1' },
    });
  });
  it('shows degradation as a condition, the state stays READY', () => {
    const degraded = assessment({ verdict: { kind: 'degraded', reason: 'EtcdSlow', message: 'etcd' } });
    const shown = status(...observed(observed(onHub), degraded));
    expect(shown['state']).to.equal('CLUSTER_STATE_READY');
    expect(condition(shown, 'DEGRADED')).to.deep.include({
      status: 'CONDITION_STATUS_TRUE',
      reason: 'EtcdSlow',
    });
    expect(condition(shown, 'READY')).to.deep.include({
      status: 'CONDITION_STATUS_FALSE',
      reason: 'Degraded',
    });
  });
  it('shows failures, the alarm and deletion', () => {
    const failed: ClusterEvent = {
      type: 'ClusterFailed',
      data: { at: AT, reason: 'ValidationFailed', message: 'no', detail: 'hub-7 said', permanent: true },
    };
    expect(JSON.stringify(view(...onHub, failed).document)).to.not.contain('hub-7');
    expect(condition(status(...onHub, failed), 'FAILED')).to.deep.include({ reason: 'ValidationFailed' });
    expect(status(...onHub, failed)['state']).to.equal('CLUSTER_STATE_FAILED');
    const alarm: ClusterEvent = { type: 'HubNotAccepting', data: { at: AT, hub: HUB, since: time(3) } };
    expect(condition(status(...onHub, alarm), 'PROGRESSING')).to.deep.include({ reason: 'HubNotAccepting' });
    const blocked: ClusterEvent = {
      type: 'ClusterDeletionBlocked',
      data: { at: AT, waitingFor: ['job 7 at https://aap.internal'] },
    };
    const shown = status(...readyHistory, deletionRequested, blocked);
    expect(shown['state']).to.equal('CLUSTER_STATE_DELETING');
    expect(JSON.stringify(shown)).to.contain('waiting for the hub').and.not.contain('aap.internal');
    expect(condition(status(...onHub, deletionRequested), 'PROGRESSING')).to.deep.include({
      reason: 'Deleting',
    });
    const gone = view(...onHub, deletionRequested, {
      type: 'ClusterDeleted',
      data: { at: AT, how: 'absence-confirmed' },
    });
    expect(gone).to.deep.include({ archived: true, deletionTimestamp: time(20), state: '' });
  });
  it('shows a written status as it was written', () => {
    const written = { state: 'CLUSTER_STATE_READY', api_url: 'https://api.example' };
    const shown = view(order, { type: 'ClusterStatusReported', data: { at: AT, status: written } });
    expect(shown.document['status']).to.deep.equal(written);
    expect(shown.state).to.equal('CLUSTER_STATE_READY');
  });
  it('keeps the hub under a written status: what a cluster is built on stays in use', () => {
    const reported = (status: JsonObject): ClusterEvent => ({
      type: 'ClusterStatusReported',
      data: { at: AT, status },
    });
    expect(status(...onHub, reported({ state: 'CLUSTER_STATE_READY' }))).to.deep.equal({
      state: 'CLUSTER_STATE_READY',
      hub: HUB,
    });
    expect(status(...onHub, reported({ hub: 'another' }))).to.deep.equal({ hub: HUB });
    expect(status(order, reported({ hub: 'another' }))).to.deep.equal({});
    expect(cluster.pointsAt(view(...onHub, reported({})).document)).to.deep.include({ kind: 'hub', id: HUB });
  });
  it('hides the hub and the finalizers from tenants', () => {
    const shown = publicDocument(view(...observed(onHub)).document, cluster.privateOnly);
    expect(JSON.stringify(shown)).to.not.contain(HUB).and.not.contain('fulfillment-controller');
    expect(JSON.stringify(shown)).to.not.contain('fabric_interface');
  });
  it('points at everything that must not disappear under it', () => {
    expect(cluster.pointsAt(view(...onHub).document)).to.deep.equal([
      { kind: 'clusterTemplate', id: 'osac.templates.small' },
      { kind: 'clusterVersion', id: 'v1' },
      { kind: 'hub', id: HUB },
      { kind: 'hostType', id: 'fc430' },
      { kind: 'hostType', id: 'g5' },
    ]);
  });
  it('shows nothing of what was never ordered', () =>
    expect(cluster.view(fold())).to.deep.equal({ exists: false }));
});
