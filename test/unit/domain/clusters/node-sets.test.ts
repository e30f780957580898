import { expect } from 'chai';
import fc from 'fast-check';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterChanges, ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { isRejection } from '../../../../src/domain/decider.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { nodeSetChanges } from '../../../support/arbitraries/node-sets.ts';
import { order, ordered, onHub, readyHistory, time } from './samples.ts';
import { check } from '../../../support/property.ts';

const { given } = specify(clusterDecider);
const at = time(30);
const workers = { hostType: { id: 'fc430', name: 'fc430' }, size: 3 };
const gpu = { hostType: { id: 'g5' }, size: 2 };
const revise = (
  nodeSets: NonNullable<ClusterChanges['nodeSets']>,
  resized: string[] = [],
): ClusterCommand => ({
  type: 'ReviseCluster',
  at,
  changes: { nodeSets, resized },
});

describe('clusters: node sets', () => {
  it('are resized by name', () =>
    given(order)
      .when(revise({ workers: { ...workers, size: 5 }, gpu }))
      .thenEvents({ type: 'NodeSetResized', data: { at, name: 'workers', from: 3, to: 5 } }));
  it('stay as they are when nothing changes', () =>
    given(order).when(revise({ workers, gpu })).thenNothing());
  it('can be added with a resolved host type, and removed', () => {
    const storage = { hostType: { id: 'h1', name: 'h1' }, size: 1, fabricInterface: 'eth0' };
    given(order)
      .when(revise({ workers, storage }))
      .thenEvents(
        { type: 'NodeSetAdded', data: { at, name: 'storage', nodeSet: storage } },
        { type: 'NodeSetRemoved', data: { at, name: 'gpu' } },
      );
    given(order)
      .when(revise({ workers, gpu, storage: { hostType: { name: 'h1' }, size: 1 } }))
      .thenRejected('HOST_TYPE_REQUIRED');
  });
  it('that are new bear no name that metering gives to something else; stored ones stay as they are', () => {
    const set = { hostType: { id: 'h1', name: 'h1' }, size: 1 };
    for (const name of ['_control_plane', '_x', 'a/b']) {
      given(order)
        .when(revise({ workers, gpu, [name]: set }))
        .thenRejected('INVALID_NODE_SET_NAME', { field: `spec.node_sets.${name}` });
      given()
        .when({ ...ordered, type: 'OrderCluster', nodeSets: { [name]: set } })
        .thenRejected('INVALID_NODE_SET_NAME', { field: `spec.node_sets.${name}` });
      const old: ClusterEvent = { type: 'ClusterOrdered', data: { ...ordered, nodeSets: { [name]: set } } };
      given(old)
        .when(revise({ [name]: { ...set, size: 2 } }))
        .thenEvents({ type: 'NodeSetResized', data: { at, name, from: 1, to: 2 } });
    }
  });
  it('cannot all be removed', () =>
    given(order).when(revise({})).thenRejected('LAST_NODE_SET', { field: 'spec.node_sets' }));
  it('take 0 only when the size itself was addressed, or when it is 0 already', () => {
    const empty = { hostType: {}, size: 0 };
    given(order)
      .when(revise({ workers: { ...workers, size: 0 }, gpu }))
      .thenRejected('INVALID_SIZE', {
        message: "size for node set 'workers' should be greater than zero, but it is 0",
      });
    given(order)
      .when(revise({ workers: empty, gpu }, ['workers']))
      .thenEvents({ type: 'NodeSetResized', data: { at, name: 'workers', from: 3, to: 0 } });
    const emptied: ClusterEvent = { type: 'NodeSetResized', data: { at, name: 'workers', from: 3, to: 0 } };
    given(order, emptied)
      .when(revise({ workers: { ...workers, size: 0 }, gpu }))
      .thenNothing();
    given(order)
      .when(revise({ workers: { ...empty, size: -1 }, gpu }, ['workers']))
      .thenRejected('INVALID_SIZE', { field: 'spec.node_sets.workers.size' });
  });
  it('take only 32-bit whole numbers', () => {
    for (const size of [2 ** 31, 1.5]) {
      given(order)
        .when(revise({ workers: { ...workers, size }, gpu }))
        .thenRejected('INVALID_SIZE');
    }
  });
  it('keep their host type', () => {
    const other = (hostType: { id?: string; name?: string }): ClusterCommand =>
      revise({ workers: { hostType, size: 3 }, gpu });
    given(order)
      .when(other({ id: 'h100' }))
      .thenRejected('IMMUTABLE_FIELD', {
        message:
          "cannot change host_type for node set 'workers' from 'fc430' to 'h100': host_type is immutable",
      });
    given(order)
      .when(other({ name: 'fc430' }))
      .thenNothing();
    given(order)
      .when(other({ id: 'fc430', name: 'h100' }))
      .thenRejected('IMMUTABLE_FIELD');
    given(order).when(other({})).thenRejected('IMMUTABLE_FIELD', {
      message: "cannot change host_type for node set 'workers' from 'fc430' to '': host_type is immutable",
    });
    given(order)
      .when(revise({ workers: { hostType: { id: 'h100' }, size: 3 }, gpu }, ['workers']))
      .thenRejected('IMMUTABLE_FIELD');
  });
  it('take a ready cluster out of READY when they change', () => {
    const events = given(...readyHistory).when(revise({ workers: { ...workers, size: 5 }, gpu })).decision;
    expect((events as ClusterEvent[]).map(({ type }) => type)).to.deep.equal([
      'NodeSetResized',
      'ClusterReconfiguring',
    ]);
  });

  it('stay valid under every sequence of changes', () => {
    const sizes = (state: ReturnType<typeof clusterDecider.initialState>): number[] =>
      'nodeSets' in state ? Object.values(state.nodeSets).map(({ size }) => size) : [];
    check(
      fc.property(fc.array(nodeSetChanges(Object.keys(ordered.nodeSets)), { maxLength: 12 }), (sequence) => {
        let state = onHub.reduce(clusterDecider.evolve, clusterDecider.initialState());
        for (const changes of sequence) {
          const decision = clusterDecider.decide(state, { type: 'ReviseCluster', at, changes });
          if (isRejection(decision)) continue;
          const before = 'nodeSets' in state ? state.nodeSets : {};
          state = decision.reduce(clusterDecider.evolve, state);
          expect(sizes(state)).to.have.length.above(0);
          for (const size of sizes(state)) {
            expect(Number.isInteger(size) && size >= 0 && size < 2 ** 31, String(size)).to.equal(true);
          }
          // A set that stays keeps its host type; one that was removed may come back with another.
          for (const [name, set] of Object.entries('nodeSets' in state ? state.nodeSets : {})) {
            expect(set.hostType).to.deep.equal(before[name]?.hostType ?? set.hostType);
          }
          // The same change again changes nothing.
          const again = clusterDecider.decide(state, { type: 'ReviseCluster', at, changes });
          expect(again).to.deep.equal([]);
        }
      }),
    );
  });
});
