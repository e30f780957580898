import { expect } from 'chai';
import { createAgentEffects } from '../../../src/app/agents/agent-effects.ts';
import { HOT_POOL_DEFAULTS, keepAgentPools, keepPool } from '../../../src/app/agents/agent-keeper.ts';
import { repairAgents } from '../../../src/app/agents/agent-repair.ts';
import { SiteError } from '../../../src/app/site/ports.ts';
import { agentsIn } from '../../../src/domain/agents/queue.ts';
import { stockOf, type AgentState } from '../../../src/domain/agents/pool-state.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { agentPoolAggregate } from '../../../src/domain/kinds.ts';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';
import { memorySite, type MemorySite } from '../../support/agents/memory-site.ts';
import { order } from '../../support/agents/pool-words.ts';
import { eventually } from '../../support/eventually.ts';
import { effectCall, hubFixture, type HubFixture } from '../../support/hubs/hub-fixture.ts';
import { silentLogger } from '../../support/loggers.ts';
import { manualTime } from '../../support/manual-time.ts';

const HUB = 'sim-a';

describe('agents of a hub', () => {
  let fixture: HubFixture;
  let site: MemorySite;
  let time: ReturnType<typeof manualTime>;
  const stop = { signal: new AbortController().signal };
  beforeEach(async () => {
    fixture = hubFixture();
    time = manualTime('2026-11-23T12:00:00.000Z');
    site = memorySite(HUB, { fc430: 4 });
    await fixture.register(HUB);
    await eventually('the hub is known', () => fixture.registry.hubs().length === 1);
  });
  afterEach(() => fixture.stop());

  const siteOf = (hub: string) => (hub === HUB ? site : undefined);
  const effects = () =>
    createAgentEffects({ commandRunner: fixture.commandRunner, siteOf, clock: time.clock });
  const call = async (operation: string, args: JsonObject): Promise<EffectOutcome> =>
    effects()(operation, args, effectCall());
  const done = async (operation: string, args: JsonObject): Promise<JsonObject> => {
    const outcome = await call(operation, args);
    if (outcome.outcome !== 'done') throw new Error(JSON.stringify(outcome));
    return outcome.result;
  };
  const select = (id: string, n: number) =>
    done('select', { holder: order(id), hub: HUB, wanted: { fc430: n } });
  const giveBack = (id: string) => done('return', { holder: order(id), hub: HUB });
  const pool = async () => (await fixture.commandRunner.load(agentPoolAggregate, HUB)).state;
  const states = async (): Promise<{ readonly [state in AgentState]?: number }> => {
    const counts: { [state in AgentState]?: number } = {};
    for (const { state } of agentsIn(await pool())) counts[state] = (counts[state] ?? 0) + 1;
    return counts;
  };
  const reviewed = new Map<string, number>();
  const keep = async (more: { readonly ordersPerHour?: number } = {}): Promise<void> => {
    const [hub] = fixture.registry.hubs();
    if (hub === undefined) throw new Error('no hub');
    const { commandRunner } = fixture;
    const settings = { ...HOT_POOL_DEFAULTS, ...more };
    const ports = {
      siteOf,
      commandRunner,
      hostClasses: () => ['fc430'],
      settings,
      clock: time.clock,
      ...stop,
    };
    await keepPool(hub, ports, reviewed);
  };
  beforeEach(() => reviewed.clear());

  it('go from free to an order, and back over a wipe', async () => {
    for (const id of ['a1', 'a2', 'a3']) site.add(id);
    await keep();
    const { agents, generation } = await select('o1', 2);
    expect((agents as { id: string }[]).map(({ id }) => id)).to.deep.equal(['a1', 'a2']);
    expect(generation).to.equal(1);
    expect(site.hosts.get('a1')?.owner).to.deep.equal({ order: 'o1', generation: 1 });
    expect(await states()).to.deep.equal({ free: 1, bound: 2 });
    const { addresses } = await done('addresses', { holder: order('o1'), hub: HUB });
    expect(Object.keys(addresses as object)).to.deep.equal(['a1', 'a2']);
    expect(await giveBack('o1')).to.deep.equal({ held: false });
    expect(await states()).to.deep.equal({ free: 1, cleaning: 2 });
    await keep();
    expect(await states()).to.deep.equal({ free: 1, cleaning: 2 });
    site.wipe();
    await keep();
    expect(await states()).to.deep.equal({ free: 3 });
  });

  it('lets an order wait, finds hosts for it, and serves it as soon as they are agents', async () => {
    const short = await select('o1', 3);
    expect(short).to.deep.include({ have: { fc430: 0 }, want: { fc430: 3 }, position: 1 });
    await keep();
    // One more than the order wants: the hot pool expects others like it, and the hub has no fifth host.
    expect([...site.asked.keys()]).to.deep.equal([
      'sim-a/fc430-1-1',
      'sim-a/fc430-2-1',
      'sim-a/fc430-3-1',
      'sim-a/fc430-4-1',
    ]);
    await keep();
    expect(site.asked.size).to.equal(4);
    site.find();
    await keep();
    expect(await states()).to.deep.equal({ reserved: 3, free: 1 });
    expect((await select('o1', 3))['generation']).to.equal(1);
    expect(await states()).to.deep.equal({ bound: 3, free: 1 });
  });

  it('keeps free what the hot pool is to have', async () => {
    await keep({ ordersPerHour: 2 });
    expect(stockOf(await pool(), 'fc430').lowSince).to.equal(undefined);
    site.find();
    await keep({ ordersPerHour: 2 });
    const { target, known } = stockOf(await pool(), 'fc430');
    expect(target).to.include({ target: 2, minFree: 1 });
    expect(known).to.equal(2);
    expect(await states()).to.deep.equal({ free: 2 });
  });

  it('use up no attempt while discovery is out, and complete afterwards', async () => {
    await select('o1', 1);
    site.outage = new SiteError('unavailable', 'no route to the site');
    for (let minute = 0; minute < 60; minute += 5) {
      await keep().then(
        () => expect.fail('the site is out'),
        () => undefined,
      );
      await time.pass(5 * 60_000);
    }
    expect((await pool()).discoveries).to.deep.equal({});
    expect(await select('o1', 1)).to.include({ position: 1 });
    site.outage = undefined;
    await keep();
    site.find();
    await keep();
    expect(await select('o1', 1)).to.include({ generation: 1 });
  });

  it('gives up a reservation when somebody else has marked an agent, and takes others', async () => {
    site.add('a1');
    site.add('a2');
    await keep();
    Object.assign(site.hosts.get('a1') ?? {}, { owner: { order: 'foreign', generation: 1 } });
    expect(await call('select', { holder: order('o1'), hub: HUB, wanted: { fc430: 1 } })).to.include({
      outcome: 'failed',
      reason: 'AgentMarkedElsewhere',
    });
    const { agents } = await select('o1', 1);
    expect((agents as { id: string }[]).map(({ id }) => id)).to.deep.equal(['a2']);
    await keep();
    expect(await states()).to.deep.equal({ failed: 1, bound: 1 });
    expect(site.hosts.get('a1')?.owner?.order).to.equal('foreign');
  });

  it('wait for a site that cannot be reached, with what they hold', async () => {
    site.add('a1');
    await keep();
    site.outage = new SiteError('unknown-outcome', 'no answer');
    const args = { holder: order('o1'), hub: HUB, wanted: { fc430: 1 } };
    expect(await call('select', args)).to.include({ outcome: 'unknown' });
    site.outage = undefined;
    expect(await states()).to.deep.equal({ reserved: 1 });
    expect(await select('o1', 1)).to.include({ generation: 1 });
  });

  it('refuse what is no count, and wait where nothing reaches the site', async () => {
    const of = { holder: order('o1'), hub: HUB };
    expect(await call('select', { ...of, wanted: { fc430: -1 } })).to.include({ outcome: 'refused' });
    expect(await call('addresses', { ...of, hub: 'sim-b' })).to.include({ outcome: 'failed' });
  });

  it('are what the hub has room for, with the hosts that discovery can still bring', async () => {
    site.add('a1');
    await keep();
    await eventually('the registry knows', () => fixture.registry.get(HUB)?.limits.nodes?.['fc430'] === 5);
  });

  it('are given back when they were reserved for an order that is over', async () => {
    site.add('a1');
    await keep();
    await select('o1', 1);
    const repairing = new AbortController();
    const { commandRunner, registry } = fixture;
    const holders = { isOver: () => true, ownerOf: async () => undefined };
    const ended = repairAgents({
      registry,
      commandRunner,
      holders,
      clock: time.clock,
      timers: time.timers,
      logger: silentLogger,
      signal: repairing.signal,
    });
    await eventually('released', async () => (await states()).cleaning === 1);
    repairing.abort();
    await ended;
    await keep();
    site.wipe();
    await keep();
    expect(await states()).to.deep.equal({ free: 1 });
  });

  it('are looked after until told to stop, whatever the site answers', async () => {
    site.add('a1');
    site.outage = new SiteError('unavailable', 'no route to the site');
    const keeping = new AbortController();
    const { commandRunner, registry } = fixture;
    const ended = keepAgentPools({
      registry,
      siteOf,
      commandRunner,
      hostClasses: () => [],
      clock: time.clock,
      timers: time.timers,
      logger: silentLogger,
      signal: keeping.signal,
    });
    await time.pass(10_000);
    expect(await states()).to.deep.equal({});
    site.outage = undefined;
    await time.pass(60_000);
    await eventually('the agent is known', async () => (await states()).free === 1);
    keeping.abort();
    await ended;
  });
});
