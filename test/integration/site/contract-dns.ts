import { expect } from 'chai';
import type { DnsRecord, Site } from '../../../src/app/site/ports.ts';
import {
  callBy,
  describeMarking,
  failure,
  owner,
  untilSeen,
  type OpenSite,
  type SiteUnderTest,
} from './contract-kit.ts';

const record = (more: Partial<DnsRecord> = {}): DnsRecord => ({
  name: 'api.one.example.com',
  type: 'A',
  values: ['198.51.100.7'],
  ttlSeconds: 300,
  ...more,
});
const BOTH = [record(), record({ type: 'AAAA', values: ['2001:db8::7'] })];

/** Suite of the port `Dns`. */
export const describeDnsContract = (name: string, open: OpenSite): void => {
  describeMarking(name, open, {
    called: 'a record',
    operation: 'dns.ensure',
    make: (site, mark, by) => site.dns.ensure([record()], mark, by),
    takeAway: (site, mark, by) => site.dns.remove([record()], mark, by),
    marks: async (site, order) =>
      (await site.dns.observe(order === undefined ? {} : { order }, callBy())).map((one) => one.owner),
  });

  describe(`${name}: name servers`, () => {
    let under: SiteUnderTest;
    let site: Site;
    beforeEach(async () => {
      under = await open();
      site = under.site;
    });
    afterEach(() => under.close());
    const shown = async () => (await site.dns.observe({}, callBy())).map(({ spec }) => spec);

    it('answer with new records after a while, and say which ones they lack', async () => {
      const before = await site.dns.propagated(BOTH, callBy());
      expect(before.missing).to.have.length(2);
      await site.dns.ensure(BOTH, owner('order-a'), callBy());
      await untilSeen(
        () => site.dns.propagated(BOTH, callBy()),
        ({ missing }) => missing.length === 0,
        under.patienceMs,
      );
      const changed = [record({ values: ['198.51.100.8'] })];
      expect((await site.dns.propagated(changed, callBy())).missing[0]).to.include('api.one.example.com');
    });

    it('change the values of the same owner', async () => {
      await site.dns.ensure([record()], owner('order-a'), callBy());
      const changed = record({ values: ['198.51.100.8', '198.51.100.9'] });
      await site.dns.ensure([changed], owner('order-a', 2), callBy());
      expect(await shown()).to.deep.equal([changed]);
    });

    it('leave a record whose values are others by now', async () => {
      await site.dns.ensure([record({ values: ['198.51.100.8'] })], owner('order-a'), callBy());
      await site.dns.remove([record()], owner('order-a'), callBy());
      expect(await shown()).to.have.length(1);
    });

    it('write all records of a call or none', async () => {
      await site.dns.ensure([record({ name: 'api-int.one.example.com' })], owner('order-b'), callBy());
      const wanted = [record(), record({ name: 'api-int.one.example.com' })];
      expect((await failure(site.dns.ensure(wanted, owner('order-a'), callBy()))).kind).to.equal('conflict');
      expect(await site.dns.observe({ order: 'order-a' }, callBy())).to.deep.equal([]);
    });

    it('know a wildcard as a name of its own', async () => {
      await site.dns.ensure([record({ name: '*.apps.one.example.com' })], owner('order-a'), callBy());
      await site.dns.ensure([record({ name: 'www.apps.one.example.com' })], owner('order-b'), callBy());
      expect(await shown()).to.have.length(2);
    });

    it('refuse names and values that cannot be', async () => {
      const odd = [
        record({ name: `${'a'.repeat(64)}.example.com` }),
        record({ name: Array.from({ length: 64 }, () => 'abc').join('.') }),
        record({ name: 'api..example.com' }),
        record({ name: 'a.*.example.com' }),
        record({ values: [] }),
        record({ values: ['2001:db8::7'] }),
        record({ type: 'AAAA' }),
      ];
      for (const one of odd) {
        const made = site.dns.ensure([one], owner('order-a'), callBy());
        expect((await failure(made)).kind, JSON.stringify(one)).to.equal('refused');
      }
      expect(await shown()).to.deep.equal([]);
    });
  });
};
