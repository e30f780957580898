import { expect } from 'chai';
import { systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { LogReplaced, type EventStore } from '../../../src/app/log/event-store.ts';
import type { Timers } from '../../../src/app/ports.ts';
import { createHubRegistry } from '../../../src/app/hubs/hub-registry.ts';
import { aggregateOf, hub as hubKind } from '../../../src/domain/kinds.ts';
import type { SecretRef } from '../../../src/domain/secret-ref.ts';
import { commandContext, fakeCluster, hubFixture, type HubFixture } from '../../support/hubs/hub-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { silentLogger } from '../../support/loggers.ts';

describe('hub registry', () => {
  const fixtures: HubFixture[] = [];
  const setUp = (): HubFixture => {
    const fixture = hubFixture({ of: ({ id }) => (id === 'real' ? undefined : fakeCluster(id)) });
    fixtures.push(fixture);
    return fixture;
  };
  afterEach(async () => {
    await Promise.all(fixtures.splice(0).map((fixture) => fixture.stop()));
  });

  it('holds every registered hub as its document says, with its adapter if there is one', async () => {
    const { registry, register, revise } = setUp();
    await register('sim-a', { zone: 'north', capacity: { control_planes: 3, nodes: { fc430: 8 } } });
    await register('real');
    await eventually('known', () => registry.hubs().length === 2);
    expect(registry.get('sim-a')?.facts).to.include({ zone: 'north', namespace: 'orders', simulated: true });
    expect(registry.get('sim-a')?.limits).to.deep.equal({ controlPlanes: 3, nodes: { fc430: 8 } });
    expect(registry.get('sim-a')?.adapter?.hubId).to.equal('sim-a');
    expect(registry.get('real')?.adapter).to.equal(undefined);
    await revise('sim-a', { zone: 'south' });
    await eventually('revised', () => registry.get('sim-a')?.facts.zone === 'south');
    expect(registry.get('sim-a')?.limits).to.deep.equal({});
  });

  it('knows the credentials of a hub only by reference', async () => {
    const { registry, commandRunner } = setUp();
    const kubeconfig: SecretRef = { id: 's', version: '1', kind: 'kubeconfig', fingerprint: '00' };
    await commandRunner.execute(
      aggregateOf(hubKind),
      'real',
      {
        type: 'CreateDocument',
        at: '2026-01-01T00:00:00.000Z',
        id: 'real',
        tenant: 'shared',
        project: '',
        name: 'real',
        creator: 'admin',
        document: { spec: { namespace: 'orders' } },
        secrets: { 'spec.kubeconfig': kubeconfig },
      },
      commandContext('create-real'),
    );
    await eventually('known', () => registry.get('real') !== undefined);
    expect(registry.get('real')?.kubeconfig).to.deep.equal(kubeconfig);
  });

  it('what was seen of a hub words nothing anew: its connection stays, its limits follow the hosts', async () => {
    const made: number[] = [];
    const fixture = hubFixture({
      of: ({ id, revision }) => {
        made.push(revision);
        return fakeCluster(id);
      },
    });
    fixtures.push(fixture);
    const { registry, commandRunner, register } = fixture;
    await register('sim-a', { capacity: { control_planes: 3 } });
    await eventually('known', () => registry.get('sim-a') !== undefined);
    const before = registry.get('sim-a');
    const report = {
      type: 'ReportHubCheck',
      at: '2026-01-01T00:00:00.000Z',
      findings: { reachable: [], version: 'v1.36.0', hosts: { fc430: { free: 2, ours: 1, foreign: 5 } } },
    } as const;
    await commandRunner.execute(aggregateOf(hubKind), 'sim-a', report, commandContext('seen'));
    await eventually('seen', () => registry.get('sim-a')?.health.hosts !== undefined);
    const after = registry.get('sim-a');
    expect(after?.limits).to.deep.equal({ controlPlanes: 3, nodes: { fc430: 3 } });
    expect(after?.health).to.deep.include({ version: 'v1.36.0' });
    expect([after?.adapter === before?.adapter, after?.revision]).to.deep.equal([true, before?.revision]);
    expect(made).to.have.lengthOf(1);
  });

  it('reads a log again that turned out to be another one, or to hold what was told to be nothing', async () => {
    const { store, codec, register, revise, deregister } = setUp();
    await register('sim-a', { zone: 'north' });
    await register('sim-b');
    let breakOff = (): void => undefined;
    let isFirst = true;
    const shifting: EventStore = {
      ...store,
      subscribe: async function* (options) {
        const broken = new AbortController();
        const over = AbortSignal.any([options.signal, broken.signal]);
        const wasFirst = isFirst;
        isFirst = false;
        breakOff = () => broken.abort();
        for await (const item of store.subscribe({ ...options, signal: over })) {
          const isHidden = wasFirst && item.kind === 'event' && item.event.revision > 0;
          if (!isHidden) yield item;
        }
        if (!options.signal.aborted) throw new LogReplaced('another one');
      },
    };
    const heard: string[] = [];
    const timers: Timers = { ...systemTimers(), after: (_ms, run) => systemTimers().after(1, run) };
    const registry = createHubRegistry({
      store: shifting,
      codec,
      clusters: { of: () => undefined },
      timers,
      logger: silentLogger,
    });
    const stop = new AbortController();
    const ended = registry.run(stop.signal);
    await registry.ready();
    registry.onChange((id, hub) => heard.push(`${id} ${hub?.facts.zone ?? 'gone'}`));
    await revise('sim-a', { zone: 'south' });
    await deregister('sim-b');
    await register('sim-c', { zone: 'east' });
    await eventually('told', () => registry.get('sim-c') !== undefined);
    expect(registry.get('sim-a')?.facts.zone, 'was not told').to.equal('north');
    heard.splice(0);
    breakOff();
    await eventually('read again', () => registry.get('sim-a')?.facts.zone === 'south');
    await eventually('told again', () => heard.length === 3);
    expect(heard.toSorted()).to.deep.equal(['sim-a south', 'sim-b gone', 'sim-c east']);
    expect(registry.hubs().map(({ facts }) => facts.id)).to.deep.equal(['sim-a', 'sim-c']);
    stop.abort();
    await ended;
  });

  it('lets the adapter of a hub that is gone go', async () => {
    const forgotten: string[] = [];
    const fixture = hubFixture({ of: ({ id }) => fakeCluster(id), forget: (id) => forgotten.push(id) });
    fixtures.push(fixture);
    const { registry, register, revise, deregister } = fixture;
    await register('sim-a');
    await revise('sim-a', { zone: 'south' });
    await deregister('sim-a');
    await register('sim-b');
    await eventually('known', () => registry.get('sim-b') !== undefined);
    expect(forgotten).to.deep.equal(['sim-a']);
  });

  it('tells its listeners of every hub and of every change, until they are tired of it', async () => {
    const { registry, register, revise, deregister } = setUp();
    await register('sim-a');
    await eventually('known', () => registry.hubs().length === 1);
    const heard: string[] = [];
    const stop = registry.onChange((id, hub) => heard.push(`${id} ${hub?.facts.zone ?? 'gone'}`));
    await revise('sim-a', { zone: 'north' });
    await register('sim-b', { zone: 'south' });
    await deregister('sim-a');
    await eventually('all heard', () => heard.length === 4);
    expect(heard).to.deep.equal(['sim-a ', 'sim-a north', 'sim-b south', 'sim-a gone']);
    stop();
    await deregister('sim-b');
    await eventually('gone', () => registry.hubs().length === 0);
    expect(heard).to.have.length(4);
  });

  it('is ready once it knows what was in the log, and stops waiting when it is told to', async () => {
    const { store, codec, register } = setUp();
    await register('sim-a');
    const late = createHubRegistry({
      store,
      codec,
      clusters: { of: () => undefined },
      timers: systemTimers(),
      logger: silentLogger,
    });
    const impatient = new AbortController();
    const waiting = late.ready(impatient.signal).then(
      () => 'ready',
      (error: unknown) => (error as Error).message,
    );
    impatient.abort(new Error('no more time'));
    expect(await waiting).to.equal('no more time');
    const stop = new AbortController();
    const ended = late.run(stop.signal);
    await late.ready();
    expect(late.hubs().map((hub) => hub.facts.id)).to.deep.equal(['sim-a']);
    stop.abort();
    await ended;
  });
});
