import { expect } from 'chai';
import { later } from '../../../../src/domain/process/effects.ts';
import { stepWorkflow } from '../../../../src/domain/process/step-workflow.ts';
import { createStepRun, done, failed } from '../../../support/domain/step-run.ts';
import { createBuilding, shedDeclaration, WALLS_DEADLINE_MS } from './toy/building.ts';
import { shedDecider } from './toy/shed.ts';

const atWalls = () => {
  const run = createBuilding();
  run.perform('base', done());
  return run;
};
const WALLS = 'deadline:walls';

describe('a deadline of a step', () => {
  it('is computed from when the step became active, and nothing is stored until it has passed', () => {
    const run = atWalls();
    const dueAt = later(run.state().since['walls'] ?? '', WALLS_DEADLINE_MS);
    expect(run.pending().timers).to.deep.include({ timerId: WALLS, dueAt });
    run.fire(WALLS);
    expect(run.runTypes()).to.deep.equal(['EffectStarted', 'TimerFired']);
    expect(run.timers()).to.not.include(WALLS);
    expect(run.fire(WALLS), 'once').to.deep.equal([]);
  });
  it('is looked into before anybody is told', () => {
    const run = atWalls();
    run.fire(WALLS);
    expect(run.effects()).to.include('check');
    expect(run.pending().commands).to.deep.equal([]);
    run.perform('check', done({ parts: [] }));
    expect(run.effects()).to.not.include('check');
    expect(run.state().overdue['walls']).to.have.keys('fired', 'checked');
    expect(run.commands()).to.deep.equal(['ReportLate']);
    expect(run.subjectLog().at(-1)?.data).to.include({ since: run.state().since['walls'] });
    expect(run.isFolded()).to.equal(true);
  });
  it('is told of until the subject knows, and not when the look shows the step done', () => {
    const run = createBuilding({ walls: { done: ({ subject }) => subject.seen.includes('walls') } });
    run.perform('base', done());
    run.fire(WALLS);
    run.perform('check', done({ parts: ['walls'] }));
    expect(run.subjectTypes(), 'the answer is told as every observation is').to.include('YardSeen');
    expect(run.runTypes(), 'and stored once').to.not.include('EffectSucceeded');
    expect(run.commands()).to.deep.equal([]);
    expect(run.state().overdue).to.deep.equal({});
    expect(run.effects()).to.deep.equal(['roof']);
  });
  it('waits for the look as long as that fails', () => {
    const run = atWalls();
    run.fire(WALLS);
    run.perform('check', failed());
    expect(run.pending().commands).to.deep.equal([]);
    expect(run.effect('check')).to.include({ attempt: 2 });
  });
  it('is told of at once where there is nothing to look at', () => {
    const { check: _check, ...declared } = shedDeclaration();
    const run = createStepRun(stepWorkflow(declared), shedDecider);
    run.command({ type: 'Order', at: run.now(), id: run.id });
    run.perform('base', done());
    run.fire(WALLS);
    expect(run.commands()).to.deep.equal(['ReportLate']);
  });
  it('is forgotten with the step, and begins again with it and with a retry', () => {
    const run = atWalls();
    run.fire(WALLS);
    run.retry();
    expect(run.state().overdue).to.deep.equal({});
    expect(run.pending().timers).to.deep.include({
      timerId: WALLS,
      dueAt: later(run.runLog().at(-1)?.data['at'] as string, WALLS_DEADLINE_MS),
    });
    run.fire(WALLS);
    expect(run.effect('check').effectId, 'another look').to.not.equal('check:0.1.live.');
    run.perform('walls', done());
    expect(run.state().overdue).to.deep.equal({});
  });
});

describe('a look besides', () => {
  it('is made when the declaration wants one, and again for another reason', () => {
    const declared = shedDeclaration();
    const check = {
      call: () => ({ port: 'yard', operation: 'list', args: {}, lane: 'yard' }),
      wanted: ({ subject, done: successes }: { subject: { seen: readonly string[] }; done: object }) =>
        subject.seen.length > 0 && !Object.hasOwn(successes, 'check') ? subject.seen.join() : undefined,
      keep: () => ({ missing: 'roof' }),
    };
    const run = createStepRun(stepWorkflow({ ...declared, check }), shedDecider);
    run.command({ type: 'Order', at: run.now(), id: run.id });
    expect(run.effects()).to.not.include('check');
    run.observe({ parts: ['moss'] });
    expect(run.effect('check').effectId).to.equal('check:0.0.live.moss');
    run.perform('check', done({ parts: ['moss'], huge: 'x' }));
    expect(run.runLog().at(-1)?.data['result'], 'what is kept of it').to.deep.equal({ missing: 'roof' });
    expect(run.effects()).to.not.include('check');
  });
});
