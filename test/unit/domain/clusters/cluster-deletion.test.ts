import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { deletionRequested, onHub, order, selected, time, absence, finalizers, change } from './samples.ts';

const { given } = specify(clusterDecider);
const at = time(30);

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
