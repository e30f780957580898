import { expect } from 'chai';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { done, failed, refused, unknown } from '../../../support/domain/step-run.ts';
import { createBuilding, undoOf, type Changes } from './toy/building.ts';

const there = done({ there: true });
const gone = done({ there: false });

/** Built as far as this. */
const built = (parts: readonly string[], changes: Changes = {}) => {
  const run = createBuilding(changes);
  for (const part of parts) run.perform(part, done());
  return run;
};
const ALL = ['base', 'walls', 'roof'];

describe('an aborted run', () => {
  it('is undone in reverse order of dependency, and the subject hears of it', () => {
    const run = built(ALL);
    run.abort();
    for (const part of ALL.toReversed()) {
      expect(run.effects()).to.deep.equal([`undo-${part}`]);
      expect(run.effect(`undo-${part}`).args).to.deep.equal({ part });
      run.perform(`undo-${part}`, gone);
    }
    expect(run.effects()).to.deep.equal([]);
    expect(run.subject().built).to.deep.equal({});
    expect(
      run.runTypes().filter((type) => type === 'EffectSucceeded'),
      'walls, and their undoing',
    ).to.have.length(2);
    expect(run.isFolded()).to.equal(true);
  });
  it('undoes every step on its own that nothing depends on', () => {
    const run = createBuilding({ roof: { after: ['base'] } });
    run.perform('base', done());
    run.perform('walls', done());
    run.perform('roof', done());
    run.abort();
    expect(run.effects()).to.deep.equal(['undo-walls', 'undo-roof']);
    run.perform('undo-walls', gone);
    expect(run.effects()).to.deep.equal(['undo-roof']);
  });
  it('undoes what was begun, whatever became of it, and nothing that was not', () => {
    const run = built(['base']);
    run.perform('walls', failed());
    run.abort();
    expect(run.effects()).to.deep.equal(['undo-walls']);
    const untouched = createBuilding();
    untouched.abort();
    expect(untouched.effects()).to.deep.equal([]);
  });
  it('undoes across a step that was never begun', () => {
    const run = built(['base', 'roof'], { walls: { needed: () => false } });
    run.abort();
    expect(run.effects()).to.deep.equal(['undo-roof']);
  });
  it('is done with a step only when its absence was seen, and looks until then', () => {
    const run = built(['base'], { base: { undo: { ...undoOf('base'), rules: { attempts: 2 } } } });
    run.abort();
    expect(run.start('undo-base')).to.include({
      effectId: 'undo-base:0',
      mode: 'perform',
      priority: 'deletion',
    });
    run.result('undo-base:0', there);
    expect(run.effect('undo-base')).to.include({ attempt: 2, mode: 'observe' });
    run.perform('undo-base', there);
    expect(run.state().problem, 'people are told when it takes long').to.include({ reason: 'StillThere' });
    run.perform('undo-base', there);
    expect(run.runTypes().filter((type) => type === 'EffectOutcomeUnknown')).to.have.length(1);
    run.perform('undo-base', gone);
    expect(run.effects()).to.deep.equal([]);
    expect(run.state()).to.not.have.property('problem');
  });
  it('is never refused for good', () => {
    const run = built(['base']);
    run.abort();
    run.perform('undo-base', refused);
    expect(run.effects()).to.deep.equal(['undo-base']);
    expect(run.state()).to.not.have.property('halted');
  });
  it('settles an attempt without an answer by a look before it is undone', () => {
    const run = built(['base']);
    run.perform('walls', unknown);
    run.abort();
    expect(run.pending().effects).to.have.length(1);
    expect(run.effect('walls')).to.include({
      effectId: 'walls:0',
      attempt: 2,
      mode: 'observe',
      operation: 'look',
    });
    run.perform('walls', refused);
    expect(run.effects(), 'a look that is refused says nothing').to.deep.equal(['walls']);
    run.perform('walls', gone);
    expect(run.runLog().at(-1)?.data).to.include({ effectId: 'walls:0', found: false });
    expect(run.effects()).to.deep.equal(['undo-walls']);
  });
  it('takes an answer that was on its way for what it says', () => {
    const run = built(['base']);
    const { effectId } = run.start('walls');
    run.abort();
    run.result(effectId, done({ height: 3 }));
    expect(run.effects()).to.deep.equal(['undo-walls']);
  });
  it('undoes again what a late answer shows to be there', () => {
    const run = built(['base']);
    run.perform('walls', unknown);
    run.abort();
    run.perform('walls', gone);
    run.perform('undo-walls', gone);
    expect(run.effects()).to.deep.equal(['undo-base']);
    run.result('walls:0', done());
    expect(run.effects()).to.include('undo-walls');
    expect(run.effect('undo-walls').effectId).to.equal('undo-walls:1');
    expect(run.effects(), 'the base waits for it').to.not.include('undo-base');
  });
  it('takes an absence for old that was looked for before a late success', () => {
    const run = built(['base']);
    run.perform('walls', unknown);
    run.abort();
    run.perform('walls', gone);
    const { effectId } = run.start('undo-walls');
    run.result('walls:0', done());
    run.result(effectId, gone);
    expect(run.effect('undo-walls').effectId).to.equal('undo-walls:1');
  });
  it('undoes again what an observation shows to be there', () => {
    const run = built(['base']);
    run.abort();
    run.perform('undo-base', gone);
    run.observe({ parts: ['base'] });
    expect(run.runLog().at(-1)?.data).to.include({ effectId: 'base:0', found: true });
    expect(run.effect('undo-base').effectId).to.equal('undo-base:1');
    run.perform('undo-base', gone);
    run.observe({ parts: [] });
    expect(run.effects()).to.deep.equal([]);
    expect(run.isFolded()).to.equal(true);
  });
  it('stays open until its subject is deleted, and is closed with it', () => {
    const run = built(['base']);
    run.abort();
    run.perform('undo-base', gone);
    expect(run.isClosed()).to.equal(false);
    run.remove();
    run.commands();
    expect(run.isClosed()).to.equal(true);
  });
});

describe('a deletion', () => {
  it('undoes what was begun, and the subject is told when all is gone', () => {
    const run = built(['base', 'walls']);
    run.remove();
    run.perform('undo-walls', gone);
    expect(run.commands()).to.deep.equal([]);
    run.perform('undo-base', gone);
    expect(run.commands()).to.deep.equal(['ConfirmGone']);
    expect(run.isClosed()).to.equal(true);
    expect(run.pending()).to.deep.equal({ commands: [], effects: [], timers: [] });
  });
  it('ends halt and deadlines', () => {
    const run = built(['base']);
    run.fire('deadline:walls');
    run.perform('walls', refused);
    run.remove();
    expect(run.state()).to.not.have.any.keys('halted', 'problem');
    expect(run.state().overdue).to.deep.equal({});
    expect(run.effects()).to.deep.equal(['undo-walls']);
  });
  it('goes on with what an abort began to undo', () => {
    const run = built(['base', 'walls']);
    run.abort();
    run.perform('undo-walls', gone);
    run.remove();
    expect(run.effects()).to.deep.equal(['undo-base']);
  });
});

describe('the pivot', () => {
  const PIVOT: Changes = { walls: { pivot: true } };
  it('is undone like any other step until it is done', () => {
    const run = built(['base'], PIVOT);
    run.perform('walls', failed());
    run.abort();
    expect(run.effects()).to.deep.equal(['undo-walls']);
  });
  it('leaves an abort without effect once it is done', () => {
    const run = built(['base', 'walls'], PIVOT);
    run.abort();
    expect(run.state()).to.include({ passed: true }).and.not.have.property('aborted');
    expect(run.effects()).to.deep.equal(['roof']);
    run.perform('roof', done());
    expect(run.commands()).to.deep.equal(['Open']);
  });
  it('is looked at before anything is undone while nobody knows', () => {
    const run = built(['base'], PIVOT);
    run.perform('walls', unknown);
    run.abort();
    expect(run.effect('walls')).to.include({ operation: 'look' });
    const beside = createBuilding({ ...PIVOT, roof: { after: ['base'] } });
    beside.perform('base', done());
    beside.perform('roof', done());
    beside.perform('walls', unknown);
    beside.abort();
    expect(beside.effects(), 'the roof stands beside it').to.deep.equal(['walls']);
    const happened = run.perform('walls', there);
    expect(happened.map(({ type }) => type)).to.deep.equal(['EffectSucceeded']);
    expect(run.effects(), 'the abort came too late').to.deep.equal(['roof']);
    expect(run.isFolded()).to.equal(true);
  });
  it('is looked at also when an attempt was refused after one without an answer', () => {
    const run = built(['base'], PIVOT);
    run.perform('walls', unknown);
    run.perform('walls', refused);
    run.abort();
    expect(run.effects()).to.deep.equal(['walls']);
    expect(run.effect('walls')).to.include({ operation: 'look' });
    run.perform('walls', there);
    expect(run.effects(), 'the abort came too late').to.deep.equal(['roof']);
    expect(run.isFolded()).to.equal(true);
  });
  it('is undone when that look found nothing, although a success comes later', () => {
    const run = built(['base'], PIVOT);
    run.perform('walls', unknown);
    run.abort();
    run.perform('walls', gone);
    run.perform('undo-walls', gone);
    run.result('walls:0', done());
    expect(run.effects()).to.deep.equal(['undo-walls']);
  });
  it('leaves a deletion to the rows that the kind has for it', () => {
    const run = built(['base', 'walls'], PIVOT);
    run.remove();
    expect(run.effects()).to.deep.equal(['demolish']);
    run.perform('demolish', done());
    expect(run.commands()).to.deep.equal(['ConfirmGone']);
    expect(run.isClosed()).to.equal(true);
  });
});

describe('a run whose subject says that it is aborted', () => {
  const stopped = () => {
    const run = createBuilding({}, { aborts: (shed) => shed.stopped === true });
    for (const part of ['base', 'walls']) run.perform(part, done());
    run.command({ type: 'Stop', at: run.now() });
    return run;
  };
  const undone = () => {
    const run = stopped();
    for (const part of ['walls', 'base']) run.perform(`undo-${part}`, gone);
    return run;
  };
  it('is undone as an aborted one is', () => {
    const run = stopped();
    expect(run.effects()).to.deep.equal(['undo-walls']);
    run.perform('undo-walls', gone);
    expect(run.effects()).to.deep.equal(['undo-base']);
    run.perform('undo-base', gone);
    expect(run.effects()).to.deep.equal([]);
    expect(run.isFolded()).to.equal(true);
  });
  it('begins anew with the next retry, and can be undone again', () => {
    const run = undone();
    run.command({ type: 'Retry', at: run.now() });
    expect(run.effect('base').effectId).to.equal('base:1');
    run.perform('base', done());
    run.command({ type: 'Stop', at: run.now() });
    expect(run.effect('undo-base').effectId).to.equal('undo-base:1');
    run.perform('undo-base', gone);
    expect(run.effects()).to.deep.equal([]);
    expect(run.isFolded()).to.equal(true);
  });
  it('ends when it is deleted, whether it was undone or not', () => {
    for (const [run, left] of [
      [stopped(), ['undo-walls']],
      [undone(), []],
    ] as const) {
      run.remove();
      expect(run.effects()).to.deep.equal(left);
    }
  });
  it('is halted no more by what was refused before', () => {
    const run = createBuilding({}, { aborts: (shed) => shed.stopped === true });
    run.perform('base', refused);
    run.command({ type: 'Stop', at: run.now() });
    expect(run.state()).to.not.have.any.keys('halted', 'problem');
  });
});

describe('an undoing whose end is observed', () => {
  const watched = () => {
    const undo = { ...undoOf('base'), gone: (_run: unknown, { parts }: JsonObject) => parts === 'none' };
    const run = built(['base'], { base: { undo } });
    run.abort();
    return run;
  };
  it('is done when an observation shows the absence that was asked for', () => {
    const run = watched();
    run.perform('undo-base', there);
    run.observe({ parts: ['base'] });
    expect(run.effects()).to.deep.equal(['undo-base']);
    run.observe({ parts: 'none' });
    expect(run.effects()).to.deep.equal([]);
    expect([run.subject().built, run.isFolded()]).to.deep.equal([{}, true]);
  });
  it('takes no absence for it that was seen before its first answer', () => {
    const run = watched();
    run.observe({ parts: 'none' });
    run.start('undo-base');
    run.observe({ parts: 'none' });
    expect(run.effects()).to.deep.equal(['undo-base']);
  });
  it('takes it also after the removal was refused', () => {
    const run = watched();
    run.perform('undo-base', refused);
    run.observe({ parts: 'none' });
    expect(run.effects()).to.deep.equal([]);
  });
});
