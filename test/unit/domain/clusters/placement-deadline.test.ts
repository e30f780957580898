import { expect } from 'chai';
import fc from 'fast-check';
import { cluster } from '../../../../src/domain/clusters/cluster.resource.ts';
import { deadlineRejection, placementDeadline } from '../../../../src/domain/clusters/placement-deadline.ts';
import { waitingWords } from '../../../../src/domain/clusters/room-words.ts';
import { durationMs } from '../../../../src/domain/iso-duration.ts';
import { check } from '../../../support/property.ts';
import { createOrderRun, done, failed, placedOn } from './order-run.ts';
import { stateOf } from './automated-run.ts';
import { healthy, noRoom, ordered, time } from './samples.ts';

const MINUTE = 60_000;
const KEY = 'fulfillment-ledger/placement-deadline';
const FAILED = 'no place was found within PT30M: waited for 3 × fc430, 2 × g5 in zone east';
const nothingFits = done({ placed: false, message: '', decision: noRoom });

/** Ordered with a deadline of half an hour, and told that there is no room. */
const waiting = () => {
  const run = createOrderRun();
  run.command({ type: 'OrderCluster', ...ordered, zone: 'east', placementDeadline: 'PT30M' });
  run.perform('place', nothingFits);
  run.commands();
  return run;
};
const failureOf = (run: ReturnType<typeof createOrderRun>): unknown => {
  const state = run.cluster();
  return 'failure' in state ? state.failure : undefined;
};

describe('cluster order: a deadline for its place', () => {
  it('waits with a timer until then, and fails with what it waited for', () => {
    const run = waiting();
    expect(run.timers()).to.include.members(['placement-retry', 'placement-deadline']);
    const due = run.pending().timers.find(({ timerId }) => timerId === 'placement-deadline');
    expect(Math.round((Date.parse(due?.dueAt ?? '') - Date.parse(run.at())) / MINUTE)).to.equal(30);
    run.after(30 * MINUTE);
    run.fire('placement-deadline');
    expect(run.commands()).to.deep.equal(['RecordFailure']);
    expect(stateOf(run)).to.equal('CLUSTER_STATE_FAILED');
    expect(failureOf(run)).to.deep.equal({ reason: 'PlacementTimedOut', message: FAILED, permanent: true });
    const view = cluster.view(run.cluster());
    expect(view.exists && cluster.marks?.(view.document)).to.deep.equal(['needs-operator']);
    expect([run.effects(), run.timers()], 'nothing happens by itself').to.deep.equal([[], []]);
    expect(run.replayed()).to.deep.equal(run.state());
  });
  it('gets the same time again from a retry, and a place', () => {
    const run = waiting();
    run.after(30 * MINUTE);
    run.fire('placement-deadline');
    run.commands();
    run.command({ type: 'RetryCluster', at: run.at() });
    run.perform('place', nothingFits);
    run.commands();
    expect(run.timers()).to.include('placement-deadline');
    const due = run.pending().timers.find(({ timerId }) => timerId === 'placement-deadline');
    expect(Math.round((Date.parse(due?.dueAt ?? '') - Date.parse(run.at())) / MINUTE)).to.equal(30);
    run.fire('placement-retry');
    run.perform('place', done(placedOn()));
    expect(run.commands()).to.include.members(['SelectHub']);
    expect(run.timers()).to.not.include('placement-deadline');
    expect(failureOf(run)).to.equal(undefined);
  });
  it('lets an attempt end that may still get it a place', () => {
    const run = waiting();
    run.fire('placement-retry');
    const { effectId } = run.start('place');
    run.after(31 * MINUTE);
    run.fire('placement-deadline');
    expect(run.commands()).to.deep.equal([]);
    run.result(effectId, done(placedOn()));
    expect(run.commands()).to.include('SelectHub');
    expect(failureOf(run)).to.equal(undefined);

    const late = waiting();
    late.fire('placement-retry');
    const attempt = late.start('place');
    late.after(31 * MINUTE);
    late.fire('placement-deadline');
    late.result(attempt.effectId, nothingFits);
    expect(late.commands()).to.include('RecordFailure');
    expect(failureOf(late)).to.deep.include({ reason: 'PlacementTimedOut', message: FAILED });
    expect(late.replayed()).to.deep.equal(late.state());
  });
  it('can be deleted while it waits, and after it failed', () => {
    for (const isLate of [false, true]) {
      const run = waiting();
      if (isLate) {
        run.after(31 * MINUTE);
        run.fire('placement-deadline');
        run.commands();
      }
      run.command({ type: 'DeleteCluster', at: time(50) });
      expect(run.clusterTypes().slice(-2)).to.deep.equal(['ClusterDeletionRequested', 'ClusterDeleted']);
      run.perform('release', done());
      run.commands();
      expect(run.isClosed()).to.equal(true);
    }
  });
  it('needs no timer where a place is found at once, and none without a deadline', () => {
    const run = createOrderRun();
    run.command({ type: 'OrderCluster', ...ordered, placementDeadline: 'PT30M' });
    run.perform('place', failed());
    expect(run.timers()).to.deep.equal([]);
    run.perform('place', done(placedOn()));
    run.commands();
    expect(run.runTypes()).to.not.include('TimerFired');
    expect(run.timers()).to.not.include('placement-deadline');
    const without = createOrderRun();
    without.order();
    without.perform('place', nothingFits);
    expect(without.timers()).to.deep.equal(['placement-retry']);
  });
  it('says nothing of a cluster that waits to grow', () => {
    const run = createOrderRun();
    run.command({ type: 'OrderCluster', ...ordered, placementDeadline: 'PT1S' });
    run.perform('place', done(placedOn()));
    run.commands();
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    run.observe(healthy());
    run.commands();
    const workers = { hostType: { id: 'fc430', name: 'fc430' }, size: 9 };
    run.command({
      type: 'ReviseCluster',
      at: time(30),
      changes: { nodeSets: { ...ordered.nodeSets, workers } },
    });
    run.perform('resize', done({ resized: false }));
    run.commands();
    expect(run.timers()).to.include('placement-retry').and.to.not.include('placement-deadline');
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
  });
});

describe('the deadline that an order is taken with', () => {
  it('is that of its annotation, else of the setting', () => {
    expect(placementDeadline({}, undefined)).to.deep.equal({});
    expect(placementDeadline({}, 'P2D')).to.deep.equal({ placementDeadline: 'P2D' });
    expect(placementDeadline({ [KEY]: 'PT5M' }, 'P2D')).to.deep.equal({ placementDeadline: 'PT5M' });
  });
  it('must be an ISO duration; the refusal names the annotation', () => {
    expect(deadlineRejection({ [KEY]: 'P1DT12H' })).to.equal(undefined);
    expect(deadlineRejection({ [KEY]: 'soon' })).to.deep.include({
      kind: 'invalid',
      field: 'metadata.annotations',
    });
    expect(deadlineRejection({ [KEY]: 'soon' })?.message).to.match(
      /^annotation 'fulfillment-ledger\/placement-deadline' must be/,
    );
  });
  it('reads durations in weeks, days, hours, minutes and seconds, and nothing else', () => {
    const known: readonly (readonly [string, number | undefined])[] = [
      ['PT1S', 1_000],
      ['PT90M', 90 * MINUTE],
      ['P1DT2H3M4S', ((26 * 60 + 3) * 60 + 4) * 1_000],
      ['P2W', 14 * 24 * 60 * MINUTE],
      ['P366D', 366 * 24 * 60 * MINUTE],
      ['P99W', 99 * 7 * 24 * 60 * MINUTE],
    ];
    for (const [text, ms] of known) expect(durationMs(text), text).to.equal(ms);
    for (const wrong of [
      '',
      'P',
      'PT',
      'P0D',
      'PT0S',
      'P1Y',
      'P1M',
      'P1DT',
      '30m',
      'PT1.5H',
      'P-1D',
      'P1000D',
      'PT5M ',
      'pt5m',
      '1800',
    ])
      expect(durationMs(wrong), wrong).to.equal(undefined);
    check(
      fc.property(fc.nat(300), fc.nat(23), fc.nat(59), fc.nat(59), (d, h, m, s) => {
        const ms = (((d * 24 + h) * 60 + m) * 60 + s) * 1_000;
        expect(durationMs(`P${d}DT${h}H${m}M${s}S`)).to.equal(ms === 0 ? undefined : ms);
      }),
    );
  });
});

describe('what an order waits for, in the words of its tenant', () => {
  it('is nodes by host type, the zone, and what but room is missing', () => {
    const sets = { gpu: { hostType: { id: 'ht-1', name: 'h100' }, size: 2 } };
    expect(waitingWords(sets, { zone: 'east' })).to.equal('waiting for 2 × h100 in zone east');
    expect(waitingWords(sets)).to.equal('waiting for 2 × h100');
    expect(waitingWords({}, { why: 'nobody' })).to.equal('waiting for a place: nobody');
    const two = { ...sets, more: { hostType: { id: 'ht-1', name: 'h100' }, size: 3 } };
    expect(waitingWords(two, { held: { 'ht-1': 1 } })).to.equal('waiting for 4 × h100');
    expect(waitingWords(two, { held: { 'ht-1': 5 } })).to.equal('waiting for a place');
  });
});
