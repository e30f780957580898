import { clusterDecider } from '../../../../src/domain/clusters/decide.ts';
import type { ClusterEvent } from '../../../../src/domain/clusters/events.ts';
import { specify } from '../../../support/decider-spec.ts';
import { deletionRequested, HUB, onHub, order, ORDER_NAME, selected, time } from './samples.ts';

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
  it('tells of requests to its automation, and of jobs', () => {
    const request = { at, mode: 'aap', purpose: 'provision', repeats: 0, job: '7', template: 't' } as const;
    given(...onHub)
      .when({ type: 'RecordAutomationRequest', ...request })
      .thenEvents({ type: 'AutomationRequested', data: { ...request, hub: HUB } });
    const job = {
      at,
      purpose: 'provision',
      job: '7',
      template: 't',
      state: 'Failed',
      outputTail: 'x',
    } as const;
    given(...onHub)
      .when({ type: 'RecordJob', ...job })
      .thenEvents({ type: 'AutomationJobChanged', data: { ...job, hub: HUB } });
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
    given(...onHub)
      .when({ type: 'RecordDriftCorrected', at, fields: ['nodeRequests'] })
      .thenEvents({
        type: 'ClusterDriftCorrected',
        data: { at, fields: ['nodeRequests'], hub: HUB, orderName: ORDER_NAME },
      });
    given(...onHub)
      .when({ type: 'ReportDuplicates', at, names: ['order-copy'] })
      .thenEvents({ type: 'ClusterOrdersDuplicated', data: { at, names: ['order-copy'], hub: HUB } });
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
