import { expect } from 'chai';
import { createBuilding } from './toy/building.ts';
import { done } from '../../../support/step-run.ts';

describe('first', () => {
  it('builds', () => {
    const run = createBuilding();
    expect(run.effects()).to.deep.equal(['base']);
    run.perform('base', done());
    expect(run.effects()).to.deep.equal(['walls']);
    run.perform('walls', done({ height: 3 }));
    run.perform('roof', done());
    expect(run.commands()).to.deep.equal(['Open']);
    expect(run.runTypes()).to.deep.equal([
      'EffectStarted',
      'EffectStarted',
      'EffectSucceeded',
      'EffectStarted',
    ]);
    expect(run.subjectTypes()).to.deep.equal(['ShedOrdered', 'PartBuilt', 'PartBuilt', 'ShedOpened']);
    expect(run.isFolded()).to.equal(true);
    run.remove();
    expect(run.effects()).to.deep.equal(['undo-roof']);
    run.perform('undo-roof', done({ there: true }));
    expect(run.effects()).to.deep.equal(['undo-roof']);
    run.perform('undo-roof', done({ there: false }));
    run.perform('undo-walls', done({ there: false }));
    run.perform('undo-base', done({ there: false }));
    expect(run.commands()).to.deep.equal(['ConfirmGone']);
    console.log(run.runTypes(), run.subjectTypes(), run.state());
    expect(run.isFolded()).to.equal(true);
  });
});
