import { expect } from 'chai';
import type { BoundPort, Site } from '../../../src/app/site/ports.ts';
import {
  callBy,
  describeMarking,
  failure,
  owner,
  untilSeen,
  type OpenSite,
  type SiteUnderTest,
} from './contract-kit.ts';

export const VLAN = { fabric: 'fabric-1', vlanId: 100 };
export const OTHER_VLAN = { fabric: 'fabric-1', vlanId: 101 };
export const PORT: BoundPort = { ...VLAN, switch: 'leaf-1', port: 'eth1' };
const { vlanId: _, ...BARE_PORT } = PORT;

/** Suite of the port `NetworkFabric`. */
export const describeNetworkFabricContract = (name: string, open: OpenSite): void => {
  describeMarking(name, open, {
    called: 'a VLAN',
    operation: 'fabric.createNetwork',
    make: (site, mark, by) => site.fabric.createNetwork(VLAN, mark, by),
    takeAway: (site, mark, by) => site.fabric.deleteNetwork(VLAN, mark, by),
    marks: async (site, order) =>
      (await site.fabric.observe(order === undefined ? {} : { order }, callBy())).networks.map(
        (one) => one.owner,
      ),
  });
  describeMarking(name, open, {
    called: 'a port in a VLAN',
    operation: 'fabric.bindPort',
    before: (site) => site.fabric.createNetwork(VLAN, owner('order-a', 7), callBy()),
    make: (site, mark, by) => site.fabric.bindPort(PORT, mark, by),
    takeAway: (site, mark, by) => site.fabric.resetPort(BARE_PORT, mark, by),
    marks: async (site, order) =>
      (await site.fabric.observe(order === undefined ? {} : { order }, callBy())).ports.map(
        (one) => one.owner,
      ),
  });

  describe(`${name}: switches`, () => {
    let under: SiteUnderTest;
    let site: Site;
    beforeEach(async () => {
      under = await open();
      site = under.site;
      await site.fabric.createNetwork(VLAN, owner('order-a'), callBy());
    });
    afterEach(() => under.close());

    it('put no port into two VLANs', async () => {
      await site.fabric.createNetwork(OTHER_VLAN, owner('order-a', 2), callBy());
      await site.fabric.bindPort(PORT, owner('order-a'), callBy());
      const twice = site.fabric.bindPort({ ...PORT, ...OTHER_VLAN }, owner('order-a'), callBy());
      expect((await failure(twice)).kind).to.equal('conflict');
    });

    it('put no port into the VLAN of another order, or into one that is not there', async () => {
      const foreign = site.fabric.bindPort(PORT, owner('order-b'), callBy());
      expect((await failure(foreign)).kind).to.equal('conflict');
      const nowhere = site.fabric.bindPort({ ...PORT, vlanId: 200 }, owner('order-a'), callBy());
      expect((await failure(nowhere)).kind).to.equal('refused');
    });

    it('keep a VLAN while a port is in it', async () => {
      await site.fabric.bindPort(PORT, owner('order-a'), callBy());
      const early = site.fabric.deleteNetwork(VLAN, owner('order-a'), callBy());
      expect((await failure(early)).kind).to.equal('conflict');
      await site.fabric.resetPort(BARE_PORT, owner('order-a'), callBy());
      await untilSeen(
        async () => (await site.fabric.observe({}, callBy())).ports,
        (ports) => ports.length === 0,
        under.patienceMs,
      );
      await site.fabric.deleteNetwork(VLAN, owner('order-a'), callBy());
    });

    it('refuse an id that is none', async () => {
      for (const vlanId of [0, 4095, 1.5]) {
        const made = site.fabric.createNetwork({ ...VLAN, vlanId }, owner('order-a'), callBy());
        expect((await failure(made)).kind).to.equal('refused');
      }
    });

    it('have the same id once in each fabric', async () => {
      await site.fabric.createNetwork({ ...VLAN, fabric: 'fabric-2' }, owner('order-b'), callBy());
    });
  });
};
