import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { BadSimulationSetting } from '../../../src/adapters/simulation/settings.ts';
import { scopedSettings, SITE_KEYS } from '../../../src/adapters/site/simulated/settings.ts';
import { readSiteCalls, readSiteItems, siteConflicts } from '../../support/site/site-journal.ts';
import { createSiteBench, kindOfFailure, owner } from './site-bench.ts';

const VLAN = { fabric: 'east', vlanId: 100 };
const PORT = { ...VLAN, switch: 'leaf-1', port: 'eth1' };
const { vlanId: _, ...BARE_PORT } = PORT;
const HUB = 'sim-east-1';
const WANTED = { hub: HUB, hostClass: 'fc430' };
const TASK = { name: 'certificates', phase: 'post-install', cluster: 'c1', hub: HUB } as const;
const RECORD = { name: 'api.one.example.com', type: 'A', values: ['198.51.100.7'], ttlSeconds: 300 } as const;

describe('simulated site', () => {
  let bench: ReturnType<typeof createSiteBench>;
  const opened = (settings: Parameters<typeof createSiteBench>[0] = {}) => {
    bench = createSiteBench(settings);
    return bench;
  };
  afterEach(() => bench.close());

  const vlans = async (of = bench.site) => (await of.fabric.observe({}, bench.by())).networks;
  const agents = () => bench.site.agents.observe({ hub: HUB }, bench.by());
  const resultsOf = (operation: string) =>
    readSiteCalls(bench.file)
      .filter((call) => call.operation === operation)
      .map(({ result }) => result);

  it('shows a VLAN once it is on every switch, and until it is gone from there', async () => {
    const { site, time, by } = opened('switch=1s');
    await site.fabric.createNetwork(VLAN, owner('a'), by());
    await time.pass(999);
    expect(await vlans()).to.deep.equal([]);
    await time.pass(1);
    expect(await vlans()).to.have.length(1);
    await site.fabric.deleteNetwork(VLAN, owner('a'), by());
    await time.pass(999);
    expect(await vlans()).to.have.length(1);
    expect(await kindOfFailure(site.fabric.createNetwork(VLAN, owner('a'), by()))).to.equal('unavailable');
    expect(await kindOfFailure(site.fabric.createNetwork(VLAN, owner('b'), by()))).to.equal('conflict');
    await time.pass(1);
    expect(await vlans()).to.deep.equal([]);
    await site.fabric.createNetwork(VLAN, owner('b'), by());
  });

  it('goes on with its work while no instance runs', async () => {
    const { site, time, by } = opened('switch=1s');
    await site.fabric.createNetwork(VLAN, owner('a'), by());
    await site.close();
    await time.pass(1_000);
    expect(await vlans(bench.another())).to.have.length(1);
  });

  it('keeps a journal of every call, with mark, effect and result', async () => {
    const { site, by } = opened();
    await site.fabric.createNetwork(VLAN, owner('a'), by({ effectId: 'e1' }));
    await site.fabric.createNetwork(VLAN, owner('a'), by({ effectId: 'e2' }));
    await kindOfFailure(site.fabric.createNetwork(VLAN, owner('b', 3), by({ effectId: 'e3' })));
    await kindOfFailure(site.fabric.bindPort({ ...PORT, vlanId: 7 }, owner('a'), by({ effectId: 'e4' })));
    await site.fabric.deleteNetwork(VLAN, owner('b', 3), by({ effectId: 'e5' }));
    await bench.another().fabric.deleteNetwork(VLAN, owner('a'), by({ effectId: 'e6' }));
    await site.fabric.observe({ order: 'a' }, by({ effectId: 'e7' }));
    const calls = readSiteCalls(bench.file);
    expect(
      calls.map(({ effectId, operation, object, owner: mark, result }) => [
        `${effectId} ${operation} ${object} ${mark}`.trim(),
        result,
      ]),
    ).to.deep.equal([
      ['e1 fabric.createNetwork east/100 a/1', 'created'],
      ['e2 fabric.createNetwork east/100 a/1', 'unchanged'],
      ['e3 fabric.createNetwork east/100 b/3', 'conflict: VLAN 100 of fabric east belongs to order a (a/1)'],
      ['e4 fabric.bindPort east/leaf-1/eth1 a/1', 'refused: VLAN 7 of fabric east is not on the switches'],
      ['e5 fabric.deleteNetwork east/100 b/3', 'absent'],
      ['e6 fabric.deleteNetwork east/100 a/1', 'removed'],
      ['e7 fabric.observe a', 'found 1'],
    ]);
    expect(calls.map(({ instance }) => instance)).to.deep.equal([
      'one',
      'one',
      'one',
      'one',
      'one',
      'two',
      'one',
    ]);
    expect(siteConflicts(bench.file)).to.have.length(1);
    expect(readSiteItems(bench.file)).to.deep.equal([]);
  });

  it('tells a fault that was asked for from a conflict of its own', async () => {
    const { site, by } = opened({ 'fabric.createNetwork': 'conflict=1,refused=2,unavailable=3' });
    for (const kind of ['conflict', 'refused', 'unavailable', 'none'])
      expect(await kindOfFailure(site.fabric.createNetwork(VLAN, owner('a'), by()))).to.equal(kind);
    expect(resultsOf('fabric.createNetwork')).to.deep.equal([
      'fault: conflict',
      'fault: refused',
      'fault: unavailable',
      'created',
    ]);
    expect(siteConflicts(bench.file)).to.deep.equal([]);
  });

  it('fails an operation of one order alone, until it is configured otherwise', async () => {
    const { site, by } = opened();
    await site.control.configure({ 'dns.ensure b': 'unavailable=all', '*': 'propagation=0' });
    await site.dns.ensure([RECORD], owner('a'), by());
    const other = { ...RECORD, name: 'api.two.example.com' };
    expect(await kindOfFailure(site.dns.ensure([other], owner('b'), by()))).to.equal('unavailable');
    expect((await site.dns.propagated([RECORD], by())).missing).to.deep.equal([]);
    await bench.another().control.configure({});
    await site.dns.ensure([other], owner('b'), by());
  });

  it('carries a late creation out when it arrives, but not behind its removal', async () => {
    const { site, time, by } = opened({ 'fabric.createNetwork': 'late=1-2,lateBy=1s' });
    const first = kindOfFailure(site.fabric.createNetwork(VLAN, owner('a'), by({ deadlineMs: 100 })));
    await time.pass(100);
    expect(await first).to.equal('unknown-outcome');
    await time.pass(900);
    expect(resultsOf('fabric.createNetwork')).to.deep.equal(['on its way', 'created']);
    const second = kindOfFailure(
      site.fabric.createNetwork({ ...VLAN, vlanId: 101 }, owner('a'), by({ deadlineMs: 100 })),
    );
    await time.pass(100);
    expect(await second).to.equal('unknown-outcome');
    await site.fabric.deleteNetwork({ ...VLAN, vlanId: 101 }, owner('a'), by());
    await time.pass(1_000);
    expect(resultsOf('fabric.createNetwork').at(-1)).to.equal('overtaken');
    expect(readSiteItems(bench.file).map(({ name }) => name)).to.deep.equal(['east/100']);
    // The same mark may come back with a request of its own.
    await site.fabric.createNetwork({ ...VLAN, vlanId: 101 }, owner('a'), by());
  });

  it('has as many hosts as it was told, and some that are never found', async () => {
    const { site, time, by } = opened({ '*': 'hosts=fc430:2 gpu:1,discovery=1s,failDiscovery=1' });
    const of = (hostClass: string) => site.discovery.remaining({ hub: HUB, hostClass }, by());
    expect([await of('fc430'), await of('gpu'), await of('other')]).to.deep.equal([2, 1, 0]);
    for (const id of ['d1', 'd2', 'd3', 'd4']) await site.discovery.discover({ id, ...WANTED }, by());
    expect(await agents()).to.deep.equal([]);
    expect(await of('fc430')).to.equal(0);
    await time.pass(1_000);
    expect((await site.discovery.observe({ hub: HUB }, by())).map(({ state }) => state)).to.deep.equal([
      'failed',
      'found',
      'found',
      'failed',
    ]);
    expect(await agents()).to.have.length(2);
  });

  it('wipes an agent again after a wipe that failed', async () => {
    const { site, time, by } = opened('discovery=0,cleaning=1s,failCleaning=1');
    await site.discovery.discover({ id: 'd1', ...WANTED }, by());
    const [agent] = await agents();
    const id = agent?.id ?? '';
    await site.agents.label(id, owner('a'), by());
    await site.agents.clean(id, owner('a'), by());
    expect((await agents())[0]?.state).to.equal('cleaning');
    await time.pass(1_000);
    expect((await agents())[0]).to.deep.include({ state: 'failed', owner: owner('a') });
    await site.agents.clean(id, owner('a'), by());
    await time.pass(1_000);
    expect((await agents())[0]).to.include({ state: 'free' });
    expect((await agents())[0]?.cleaned?.evidence).to.include('wipe 2');
  });

  it('shows no address after a blind binding, until the port is bound again', async () => {
    const { site, time, by } = opened('discovery=0,switch=0,address=1s,blindBinding=1');
    await site.discovery.discover({ id: 'd1', ...WANTED }, by());
    await site.fabric.createNetwork(VLAN, owner('a'), by());
    await site.fabric.bindPort(PORT, owner('a'), by());
    await time.pass(5_000);
    expect((await agents())[0]?.addresses).to.deep.equal([]);
    await site.fabric.bindPort(PORT, owner('a'), by());
    await site.fabric.bindPort(PORT, owner('a'), by());
    await time.pass(1_000);
    expect((await agents())[0]?.addresses).to.have.length(1);
    await site.fabric.resetPort(BARE_PORT, owner('a'), by());
    expect((await agents())[0]?.addresses).to.deep.equal([]);
  });

  it('runs a task once for all effects that ask while it goes on, and fails the runs that it was told', async () => {
    const { site, time, by } = opened('task=1s,failTask=1,failTaskName=certificates');
    const run = (effectId: string) => site.tasks.run(TASK, owner('a'), by({ effectId }));
    expect((await run('e1')).state).to.equal('running');
    await time.pass(500);
    expect((await run('e2')).state).to.equal('running');
    await time.pass(500);
    const failed = await run('e2');
    expect(failed).to.include({ state: 'failed', message: 'run 1 of certificates failed' });
    expect(await run('e2')).to.deep.equal(failed);
    expect((await run('e3')).state).to.equal('running');
    await time.pass(1_000);
    expect(await run('e3')).to.include({ state: 'passed' });
  });

  it('never answers an older time than the one that its file has seen', async () => {
    const { site, by, time } = opened('switch=0');
    await time.pass(60_000);
    await site.fabric.createNetwork(VLAN, owner('a'), by());
    expect(await vlans()).to.have.length(1);
    const times = readSiteCalls(bench.file).map(({ at }) => at);
    expect(times).to.deep.equal(times.toSorted());
  });

  it('writes durably', async () => {
    expect(await opened().site.control.synchronous()).to.equal(2);
  });

  it('refuses settings that it does not know', async () => {
    opened();
    expect(() => scopedSettings({ 'dns.ensure': 'lostAnsver=1' })).to.throw(
      BadSimulationSetting,
      'lostAnsver',
    );
    expect(() => scopedSettings('switch=soon')).to.throw(BadSimulationSetting, 'switch');
  });

  it('documents every key with its default', async () => {
    opened();
    const readme = readFileSync(
      new URL('../../../src/adapters/site/simulated/README.md', import.meta.url),
      'utf8',
    );
    for (const [key, { default: value, meaning }] of Object.entries(SITE_KEYS)) {
      const shown = value === '' ? '' : `\`${value}\``;
      expect(readme).to.match(
        new RegExp(String.raw`\| \`${key}\` \| ${shown.replace('*', String.raw`\*`)} ?\|`),
      );
      expect(readme).to.include(meaning);
    }
  });
});
