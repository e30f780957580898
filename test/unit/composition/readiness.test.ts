import { expect } from 'chai';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { ProcessRunnerStatus } from '../../../src/app/process-runner/types.ts';
import { createReadiness, type ReadinessProbe } from '../../../src/composition/readiness.ts';
import type { System } from '../../../src/composition/system.ts';
import type { Role } from '../../../src/config.ts';
import type { ProjectionStatus } from '../../../src/projections/read-models.ts';

const LIVE: Partial<ProjectionStatus> = {
  state: 'live',
  caughtUp: true,
  lagSeconds: 0,
  position: '0000000000000007',
};

type Given = {
  readonly view?: Partial<ProjectionStatus>;
  /** Read models that lack what was recorded before the start. */
  readonly building?: readonly string[];
  readonly processes?: Partial<ProcessRunnerStatus>;
  readonly audit?: { readonly state: string; readonly error?: string };
  /** What reads have found changed in the log. */
  readonly changed?: string;
  readonly roles?: readonly Role[];
  /** Of the store's ping; undefined: it answers. */
  fault?: string | undefined;
};

/** A readiness probe of a service that is as it is told, and how often its store was asked. */
const probe = (given: Given) => {
  let pings = 0;
  let now = 0;
  const system = {
    readModels: { status: () => [{ name: 'resources', ...LIVE, ...given.view }] },
    processes: { status: () => ({ state: 'live', ...given.processes }) },
    auditing: given.audit === undefined ? undefined : { status: () => given.audit },
  } as unknown as System;
  const store = {
    ping: async () => {
      pings += 1;
      if (given.fault !== undefined) throw new Error(given.fault);
    },
  } as unknown as EventStore;
  const readiness = createReadiness({
    system,
    store,
    suspects: { status: () => given.changed },
    roles: given.roles ?? ['api', 'processes'],
    clock: { now: () => '2026-11-21T12:00:00.000Z', monotonicMs: () => now },
    isBuilding: (view) => given.building?.includes(view) === true,
  });
  return { readiness, pings: () => pings, pass: (ms: number) => (now += ms) };
};

const started = (given: Given = {}): ReadinessProbe => {
  const { readiness } = probe(given);
  readiness.started();
  return readiness;
};
const failing = async (readiness: ReadinessProbe): Promise<readonly string[]> => {
  const { ready, checks } = await readiness.check();
  const wrong = checks.filter(({ ok }) => !ok);
  expect(ready).to.equal(wrong.length === 0);
  return wrong.map(({ name, message }) => `${name}: ${message}`);
};

describe('readiness', () => {
  it('is there when everything is well', async () => {
    expect(await failing(started())).to.deep.equal([]);
  });

  it('begins with the end of the start, and ends with the first sign of the end', async () => {
    const { readiness } = probe({});
    expect(await failing(readiness)).to.deep.equal(['phase: starting']);
    readiness.started();
    expect(await failing(readiness)).to.deep.equal([]);
    readiness.drain();
    expect(await failing(readiness)).to.deep.equal(['phase: draining']);
    readiness.started();
    expect(await failing(readiness), 'a start that ends later changes nothing').to.deep.equal([
      'phase: draining',
    ]);
  });

  for (const [what, view, says] of [
    ['failed', { state: 'failed', error: 'disk I/O' }, ['read model resources: failed: disk I/O']],
    ['stopped', { state: 'stopped' }, ['read model resources: stopped']],
    ['31 s behind', { caughtUp: false, lagSeconds: 31 }, ['read model resources: 31 s behind']],
    ['29 s behind', { caughtUp: false, lagSeconds: 29 }, []],
    ['at the end of a log that has been quiet', { caughtUp: true, lagSeconds: 3600 }, []],
    ['not built yet', { caughtUp: false, position: undefined }, ['read model resources: being built']],
    ['there, of an empty log', { position: undefined }, []],
  ] as const)
    it(`a read model that is ${what}: ${says.join() || 'ready'}`, async () => {
      expect(await failing(started({ view: view as Partial<ProjectionStatus> }))).to.deep.equal(says);
    });

  it('a read model that lacks what was recorded before the start is being built, however little is missing', async () => {
    const view = { caughtUp: false, lagSeconds: 1 };
    expect(await failing(started({ view, building: ['resources'] }))).to.deep.equal([
      'read model resources: being built',
    ]);
    expect(await failing(started({ view, building: ['audit'] }))).to.deep.equal([]);
    const failed = { state: 'failed', error: 'disk I/O' } as const;
    expect(await failing(started({ view: failed, building: ['resources'] }))).to.deep.equal([
      'read model resources: failed: disk I/O',
    ]);
  });

  it('processes that ended are told, those of a standby are well, and without the role nobody asks', async () => {
    const broken = { state: 'failed', error: 'no lease' } as const;
    expect(await failing(started({ processes: broken }))).to.deep.equal(['processes: no lease']);
    expect(await failing(started({ processes: { state: 'stopped' } }))).to.deep.equal(['processes: stopped']);
    for (const state of ['standby', 'catching-up'] as const)
      expect(await failing(started({ processes: { state } })), state).to.deep.equal([]);
    expect(await failing(started({ processes: broken, roles: ['api'] }))).to.deep.equal([]);
  });

  it('a history that is not what was signed is told to nobody', async () => {
    const audit = { state: 'mismatch', error: 'root of size 7 differs' };
    expect(await failing(started({ audit }))).to.deep.equal(['audit tree: root of size 7 differs']);
    expect(await failing(started({ audit: { state: 'signing' } }))).to.deep.equal([]);
  });

  it('what only keeps heads from being signed takes no traffic away, and stands there as a warning', async () => {
    const audit = { state: 'failing', error: 'the private audit key is missing' };
    const { ready, checks } = await started({ audit }).check();
    expect(ready).to.equal(true);
    expect(checks.find(({ name }) => name === 'audit tree')).to.deep.equal({
      name: 'audit tree',
      ok: true,
      message: 'failing',
      warning: 'the private audit key is missing',
    });
  });

  it('names no object to whoever asks: who is woken finds it in the log, and by the position', async () => {
    const of = (event: string): string =>
      `the event ${event} at position 0000000000000007 is another one (${event}, x)`;
    const [named, told] = [of('cluster-merger-plan.2@12'), of('cluster-…@12')];
    const given: Given = {
      changed: named,
      audit: { state: 'mismatch', error: named },
      view: { state: 'stopped', error: named },
    };
    const { checks } = await started(given).check();
    const says = checks
      .flatMap(({ message, warning }) => [message, warning])
      .filter((text) => text?.includes('@'));
    expect(says).to.deep.equal([told, `stopped: ${told}`, told]);
  });

  it('an event that was changed takes no traffic away, and stands there as a warning', async () => {
    const changed = 'the event a@1 is not the one that was recorded';
    const { ready, checks } = await started({ changed }).check();
    expect(ready).to.equal(true);
    expect(checks.find(({ name }) => name === 'event store')).to.deep.equal({
      name: 'event store',
      ok: true,
      warning: changed,
    });
    expect(await failing(started({ changed, fault: 'connection refused' }))).to.deep.equal([
      'event store: connection refused',
    ]);
  });

  it('asks the store once a second, however many ask, and comes back by itself', async () => {
    const given: Given = { fault: 'connection refused' };
    const { readiness, pings, pass } = probe(given);
    readiness.started();
    await Promise.all([readiness.check(), readiness.storeAnswers(), readiness.check()]);
    expect(pings()).to.equal(1);
    expect(await failing(readiness)).to.deep.equal(['event store: connection refused']);
    given.fault = undefined;
    expect(await readiness.storeAnswers()).to.equal(false);
    pass(1_001);
    expect(await readiness.storeAnswers()).to.equal(true);
    expect(await failing(readiness)).to.deep.equal([]);
    expect(pings()).to.equal(2);
  });
});
