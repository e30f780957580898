import { expect } from 'chai';
import { cluster, ghostMark } from '../../../../src/domain/clusters/cluster.resource.ts';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/events.ts';
import { specify } from '../../../support/decider-spec.ts';
import {
  assessment,
  becameReady,
  decision,
  deletionRequested,
  dispatched,
  HUB,
  ID,
  noRoom,
  onHub,
  order,
  orderCommand,
  ordered,
  ORDER_NAME,
  placed,
  readyHistory,
  selectCommand,
  selected,
  time,
} from './samples.ts';

const { given } = specify(clusterDecider);
const at = time(30);
const absence: ClusterEvent = { type: 'ClusterDeleted', data: { at, how: 'absence-confirmed' } };
const failed = (permanent: boolean): ClusterEvent => ({
  type: 'ClusterFailed',
  data: { at: time(5), reason: 'JobFailed', message: 'boom', permanent },
});
const finalizers = (...names: string[]): ClusterEvent => ({
  type: 'ClusterFinalizersChanged',
  data: { at: time(5), finalizers: names },
});
const abandoned: ClusterEvent = { type: 'CreationAbandoned', data: { at: time(0), commandId: 'c' } };
const change = (changes: Extract<ClusterCommand, { type: 'ReviseCluster' }>['changes']): ClusterCommand => ({
  type: 'ReviseCluster',
  at,
  changes,
});

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
        data: { at, spec: { network: { podCidr: '10.0.0.0/14' }, version } },
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

describe('clusters: deletion', () => {
  const notDispatched: ClusterEvent = { type: 'ClusterDeleted', data: { at, how: 'not-dispatched' } };
  const requested: ClusterEvent = { type: 'ClusterDeletionRequested', data: { at } };
  const remove: ClusterCommand = { type: 'DeleteCluster', at };
  const confirm: ClusterCommand = { type: 'ConfirmAbsence', at };

  it('ends in the same append before dispatch has started', () => {
    given(order).when(remove).thenEvents(requested, notDispatched);
    given(order, selected).when(remove).thenEvents(requested, notDispatched);
  });
  it('only begins after that', () =>
    given(...onHub)
      .when(remove)
      .thenEvents(requested));
  it('changes nothing when repeated', () =>
    given(...onHub, deletionRequested)
      .when(remove)
      .thenNothing());
  it('waits for foreign finalizers, and ends with the last of them', () => {
    given(order, finalizers('bench')).when(remove).thenEvents(requested);
    given(order, finalizers('bench'), deletionRequested)
      .when(change({ finalizers: [] }))
      .thenEvents({ type: 'ClusterFinalizersChanged', data: { at, finalizers: [] } }, notDispatched);
    given(order, finalizers('bench'))
      .when(change({ finalizers: ['bench', 'a', 'a'] }))
      .thenEvents({ type: 'ClusterFinalizersChanged', data: { at, finalizers: ['a', 'bench'] } });
  });
  it('keeps our finalizer from the start of dispatch until absence was observed', () => {
    given(...onHub)
      .when(change({ finalizers: [] }))
      .thenNothing();
    given(...onHub, deletionRequested)
      .when(confirm)
      .thenEvents(absence);
    given(...onHub, finalizers('bench', 'fulfillment-controller'), deletionRequested)
      .when(confirm)
      .thenEvents({ type: 'ClusterFinalizersChanged', data: { at, finalizers: ['bench'] } });
    given(...onHub, deletionRequested, finalizers('bench'))
      .when(confirm)
      .thenNothing();
    given(...onHub, finalizers('bench', 'fulfillment-controller'), deletionRequested, finalizers('bench'))
      .when(change({ finalizers: [] }))
      .thenEvents({ type: 'ClusterFinalizersChanged', data: { at, finalizers: [] } }, absence);
    given(...onHub)
      .when(confirm)
      .thenRejected('NOT_DELETING');
  });
  it('tells what the hub still has to do, when it changes', () => {
    const block: ClusterCommand = { type: 'BlockDeletion', at, waitingFor: ['job 7 Running'] };
    const blocked: ClusterEvent = {
      type: 'ClusterDeletionBlocked',
      data: { at, waitingFor: ['job 7 Running'] },
    };
    given(...onHub, deletionRequested)
      .when(block)
      .thenEvents(blocked);
    given(...onHub, deletionRequested, blocked)
      .when(block)
      .thenNothing();
    given(...onHub)
      .when(block)
      .thenNothing();
  });
  it('can be asked for as a cancellation only before dispatch', () => {
    given(order).when({ type: 'CancelOrder', at }).thenEvents(requested, notDispatched);
    given(...onHub)
      .when({ type: 'CancelOrder', at })
      .thenRejected('ALREADY_DISPATCHED');
    given(order, deletionRequested).when({ type: 'CancelOrder', at }).thenNothing();
  });
  it('is refused for clusters that are not there', () => {
    for (const type of ['DeleteCluster', 'CancelOrder', 'RetryCluster'] as const) {
      given().when({ type, at }).thenRejected('NOT_FOUND');
      given(order, deletionRequested, notDispatched).when({ type, at }).thenRejected('NOT_FOUND');
    }
  });
  it('stops the showing of credentials', () => {
    const reveal: ClusterCommand = { type: 'RevealCredentials', at, what: 'kubeconfig' };
    given(...onHub)
      .when(reveal)
      .thenEvents({ type: 'ClusterCredentialsRevealed', data: { at, what: 'kubeconfig' } });
    given().when(reveal).thenRejected('NOT_FOUND');
  });
});

describe('clusters: placement and dispatch', () => {
  const start: ClusterCommand = { type: 'StartDispatch', at };
  const started: ClusterEvent = {
    type: 'ClusterDispatchStarted',
    data: { at, hub: HUB, orderName: ORDER_NAME },
  };
  const deferred: ClusterEvent = {
    type: 'PlacementDeferred',
    data: { at: time(1), message: 'no room', decision: noRoom },
  };

  it('selects a hub once, and another one only before dispatch', () => {
    given(order).when(selectCommand).thenEvents(selected);
    given(order, selected).when(selectCommand).thenNothing();
    const other = { ...selectCommand, hub: 'sim-west-1' } as ClusterCommand;
    expect(given(order, selected).when(other).decision).to.have.lengthOf(1);
    given(...onHub)
      .when(selectCommand)
      .thenNothing();
    given(...onHub)
      .when(other)
      .thenRejected('ALREADY_DISPATCHED');
    given(order, finalizers('x'), deletionRequested).when(selectCommand).thenRejected('DELETION_REQUESTED');
  });
  it('starts dispatch once, on a selected hub, and never for a cluster that is being deleted', () => {
    given(order, selected).when(start).thenEvents(started);
    given(...onHub)
      .when(start)
      .thenNothing();
    given(order).when(start).thenRejected('NOT_PLACED');
    given(order, selected, finalizers('x'), deletionRequested).when(start).thenRejected('DELETION_REQUESTED');
    given().when(start).thenRejected('NOT_FOUND');
  });
  it('records why an order waits when the reasons change, not when only scores do', () => {
    const defer: ClusterCommand = { type: 'DeferPlacement', at, message: 'no room', decision: noRoom };
    given(order)
      .when(defer)
      .thenEvents({ type: 'PlacementDeferred', data: { at, message: 'no room', decision: noRoom } });
    given(order, deferred)
      .when({ ...defer, decision: { ...noRoom, weightsVersion: 2 } })
      .thenNothing();
    expect(given(order, deferred).when({ ...defer, decision }).decision).to.have.lengthOf(1);
    given(order, finalizers('x'), deletionRequested).when(defer).thenNothing();
  });
  it('records the placed order and the synced spec once', () => {
    given(order, selected, dispatched)
      .when({ type: 'RecordPlaced', at, uid: 'uid-1' })
      .thenEvents({
        type: 'ClusterOrderPlaced',
        data: { at, hub: HUB, orderName: ORDER_NAME, uid: 'uid-1' },
      });
    given(...onHub)
      .when({ type: 'RecordPlaced', at, uid: 'uid-1' })
      .thenNothing();
    const resized: ClusterEvent = {
      type: 'NodeSetResized',
      data: { at: time(8), name: 'workers', from: 3, to: 4 },
    };
    const synced: ClusterEvent = { type: 'ClusterSpecSynced', data: { at, hub: HUB, orderName: ORDER_NAME } };
    given(...onHub, resized)
      .when({ type: 'RecordSpecSynced', at })
      .thenEvents(synced);
    given(...onHub, resized, synced)
      .when({ type: 'RecordSpecSynced', at })
      .thenNothing();
    given(order, selected).when({ type: 'RecordSpecSynced', at }).thenRejected('NOT_DISPATCHED');
  });
});

describe('clusters: observations', () => {
  const record = (seen = assessment()): ClusterCommand => ({
    type: 'RecordObservation',
    at,
    assessment: seen,
  });
  const verdict = (history: ClusterEvent[], seen = assessment()): string[] => {
    const decided = given(...history).when(record(seen)).decision;
    return (decided as ClusterEvent[])
      .map(({ type }) => type)
      .filter((type) => !['ClusterConditionsObserved', 'NodesObserved'].includes(type));
  };
  /** The state after an observation was recorded. */
  const after = (history: ClusterEvent[], seen = assessment()): ClusterEvent[] => [
    ...history,
    ...(given(...history).when(record(seen)).decision as ClusterEvent[]),
  ];

  it('records conditions, endpoints, nodes and readiness', () => {
    const events = given(...onHub).when(record()).decision as ClusterEvent[];
    expect(events.map(({ type }) => type)).to.deep.equal([
      'ClusterConditionsObserved',
      'ControlPlaneBecameAvailable',
      'NodesObserved',
      'ClusterBecameReady',
    ]);
  });
  it('records nothing of what is known', () =>
    given(...after(onHub))
      .when(record())
      .thenNothing());
  it('keeps the time since when a condition holds while its status stays', () => {
    const seen = assessment();
    const { NodesReady } = seen.conditions;
    const reworded = { ...seen.conditions, NodesReady: { ...NodesReady, message: 'all there' } };
    const [event] = given(...after(onHub)).when({
      ...record({ ...seen, conditions: reworded }),
      at: time(40),
    } as ClusterCommand).decision as ClusterEvent[];
    expect(event?.data).to.deep.equal({
      at: time(40),
      conditions: { NodesReady: { ...NodesReady, message: 'all there', since: at } },
    });
  });
  it('shows degradation and recovery', () => {
    const degraded = assessment({ verdict: { kind: 'degraded', reason: 'Etcd', message: 'slow' } });
    expect(verdict(after(readyHistory), degraded)).to.deep.equal(['ClusterDegraded']);
    const history = after(after(readyHistory), degraded);
    expect(verdict(history, degraded)).to.deep.equal([]);
    expect(verdict(history)).to.deep.equal(['ClusterRecovered']);
  });
  it('shows failure, which clears when the hub goes on', () => {
    const broken = assessment({ verdict: { kind: 'failed', reason: 'JobFailed', message: 'boom' } });
    const working = assessment({ verdict: { kind: 'progressing' } });
    expect(verdict(onHub, broken)).to.include('ClusterFailed');
    const history = after(onHub, broken);
    expect(verdict(history, broken)).to.deep.equal([]);
    expect(verdict(history, working)).to.deep.equal(['ClusterFailureCleared']);
    expect(verdict(history)).to.deep.equal(['ClusterFailureCleared', 'ClusterBecameReady']);
  });
  it('does not clear what needs a decision of somebody', () => {
    const working = assessment({ verdict: { kind: 'progressing' } });
    const broken = assessment({ verdict: { kind: 'failed', reason: 'JobFailed', message: 'boom' } });
    const history = after([...onHub, failed(true)], working);
    expect(verdict(history, working)).to.deep.equal([]);
    expect(verdict(history, broken)).to.deep.equal([]);
  });
  it('shows work on a ready cluster', () => {
    const working = assessment({ verdict: { kind: 'progressing' } });
    expect(verdict(after(readyHistory), working)).to.deep.equal(['ClusterReconfiguring']);
  });
  it('leaves verdicts of other reports alone', () => {
    expect(verdict(onHub, assessment({ verdict: { kind: 'not-accepted' } }))).to.deep.equal([
      'ControlPlaneBecameAvailable',
    ]);
  });
  it('records nothing while the cluster is torn down or missing', () => {
    given(...onHub, deletionRequested)
      .when(record())
      .thenNothing();
    given(...onHub)
      .when({ type: 'RecordObservation', at, assessment: { found: false } })
      .thenNothing();
  });
  it('wins over a written status, even when nothing else changed', () => {
    const written: ClusterEvent = {
      type: 'ClusterStatusReported',
      data: { at: time(12), status: { state: 'X' } },
    };
    const history = [...after(onHub), written];
    const events = given(...history).when(record()).decision as ClusterEvent[];
    expect(events.map(({ type }) => type)).to.deep.equal(['ClusterConditionsObserved']);
    expect(given(...history, ...events).state()).to.not.have.property('reported');
  });
  it('keeps what was observed last when the cluster is gone', () => {
    const seen = after(onHub);
    const { conditions, hub } = given(...seen).state() as { conditions?: object; hub?: object };
    expect(conditions).to.have.property('ClusterAvailable');
    const gone = given(...seen, deletionRequested, absence).state();
    expect(gone).to.deep.include({ status: 'deleted', conditions, hub });
  });
  it('ends the alarm that the hub does not accept', () => {
    const alarm: ClusterEvent = { type: 'HubNotAccepting', data: { at: time(12), hub: HUB, since: time(3) } };
    const report: ClusterCommand = { type: 'ReportNotAccepting', at: time(12), since: time(3) };
    given(...onHub)
      .when(report)
      .thenEvents(alarm);
    given(...onHub, alarm)
      .when(report)
      .thenNothing();
    const history = after([...after(onHub), alarm]);
    expect(given(...history).state()).to.not.have.property('notAccepting');
  });
});

describe('clusters: failure, loss and retry', () => {
  const retry: ClusterCommand = { type: 'RetryCluster', at };
  const fail: ClusterCommand = { type: 'RecordFailure', at, reason: 'R', message: 'm', permanent: true };
  const lost: ClusterCommand = { type: 'ReportLost', at, what: 'hosted-cluster' };
  const gone: ClusterEvent = { type: 'ClusterLostOnHub', data: { at, what: 'hosted-cluster' } };

  it('records a failure once, at any stage before deletion', () => {
    const event: ClusterEvent = {
      type: 'ClusterFailed',
      data: { at, reason: 'R', message: 'm', permanent: true },
    };
    given(order).when(fail).thenEvents(event);
    given(order, event).when(fail).thenNothing();
    given(order, finalizers('x'), deletionRequested).when(fail).thenNothing();
  });
  it('lets an operator retry a failed order only', () => {
    given(...onHub, failed(true))
      .when(retry)
      .thenEvents({ type: 'ClusterRetryRequested', data: { at } });
    given(...onHub)
      .when(retry)
      .thenRejected('NOT_FAILED');
    given(...onHub, failed(true), deletionRequested)
      .when(retry)
      .thenRejected('DELETION_REQUESTED');
    expect(
      given(...onHub, gone, { type: 'ClusterRetryRequested', data: { at } }).state(),
    ).to.not.have.any.keys('failure', 'lost');
  });
  it('records a loss once, and forgets it when the order is placed again', () => {
    given(...onHub)
      .when(lost)
      .thenEvents(gone);
    given(...onHub, gone)
      .when(lost)
      .thenNothing();
    given(...onHub, deletionRequested)
      .when(lost)
      .thenNothing();
    expect(given(...onHub, gone).when({ type: 'RecordPlaced', at, uid: 'uid-1' }).decision).to.have.lengthOf(
      1,
    );
    expect(given(...onHub, gone, placed).state()).to.not.have.property('lost');
    const order: ClusterEvent = { type: 'ClusterLostOnHub', data: { at, what: 'cluster-order' } };
    expect(given(...readyHistory, order).state()).to.deep.include({
      ready: false,
      failure: {
        reason: 'ClusterOrderLost',
        message: 'the cluster order vanished from its hub; retry to build it again, or delete it',
        permanent: false,
      },
    });
    const marks = (...history: ClusterEvent[]): readonly string[] => {
      const view = cluster.view(given(...history).state());
      return (view.exists && cluster.marks?.(view.document)) || [];
    };
    const { hub } = given(...onHub).state() as unknown as { readonly hub: { readonly id: string } };
    expect(marks(...readyHistory, order)).to.deep.equal(['needs-operator', ghostMark(hub.id)]);
    expect(marks(...readyHistory, order, deletionRequested), 'while it is removed').to.deep.equal([]);
    expect(marks(...onHub, failed(true)), 'failed otherwise').to.deep.equal(['needs-operator']);
  });
  it('forgets a passing failure when a hub is found, not one that needs a decision', () => {
    expect(given(order, failed(false), selected).state()).to.not.have.property('failure');
    expect(given(order, failed(true), selected).state()).to.have.property('failure');
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
