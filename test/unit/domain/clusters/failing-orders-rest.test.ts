import { expect } from 'chai';
import { clusterOrderSpec } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { configVersion } from '../../../../src/domain/clusters/observation.ts';
import type { ClusterObservation, ObservedJob } from '../../../../src/domain/clusters/observed.ts';
import { job as launched, MINUTE, onHub, SECOND, stateOf, up, nothing, watched } from './automated-run.ts';
import { createOrderRun, done, failed, placedOn } from './order-run.ts';
import { healthy, observedOrder, ordered, time } from './samples.ts';

type Run = ReturnType<typeof createOrderRun>;

const FAILED = 'CLUSTER_STATE_FAILED';
const VERSION = configVersion(clusterOrderSpec(ordered));
const WINDOW_MS = 43 * MINUTE;

/** Jobs of an operator that launches again and again, as its order shows them: at most the last ten. */
const jobsOfOperator = (run: Run, version = VERSION) => {
  let jobs: ObservedJob[] = [];
  const show = (state: string, message: string): void => {
    const last = jobs.at(-1);
    if (last === undefined) return;
    jobs = [...jobs.slice(0, -1), { ...last, state, message }];
    const isFailed = jobs.some((each) => each.state === 'Failed');
    observe({ phase: isFailed ? 'Failed' : 'Progressing' });
  };
  const observe = (change: Parameters<typeof observedOrder>[0]): void => {
    run.observe({ order: observedOrder({ jobs, conditions: [], ...change }), hostedCluster: null });
    run.commands();
  };
  let launches = 0;
  return {
    launch: (at = run.at()): void => {
      launches += 1;
      const jobId = String(100 + launches);
      jobs = [
        ...jobs,
        { jobId, type: 'provision', state: 'Pending', timestamp: at, configVersion: version },
      ].slice(-10);
      show('Pending', 'triggered');
    },
    runs: () => show('Running', 'running'),
    fails: (text = `failed: no hosts (try ${launches})`) => show('Failed', text),
    succeeds: (change: Partial<ClusterObservation> = {}): void => {
      jobs = jobs.map((each, i) => (i === jobs.length - 1 ? { ...each, state: 'Succeeded' } : each));
      run.observe(healthy({ order: observedOrder({ jobs }), ...change }));
      run.commands();
    },
    launches: () => launches,
  };
};

/** Everything that was told since: of the cluster (watchers, metering) and of its run. */
const told = (run: Run) => {
  const [cluster, own] = [run.clusterTypes().length, run.runTypes().length];
  return () => ({ cluster: run.clusterTypes().slice(cluster), run: run.runTypes().slice(own) });
};

describe('an order that goes on failing rests', () => {
  it('operator mode: 43 minutes of failing jobs are one event, whatever each job says', () => {
    const run = createOrderRun();
    run.toHub();
    const jobs = jobsOfOperator(run);
    jobs.launch();
    jobs.runs();
    jobs.fails();
    expect(stateOf(run)).to.equal(FAILED);
    const since = told(run);
    for (let passed = 0; passed < WINDOW_MS; passed += 15 * SECOND) {
      run.after(15 * SECOND);
      jobs.launch();
      expect(stateOf(run), 'a try is under way').to.equal(FAILED);
      jobs.runs();
      expect(stateOf(run), 'a try runs').to.equal(FAILED);
      jobs.fails();
      expect(stateOf(run)).to.equal(FAILED);
    }
    expect(jobs.launches()).to.be.above(170);
    expect(since()).to.deep.equal({ cluster: [], run: [] });
    jobs.launch();
    jobs.succeeds();
    expect(stateOf(run), 'a try succeeded').to.equal('CLUSTER_STATE_READY');
    expect(run.cluster()).to.not.have.property('failure');
    expect(run.replayed()).to.deep.equal(run.state());
  });

  it('operator mode: it is FAILED again after each reason that is new, and only after those', () => {
    const run = createOrderRun();
    run.toHub();
    const jobs = jobsOfOperator(run);
    jobs.launch();
    jobs.fails();
    const since = told(run);
    jobs.launch();
    const ended: ObservedJob[] = [
      { jobId: '101', type: 'provision', state: 'Failed', timestamp: time(3), configVersion: VERSION },
    ];
    const ends = (state: 'Failed' | 'Canceled'): void => {
      const number = ended.length;
      const timestamp = time(3 + 2 * number);
      ended.push({ jobId: `10${number}`, type: 'provision', state, timestamp, configVersion: VERSION });
      const order = observedOrder({ jobs: [...ended], conditions: [], phase: 'Failed' });
      run.observe({ order, hostedCluster: null });
      run.commands();
    };
    ends('Canceled');
    expect(run.cluster()).to.have.nested.property('failure.reason', 'JobCanceled');
    for (const state of ['Failed', 'Canceled', 'Failed'] as const) ends(state);
    expect(since().cluster.filter((type) => type === 'ClusterFailed')).to.have.lengthOf(1);
  });

  it('a person’s retry shows PROGRESSING while its own try runs, and FAILED when that failed', () => {
    const run = createOrderRun();
    run.toHub();
    const jobs = jobsOfOperator(run);
    jobs.launch();
    jobs.fails();
    expect(stateOf(run)).to.equal(FAILED);
    run.after(MINUTE);
    run.command({ type: 'RetryCluster', at: run.at() });
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    run.commands();
    run.perform('apply', done({ uid: 'uid-1', did: 'patched' }));
    run.commands();
    run.after(SECOND);
    jobs.launch();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    jobs.fails();
    expect(stateOf(run)).to.equal(FAILED);
  });

  it('a person’s retry in aap mode launches at once and shows PROGRESSING until its job has failed, too', () => {
    const run = onHub('aap');
    run.perform('trigger', done(launched('101', 'Running')));
    watched(run, launched('101', 'Failed').job);
    run.observe(nothing);
    run.commands();
    expect(stateOf(run)).to.equal(FAILED);
    run.command({ type: 'RetryCluster', at: run.at() });
    run.commands();
    run.perform('apply', done({ uid: 'uid-1', did: 'unchanged' }));
    run.observe(nothing);
    run.commands();
    expect(stateOf(run), 'before the launch').to.equal('CLUSTER_STATE_PROGRESSING');
    run.perform('trigger', done(launched('102', 'Running')));
    run.observe(nothing);
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_PROGRESSING');
    watched(run, launched('102', 'Failed').job);
    run.observe(nothing);
    run.commands();
    expect(stateOf(run)).to.equal(FAILED);
  });

  it('aap mode: the tries that we launch are not told to watchers and metering, at growing pauses up to 30 minutes', () => {
    const run = onHub('aap');
    run.perform('trigger', done(launched('101', 'Running')));
    run.commands();
    watched(run, launched('101', 'Failed', { outputTail: 'fatal: 1' }).job);
    run.observe(nothing);
    run.commands();
    expect(stateOf(run)).to.equal(FAILED);
    const since = told(run);
    const end = Date.parse(run.at()) + WINDOW_MS;
    const pauses: number[] = [];
    for (let id = 102; ; id += 1) {
      const { notBefore = run.at() } = run.effect('trigger');
      const pause = Date.parse(notBefore) - Date.parse(run.at());
      if (Date.parse(notBefore) > end) break;
      pauses.push(pause);
      run.after(pause);
      run.perform('trigger', done(launched(String(id), 'Pending')));
      run.commands();
      for (const state of ['Running', 'Failed']) {
        run.observe(nothing);
        run.commands();
        expect(stateOf(run), `job ${id} before ${state}`).to.equal(FAILED);
        watched(run, launched(String(id), state, { outputTail: `fatal: ${id}` }).job);
        run.commands();
        run.observe(nothing);
        run.commands();
        expect(stateOf(run), `job ${id} is ${state}`).to.equal(FAILED);
      }
    }
    expect(pauses.length).to.be.within(3, 6);
    expect(pauses, 'each pause is longer than the one before').to.deep.equal(
      pauses.toSorted((a, b) => a - b),
    );
    expect(since().cluster).to.deep.equal([]);
    const { notBefore = run.at() } = run.effect('trigger');
    run.after(Date.parse(notBefore) - Date.parse(run.at()));
    run.perform('trigger', done(launched('900', 'Running')));
    watched(run, launched('900', 'Succeeded').job);
    run.observe(up());
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    const asked = run.clusterEvents().findLast(({ type }) => type === 'AutomationRequested');
    expect(asked?.data, 'with the count of the tries').to.include({ job: '900', repeats: pauses.length + 1 });
    expect(run.replayed()).to.deep.equal(run.state());
  });

  it('eda mode: an order that failed by its deadline stays FAILED while webhooks are posted again', () => {
    const run = onHub('eda');
    run.perform('trigger', done({ queued: true }));
    run.commands();
    run.observe(nothing);
    run.commands();
    run.after(31 * MINUTE);
    run.fire('deadline:control-plane');
    run.perform('check', done({ ...nothing }));
    run.commands();
    expect(stateOf(run)).to.equal(FAILED);
    const since = told(run);
    let posts = 0;
    for (let passed = 0; passed < WINDOW_MS; passed += MINUTE) {
      run.after(MINUTE);
      const again = run.pending().effects.find(({ effectId }) => effectId.startsWith('trigger:'));
      if (again !== undefined && (again.notBefore ?? '') <= run.at()) {
        posts += 1;
        run.perform('trigger', done({ queued: true }));
      }
      run.observe(nothing);
      run.commands();
      expect(stateOf(run)).to.equal(FAILED);
    }
    expect(posts).to.be.within(1, 8);
    expect(since().cluster).to.deep.equal([]);
    const { order, ...rest } = up();
    run.observe({ order: order === null ? null : { ...order, resourceVersion: '77' }, ...rest });
    run.commands();
    expect(stateOf(run)).to.equal('CLUSTER_STATE_READY');
    expect(since().cluster, 'the try that came through is told').to.include('AutomationRequested');
  });

  for (const kind of ['apply', 'trigger'] as const)
    it(`calls that fail (${kind}) are told once, tried at pauses that grow to 30 minutes, and cleared by the try that succeeds`, () => {
      const run = kind === 'apply' ? createOrderRun() : onHub('aap');
      if (kind === 'apply') {
        run.order();
        run.perform('place', done(placedOn()));
        run.commands();
      }
      const end = Date.parse(run.at()) + WINDOW_MS + 12 * MINUTE;
      let longest = 0;
      let tries = 0;
      for (;;) {
        const { notBefore = run.at() } = run.effect(kind);
        const pause = Date.parse(notBefore) - Date.parse(run.at());
        if (Date.parse(notBefore) > end) break;
        longest = Math.max(longest, pause);
        run.after(Math.max(0, pause));
        run.perform(kind, failed('Forbidden'));
        run.commands();
        if (kind === 'trigger') {
          run.observe(nothing);
          run.commands();
        }
        tries += 1;
      }
      expect(longest, 'pauses grow').to.be.above(8 * MINUTE);
      expect(tries).to.be.within(10, 14);
      expect(stateOf(run)).to.equal(FAILED);
      expect(run.clusterTypes().filter((type) => type === 'ClusterFailed')).to.have.lengthOf(1);
      run.after(30 * MINUTE);
      run.perform(kind, kind === 'apply' ? done({ uid: 'uid-1' }) : done(launched('101', 'Running')));
      run.commands();
      expect(stateOf(run), 'the try succeeded').to.equal('CLUSTER_STATE_PROGRESSING');
      expect(run.replayed()).to.deep.equal(run.state());
    });

  it('an order that asks for another place again and again is told once, rests longer each time, and is cleared by the try that succeeds', () => {
    const run = createOrderRun();
    run.order();
    run.perform('place', done(placedOn()));
    run.commands();
    const end = Date.parse(run.at()) + WINDOW_MS;
    let tries = 0;
    for (;;) {
      const effects = run.pending().effects.map(({ effectId, notBefore = run.at() }) => ({
        kind: effectId.slice(0, effectId.indexOf(':')),
        at: Math.max(Date.parse(run.at()), Date.parse(notBefore)),
      }));
      const timers = run
        .pending()
        .timers.map(({ timerId, dueAt }) => ({ kind: timerId, at: Date.parse(dueAt) }));
      const [next] = [...effects, ...timers].toSorted((a, b) => a.at - b.at);
      if (next === undefined || next.at > end) break;
      run.after(Math.max(0, next.at - Date.parse(run.at())));
      if (next.kind === 'apply') {
        tries += 1;
        run.perform('apply', failed('Forbidden'));
      } else if (next.kind === 'place') run.perform('place', done(placedOn()));
      else run.fire(next.kind);
      run.commands();
    }
    expect(tries).to.be.within(10, 25);
    expect(stateOf(run)).to.equal(FAILED);
    expect(run.clusterTypes().filter((type) => type === 'ClusterFailed')).to.have.lengthOf(1);
    expect(run.runTypes().length, 'events of the run').to.be.below(110);
    run.perform('apply', done({ uid: 'uid-1' }));
    run.commands();
    expect(stateOf(run), 'the try succeeded').to.equal('CLUSTER_STATE_PROGRESSING');
    expect(run.replayed()).to.deep.equal(run.state());
  });
});
