import { expect } from 'chai';
import { cluster, ghostMark } from '../../../../src/domain/clusters/cluster.resource.ts';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import {
  assessment,
  decision,
  deletionRequested,
  dispatched,
  HUB,
  noRoom,
  onHub,
  order,
  ORDER_NAME,
  placed,
  readyHistory,
  selectCommand,
  selected,
  time,
  absence,
  failed,
  finalizers,
} from './samples.ts';

const { given } = specify(clusterDecider);
const at = time(30);

describe('clusters: placement and dispatch', () => {
  const started: ClusterEvent = {
    type: 'ClusterDispatchStarted',
    data: { at: time(1), hub: HUB, orderName: ORDER_NAME },
  };
  const deferred: ClusterEvent = {
    type: 'PlacementDeferred',
    data: { at: time(1), message: 'no room', decision: noRoom },
  };

  it('selects a hub and starts the dispatch at once, and never for a cluster that is being deleted', () => {
    given(order).when(selectCommand).thenEvents(selected, started);
    given().when(selectCommand).thenRejected('NOT_FOUND');
    given(order, finalizers('x'), deletionRequested).when(selectCommand).thenRejected('DELETION_REQUESTED');
  });
  it('selects another one only while its hub never took it', () => {
    const other = { ...selectCommand, hub: 'sim-west-1' } as ClusterCommand;
    given(...onHub)
      .when(selectCommand)
      .thenNothing();
    for (const command of [other, { ...other, again: true } as ClusterCommand])
      given(...onHub)
        .when(command)
        .thenRejected('ALREADY_DISPATCHED');
    const again = (change: object) => ({ ...selectCommand, again: true, ...change }) as ClusterCommand;
    given(order, selected, dispatched).when(again({})).thenNothing();
    for (const change of [{ hub: 'sim-west-1' }, { controller: 'ledger' }])
      expect(given(order, selected, dispatched).when(again(change)).decision).to.have.lengthOf(1);
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
  it('records the placed order and the synced spec once, for the spec that was sent', () => {
    const applied = (generation: number): ClusterCommand => ({
      type: 'RecordApplied',
      at,
      uid: 'uid-1',
      generation,
    });
    const data = { at, hub: HUB, orderName: ORDER_NAME };
    given(order, selected, dispatched)
      .when(applied(0))
      .thenEvents({ type: 'ClusterOrderPlaced', data: { ...data, uid: 'uid-1' } });
    given(order, selected, dispatched)
      .when({ ...applied(0), name: 'adopted' } as ClusterCommand)
      .thenEvents({ type: 'ClusterOrderPlaced', data: { ...data, orderName: 'adopted', uid: 'uid-1' } });
    given(...onHub)
      .when(applied(0))
      .thenNothing();
    const resized: ClusterEvent = {
      type: 'NodeSetResized',
      data: { at: time(8), name: 'workers', from: 3, to: 4 },
    };
    const synced: ClusterEvent = { type: 'ClusterSpecSynced', data };
    given(...onHub, resized)
      .when(applied(1))
      .thenEvents(synced);
    given(...onHub, resized)
      .when(applied(0))
      .thenNothing();
    given(...onHub, resized, synced)
      .when(applied(1))
      .thenNothing();
    given(order).when(applied(0)).thenRejected('NOT_DISPATCHED');
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
      .filter((type) => type !== 'ClusterConditionsObserved');
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
      'ClusterBecameReady',
    ]);
  });
  it('records nothing of what is known', () =>
    given(...after(onHub))
      .when(record())
      .thenNothing());
  it('records counts of nodes alone where no condition changed, and that the hub shows none any more', () => {
    const counted = (ready: { readonly [set: string]: number }): ClusterEvent => ({
      type: 'ClusterConditionsObserved',
      data: { at, conditions: {}, ready },
    });
    given(...after(onHub))
      .when(record(assessment({ ready: { workers: 1 } })))
      .thenEvents(counted({ workers: 1 }));
    given(...after(onHub), counted({ workers: 1 }))
      .when(record(assessment({ ready: {} })))
      .thenEvents(counted({}));
    given(...after(onHub), counted({}))
      .when(record(assessment({ ready: {} })))
      .thenNothing();
  });
  it('does not take an order for accepted because nodes were counted', () => {
    const alarm: ClusterEvent = { type: 'HubNotAccepting', data: { at, hub: HUB, since: at } };
    const counted: ClusterEvent = {
      type: 'ClusterConditionsObserved',
      data: { at, conditions: {}, ready: { workers: 1 } },
    };
    const { evolve, initialState } = clusterDecider;
    const state = [...onHub, alarm, counted].reduce(evolve, initialState());
    expect(state).to.deep.include({ notAccepting: { since: at }, readyNodes: { workers: 1 } });
  });
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
  it('shows failure once for each reason, which stands while the hub merely goes on, and clears when it succeeds', () => {
    const broken = assessment({ verdict: { kind: 'failed', reason: 'JobFailed', message: 'boom' } });
    const working = assessment({ verdict: { kind: 'progressing' } });
    expect(verdict(onHub, broken)).to.include('ClusterFailed');
    const history = after(onHub, broken);
    expect(verdict(history, broken)).to.deep.equal([]);
    const again = assessment({ verdict: { kind: 'failed', reason: 'JobFailed', message: 'boom, too' } });
    expect(verdict(history, again)).to.deep.equal([]);
    const canceled = assessment({ verdict: { kind: 'failed', reason: 'JobCanceled', message: 'by hand' } });
    expect(verdict(history, canceled)).to.deep.equal(['ClusterFailed']);
    expect(verdict(history, working)).to.deep.equal([]);
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
  it('keeps what no document shows: a deletion that shows, an order that is missing or was changed', () => {
    const seen = (data: object): ClusterEvent => ({ type: 'ClusterOrderSeen', data: { at, ...data } });
    const look = (change: object): ClusterCommand => ({ ...record(), ...change }) as ClusterCommand;
    given(...onHub, deletionRequested)
      .when(look({ assessment: assessment({ deleting: true }), waitingFor: [] }))
      .thenEvents(seen({ deleting: true }));
    given(...onHub, deletionRequested, seen({ deleting: true }))
      .when(look({ assessment: assessment({ deleting: true }), waitingFor: ['finalizer x'] }))
      .thenEvents({ type: 'ClusterDeletionBlocked', data: { at, waitingFor: ['finalizer x'] } });
    const missing = seen({ missing: 'cluster-order' });
    given(...onHub)
      .when(look({ assessment: { found: false } }))
      .thenEvents(missing);
    given(...onHub, missing)
      .when(look({ assessment: { found: false } }))
      .thenNothing();
    const changed = look({ assessment: assessment({ specMatches: false }) });
    given(...after(onHub))
      .when(changed)
      .thenEvents(seen({ differs: true }));
    given(...after(onHub), seen({ differs: true }))
      .when(record())
      .thenEvents(seen({}));
  });
  it('takes no older state for news', () => {
    const version = (resourceVersion: string) => ({ version: { uid: 'uid-1', resourceVersion } });
    const [first, ...others] = given(...onHub).when({ ...record(), ...version('7') } as ClusterCommand)
      .decision as ClusterEvent[];
    expect(first?.data).to.deep.include(version('7'));
    for (const { data } of others) expect(data).to.not.have.property('version');
    const known = given(...onHub, ...(first === undefined ? [] : [first]), ...others);
    const missing = { assessment: assessment({ ready: {} }) };
    known.when({ ...record(), ...missing, ...version('6') } as ClusterCommand).thenNothing();
    expect(
      known.when({ ...record(), ...missing, ...version('8') } as ClusterCommand).decision,
    ).to.have.lengthOf(1);
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
    const again: ClusterCommand = { type: 'RecordApplied', at, uid: 'uid-1', generation: 0 };
    expect(given(...onHub, gone).when(again).decision).to.have.lengthOf(1);
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
