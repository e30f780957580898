import { expect } from 'chai';
import { createSiteRegistry } from '../../../src/app/site/site-registry.ts';
import { createSiteEffects } from '../../../src/app/site/site-effects.ts';
import type { RegisteredHub } from '../../../src/app/hubs/hub-registry.ts';
import type { Site } from '../../../src/app/site/ports.ts';
import { hubFacts } from '../../../src/domain/hubs/hub-facts.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { effectCall } from '../../support/hubs/hub-fixture.ts';
import { readSiteCalls } from '../../support/site/site-journal.ts';
import { createSiteBench, owner } from './site-bench.ts';

const ZONE = 'east';
const vlan = { fabric: 'east', vlanId: 100 };
const ports = ['eth1', 'eth2'].map((port) => ({ ...vlan, switch: 'leaf-1', port }));
const network = { vrf: 'tenants', prefixes: ['10.20.0.0/24'], gateways: ['10.20.0.1'], dhcp: true };
const binding = { ...vlan, vrf: 'tenants', prefixes: network.prefixes };
const nats = [{ address: '198.51.100.7', endpoint: 'api', vrf: 'tenants' }];
const records = ['api', 'api-int', '*.apps'].map((label) => ({
  name: `${label}.one.example.com`,
  type: 'A',
  values: ['198.51.100.7'],
  ttlSeconds: 300,
}));

const hub = (id: string, zone: string): RegisteredHub =>
  ({ facts: hubFacts({ id, document: { spec: { zone } } }) }) as unknown as RegisteredHub;
const registryOf = (site: Site, hubs: readonly RegisteredHub[] = [hub('sim-east-1', ZONE)]) =>
  createSiteRegistry(
    {
      hubs: () => hubs,
      get: (id) => hubs.find(({ facts }) => facts.id === id),
      ready: () => Promise.resolve(),
    },
    { of: () => site },
  );

describe('effect port of a site', () => {
  let bench: ReturnType<typeof createSiteBench>;
  let port: ReturnType<typeof createSiteEffects>;
  beforeEach(() => {
    bench = createSiteBench('switch=1s,router=1s,propagation=1s,task=1s');
    port = createSiteEffects({ sites: registryOf(bench.site) });
  });
  afterEach(() => bench.close());

  const ask = (operation: string, args: object, call = effectCall()) =>
    port(operation, { zone: ZONE, ...args } as JsonObject, call);
  const result = async (operation: string, args: object): Promise<JsonObject> => {
    const outcome = await ask(operation, args);
    if (outcome.outcome !== 'done') throw new Error(`${operation}: ${JSON.stringify(outcome)}`);
    return outcome.result;
  };
  /** Forward steps wait for what the site shows, and are then done. */
  const works = async (operation: string, args: object): Promise<void> => {
    expect(await result(operation, args), operation).to.have.property('waiting');
    await bench.time.pass(1_000);
    expect(await result(operation, args), operation).to.deep.equal({});
  };
  /** Removals say what is left until nothing is. */
  const goes = async (operation: string, args: object, count = 1): Promise<void> => {
    expect((await result(operation, args))['left'], operation).to.have.length(count);
    await bench.time.pass(1_000);
    expect(await result(operation, args), operation).to.deep.equal({ left: [] });
  };

  it('builds everything of an order and takes it away again, step by step', async () => {
    const of = (generation: number) => ({ owner: owner('a', generation) });
    await works('l2-create', { network: vlan, ...of(1) });
    await works('ports-bind', { ports, ...of(2) });
    await works('l3-create', { network, ...of(3) });
    await works('l3-bind', { binding, ...of(3) });
    await works('nat-ensure', { nats, ...of(4) });
    expect(await result('dns-ensure', { records, ...of(4) })).to.deep.equal({});
    expect((await result('dns-propagated', { records }))['missing']).to.have.length(3);
    await bench.time.pass(1_000);
    expect(await result('dns-propagated', { records })).to.deep.equal({});
    const { records: shown, ...there } = await result('look', { order: 'a' });
    expect(there).to.deep.equal({
      networks: [{ owner: owner('a', 1), spec: vlan }],
      ports: ports.map((spec) => ({ owner: owner('a', 2), spec })),
      l3networks: [{ owner: owner('a', 3), spec: network }],
      bindings: [{ owner: owner('a', 3), spec: binding }],
      nats: nats.map((spec) => ({ owner: owner('a', 4), spec })),
    });
    expect(shown).to.have.length(3);
    expect(await result('dns-remove', { records, ...of(4) })).to.deep.equal({ left: [] });
    await goes('nat-remove', { nats, ...of(4) });
    await goes('l3-unbind', { binding, ...of(3) });
    await goes('l3-delete', { network, ...of(3) });
    await goes('ports-reset', { ports, ...of(2) }, 2);
    await goes('l2-delete', { network: vlan, ...of(1) });
    expect(await result('look', { order: 'a' })).to.deep.equal({
      networks: [],
      ports: [],
      l3networks: [],
      bindings: [],
      nats: [],
      records: [],
    });
  });

  it('gives every call the effect id and the mark', async () => {
    const args = { zone: ZONE, network: vlan, owner: owner('a', 5) };
    await port('l2-create', args, effectCall({ effectId: 'run/e1' }));
    expect(
      readSiteCalls(bench.file).map(({ effectId, operation, owner: mark }) => [effectId, operation, mark]),
    ).to.deep.equal([
      ['run/e1', 'fabric.createNetwork', 'a/5'],
      ['run/e1', 'fabric.observe', ''],
    ]);
  });

  it('tells a conflict with the name of the other owner, and what is refused', async () => {
    await result('l2-create', { network: vlan, owner: owner('a') });
    const conflict = await ask('l2-create', { network: vlan, owner: owner('b') });
    expect(conflict).to.include({ outcome: 'refused', reason: 'SiteConflict' });
    expect(conflict).to.have.property('message').that.includes('order a (a/1)');
    const refused = await ask('l2-create', { network: { ...vlan, vlanId: 4095 }, owner: owner('b') });
    expect(refused).to.include({ outcome: 'refused', reason: 'SiteRefused' });
  });

  it('tells that a site is not there, does not answer, or is in doubt', async () => {
    const args = { network: vlan, owner: owner('a') };
    await bench.site.control.configure({
      'fabric.createNetwork': 'unavailable=1,lostAnswer=2,retryAfter=7s',
    });
    expect(await ask('l2-create', args)).to.deep.include({
      outcome: 'failed',
      reason: 'SiteUnavailable',
      retryAfterMs: 7_000,
    });
    expect(await ask('l2-create', args)).to.include({ outcome: 'unknown', reason: 'OutcomeUnknown' });
    await bench.time.pass(1_000);
    expect(await ask('l2-create', args, effectCall({ mode: 'observe', attempt: 2 }))).to.deep.equal({
      outcome: 'done',
      result: {},
    });
    const nowhere = await port('look', { zone: 'west', order: 'a' }, effectCall());
    expect(nowhere).to.include({ outcome: 'failed', reason: 'NoSite' });
  });

  it('ends in doubt where one of several calls does', async () => {
    await result('l2-create', { network: vlan, owner: owner('a') });
    await bench.site.control.configure({ 'fabric.bindPort': 'refused=1,lostAnswer=2' });
    const outcome = await ask('ports-bind', { ports, owner: owner('a') });
    expect(outcome).to.include({ outcome: 'unknown' });
  });

  it('tells how a task goes, and that it failed', async () => {
    await bench.site.control.configure('failTask=1');
    const task = { name: 'certificates', phase: 'post-install', cluster: 'c1', hub: 'sim-east-1' };
    const args = { task, owner: owner('a') };
    expect(await result('task', args)).to.include.keys('waiting', 'since');
    await bench.time.pass(1_000);
    expect(await result('task', args)).to.deep.include({
      passed: false,
      message: 'run 1 of certificates failed',
    });
  });

  it('reaches the site of a zone only where every hub in it is simulated', () => {
    const { site } = bench;
    const mixed = registryOf(site, [hub('sim-east-1', ZONE), hub('real', ZONE), hub('sim-west-1', 'west')]);
    expect(mixed.siteOf(ZONE)).to.equal(undefined);
    expect(mixed.siteOf('west')).to.equal(site);
    expect(mixed.siteOfHub('sim-west-1')).to.equal(site);
    expect(mixed.siteOfHub('nobody')).to.equal(undefined);
    expect(mixed.zones()).to.deep.equal(['west']);
    expect(registryOf(site, [hub('sim-1', '')]).siteOf('')).to.equal(undefined);
  });
});
