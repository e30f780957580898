import { expect } from 'chai';
import { BACKOFF, delayAfter, later } from '../../../../src/domain/process/effects.ts';
import { done, failed, refused, unknown } from '../../../support/domain/step-run.ts';
import { createBuilding } from './toy/building.ts';

describe('attempts of an effect', () => {
  it('begin again under the same id after a failure, not before its rest is over', () => {
    const run = createBuilding();
    run.perform('base', failed());
    const { notBefore, ...next } = run.effect('base');
    expect(next).to.include({ effectId: 'base:0', attempt: 2, mode: 'perform' });
    expect(notBefore).to.equal(later(run.at(), delayAfter('base:0', 1, BACKOFF)));
  });
  it('record the first failure of each reason, and not before the far side asked for', () => {
    const run = createBuilding();
    run.perform('base', failed('Busy', 90_000));
    expect(run.effect('base').notBefore).to.equal(later(run.at(), 90_000));
    run.perform('base', failed('Busy'));
    run.perform('base', failed('Closed'));
    expect(run.runTypes().filter((type) => type === 'EffectFailed')).to.have.length(2);
  });
  it('look before they repeat once nobody knows, and a failure after that changes nothing of it', () => {
    const run = createBuilding();
    run.perform('base', unknown);
    expect(run.effect('base')).to.include({ attempt: 2, mode: 'observe' });
    run.perform('base', failed());
    expect(run.effect('base')).to.include({ attempt: 3, mode: 'observe' });
    run.perform('base', done());
    expect(run.effects()).to.deep.equal(['walls']);
  });
  it('record every failure of a row that must know for certain', () => {
    const run = createBuilding({ base: { rules: { everyFailure: true } } });
    for (let attempt = 1; attempt <= 3; attempt += 1) run.perform('base', failed());
    expect(run.runTypes().filter((type) => type === 'EffectFailed')).to.have.length(3);
    expect(run.effect('base')).to.include({ attempt: 4, mode: 'perform' });
  });
  it('look first after a crash, at once', () => {
    const run = createBuilding();
    run.start('base');
    run.restart();
    const { notBefore, mode } = run.effect('base');
    expect(mode).to.equal('observe');
    expect(notBefore).to.equal(run.at());
  });
  it('tell people after as many as the row allows, and go on', () => {
    const run = createBuilding({ base: { rules: () => ({ attempts: 2 }) } });
    run.perform('base', failed());
    run.perform('base', failed());
    run.perform('base', failed());
    expect(run.runTypes().filter((type) => type === 'EffectStalled')).to.have.length(1);
    expect(run.state().problem).to.include({ effect: 'base', reason: 'Unavailable', permanent: false });
    expect(run.commands()).to.deep.equal(['ReportProblem']);
    expect(run.effects()).to.deep.equal(['base']);
    run.perform('base', done());
    expect(run.state()).to.not.have.property('problem');
    expect(run.isFolded()).to.equal(true);
  });
  it('never begin before a time that the row names', () => {
    const until = '2026-11-22T00:00:00.000Z';
    const run = createBuilding({
      base: {
        work: () => ({
          call: { port: 'yard', operation: 'build', args: {}, lane: 'yard' },
          notBefore: until,
        }),
      },
    });
    expect(run.effect('base')).to.include({ notBefore: until, firmUntil: until });
    run.perform('base', failed());
    expect(run.effect('base')).to.include({ notBefore: until, firmUntil: until });
  });
  it('that are late, doubled or of another effect change nothing', () => {
    const run = createBuilding();
    const { effectId } = run.start('base');
    expect(run.result('base:7', done())).to.deep.equal([]);
    expect(run.result('moat:0', done())).to.deep.equal([]);
    run.result(effectId, done());
    const [before, events] = [run.state(), run.runLog().length + run.subjectLog().length];
    run.result(effectId, done());
    run.result(effectId, failed());
    expect(run.runLog().length + run.subjectLog().length).to.equal(events);
    expect(run.state()).to.deep.equal(before);
  });
  it('are made again under another id when the row names another instance, and one in doubt is settled first', () => {
    const run = createBuilding({
      base: {
        work: ({ memo }) => ({
          call: { port: 'yard', operation: 'build', args: {}, lane: 'yard' },
          instance: `n${memo.nudges}`,
        }),
      },
    });
    run.perform('base', unknown);
    run.fire('nudge');
    expect(run.effect('base')).to.include({ effectId: 'base:n0', attempt: 2, mode: 'observe' });
    run.perform('base', done());
    expect(run.effect('base')).to.include({ effectId: 'base:n1', attempt: 1, mode: 'perform' });
    run.perform('base', done());
    expect(run.effects()).to.deep.equal(['walls']);
    expect(run.state().done['base']).to.include({ instance: 'n1', times: 2 });
  });
});

describe('a refused effect', () => {
  const halted = () => {
    const run = createBuilding();
    run.perform('base', refused);
    return run;
  };
  it('halts the forward steps, and people are told once', () => {
    const run = halted();
    expect(run.effects()).to.deep.equal([]);
    expect(run.state().halted).to.include({ effect: 'base', reason: 'ValidationFailed', permanent: true });
    expect(run.commands()).to.deep.equal(['ReportProblem']);
    expect(run.pending().commands).to.deep.equal([]);
  });
  it('stays refused whatever comes late', () => {
    const run = halted();
    run.result('base:0', done());
    expect(run.subjectTypes()).to.not.include('PartBuilt');
    expect(run.state()).to.have.property('halted');
  });
  it('is tried again under another id by a retry, of an operator or of the subject', () => {
    const byOperator = halted();
    byOperator.retry();
    expect(byOperator.effect('base')).to.include({ effectId: 'base:1', attempt: 1, mode: 'perform' });
    expect(byOperator.state()).to.not.have.property('problem');
    const bySubject = halted();
    bySubject.command({ type: 'Retry', at: bySubject.now() });
    expect(bySubject.effect('base').effectId).to.equal('base:1');
  });
  it('is settled under its own id by a retry when an attempt before it had no answer', () => {
    const run = createBuilding();
    run.perform('base', unknown);
    run.perform('base', refused);
    run.retry();
    expect(run.effect('base')).to.include({ effectId: 'base:0', attempt: 3, mode: 'observe' });
  });
  it('may be lifted in the same cycle by an event that the declaration names', () => {
    const run = halted();
    run.command({ type: 'LiftHalt', at: run.now() });
    expect(run.state()).to.not.have.any.keys('halted', 'problem');
    expect(run.state().cycle).to.equal(0);
  });
  it('is a failure with the longest rest where the row may not be refused', () => {
    const run = createBuilding({ base: { rules: { mayBeRefused: false } } });
    run.perform('base', refused);
    expect(run.runTypes()).to.deep.equal(['EffectStarted', 'EffectFailed']);
    expect(run.effect('base').notBefore).to.equal(later(run.at(), BACKOFF.maxMs));
  });
});
