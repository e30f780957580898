import { expect } from 'chai';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { clusterMeter } from '../../../../src/domain/clusters/acting.ts';
import type { Change } from '../../../../src/domain/metering/meter.ts';
import {
  becameReady,
  deletionRequested,
  dispatched,
  noRoom,
  onHub,
  order,
  readyHistory,
  selected,
  time,
} from '../clusters/samples.ts';

/** given these events, when this one, then these changes: `worker/gpu updated 2 (120 s) READY`. */
const given = (...history: readonly ClusterEvent[]) => ({
  when: (event: ClusterEvent) => {
    const meter = history.reduce(
      (before, past) => clusterMeter.fold(before, past).meter,
      clusterMeter.initial(),
    );
    const { changes } = clusterMeter.fold(meter, event);
    return {
      thenChanges: (...expected: string[]) => expect(changes.map(shown)).to.deep.equal(expected),
      thenNothing: () => expect(changes).to.deep.equal([]),
    };
  },
});

const shown = ({ type, component, durationMs, previousState, currentState }: Change): string => {
  const of = component === undefined ? 'cluster' : `${component.nodeSet} x${component.nodeCount}`;
  const length = durationMs === undefined ? '' : ` after ${durationMs / 1000} s`;
  return `${of} ${type}${length}: ${previousState ?? '-'} -> ${currentState}`;
};

const failed = (minute: number): ClusterEvent => ({
  type: 'ClusterFailed',
  data: { at: time(minute), reason: 'JobFailed', message: 'the job failed', permanent: false },
});
const cleared = (minute: number): ClusterEvent => ({
  type: 'ClusterFailureCleared',
  data: { at: time(minute) },
});
const resized = (minute: number, name: string, from: number, to: number): ClusterEvent => ({
  type: 'NodeSetResized',
  data: { at: time(minute), name, from, to },
});
const waiting: ClusterEvent = {
  type: 'PlacementDeferred',
  data: { at: time(1), message: 'no hub has room', decision: noRoom },
};
const deleted: ClusterEvent = { type: 'ClusterDeleted', data: { at: time(30), how: 'absence-confirmed' } };
const written = (minute: number, state: string): ClusterEvent => ({
  type: 'ClusterStatusReported',
  data: { at: time(minute), status: { state, state_transition_time: time(0) } },
});

describe('what a cluster is billed for', () => {
  it('starts with the order, which is told as a whole, then control plane and every node set', () =>
    given()
      .when(order)
      .thenChanges(
        'cluster created: - -> PROGRESSING',
        '_control_plane x1 started: - -> PROGRESSING',
        'gpu x2 started: - -> PROGRESSING',
        'workers x3 started: - -> PROGRESSING',
      ));

  it('goes on while a hub is chosen or the order waits for room, which the state shows as progress', () => {
    given(order).when(selected).thenNothing();
    given(order).when(waiting).thenNothing();
  });

  it('goes on from PROGRESSING to READY without a word', () =>
    given(...onHub)
      .when(becameReady)
      .thenNothing());

  it('is suspended by a failure, with the time since it started', () =>
    given(...readyHistory)
      .when(failed(11))
      .thenChanges(
        '_control_plane x1 suspended after 660 s: READY -> FAILED',
        'gpu x2 suspended after 660 s: READY -> FAILED',
        'workers x3 suspended after 660 s: READY -> FAILED',
      ));

  it('goes on through a change that fails, or that waits', () => {
    const change = { at: time(12), change: 'resize', reason: 'JobFailed', message: 'the job failed' };
    const failedChange: ClusterEvent = { type: 'ClusterChangeFailed', data: change };
    const resize = resized(11, 'workers', 3, 5);
    const busy: ClusterEvent = { type: 'ClusterReconfiguring', data: { at: time(11) } };
    given(...readyHistory, resize, busy)
      .when(failedChange)
      .thenNothing();
    given(...readyHistory, resize, busy)
      .when({
        type: 'PlacementDeferred',
        data: { at: time(12), message: 'no room', decision: noRoom, runs: true },
      })
      .thenNothing();
    given(...readyHistory, resize, busy, failedChange)
      .when(deletionRequested)
      .thenChanges(
        '_control_plane x1 suspended after 1200 s: READY -> DELETING',
        'gpu x2 suspended after 1200 s: READY -> DELETING',
        'workers x5 suspended after 540 s: READY -> DELETING',
      );
  });

  it('resumes after a failure, from then on', () => {
    given(...readyHistory, failed(11))
      .when(cleared(15))
      .thenChanges(
        '_control_plane x1 resumed: FAILED -> READY',
        'gpu x2 resumed: FAILED -> READY',
        'workers x3 resumed: FAILED -> READY',
      );
    given(...readyHistory, failed(11), cleared(15))
      .when(deletionRequested)
      .thenChanges(
        '_control_plane x1 suspended after 300 s: READY -> DELETING',
        'gpu x2 suspended after 300 s: READY -> DELETING',
        'workers x3 suspended after 300 s: READY -> DELETING',
      );
  });

  it('is updated for the node set that was resized, and for no other', () => {
    given(...readyHistory)
      .when(resized(6, 'workers', 3, 5))
      .thenChanges('workers x5 updated after 540 s: READY -> READY');
    given(...readyHistory, resized(11, 'workers', 3, 5))
      .when(resized(12, 'workers', 5, 4))
      .thenChanges('workers x4 updated after 60 s: READY -> READY');
    given(...readyHistory, resized(11, 'workers', 3, 5))
      .when(failed(13))
      .thenChanges(
        '_control_plane x1 suspended after 780 s: READY -> FAILED',
        'gpu x2 suspended after 780 s: READY -> FAILED',
        'workers x5 suspended after 120 s: READY -> FAILED',
      );
  });

  it('is updated without a duration while nothing is billed', () =>
    given(...readyHistory, failed(11))
      .when(resized(12, 'workers', 3, 5))
      .thenChanges('workers x5 updated: FAILED -> FAILED'));

  it('tells of an added node set, and once more of a removed one', () => {
    const added: ClusterEvent = {
      type: 'NodeSetAdded',
      data: { at: time(11), name: 'arm', nodeSet: { hostType: { id: 'a1', name: 'a1' }, size: 4 } },
    };
    given(...readyHistory)
      .when(added)
      .thenChanges('arm x4 updated: READY -> READY');
    given(...readyHistory, added)
      .when({ type: 'NodeSetRemoved', data: { at: time(13), name: 'arm' } })
      .thenChanges('arm x0 updated after 120 s: READY -> READY');
    given(...readyHistory, added, { type: 'NodeSetRemoved', data: { at: time(13), name: 'arm' } })
      .when(failed(14))
      .thenChanges(
        '_control_plane x1 suspended after 840 s: READY -> FAILED',
        'gpu x2 suspended after 840 s: READY -> FAILED',
        'workers x3 suspended after 840 s: READY -> FAILED',
      );
  });

  it('is updated in all components by another version, which is a dimension', () =>
    given(...readyHistory)
      .when({
        type: 'ClusterSpecRevised',
        data: {
          at: time(11),
          spec: { version: { id: 'v2', name: '4-21', version: '4.21.0', releaseImage: 'r' } },
          changed: ['version'],
        },
      })
      .thenChanges(
        '_control_plane x1 updated after 660 s: READY -> READY',
        'gpu x2 updated after 660 s: READY -> READY',
        'workers x3 updated after 660 s: READY -> READY',
      ));

  it('is not touched by what is no dimension', () => {
    given(...readyHistory)
      .when({ type: 'ClusterLabelled', data: { at: time(11), labels: {} } })
      .thenNothing();
    given(...readyHistory)
      .when({ type: 'ClusterDegraded', data: { at: time(11), reason: 'x', message: 'y' } })
      .thenNothing();
  });

  it('ends with the wish to delete it; the deletion itself ends nothing more', () =>
    given(...readyHistory, deletionRequested)
      .when(deleted)
      .thenChanges('cluster deleted: DELETING -> DELETING'));

  it('ends with the deletion of an order that was never sent', () =>
    given(order, waiting, { type: 'ClusterDeletionRequested', data: { at: time(5) } })
      .when({ type: 'ClusterDeleted', data: { at: time(5), how: 'not-dispatched' } })
      .thenChanges(
        '_control_plane x1 suspended after 300 s: PROGRESSING -> DELETING',
        'gpu x2 suspended after 300 s: PROGRESSING -> DELETING',
        'workers x3 suspended after 300 s: PROGRESSING -> DELETING',
        'cluster deleted: PROGRESSING -> DELETING',
      ));

  it('follows a status that was written while it is shown, at the time of the writing', () => {
    given(...readyHistory)
      .when(written(11, 'CLUSTER_STATE_FAILED'))
      .thenChanges(
        '_control_plane x1 suspended after 660 s: READY -> FAILED',
        'gpu x2 suspended after 660 s: READY -> FAILED',
        'workers x3 suspended after 660 s: READY -> FAILED',
      );
    given(...readyHistory, written(11, 'CLUSTER_STATE_FAILED'))
      .when({
        type: 'ClusterConditionsObserved',
        data: { at: time(12), conditions: {}, ready: { workers: 3, gpu: 2 } },
      })
      .thenChanges(
        '_control_plane x1 resumed: FAILED -> READY',
        'gpu x2 resumed: FAILED -> READY',
        'workers x3 resumed: FAILED -> READY',
      );
  });

  it('stands still while a clock is behind', () => {
    given(...readyHistory)
      .when({ ...failed(0) })
      .thenChanges(
        '_control_plane x1 suspended after 540 s: READY -> FAILED',
        'gpu x2 suspended after 540 s: READY -> FAILED',
        'workers x3 suspended after 540 s: READY -> FAILED',
      );
    given(...readyHistory, failed(0), cleared(1))
      .when(failed(10))
      .thenChanges(
        '_control_plane x1 suspended after 60 s: READY -> FAILED',
        'gpu x2 suspended after 60 s: READY -> FAILED',
        'workers x3 suspended after 60 s: READY -> FAILED',
      );
  });

  describe('delivery', () => {
    const deliveredAt = (...history: readonly ClusterEvent[]): string | undefined => {
      const { deliveredMs } = history.reduce(
        (before, past) => clusterMeter.fold(before, past).meter,
        clusterMeter.initial(),
      );
      return deliveredMs === undefined ? undefined : new Date(deliveredMs).toISOString();
    };

    it('is the first READY, and stays that whatever follows', () => {
      expect(deliveredAt(...onHub)).to.equal(undefined);
      expect(deliveredAt(...readyHistory)).to.equal(time(9));
      const reconfiguring: ClusterEvent = { type: 'ClusterReconfiguring', data: { at: time(12) } };
      const again: ClusterEvent = { type: 'ClusterBecameReady', data: { at: time(14) } };
      expect(deliveredAt(...readyHistory, failed(11), cleared(12))).to.equal(time(9));
      expect(deliveredAt(...readyHistory, resized(11, 'workers', 3, 5), reconfiguring, again)).to.equal(
        time(9),
      );
      expect(deliveredAt(...readyHistory, deletionRequested, deleted)).to.equal(time(9));
    });

    it('does not come about by a failure, a wait or a deletion', () => {
      expect(deliveredAt(order, waiting)).to.equal(undefined);
      expect(deliveredAt(...onHub, failed(11))).to.equal(undefined);
      expect(deliveredAt(...onHub, deletionRequested, deleted)).to.equal(undefined);
    });

    it('follows what is shown: a written READY is one', () =>
      expect(deliveredAt(...onHub, written(7, 'CLUSTER_STATE_READY'))).to.equal(time(7)));
  });

  it('is nothing before the order and after the end', () => {
    given().when(dispatched).thenNothing();
    given(...readyHistory, deletionRequested, deleted)
      .when(cleared(40))
      .thenNothing();
  });
});
