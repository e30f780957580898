import { expect } from 'chai';
import type { FoldedEvent } from '../../../../src/domain/workflow.ts';
import { stepWorkflow } from '../../../../src/domain/process/step-workflow.ts';
import { createStepRun, done } from '../../../support/domain/step-run.ts';
import { createBuilding, shedDeclaration } from './toy/building.ts';
import { shedDecider } from './toy/shed.ts';

describe('steps of a run', () => {
  it('are carried out one after the other, and each fact is stored once', () => {
    const run = createBuilding();
    expect(run.effects()).to.deep.equal(['base']);
    run.perform('base', done());
    expect(run.effects(), 'the shed recorded the base').to.deep.equal(['walls']);
    run.perform('walls', done({ height: 3 }));
    run.perform('roof', done());
    expect(run.effects()).to.deep.equal([]);
    expect(run.commands()).to.deep.equal(['Open']);
    expect(run.runTypes()).to.deep.equal([
      'EffectStarted',
      'EffectStarted',
      'EffectSucceeded',
      'EffectStarted',
    ]);
    expect(run.subjectTypes()).to.deep.equal(['ShedOrdered', 'PartBuilt', 'PartBuilt', 'ShedOpened']);
    expect(run.isFolded()).to.equal(true);
  });
  it('remember the result where the subject did not record it, and what was sent in any case', () => {
    const run = createBuilding();
    run.perform('base', done({ depth: 1 }));
    run.perform('walls', done({ height: 3 }));
    const { base, walls } = run.state().done;
    expect(base).to.deep.include({ instance: '0', times: 1, facts: { colour: 'red' } });
    expect(base).to.not.have.property('result');
    expect(walls).to.deep.include({ result: { height: 3 }, facts: { colour: 'red' } });
  });
  it('store of a result what the row keeps', () => {
    const run = createBuilding({ walls: { keep: (_run, { height }) => ({ height: height ?? 0 }) } });
    run.perform('base', done());
    run.perform('walls', done({ height: 3, secret: 'x' }));
    expect(run.runLog().at(-1)?.data['result']).to.deep.equal({ height: 3 });
  });
  it('wait for what a step that is not needed, or skipped, waits for', () => {
    const run = createBuilding({ walls: { needed: () => false } });
    expect(run.effects()).to.deep.equal(['base']);
    run.perform('base', done());
    expect(run.effects()).to.deep.equal(['roof']);
  });
  it('are active since the event that made them so', () => {
    const run = createBuilding();
    expect(run.state().since).to.deep.equal({ base: run.subjectLog()[0]?.data['at'] });
    run.perform('base', done());
    expect(run.state().since).to.deep.equal({ walls: run.subjectLog()[1]?.data['at'] });
  });
  it('belong to no run before the subject asks for anything', () => {
    const workflow = stepWorkflow(shedDeclaration());
    const state = workflow.initialState();
    expect(workflow.pending(state)).to.deep.equal({ commands: [], effects: [], timers: [] });
    expect(workflow.isClosed(state)).to.equal(false);
  });
  it('fold events of types that nobody knows yet', () => {
    const run = createBuilding();
    const newer = { ...(run.subjectLog()[0] as FoldedEvent), type: 'FromTheFuture' };
    const { evolve } = stepWorkflow(shedDeclaration());
    for (const stream of ['subject', 'run'] as const) {
      expect(evolve(run.state(), { ...newer, of: stream }).since).to.deep.equal(run.state().since);
    }
  });
  it('are refused where they name a step that there is not, one twice, or come after themselves', () => {
    expect(() => createBuilding({ roof: { after: ['wall'] } })).to.throw('no step is called wall');
    expect(() => createBuilding({ open: { name: 'watch' } })).to.throw('two steps have one name');
    expect(() => createBuilding({ base: { after: ['roof'] } })).to.throw('comes after itself');
    const { steps, ...declared } = shedDeclaration({ walls: { pivot: true } });
    const withoutUndo = steps.map(({ undo: _undo, ...step }) => step);
    expect(() => stepWorkflow({ ...declared, steps: withoutUndo })).to.throw(
      'a pivot with an effect needs undo',
    );
  });
});

describe('what a run tells its subject', () => {
  const built = () => {
    const run = createBuilding();
    for (const part of ['base', 'walls', 'roof']) run.perform(part, done());
    return run;
  };
  it('is offered as long as the subject has something to record of it', () => {
    const run = built();
    const [open] = run.pending().commands;
    expect(open).to.include({ key: 'open@2', aggregate: 'shed', id: 'one' });
    run.commands();
    expect(run.pending().commands).to.deep.equal([]);
  });
  it('is not offered while the subject would refuse it, and the step waits', () => {
    const run = createBuilding({
      open: { tell: (_run, at) => ({ type: 'ConfirmGone', at }) },
      watch: { needed: () => false },
    });
    for (const part of ['base', 'walls', 'roof']) run.perform(part, done());
    expect(run.pending().commands).to.deep.equal([]);
    expect(run.state().since).to.have.property('open');
  });
  it('follows from the newest event, but never from the start of an effect', () => {
    const run = createBuilding();
    run.start('base');
    run.observe({ parts: ['moss'] });
    expect(run.subjectLog().at(-1)).to.include({ type: 'YardSeen', causationId: 'subject-0' });
    expect(run.state().effects['base']?.status, 'what was seen is not its success').to.equal('started');
  });
  it('is a refusal of people once per step and code, when it is still offered', () => {
    const run = built();
    const refusedWith = (code: string, commandKey: string) =>
      run.input({
        kind: 'command-result',
        commandKey,
        result: { accepted: false, code, message: 'no' },
        now: run.now(),
      });
    expect(refusedWith('NO_ROOM', 'open@2').map(({ type }) => type)).to.deep.equal(['CommandRefused']);
    expect(refusedWith('NO_ROOM', 'open@2')).to.deep.equal([]);
    expect(refusedWith('OTHER', 'open@1'), 'the shed changed meanwhile').to.deep.equal([]);
    expect(refusedWith('OTHER', 'open@2')).to.have.length(1);
    expect(run.pending().commands, 'it is offered on').to.have.length(1);
  });
  it('is said by what was observed only when it is new to the subject, and the run stores nothing', () => {
    const run = built();
    run.commands();
    const before = run.runLog().length;
    expect(run.pending().effects).to.deep.include({
      effectId: 'watch:0',
      port: 'yard',
      operation: 'list',
      args: {},
      lane: 'yard',
      attempt: 1,
      mode: 'observe',
      everyMs: 10_000,
    });
    run.observe({ parts: ['base'] });
    run.observe({ parts: ['base'] });
    expect(run.subjectTypes().filter((type) => type === 'YardSeen')).to.have.length(1);
    expect(run.runLog()).to.have.length(before);
  });
});

describe('a success that the subject records', () => {
  it('is done when the event that follows from the start is folded, whoever appended it', () => {
    const run = createBuilding();
    run.perform('base', done());
    expect(run.subjectLog()[1]).to.include({ type: 'PartBuilt', causationId: run.runLog()[0]?.id });
  });
  it('is stored by the run when the subject has nothing to record, or refuses', () => {
    const known = createBuilding();
    known.command({ type: 'NotePart', at: known.now(), part: 'base' });
    known.perform('base', done());
    expect(known.runTypes()).to.deep.equal(['EffectStarted', 'EffectSucceeded']);
  });
  it('is stored by the run when the subject changed on the way to it', () => {
    const run = createBuilding();
    const { effectId } = run.start('base');
    run.command({ type: 'NotePart', at: run.now(), part: 'base' }, 'unheard');
    expect(run.result(effectId, done()).map(({ type }) => type)).to.deep.equal(['EffectSucceeded']);
    expect(run.effects()).to.deep.equal(['walls']);
  });
  for (const dies of ['before', 'after'] as const) {
    it(`is not recorded twice when the process dies ${dies} telling the subject`, () => {
      const run = createBuilding();
      const { effectId } = run.start('base');
      run.result(effectId, done(), dies);
      run.restart();
      if (dies === 'before') {
        expect(run.effect('base')).to.include({ attempt: 2, mode: 'observe' });
        run.perform('base', done());
      }
      expect(run.subjectTypes()).to.deep.equal(['ShedOrdered', 'PartBuilt']);
      expect(run.effects()).to.deep.equal(['walls']);
    });
  }
});

describe('the memo of a run', () => {
  it('is folded from both streams, and its timers end when it says so', () => {
    const run = createBuilding();
    expect(run.timers()).to.deep.equal(['nudge']);
    run.fire('nudge');
    expect(run.state().memo).to.deep.equal({ nudges: 1 });
    expect(run.timers()).to.deep.equal([]);
    expect(run.fire('nudge'), 'it is no longer kept').to.deep.equal([]);
  });
  it('may halt the forward steps as long as it has a reason', () => {
    const { memo: _memo, ...declared } = shedDeclaration();
    const run = createStepRun(
      stepWorkflow({
        ...declared,
        memo: {
          initial: { nudges: 0 },
          evolve: ({ nudges }, { type }) => ({
            nudges: type === 'TimerFired' ? 1 : type === 'YardSeen' ? 0 : nudges,
          }),
        },
        halts: ({ memo, since }) =>
          memo.nudges === 0
            ? undefined
            : { at: since['base'] ?? '', effect: '', reason: 'Nudged', message: 'nudged', permanent: true },
      }),
      shedDecider,
    );
    run.command({ type: 'Order', at: run.now(), id: run.id });
    run.fire('nudge');
    expect(run.effects()).to.deep.equal([]);
    run.observe({ parts: ['moss'] });
    expect(run.effects()).to.deep.equal(['base']);
  });
  it('hears of every event with the run that has folded it', () => {
    const seen: string[] = [];
    const note = (memo: { nudges: number }, event: FoldedEvent): { nudges: number } => {
      seen.push(`${event.of} ${event.type}`);
      return memo;
    };
    const { memo: _memo, ...declared } = shedDeclaration();
    const workflow = stepWorkflow({ ...declared, memo: { initial: { nudges: 0 }, evolve: note } });
    workflow.evolve(workflow.initialState(), {
      of: 'subject',
      id: 'a',
      type: 'ShedOrdered',
      data: { at: '2026-11-21T12:00:00.000Z', id: 'one' },
      revision: 0,
      causationId: '',
      tenant: 't1',
    });
    expect(seen).to.deep.equal(['subject ShedOrdered']);
  });
});
