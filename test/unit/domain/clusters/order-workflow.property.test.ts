import { isDeepStrictEqual } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import { configVersion } from '../../../../src/domain/clusters/observation.ts';
import type { ClusterObservation, ClusterOrderSpecShape } from '../../../../src/domain/clusters/observed.ts';
import { RECONSIDER_HUB } from '../../../../src/domain/clusters/order-workflow/timers.ts';
import type { ClusterCommand } from '../../../../src/domain/clusters/commands.ts';
import type { EffectOutcome, PendingEffect } from '../../../../src/domain/workflow.ts';
import { orderMoves, type OrderMove } from '../../../support/arbitraries/order-steps.ts';
import { createOrderRun, done, failed, placedOn, refused, unknown } from './order-run.ts';
import { hosted, observedOrder, time } from './samples.ts';
import { cases, check } from '../../../support/property.ts';

/** How the hub's automation is run; absent: a simulated hub does everything by itself. */
type Automated = { readonly mode: 'eda' | 'aap'; readonly controller: 'operator' | 'ledger' };
const automated = (): fc.Arbitrary<Automated | undefined> =>
  fc.option(
    fc.record({
      mode: fc.constantFrom('eda' as const, 'aap' as const),
      controller: fc.constantFrom('operator' as const, 'ledger' as const),
    }),
    { nil: undefined },
  );

type Job = { id: string; effectId: string; purpose: string; spec: ClusterOrderSpecShape; state: string };

/** The far side: what really exists, whatever anybody was told. */
const createFarSide = (by: Automated | undefined) => {
  const jobs: Job[] = [];
  const shown = ({ id, state }: Job) => ({ id, workflow: true, template: 't', state, createdAt: time(3) });
  const isAtWork = ({ state }: Job): boolean => state === 'Running';
  /** What the HostedCluster was last built for. */
  let built: ClusterOrderSpecShape | undefined;
  let order: { hub: string; spec: ClusterOrderSpecShape; stage: number; deleting: boolean } | undefined;
  let placedAt: 'one' | 'other' = 'one';
  let reserved = false;
  const names = new Set<string>();
  const automationProgress = (): void => {
    const job = jobs.find(isAtWork);
    if (job !== undefined) {
      if (order !== undefined && job.purpose === 'deprovision') order = { ...order, stage: 0 };
      else if (order !== undefined) {
        order = { ...order, stage: Math.min(2, order.stage + 1) };
        built = job.spec;
      }
      if (order === undefined || order.stage !== 1) job.state = 'Succeeded';
    }
    // The operator lets go what is no longer built; where we are the controller nobody else does.
    if (order?.deleting === true && order.stage === 0 && by?.controller === 'operator') order = undefined;
  };
  const look = (): ClusterObservation => {
    if (order === undefined) return { order: null };
    const { spec, stage, deleting } = order;
    const counts = Object.fromEntries(
      (built ?? spec).nodeRequests.map((each) => [each.resourceClass, each.numberOfNodes]),
    );
    return {
      order: observedOrder({
        spec,
        phase: stage === 0 ? 'Progressing' : 'Ready',
        desiredConfigVersion: configVersion(spec),
        jobs: [],
        ...(deleting ? { deletionTimestamp: time(50) } : {}),
        ...(by === undefined || stage === 0 ? {} : { finalizers: ['osac.openshift.io/infrastructure'] }),
      }),
      hostedCluster: stage === 0 ? null : hosted({}, stage === 1 ? {} : counts),
    };
  };
  return {
    look,
    names,
    exists: () => order !== undefined,
    reserved: () => reserved,
    jobs,
    /** Does what the effect asks for and says what it would answer. */
    perform: ({ operation, args, effectId, mode }: PendingEffect): EffectOutcome => {
      if (operation === 'place') {
        reserved = true;
        if (args['mayStay'] === true) placedAt = placedAt === 'one' ? 'other' : 'one';
        return done(
          by === undefined ? placedOn(`sim-${placedAt}`) : { ...placedOn(placedAt), ...by, simulated: false },
        );
      }
      if (operation === 'trigger' || operation === 'lookUp') {
        const known = jobs.find((job) => job.effectId === effectId);
        if (operation === 'lookUp') return done({ job: known === undefined ? null : shown(known) });
        if (known !== undefined && mode === 'observe') {
          return done(by?.mode === 'eda' ? { queued: true, did: 'observed' } : { job: shown(known) });
        }
        if (order === undefined) return done(by?.mode === 'eda' ? { queued: false } : { job: null });
        const { purpose } = args as { purpose: string };
        const job = { id: String(jobs.length + 1), effectId, purpose, spec: order.spec, state: 'Running' };
        if (by?.mode === 'aap') {
          expect(jobs.filter(isAtWork).map(({ purpose: other }) => other)).to.not.include('provision');
          expect(known, 'a second job of one request').to.equal(undefined);
        }
        jobs.push(job);
        return done(by?.mode === 'eda' ? { queued: true, did: 'posted' } : { job: shown(job) });
      }
      if (operation === 'job' || operation === 'cancel') {
        const job = jobs.find(({ id }) => id === (args['job'] as { id: string }).id);
        if (job !== undefined && operation === 'cancel' && isAtWork(job)) job.state = 'Canceled';
        return done(operation === 'cancel' ? {} : { job: job === undefined ? null : shown(job) });
      }
      if (operation === 'prepareOrder') return done({ created: [] });
      if (operation === 'writeOrderStatus') return done();
      if (operation === 'releaseOrder') {
        if (order !== undefined && order.stage > 0) return failed('BeingDeleted');
        order = undefined;
        return done();
      }
      if (operation === 'resize') return done({ resized: true });
      if (operation === 'release') {
        reserved = false;
        return done();
      }
      if (operation === 'observeCluster') return done(look());
      expect(order?.hub ?? args['hub'], 'it is on another hub').to.equal(args['hub']);
      if (operation === 'deleteClusterOrder') {
        if (order !== undefined) order = { ...order, deleting: true };
        return done({ existed: order !== undefined });
      }
      const manifest = args['manifest'] as unknown as { name: string; spec: ClusterOrderSpecShape };
      names.add(manifest.name);
      if (order?.deleting === true) return failed('BeingDeleted');
      order = { hub: args['hub'] as string, spec: manifest.spec, stage: order?.stage ?? 0, deleting: false };
      return done({ uid: 'uid-1' });
    },
    progress: () => {
      if (by !== undefined) return automationProgress();
      if (order?.deleting === true) order = undefined;
      else if (order !== undefined) order = { ...order, stage: Math.min(2, order.stage + 1) };
    },
    vanish: () => {
      order = undefined;
    },
  };
};

const play = (moves: readonly OrderMove[], by?: Automated, orderly = 0) => {
  const run = createOrderRun();
  const hub = createFarSide(by);
  const answers: { effectId: string; outcome: EffectOutcome }[] = [];
  const looks: ClusterObservation[] = [];
  run.order();
  for (let number = 0; number < orderly; number += 1) round(number);
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
        if (!move.lost)
          run.input({ kind: 'command-result', commandKey: next.key ?? '', result, now: time(1) });
        return;
      }
      case 'effect': {
        const effect = effects[move.pick % Math.max(1, effects.length)];
        if (effect?.everyMs !== undefined) show(effect);
        else if (effect !== undefined) perform(effect, move.fate);
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

  function perform(effect: PendingEffect, given: Extract<OrderMove, { move: 'effect' }>['fate']): void {
    const { effectId, operation, mode } = effect;
    // A job that an attempt has left is found before anything could be refused.
    const fate = operation === 'trigger' && mode === 'observe' && given === 'refused' ? 'done' : given;
    run.begin(effect);
    const happens = fate === 'done' || fate.endsWith('-done');
    const truth = happens ? hub.perform(effect) : failed();
    if (fate.startsWith('crash')) return;
    const outcome = fate.startsWith('unknown') ? unknown : fate === 'refused' ? refused : truth;
    answers.push({ effectId, outcome });
    run.result(effectId, outcome);
  }

  function show(effect: PendingEffect): void {
    const answer = hub.perform(effect);
    if (answer.outcome !== 'done') return;
    run.input({ kind: 'observation', observation: answer.result, now: run.at() });
  }

  function invariants(): void {
    // chai compares slowly, and is needed only to say what differs.
    const replayed = run.replayed();
    if (!isDeepStrictEqual(replayed, run.state())) expect(replayed).to.deep.equal(run.state());
    expect(hub.names.size).to.be.at.most(1);
    const { effects, commands, timers } = run.pending();
    expect(new Set(effects.map(({ effectId }) => effectId)).size).to.equal(effects.length);
    expect(new Set(commands.map(({ key }) => key)).size).to.equal(commands.length);
    const state = run.state();
    for (const { effectId, attempt, everyMs } of effects) {
      if (everyMs !== undefined) continue;
      const known = state.effects[effectId.slice(0, effectId.indexOf(':'))];
      if (known?.id === effectId) expect(attempt).to.equal(known.attempt + 1);
      else expect(attempt).to.equal(1);
    }
    if (run.isClosed()) expect([...effects, ...commands, ...timers]).to.deep.equal([]);
    const cluster = run.cluster();
    if (cluster.status === 'deleted') expect(hub.exists(), 'deleted, yet there').to.equal(false);
  }

  /** One hour in which everything works. */
  function round(number: number): void {
    // A job is given its time: who retries each hour never sees one end.
    if (by === undefined || number % 10 === 9) {
      run.after(3_600_000);
      for (const { timerId } of run.pending().timers) {
        // Nothing waits for long to be sent where everything works.
        if (timerId !== RECONSIDER_HUB) run.fire(timerId);
      }
    }
    run.commands();
    for (const effect of run.pending().effects) {
      if (effect.everyMs === undefined) perform(effect, 'done');
      else if (effect.operation === 'job') show(effect);
    }
    hub.progress();
    run.observe(hub.look());
    run.commands();
    const cluster = run.cluster();
    if (cluster.status !== 'deleted' && ('failure' in cluster || 'changeFailed' in cluster)) {
      run.command({ type: 'RetryCluster', at: time(55) });
    }
    invariants();
  }

  /** From here on everything works: the order must come to its end. */
  function finish(until: () => boolean): void {
    for (let number = 0; number < 200 && !until(); number += 1) round(number);
    expect(until(), JSON.stringify([run.state(), run.pending()])).to.equal(true);
  }
};

describe('cluster order: whatever happens', () => {
  it('one object at most, no lost capacity, and absence before "deleted"', function () {
    this.timeout(600_000);
    check(
      fc.property(orderMoves(), automated(), fc.nat({ max: 6 }), (moves, by, orderly) => {
        const { run, hub, finish } = play(moves, by, orderly);
        run.command({ type: 'DeleteCluster', at: time(58) });
        finish(() => run.isClosed());
        expect(hub.exists()).to.equal(false);
        expect(hub.reserved()).to.equal(false);
        expect(run.cluster()).to.have.property('status', 'deleted');
      }),
      { numRuns: cases(300) },
    );
  });
  it('an order that is not deleted becomes ready as soon as the world lets it', function () {
    this.timeout(600_000);
    check(
      fc.property(
        orderMoves().map((moves) => moves.filter(({ move }) => move !== 'delete' && move !== 'cancel')),
        automated(),
        fc.nat({ max: 6 }),
        (moves, by, orderly) => {
          const { run, finish } = play(moves, by, orderly);
          finish(() => {
            const cluster = run.cluster();
            const calm = cluster.status === 'dispatched' && cluster.ready && !cluster.specPending;
            const well = calm && cluster.failure === undefined && cluster.changeFailed === undefined;
            return well && run.pending().commands.length === 0;
          });
        },
      ),
      { numRuns: cases(300) },
    );
  });
});
