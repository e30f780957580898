import { expect } from 'chai';
import { refusedBy, runDecisionsDecider } from '../../../../src/domain/process/decisions.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { done, refused, unknown } from '../../../support/domain/step-run.ts';
import { createBuilding } from './toy/building.ts';

describe('people decide about a run', () => {
  it('skips a step that may be skipped, and what comes after it goes on', () => {
    const run = createBuilding();
    run.perform('base', done());
    run.skip('walls');
    expect(run.effects()).to.deep.equal(['roof']);
    expect(run.state().skipped['walls']).to.include({ by: 'ann', reason: 'because' });
    expect(run.isFolded()).to.equal(true);
  });
  it('lifts the halt with the step that was refused', () => {
    const run = createBuilding();
    run.perform('base', done());
    run.perform('walls', refused);
    run.skip('walls');
    expect(run.effects()).to.deep.equal(['roof']);
    expect(run.state()).to.not.have.any.keys('halted', 'problem');
  });
  it('is not halted by what is refused of a step that was skipped', () => {
    const run = createBuilding();
    run.perform('base', done());
    const { effectId } = run.start('walls');
    run.skip('walls');
    run.result(effectId, refused);
    expect(run.state()).to.not.have.any.keys('halted', 'problem');
    expect(run.effects()).to.deep.equal(['roof']);
    run.resume('walls');
    expect(run.effect('walls')).to.include({ effectId: 'walls:0', attempt: 2, mode: 'perform' });
    expect(run.isFolded()).to.equal(true);
  });
  it('takes a skipped step up again, and tries once more what was refused of it', () => {
    const run = createBuilding();
    run.perform('base', done());
    run.perform('walls', refused);
    run.skip('walls');
    run.perform('roof', done());
    run.resume('walls');
    expect(run.effect('walls')).to.include({ effectId: 'walls:0', attempt: 2, mode: 'perform' });
    run.perform('walls', done());
    expect(run.effects()).to.deep.equal([]);
    expect(run.isFolded()).to.equal(true);
  });
  it('keeps the doubt of a step that was skipped', () => {
    const run = createBuilding();
    run.perform('base', done());
    run.perform('walls', unknown);
    run.skip('walls');
    expect(run.effects()).to.deep.equal(['roof']);
    run.resume('walls');
    expect(run.effect('walls')).to.include({ effectId: 'walls:0', attempt: 2, mode: 'observe' });
  });
  it('retries with new ids only what is not done', () => {
    const run = createBuilding();
    run.perform('base', done());
    run.perform('walls', refused);
    run.retry();
    expect(run.effects()).to.deep.equal(['walls']);
    expect(run.effect('walls').effectId).to.equal('walls:1');
  });
  it('does not retry once the subject is being deleted, or the run is aborted', () => {
    const deleted = createBuilding();
    deleted.perform('base', done());
    deleted.remove();
    deleted.start('undo-base');
    deleted.retry();
    expect(deleted.state().cycle).to.equal(0);
    const aborted = createBuilding();
    aborted.abort();
    aborted.command({ type: 'Retry', at: aborted.now() });
    expect(aborted.state().cycle).to.equal(0);
    expect(aborted.effects()).to.deep.equal([]);
  });
  it('holds what was decided before the run heard of its subject', () => {
    const run = createBuilding();
    run.abort();
    expect(run.replayed()).to.deep.equal(run.state());
    expect(run.effects()).to.deep.equal([]);
  });
});

describe('a decision about a run', () => {
  const at = '2026-11-21T12:00:00.000Z';
  const made = { at, by: 'ann', reason: 'because' };
  const of = specify(
    runDecisionsDecider([
      { name: 'base' },
      { name: 'walls', mayBeSkipped: true },
      { name: 'roof', mayBeSkipped: true },
    ]),
  );
  const skipped = { type: 'StepSkipped', data: { ...made, step: 'walls' } } as const;
  const aborted = { type: 'RunAborted', data: made } as const;
  it('needs a reason', () => {
    of.given()
      .when({ type: 'RetryRun', ...made, reason: ' ' })
      .thenRejected('REASON_REQUIRED', { kind: 'invalid', field: 'reason' });
  });
  it('names a step that there is, and that may be skipped', () => {
    of.given()
      .when({ type: 'SkipStep', step: 'moat', ...made })
      .thenRejected('UNKNOWN_STEP', {
        kind: 'invalid',
        field: 'step',
        message: "step 'moat' not found; steps that may be skipped: walls, roof",
      });
    of.given()
      .when({ type: 'SkipStep', step: 'base', ...made })
      .thenRejected('NOT_SKIPPABLE', {
        message: "step 'base' may not be skipped; steps that may be skipped: walls, roof",
      });
    specify(runDecisionsDecider([{ name: 'base' }]))
      .given()
      .when({ type: 'ResumeStep', step: 'base', ...made })
      .thenRejected('NOT_SKIPPABLE', {
        message: "step 'base' may not be skipped; steps that may be skipped: none",
      });
    of.given()
      .when({ type: 'SkipStep', step: 'walls', ...made })
      .thenEvents(skipped);
  });
  it('changes nothing the second time', () => {
    of.given(skipped)
      .when({ type: 'SkipStep', step: 'walls', ...made })
      .thenNothing();
    of.given(aborted)
      .when({ type: 'AbortRun', ...made })
      .thenNothing();
    of.given()
      .when({ type: 'ResumeStep', step: 'walls', ...made })
      .thenNothing();
  });
  it('takes up only what is skipped, and may skip it again', () => {
    const resumed = { type: 'StepResumed', data: { ...made, step: 'walls' } } as const;
    of.given(skipped)
      .when({ type: 'ResumeStep', step: 'walls', ...made })
      .thenEvents(resumed);
    of.given(skipped, resumed)
      .when({ type: 'SkipStep', step: 'walls', ...made })
      .thenEvents(skipped);
  });
  it('is a retry every time', () => {
    const retried = { type: 'RunRetried', data: made } as const;
    of.given(retried)
      .when({ type: 'RetryRun', ...made })
      .thenEvents(retried);
  });
  it('is refused of an aborted run, unless the abort may have come after the pivot', () => {
    of.given(aborted)
      .when({ type: 'RetryRun', ...made })
      .thenRejected('RUN_ABORTED');
    specify(runDecisionsDecider([{ name: 'base', pivot: true }]))
      .given(aborted)
      .when({ type: 'RetryRun', ...made })
      .thenEvents({ type: 'RunRetried', data: made });
  });
  it('is refused when it comes too late for the run', () => {
    const [abort, retry, skip] = [
      { type: 'AbortRun', ...made },
      { type: 'RetryRun', ...made },
      { type: 'SkipStep', step: 'walls', ...made },
    ] as const;
    const run = createBuilding({ roof: { pivot: true } });
    for (const step of ['base', 'walls']) run.perform(step, done());
    expect(refusedBy(run.state(), abort)).to.equal(undefined);
    run.perform('roof', done());
    expect(refusedBy(run.state(), abort)).to.include({ code: 'PIVOT_PASSED' });
    expect(refusedBy(run.state(), retry)).to.equal(undefined);
    run.remove();
    for (const decision of [abort, retry])
      expect(refusedBy(run.state(), decision)).to.include({ code: 'DELETION_REQUESTED' });
    expect(refusedBy(run.state(), skip), 'a step of the deletion may be in the way').to.equal(undefined);
  });
});
