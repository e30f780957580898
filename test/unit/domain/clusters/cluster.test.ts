import { expect } from 'chai';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import {
  becameReady,
  deletionRequested,
  dispatched,
  ID,
  onHub,
  order,
  orderCommand,
  ordered,
  selected,
  time,
  absence,
  failed,
  change,
} from './samples.ts';

const { given } = specify(clusterDecider);
const at = time(30);
const abandoned: ClusterEvent = { type: 'CreationAbandoned', data: { at: time(0), commandId: 'c' } };

describe('clusters: ordering', () => {
  it('accepts an order with its resolved facts', () => given().when(orderCommand).thenEvents(order));
  it('takes finalizers and status of a private caller with the order', () => {
    const status = {
      state: 'CLUSTER_STATE_PROGRESSING',
      conditions: [{ type: 'CLUSTER_CONDITION_TYPE_READY' }],
    };
    const told = { ...orderCommand, finalizers: ['z', 'a', 'z'], status } as ClusterCommand;
    given()
      .when(told)
      .thenEvents(
        order,
        { type: 'ClusterStatusReported', data: { at: order.data.at, status } },
        { type: 'ClusterFinalizersChanged', data: { at: order.data.at, finalizers: ['a', 'z'] } },
      );
    const twice = { conditions: [...status.conditions, ...status.conditions] };
    given()
      .when({ ...told, status: twice } as ClusterCommand)
      .thenRejected('DUPLICATE_CONDITION');
  });
  it('refuses an id that is taken', () =>
    given(order)
      .when(orderCommand)
      .thenRejected('ALREADY_EXISTS', {
        message: `cluster with identifier '${ID}' already exists`,
      }));
  it('keeps the id of a deleted cluster taken', () =>
    given(order, deletionRequested, absence)
      .when(orderCommand)
      .thenRejected('ALREADY_EXISTS', {
        message: `identifier '${ID}' was used by a cluster that is gone: choose another 'id' or leave it out`,
        field: 'id',
      }));
  it('tells other tenants nothing of a deleted cluster but that its id is taken', () => {
    const foreign = { ...orderCommand, tenant: 'stranger' } as ClusterCommand;
    const gone = given(order, deletionRequested, absence).when(foreign).decision;
    expect(gone).to.deep.equal(given(order).when(foreign).decision);
  });
  it('is refused in the tenant of the service itself', () =>
    given()
      .when({ ...orderCommand, tenant: 'system' } as ClusterCommand)
      .thenRejected('TENANT_REQUIRED', { field: 'metadata.tenant' }));
  it('checks name, labels, sizes and texts', () => {
    given()
      .when({ ...orderCommand, name: 'Bad_Name' } as ClusterCommand)
      .thenRejected('VALIDATION_FAILED');
    given()
      .when({ ...orderCommand, labels: { 'Bad Key': 'v' } } as ClusterCommand)
      .thenRejected('INVALID_KEY');
    given()
      .when({ ...orderCommand, annotations: { 'Bad Key': 'v' } } as ClusterCommand)
      .thenRejected('INVALID_KEY');
    given()
      .when({ ...orderCommand, displayName: 'x'.repeat(64) } as ClusterCommand)
      .thenRejected('VALIDATION_FAILED');
    given()
      .when({ ...orderCommand, sshPublicKey: 'x'.repeat(16_385) } as ClusterCommand)
      .thenRejected('INVALID_SSH_KEY');
    const zero = { workers: { hostType: { id: 'fc430', name: 'fc430' }, size: 0 } };
    given()
      .when({ ...orderCommand, nodeSets: zero } as ClusterCommand)
      .thenRejected('INVALID_SIZE', {
        message: "size for node set 'workers' should be greater than zero, but it is 0",
      });
  });
  it('refuses an order that reserved its name before it was abandoned', () =>
    given(abandoned).when(orderCommand).thenRejected('CREATION_ABANDONED'));
  it('accepts an order that reserved its name after that', () =>
    given(abandoned)
      .when({ ...orderCommand, abandonedBefore: 1 } as ClusterCommand)
      .thenEvents(order));
  it('can be abandoned only while nothing was ordered', () => {
    const abandon: ClusterCommand = { type: 'AbandonCreation', at: time(0), commandId: 'c' };
    given().when(abandon).thenEvents(abandoned);
    given(order).when(abandon).thenRejected('ALREADY_CREATED');
    expect(given(abandoned, abandoned).state()).to.deep.equal({ status: 'abandoned', times: 2 });
  });
});

describe('clusters: changes', () => {
  it('records labels, annotations and texts that differ', () => {
    given(order)
      .when(change({ labels: { a: 'b' }, annotations: { note: 'x' }, displayName: 'My cluster' }))
      .thenEvents(
        { type: 'ClusterLabelled', data: { at, labels: { a: 'b' } } },
        { type: 'ClusterAnnotated', data: { at, annotations: { note: 'x' } } },
        { type: 'ClusterDescribed', data: { at, displayName: 'My cluster', description: '' } },
      );
    given(order)
      .when(change({ labels: { env: 'dev' }, displayName: '', annotations: {} }))
      .thenNothing();
    given(order)
      .when(change({ description: 'd'.repeat(257) }))
      .thenRejected('VALIDATION_FAILED');
    given(order)
      .when(change({ annotations: { '/x': '' } }))
      .thenRejected('INVALID_KEY');
  });
  it('changes what of the spec may change, and only that', () => {
    const version = { id: 'v2', name: '4-22', version: '4.22.0', releaseImage: 'r/r:4.22.0' };
    given(order)
      .when(change({ version, sshPublicKey: '', pullSecret: null, network: { podCidr: '10.0.0.0/14' } }))
      .thenEvents({
        type: 'ClusterSpecRevised',
        data: {
          at,
          spec: { network: { podCidr: '10.0.0.0/14' }, version },
          changed: ['network', 'pullSecret', 'sshPublicKey', 'version'],
        },
      });
    const { sshPublicKey, pullSecret } = ordered;
    given(order)
      .when(change({ version }))
      .thenEvents({
        type: 'ClusterSpecRevised',
        data: {
          at,
          spec: {
            ...(sshPublicKey === undefined ? {} : { sshPublicKey }),
            ...(pullSecret === undefined ? {} : { pullSecret }),
            version,
          },
          changed: ['version'],
        },
      });
    given(order)
      .when(change({ sshPublicKey: 'x'.repeat(16_385) }))
      .thenRejected('INVALID_SSH_KEY');
    given(order)
      .when(change({ sshPublicKey: 'ssh-ed25519 AAAA', network: {} }))
      .thenNothing();
  });
  it('refuses spec changes in a state that does not allow them, but not labels', () => {
    given(...onHub, failed(false))
      .when(change({ sshPublicKey: 'x' }))
      .thenRejected('SPEC_LOCKED', {
        message: 'cannot update cluster spec when cluster state is CLUSTER_STATE_FAILED',
      });
    given(...onHub, failed(false))
      .when(change({ labels: {} }))
      .thenEvents({ type: 'ClusterLabelled', data: { at, labels: {} } });
    given(...onHub, deletionRequested)
      .when(change({ sshPublicKey: 'x' }))
      .thenRejected('SPEC_LOCKED');
    const reported: ClusterEvent = {
      type: 'ClusterStatusReported',
      data: { at: time(5), status: { state: 'CLUSTER_STATE_FAILED' } },
    };
    given(order, reported)
      .when(change({ sshPublicKey: 'x' }))
      .thenRejected('SPEC_LOCKED');
  });
  it('shows a written status until the next observation, and each condition type once', () => {
    const status = { state: 'CLUSTER_STATE_READY' };
    given(order).when(change({ status })).thenEvents({ type: 'ClusterStatusReported', data: { at, status } });
    given(order, { type: 'ClusterStatusReported', data: { at, status } })
      .when(change({ status }))
      .thenNothing();
    const twice = [{ type: 'A' }, { type: 'A' }];
    given(order)
      .when(change({ status: { conditions: twice } }))
      .thenRejected('DUPLICATE_CONDITION');
    given(order)
      .when(change({ status: { conditions: [{ type: 'A' }, null] } }))
      .thenEvents({
        type: 'ClusterStatusReported',
        data: { at, status: { conditions: [{ type: 'A' }, null] } },
      });
  });
  it('is refused for clusters that are not there', () => {
    given()
      .when(change({ labels: {} }))
      .thenRejected('NOT_FOUND', { message: 'object not found' });
    given(order, deletionRequested, absence)
      .when(change({ labels: {} }))
      .thenRejected('NOT_FOUND', { message: `object with identifier '${ID}' not found` });
  });
});

describe('clusters: evolve', () => {
  it('lets unknown and misplaced events pass unchanged', () => {
    const unknown = { type: 'SomethingNew', data: { at } } as unknown as ClusterEvent;
    for (const history of [[], [order], onHub, [order, deletionRequested, absence]]) {
      const state = given(...history).state();
      expect(clusterDecider.evolve(state, unknown)).to.equal(state);
    }
    const accepted = given(order).state();
    expect(clusterDecider.evolve(accepted, becameReady)).to.equal(accepted);
    expect(clusterDecider.evolve(accepted, dispatched)).to.equal(accepted);
    expect(clusterDecider.evolve(accepted, abandoned)).to.equal(accepted);
    expect(clusterDecider.evolve(accepted, order)).to.equal(accepted);
    const onHubState = given(...onHub).state();
    expect(clusterDecider.evolve(onHubState, selected)).to.equal(onHubState);
    const unknownSet: ClusterEvent = { type: 'NodeSetResized', data: { at, name: 'x', from: 1, to: 2 } };
    expect(clusterDecider.evolve(accepted, unknownSet)).to.equal(accepted);
  });
  it('keeps how and when a cluster ended', () => {
    const state = given(...onHub, absence).state();
    expect(state).to.deep.include({ status: 'deleted', how: 'absence-confirmed', deletionRequestedAt: at });
    expect(given(...onHub).state()).to.deep.include({ finalizers: ['fulfillment-controller'], ours: true });
    expect(ordered.nodeSets).to.have.keys('workers', 'gpu');
  });
});
