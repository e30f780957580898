import fc from 'fast-check';
import type { ClusterEvent } from '../../../src/domain/clusters/state.ts';
import {
  dispatched,
  HUB,
  noRoom,
  order,
  ordered,
  ORDER_NAME,
  selected,
} from '../../unit/domain/clusters/samples.ts';

/**
 * Histories of one cluster: any events of its stream in any order, with clocks that are set back now and then. The fold
 * accepts them all, so that whatever is said of billable time must hold for each.
 */
export const clusterHistories = (maxLength = 40): fc.Arbitrary<readonly ClusterEvent[]> =>
  fc
    .array(fc.tuple(step, fc.oneof({ weight: 9, arbitrary: forward }, { weight: 1, arbitrary: back })), {
      maxLength,
    })
    .map((steps) => {
      let now = Date.parse(ordered.at);
      return [order, ...steps.map(([event, by]) => at(event, (now += by)))];
    });

const forward = fc.integer({ min: 0, max: 10_000_000 });
const back = fc.integer({ min: -600_000, max: -1 });

const at = (event: ClusterEvent, ms: number): ClusterEvent =>
  ({ ...event, data: { ...event.data, at: new Date(ms).toISOString() } }) as ClusterEvent;

const setName = fc.constantFrom('workers', 'gpu', 'arm', '__proto__', '_control_plane');
const size = fc.nat({ max: 5 });
const written = fc.constantFrom(
  'CLUSTER_STATE_READY',
  'CLUSTER_STATE_FAILED',
  'CLUSTER_STATE_PROGRESSING',
  'CLUSTER_STATE_DELETE_FAILED',
  '',
);
const none = { at: ordered.at };

const step: fc.Arbitrary<ClusterEvent> = fc.oneof(
  fc.constantFrom<ClusterEvent>(
    selected,
    dispatched,
    { type: 'PlacementDeferred', data: { ...none, message: 'no room', decision: noRoom } },
    { type: 'ClusterOrderPlaced', data: { ...none, hub: HUB, orderName: ORDER_NAME, uid: 'u' } },
    { type: 'ClusterBecameReady', data: none },
    { type: 'ClusterReconfiguring', data: none },
    { type: 'ClusterFailed', data: { ...none, reason: 'x', message: 'y', permanent: false } },
    { type: 'ClusterChangeFailed', data: { ...none, change: 'resize', reason: 'x', message: 'y' } },
    { type: 'ClusterFailureCleared', data: none },
    { type: 'ClusterLostOnHub', data: { ...none, what: 'hosted-cluster' } },
    { type: 'ClusterRetryRequested', data: none },
    { type: 'ClusterConditionsObserved', data: { ...none, conditions: {}, ready: {} } },
    { type: 'ClusterLabelled', data: { ...none, labels: {} } },
    { type: 'HubNotAccepting', data: { ...none, hub: HUB, since: none.at } },
    { type: 'ClusterDegraded', data: { ...none, reason: 'Etcd', message: 'slow' } },
    { type: 'ClusterRecovered', data: none },
  ),
  fc
    .tuple(setName, size)
    .map(([name, to]): ClusterEvent => ({ type: 'NodeSetResized', data: { ...none, name, from: 0, to } })),
  fc.tuple(setName, size).map(
    ([name, count]): ClusterEvent => ({
      type: 'NodeSetAdded',
      data: { ...none, name, nodeSet: { hostType: { id: 'h', name: 'h' }, size: count } },
    }),
  ),
  setName.map((name): ClusterEvent => ({ type: 'NodeSetRemoved', data: { ...none, name } })),
  written.map(
    (state): ClusterEvent => ({ type: 'ClusterStatusReported', data: { ...none, status: { state } } }),
  ),
  fc.constantFrom('v1', 'v2').map(
    (name): ClusterEvent => ({
      type: 'ClusterSpecRevised',
      data: {
        ...none,
        spec: { version: { id: name, name, version: '4.20.3', releaseImage: 'r' } },
        changed: ['version'],
      },
    }),
  ),
  { weight: 1, arbitrary: fc.constant<ClusterEvent>({ type: 'ClusterDeletionRequested', data: none }) },
  {
    weight: 1,
    arbitrary: fc.constant<ClusterEvent>({
      type: 'ClusterDeleted',
      data: { ...none, how: 'absence-confirmed' },
    }),
  },
);
