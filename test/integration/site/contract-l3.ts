import { expect } from 'chai';
import type { L3Network, Site } from '../../../src/app/site/ports.ts';
import {
  callBy,
  describeMarking,
  failure,
  owner,
  untilSeen,
  type OpenSite,
  type SiteUnderTest,
} from './contract-kit.ts';
import { VLAN } from './contract-network-fabric.ts';

export const NETWORK: L3Network = {
  vrf: 'tenants',
  prefixes: ['10.20.0.0/24', 'fd00:20::/64'],
  gateways: ['10.20.0.1', 'fd00:20::1'],
  dhcp: true,
};
export const BINDING = { ...VLAN, vrf: NETWORK.vrf, prefixes: NETWORK.prefixes };
const NAT = { address: '198.51.100.7', endpoint: 'api', vrf: NETWORK.vrf } as const;

const observed = (site: Site, order?: string) =>
  site.l3.observe(order === undefined ? {} : { order }, callBy());

/** Suite of the port `L3`. */
export const describeL3Contract = (name: string, open: OpenSite): void => {
  describeMarking(name, open, {
    called: 'a network',
    operation: 'l3.createNetwork',
    make: (site, mark, by) => site.l3.createNetwork(NETWORK, mark, by),
    takeAway: (site, mark, by) => site.l3.deleteNetwork(NETWORK, mark, by),
    marks: async (site, order) => (await observed(site, order)).networks.map((one) => one.owner),
  });
  describeMarking(name, open, {
    called: 'a network bound to a VLAN',
    operation: 'l3.bind',
    before: async (site) => {
      await site.fabric.createNetwork(VLAN, owner('order-a', 7), callBy());
      await site.l3.createNetwork(NETWORK, owner('order-a', 8), callBy());
    },
    make: (site, mark, by) => site.l3.bind(BINDING, mark, by),
    takeAway: (site, mark, by) => site.l3.unbind(BINDING, mark, by),
    marks: async (site, order) => (await observed(site, order)).bindings.map((one) => one.owner),
  });
  describeMarking(name, open, {
    called: 'a translated address',
    operation: 'l3.ensureNat',
    before: (site) => site.l3.createNetwork(NETWORK, owner('order-a', 8), callBy()),
    make: (site, mark, by) => site.l3.ensureNat(NAT, mark, by),
    takeAway: (site, mark, by) => site.l3.removeNat(NAT, mark, by),
    marks: async (site, order) => (await observed(site, order)).nats.map((one) => one.owner),
  });

  describe(`${name}: routers`, () => {
    let under: SiteUnderTest;
    let site: Site;
    beforeEach(async () => {
      under = await open();
      site = under.site;
    });
    afterEach(() => under.close());

    it('have no two prefixes of a VRF that overlap, whose ever they are', async () => {
      await site.l3.createNetwork(NETWORK, owner('order-a'), callBy());
      const inside = { ...NETWORK, prefixes: ['10.20.0.128/25'], gateways: [] };
      const around = { ...NETWORK, prefixes: ['10.0.0.0/8'], gateways: [] };
      const sixth = { ...NETWORK, prefixes: ['fd00::/16'], gateways: [] };
      for (const network of [inside, around, sixth])
        for (const order of ['order-a', 'order-b']) {
          const made = site.l3.createNetwork(network, owner(order), callBy());
          expect((await failure(made)).kind).to.equal('conflict');
        }
      await site.l3.createNetwork({ ...around, vrf: 'others' }, owner('order-b'), callBy());
      const beside = { ...NETWORK, prefixes: ['10.20.1.0/24'], gateways: [] };
      await site.l3.createNetwork(beside, owner('order-b'), callBy());
    });

    it('translate an address once', async () => {
      await site.l3.createNetwork(NETWORK, owner('order-a'), callBy());
      await site.l3.ensureNat(NAT, owner('order-a'), callBy());
      const again = site.l3.ensureNat({ ...NAT, endpoint: 'ingress' }, owner('order-a'), callBy());
      expect((await failure(again)).kind).to.equal('conflict');
    });

    it('keep a network while something leads to it', async () => {
      await site.l3.createNetwork(NETWORK, owner('order-a'), callBy());
      await site.l3.ensureNat(NAT, owner('order-a'), callBy());
      const early = site.l3.deleteNetwork(NETWORK, owner('order-a'), callBy());
      expect((await failure(early)).kind).to.equal('conflict');
      await site.l3.removeNat(NAT, owner('order-a'), callBy());
      await untilSeen(
        async () => (await observed(site)).nats,
        (nats) => nats.length === 0,
        under.patienceMs,
      );
      await site.l3.deleteNetwork(NETWORK, owner('order-a'), callBy());
    });

    it('keep a VLAN while a network is bound to it', async () => {
      await site.fabric.createNetwork(VLAN, owner('order-a'), callBy());
      await site.l3.createNetwork(NETWORK, owner('order-a'), callBy());
      await site.l3.bind(BINDING, owner('order-a'), callBy());
      const early = site.fabric.deleteNetwork(VLAN, owner('order-a'), callBy());
      expect((await failure(early)).kind).to.equal('conflict');
    });

    it('refuse what is no prefix, a gateway beside it, and a second one of a family', async () => {
      const odd = [
        { prefixes: ['10.20.0.1/24'], gateways: [] },
        { prefixes: ['10.20.0.0'], gateways: [] },
        { prefixes: [], gateways: [] },
        { prefixes: ['10.20.0.0/24'], gateways: ['10.21.0.1'] },
        { prefixes: ['10.20.0.0/24', '10.21.0.0/24'], gateways: [] },
      ];
      for (const one of odd) {
        const made = site.l3.createNetwork({ ...NETWORK, ...one }, owner('order-a'), callBy());
        expect((await failure(made)).kind, JSON.stringify(one)).to.equal('refused');
      }
    });
  });
};
