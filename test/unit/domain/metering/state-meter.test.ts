import { expect } from 'chai';
import { wholeRecords } from '../../../../src/domain/metering/records.ts';
import {
  initialStateMeter,
  meterState,
  STATE_RULES,
  type MeteredWhole,
  type StateMeter,
} from '../../../../src/domain/metering/state-meter.ts';
import type { ExternalIpEvent } from '../../../../src/domain/networks/external-ip.resource.ts';

const [rule] = STATE_RULES;
const timeOf = (second: number): string => new Date(Date.UTC(2026, 10, 23, 9, 0, second)).toISOString();
const ordered: ExternalIpEvent = {
  type: 'ExternalIPOrdered',
  data: {
    id: 'ip1',
    at: timeOf(0),
    tenant: 't1',
    project: 'apps',
    name: 'web',
    creator: 'someone',
    document: { spec: { pool: { id: 'p1', name: 'public' } } },
  },
};
const place = {
  hub: 'h1',
  namespace: 'osac',
  objectName: 'o',
  simulated: true,
  controller: 'ledger',
} as const;
const placed = (second: number): ExternalIpEvent => ({
  type: 'ExternalIPPlaced',
  data: { at: timeOf(second), ...place },
});
const allocated = (second: number): ExternalIpEvent => ({
  type: 'ExternalIPAllocated',
  data: { at: timeOf(second), address: '192.0.2.5' },
});
const ended = (type: 'DeletionRequested' | 'Deleted', second: number): ExternalIpEvent => ({
  type: `ExternalIP${type}`,
  data: { at: timeOf(second) },
});
const failed = (second: number): ExternalIpEvent => ({
  type: 'ExternalIPFailed',
  data: { at: timeOf(second), reason: 'No', message: 'no' },
});

/** What each event said, one line a change. */
const told = (...events: readonly ExternalIpEvent[]): readonly string[] => {
  if (rule === undefined) throw new Error('no rule');
  let meter: StateMeter = initialStateMeter(rule);
  const lines: string[] = [];
  for (const event of events) {
    const step = meterState(rule, meter, event as Parameters<typeof meterState>[2]);
    meter = step.meter;
    for (const { type, previousState = '-', currentState, durationMs } of step.metered.changes)
      lines.push(
        [type, previousState, currentState, ...(durationMs === undefined ? [] : [durationMs])].join(' '),
      );
  }
  return lines;
};

describe('the meter of an external IP', () => {
  it('bills from the moment of its allocation until its deletion was asked for', () => {
    expect(
      told(ordered, placed(1), allocated(10), ended('DeletionRequested', 70), ended('Deleted', 80)),
    ).to.deep.equal([
      'created - PENDING',
      'started PENDING ALLOCATED',
      'suspended ALLOCATED DELETING 60000',
      'deleted DELETING DELETING',
    ]);
  });

  it('bills nothing that was never allocated, and not while it has failed', () => {
    expect(told(ordered, placed(1), failed(2))).to.deep.equal(['created - PENDING']);
    expect(told(ordered, placed(1), allocated(2), failed(5), allocated(9))).to.deep.equal([
      'created - PENDING',
      'started PENDING ALLOCATED',
      'suspended ALLOCATED FAILED 3000',
      'resumed FAILED ALLOCATED',
    ]);
  });

  it('goes on over what changes nothing, and over a clock that was set back', () => {
    expect(told(ordered, allocated(10), allocated(20), ended('Deleted', 15))).to.deep.equal([
      'created - PENDING',
      'started PENDING ALLOCATED',
      'suspended ALLOCATED DELETING 10000',
      'deleted ALLOCATED DELETING',
    ]);
  });

  it('tells in the form of all metering records', () => {
    if (rule === undefined) throw new Error('no rule');
    const first = meterState(rule, initialStateMeter(rule), ordered as Parameters<typeof meterState>[2]);
    const second = meterState(rule, first.meter, allocated(10) as Parameters<typeof meterState>[2]);
    const last = meterState(rule, second.meter, ended('Deleted', 70) as Parameters<typeof meterState>[2]);
    const records = wholeRecords('event-1', last.metered);
    expect(records.map(({ id, type }) => [id, type])).to.deep.equal([
      ['event-1', 'osac.resource.suspended.v1'],
      ['event-1/deleted', 'osac.resource.deleted.v1'],
    ]);
    expect(records[0]).to.deep.include({ resourceType: 'external_ip', time: timeOf(70) });
    expect(records[0]?.data).to.deep.equal({
      resource_id: 'ip1',
      resource_type: 'external_ip',
      tenant_id: 't1',
      project_id: 'apps',
      catalog_item_id: null,
      template_id: null,
      previous_state: 'ALLOCATED',
      current_state: 'DELETING',
      transition_time: '2026-11-23T09:01:10.000000000Z',
      duration_seconds: 60,
      billing_dimensions: { external_ip_pool: 'public' },
      schema_version: 'v1',
    });
  });

  it('says nothing before there is anything', () => {
    const nothing: MeteredWhole = { atMs: 0, resourceType: 'x', dimensions: {}, changes: [] };
    expect(wholeRecords('e', nothing)).to.deep.equal([]);
  });
});
