import { expect } from 'chai';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/state.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { assessment, deletionRequested, HUB, onHub, order, ORDER_NAME, selected, time } from './samples.ts';

const { given } = specify(clusterDecider);
const at = time(12);
const overdue: ClusterEvent = {
  type: 'ClusterDeletionOverdue',
  data: { at, since: time(1), waitingFor: ['HostedCluster c'] },
};
const reportOverdue = {
  type: 'ReportDeletionOverdue',
  at,
  since: time(1),
  waitingFor: ['HostedCluster c'],
} as const;

describe('clusters: what is done for them on their hub', () => {
  const launched = { workflow: true, template: 't', createdAt: time(4), state: 'Pending' } as const;
  const request = (repeats: number, job: string) =>
    ({
      type: 'RecordAutomationRequest',
      at,
      mode: 'aap',
      purpose: 'provision',
      wording: '0.0',
      repeats,
      job: { id: job, ...launched },
    }) as const;
  const shown = (job: string, state: 'Running' | 'Failed' | 'Succeeded') =>
    ({ type: 'RecordJob', at, mode: 'aap', purpose: 'provision', job, state, outputTail: 'x' }) as const;
  const requested = (repeats: number, job: string): ClusterEvent => ({
    type: 'AutomationRequested',
    data: {
      at,
      hub: HUB,
      mode: 'aap',
      purpose: 'provision',
      wording: '0.0',
      repeats,
      job,
      ...launched,
    },
  });
  const changed = (job: string, state: 'Failed' | 'Succeeded'): ClusterEvent => ({
    type: 'AutomationJobChanged',
    data: { at, hub: HUB, purpose: 'provision', job, template: 't', state, outputTail: 'x' },
  });
  it('tells of requests to its automation, and of jobs', () => {
    given(...onHub)
      .when(request(0, '7'))
      .thenEvents(requested(0, '7'));
    given(...onHub, requested(0, '7'))
      .when(request(0, '7'))
      .thenNothing();
    given(...onHub, requested(0, '7'))
      .when(shown('7', 'Failed'))
      .thenEvents(changed('7', 'Failed'));
    given(...onHub, requested(0, '7'), changed('7', 'Failed'))
      .when(shown('7', 'Failed'))
      .thenNothing();
    given(...onHub, requested(0, '7'))
      .when(shown('8', 'Failed'))
      .thenNothing();
  });
  it('keeps further tries to itself until one has succeeded, and tells that with its count', () => {
    const failed = [...onHub, requested(0, '7'), changed('7', 'Failed')];
    const after = (history: readonly ClusterEvent[], command: ClusterCommand): ClusterEvent[] => {
      const events = given(...history).when(command).decision as ClusterEvent[];
      return [...history, ...events];
    };
    const tried = after(failed, request(1, '8'));
    expect(tried.at(-1)?.type).to.equal('AutomationTried');
    given(...tried)
      .when(shown('8', 'Running'))
      .thenNothing();
    const again = after(tried, shown('8', 'Failed'));
    expect(again.slice(tried.length).map(({ type }) => type)).to.deep.equal(['AutomationTried']);
    const last = after(again, request(2, '9'));
    const told = after(last, shown('9', 'Succeeded'));
    expect(told.slice(last.length)).to.deep.equal([
      { ...requested(2, '9'), data: { ...requested(2, '9').data } },
      changed('9', 'Succeeded'),
    ]);
  });
  it('tells what was made for it where we are the controller, and nothing when all was there', () => {
    given(...onHub)
      .when({ type: 'RecordPrepared', at, created: ['Namespace x'] })
      .thenEvents({
        type: 'ClusterSpacePrepared',
        data: { at, created: ['Namespace x'], hub: HUB, orderName: ORDER_NAME },
      });
    given(...onHub)
      .when({ type: 'RecordPrepared', at, created: [] })
      .thenNothing();
  });
  it('tells of what somebody else did on the hub', () => {
    const look = (duplicates: readonly string[]) =>
      ({
        type: 'RecordObservation',
        at,
        assessment: assessment({ specMatches: false, duplicates }),
      }) as const;
    const events = given(...onHub).when(look(['order-copy'])).decision as ClusterEvent[];
    expect(events).to.deep.include({
      type: 'ClusterOrdersDuplicated',
      data: { at, names: ['order-copy'], hub: HUB },
    });
    given(...onHub, ...events)
      .when(look(['order-copy']))
      .thenNothing();
    given(...onHub, ...events)
      .when({ type: 'RecordApplied', at, uid: 'uid-1', generation: 0, fields: ['nodeRequests'] })
      .thenEvents({
        type: 'ClusterDriftCorrected',
        data: { at, fields: ['nodeRequests'], hub: HUB, orderName: ORDER_NAME },
      });
  });
  it('raises the alarm of a teardown once, and only during one', () => {
    given(...onHub, deletionRequested)
      .when(reportOverdue)
      .thenEvents(overdue);
    given(...onHub, deletionRequested, overdue)
      .when({ ...reportOverdue, since: time(2) })
      .thenNothing();
    given(...onHub)
      .when(reportOverdue)
      .thenNothing();
  });
  it('none of it is said of an order that was not sent', () => {
    given(order, selected).when(reportOverdue).thenRejected('NOT_DISPATCHED');
    given().when(reportOverdue).thenRejected('NOT_FOUND');
  });
});
