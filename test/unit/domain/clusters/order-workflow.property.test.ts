import { expect } from 'chai';
import fc from 'fast-check';
import { configVersion } from '../../../../src/domain/clusters/observation.ts';
import type { ClusterObservation, ClusterOrderSpecShape } from '../../../../src/domain/clusters/observed.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { EffectOutcome, PendingEffect } from '../../../../src/domain/workflow.ts';
import { orderMoves, type OrderMove } from '../../../support/arbitraries/order-steps.ts';
import { createOrderRun, done, failed, placedOn, refused, unknown } from './order-run.ts';
import { hosted, observedOrder, time } from './samples.ts';
import { check } from '../../../support/property.ts';

/** The far side: what really exists, whatever anybody was told. */
const createFarSide = () => {
  let order: { spec: ClusterOrderSpecShape; stage: number; deleting: boolean } | undefined;
  let reserved = false;
  const names = new Set<string>();
  const look = (): ClusterObservation => {
    if (order === undefined) return { order: null };
    const { spec, stage, deleting } = order;
    const counts = Object.fromEntries(
      spec.nodeRequests.map((each) => [each.resourceClass, each.numberOfNodes]),
    );
    return {
      order: observedOrder({
        spec,
        phase: stage === 0 ? 'Progressing' : 'Ready',
        desiredConfigVersion: configVersion(spec),
        jobs: [],
        ...(deleting ? { deletionTimestamp: time(50) } : {}),
      }),
      hostedCluster: stage === 0 ? null : hosted({}, stage === 1 ? {} : counts),
    };
  };
  return {
    look,
    names,
    exists: () => order !== undefined,
    reserved: () => reserved,
    /** Does what the effect asks for and says what it would answer. */
    perform: ({ operation, args }: PendingEffect): EffectOutcome => {
      if (operation === 'place') {
        reserved = true;
        return done(placedOn());
      }
      if (operation === 'resize') return done({ resized: true });
      if (operation === 'release') {
        reserved = false;
        return done();
      }
      if (operation === 'observeCluster') return done(look());
      if (operation === 'deleteClusterOrder') {
        if (order !== undefined) order = { ...order, deleting: true };
        return done({ existed: order !== undefined });
      }
      const manifest = args['manifest'] as unknown as { name: string; spec: ClusterOrderSpecShape };
      names.add(manifest.name);
      if (order?.deleting === true) return failed('BeingDeleted');
      order = { spec: manifest.spec, stage: order?.stage ?? 0, deleting: false };
      return done({ uid: 'uid-1' });
    },
    progress: () => {
      if (order?.deleting === true) order = undefined;
      else if (order !== undefined) order = { ...order, stage: Math.min(2, order.stage + 1) };
    },
    vanish: () => {
      order = undefined;
    },
  };
};

const play = (moves: readonly OrderMove[]) => {
  const run = createOrderRun();
  const hub = createFarSide();
  const answers: { effectId: string; outcome: EffectOutcome }[] = [];
  const looks: ClusterObservation[] = [];
  run.order();
  for (const move of moves) {
    step(move);
    invariants();
  }
  return { run, hub, finish };

  function step(move: OrderMove): void {
    const { commands, effects, timers } = run.pending();
    switch (move.move) {
      case 'scale': {
        const sets = { workers: { hostType: { id: 'fc430' }, size: move.size } };
        run.command({ type: 'ReviseCluster', at: time(40), changes: { nodeSets: sets } });
        return;
      }
      case 'delete':
      case 'cancel':
      case 'retry': {
        const type = { delete: 'DeleteCluster', cancel: 'CancelOrder', retry: 'RetryCluster' } as const;
        run.command({ type: type[move.move], at: time(50) });
        return;
      }
      case 'write-status':
        run.command({ type: 'ReviseCluster', at: time(40), changes: { status: { state: 'X' } } });
        return;
      case 'command': {
        const [next] = commands;
        if (next === undefined) return;
        const result = run.command(next.command as unknown as ClusterCommand);
        if (!move.lost) run.input({ kind: 'command-result', commandKey: next.key, result, now: time(1) });
        return;
      }
      case 'effect': {
        const effect = effects[move.pick % Math.max(1, effects.length)];
        if (effect !== undefined) perform(effect, move.fate);
        return;
      }
      case 'observe': {
        looks.push(hub.look());
        const look = move.stale ? looks[0] : looks.at(-1);
        if (look !== undefined) run.observe(look);
        return;
      }
      case 'timer': {
        const timer = timers[move.pick % Math.max(1, timers.length)];
        if (timer !== undefined) run.fire(timer.timerId);
        return;
      }
      case 'duplicate': {
        const answer = answers[move.pick % Math.max(1, answers.length)];
        if (answer !== undefined) run.result(answer.effectId, answer.outcome);
        return;
      }
      case 'progress':
        return hub.progress();
      case 'vanish':
        return hub.vanish();
    }
  }

  function perform(effect: PendingEffect, fate: Extract<OrderMove, { move: 'effect' }>['fate']): void {
    const { effectId, attempt } = effect;
    run.record({ type: 'EffectStarted', data: { at: run.at(), effectId, attempt, epoch: 1 } });
    const happens = fate === 'done' || fate.endsWith('-done');
    const truth = happens ? hub.perform(effect) : failed();
    if (fate.startsWith('crash')) return;
    const outcome = fate.startsWith('unknown') ? unknown : fate === 'refused' ? refused : truth;
    answers.push({ effectId, outcome });
    run.result(effectId, outcome);
  }

  function invariants(): void {
    expect(run.replayed()).to.deep.equal(run.state());
    expect(hub.names.size).to.be.at.most(1);
    const { effects, commands, timers } = run.pending();
    expect(new Set(effects.map(({ effectId }) => effectId)).size).to.equal(effects.length);
    expect(new Set(commands.map(({ key }) => key)).size).to.equal(commands.length);
    const state = run.state();
    for (const { effectId, attempt } of effects) {
      const known =
        state.status === 'open' ? state.effects[effectId.slice(0, effectId.indexOf(':'))] : undefined;
      if (known?.id === effectId) expect(attempt).to.equal(known.attempt + 1);
      else expect(attempt).to.equal(1);
    }
    if (state.status === 'closed') expect([...effects, ...commands, ...timers]).to.deep.equal([]);
    const cluster = run.cluster();
    if (cluster.status === 'deleted') expect(hub.exists(), 'deleted, yet there').to.equal(false);
  }

  /** From here on everything works: the order must come to its end. */
  function finish(until: () => boolean): void {
    for (let round = 0; round < 200 && !until(); round += 1) {
      run.after(3_600_000);
      for (const { timerId } of run.pending().timers) run.fire(timerId);
      run.commands();
      for (const effect of run.pending().effects) {
        if (effect.everyMs === undefined) perform(effect, 'done');
      }
      hub.progress();
      run.observe(hub.look());
      run.commands();
      const cluster = run.cluster();
      if (cluster.status !== 'deleted' && 'failure' in cluster && cluster.failure !== undefined) {
        run.command({ type: 'RetryCluster', at: time(55) });
      }
      invariants();
    }
    expect(until(), JSON.stringify([run.state(), run.pending()])).to.equal(true);
  }
};

describe('cluster order: whatever happens', () => {
  it('one object at most, no lost capacity, and absence before "deleted"', function () {
    this.timeout(20_000);
    check(
      fc.property(orderMoves(), (moves) => {
        const { run, hub, finish } = play(moves);
        run.command({ type: 'DeleteCluster', at: time(58) });
        finish(() => run.state().status === 'closed');
        expect(hub.exists()).to.equal(false);
        expect(hub.reserved()).to.equal(false);
        expect(run.cluster()).to.have.property('status', 'deleted');
      }),
      { numRuns: 300 },
    );
  });
  it('an order that is not deleted becomes ready as soon as the world lets it', function () {
    this.timeout(20_000);
    check(
      fc.property(
        orderMoves().map((moves) => moves.filter(({ move }) => move !== 'delete' && move !== 'cancel')),
        (moves) => {
          const { run, finish } = play(moves);
          finish(() => {
            const cluster = run.cluster();
            const calm = cluster.status === 'dispatched' && cluster.ready && !cluster.specPending;
            return calm && cluster.failure === undefined && run.pending().commands.length === 0;
          });
        },
      ),
      { numRuns: 300 },
    );
  });
});
