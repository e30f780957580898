import { expect } from 'chai';
import type { Site, SiteAgent } from '../../../src/app/site/ports.ts';
import { callBy, failure, owner, untilSeen, type OpenSite, type SiteUnderTest } from './contract-kit.ts';
import { BINDING, NETWORK } from './contract-l3.ts';

const HUB = 'sim-east-1';
const CLASS = 'fc430';

const agentsOf = (site: Site, order?: string) =>
  site.agents.observe({ hub: HUB, ...(order === undefined ? {} : { order }) }, callBy());

/** Discovers so many agents, and gives them in the order of their discovery. */
const found = async (site: Site, count: number, patienceMs: number): Promise<readonly SiteAgent[]> => {
  for (let n = 1; n <= count; n += 1)
    await site.discovery.discover({ id: `wanted-${n}`, hub: HUB, hostClass: CLASS }, callBy());
  return untilSeen(
    () => agentsOf(site),
    (agents) => agents.length === count,
    patienceMs,
  );
};

/** Suite of the port `Agents`. */
export const describeAgentsContract = (name: string, open: OpenSite): void => {
  describe(`${name}: agents`, () => {
    let under: SiteUnderTest;
    let site: Site;
    beforeEach(async () => {
      under = await open();
      site = under.site;
    });
    afterEach(() => under.close());

    it('are free, labelled, cleaned with evidence, and free again', async () => {
      const [agent] = await found(site, 1, under.patienceMs);
      const id = agent?.id ?? '';
      expect((await agentsOf(site))[0]).to.include({ state: 'free' });
      await site.agents.label(id, owner('order-a'), callBy());
      expect((await agentsOf(site, 'order-a'))[0]).to.include({ id, state: 'labelled' });
      await site.agents.clean(id, owner('order-a'), callBy());
      const clean = await untilSeen(
        () => agentsOf(site),
        ([one]) => one?.cleaned !== undefined,
        under.patienceMs,
      );
      expect(clean[0]?.state).to.equal('free');
      expect(clean[0]?.owner).to.equal(undefined);
      expect(clean[0]?.cleaned?.evidence).to.include('order-a');
      await site.agents.clean(id, owner('order-a'), callBy());
      expect((await agentsOf(site))[0]?.cleaned).to.deep.equal(clean[0]?.cleaned);
    });

    it('carry one mark, whoever asks for another one', async () => {
      const [agent] = await found(site, 1, under.patienceMs);
      const id = agent?.id ?? '';
      await under.misbehave.loseNextAnswer('agents.label');
      const lost = site.agents.label(id, owner('order-a'), callBy());
      expect((await failure(lost)).kind).to.equal('unknown-outcome');
      await site.agents.label(id, owner('order-a'), callBy());
      const other = await under.another();
      for (const mark of [owner('order-b'), owner('order-a', 2)])
        for (const work of [other.agents.label(id, mark, callBy()), other.agents.clean(id, mark, callBy())])
          expect((await failure(work)).kind).to.equal('conflict');
      expect((await agentsOf(other))[0]).to.deep.include({ state: 'labelled', owner: owner('order-a') });
      expect(await agentsOf(other, 'order-b')).to.deep.equal([]);
    });

    it('are in doubt when no answer comes in time', async () => {
      const [agent] = await found(site, 1, under.patienceMs);
      const id = agent?.id ?? '';
      await under.misbehave.neverAnswer();
      const late = site.agents.label(id, owner('order-a'), callBy({ deadlineMs: 40 }));
      expect((await failure(late)).kind).to.equal('unknown-outcome');
      await under.misbehave.healthy();
      expect((await agentsOf(site))[0]?.state).to.equal('free');
    });

    it('are cleaned once each, also those that were never labelled', async () => {
      const [first, second] = await found(site, 2, under.patienceMs);
      await site.agents.label(first?.id ?? '', owner('order-a'), callBy());
      for (const agent of [first, second])
        await site.agents.clean(agent?.id ?? '', owner('order-a'), callBy());
      await untilSeen(
        () => agentsOf(site),
        (agents) => agents.every(({ cleaned, state }) => cleaned !== undefined && state === 'free'),
        under.patienceMs,
      );
    });

    it('show addresses once their ports are in a VLAN: link-local ones, then those of its network', async () => {
      const [agent] = await found(site, 1, under.patienceMs);
      const link = agent?.links[0];
      if (agent === undefined || link === undefined) throw new Error('an agent has a link');
      expect((await agentsOf(site))[0]?.addresses).to.deep.equal([]);
      const { fabric, switch: at, port } = link;
      const vlan = { fabric, vlanId: 100 };
      await site.fabric.createNetwork(vlan, owner('order-a'), callBy());
      await site.fabric.bindPort({ ...vlan, switch: at, port }, owner('order-a'), callBy());
      const addresses = async () => (await agentsOf(site))[0]?.addresses ?? [];
      const [local] = await untilSeen(addresses, (seen) => seen.length > 0, under.patienceMs);
      expect(local).to.match(/^fe80::/);
      await site.l3.createNetwork(NETWORK, owner('order-a'), callBy());
      await site.l3.bind({ ...BINDING, ...vlan }, owner('order-a'), callBy());
      const given = await untilSeen(addresses, (seen) => seen.length === 2, under.patienceMs);
      expect(given[0]).to.match(/^10\.20\.0\.(?!1$)\d+$/);
      expect(given[1]).to.match(/^fd00:20::/);
    });

    it('have a port of a switch each', async () => {
      const agents = await found(site, 20, under.patienceMs);
      const places = agents.flatMap(({ links }) => links.map((link) => `${link.switch}/${link.port}`));
      expect(new Set(places).size).to.equal(20);
    });

    it('are refused where they are not there', async () => {
      expect((await failure(site.agents.label('nobody', owner('order-a'), callBy()))).kind).to.equal(
        'refused',
      );
    });
  });
};

/** Suite of the port `Discovery`. */
export const describeDiscoveryContract = (name: string, open: OpenSite): void => {
  describe(`${name}: discovery`, () => {
    let under: SiteUnderTest;
    let site: Site;
    beforeEach(async () => {
      under = await open();
      site = under.site;
    });
    afterEach(() => under.close());
    const remaining = () => site.discovery.remaining({ hub: HUB, hostClass: CLASS }, callBy());
    const ended = () =>
      untilSeen(
        () => site.discovery.observe({ hub: HUB }, callBy()),
        (all) => all.every(({ state }) => state !== 'discovering'),
        under.patienceMs,
      );

    it('finds one host for each request, however often that is sent', async () => {
      const before = (await remaining()) ?? 0;
      const wanted = { id: 'once', hub: HUB, hostClass: CLASS };
      await under.misbehave.loseNextAnswer('discovery.discover');
      expect((await failure(site.discovery.discover(wanted, callBy()))).kind).to.equal('unknown-outcome');
      await site.discovery.discover(wanted, callBy());
      const [only, ...others] = await ended();
      expect(others).to.deep.equal([]);
      expect(only).to.include({ id: 'once', state: 'found' });
      const agents = await agentsOf(site);
      expect(agents.map(({ id, hostClass, hub }) => ({ id, hostClass, hub }))).to.deep.equal([
        { id: only?.agent, hostClass: CLASS, hub: HUB },
      ]);
      expect(await remaining()).to.equal(before - 1);
    });

    it('is not carried out where nobody answers', async () => {
      await under.misbehave.refuseConnections();
      const sent = site.discovery.discover({ id: 'never', hub: HUB, hostClass: CLASS }, callBy());
      expect((await failure(sent)).kind).to.equal('unavailable');
      await under.misbehave.healthy();
      expect(await site.discovery.observe({ hub: HUB }, callBy())).to.deep.equal([]);
    });
  });
};
