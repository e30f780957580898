import { expect } from 'chai';
import fc from 'fast-check';
import { parseCidr } from '../../../../src/domain/cidr.ts';
import { canonicalNetwork } from '../../../../src/domain/clusters/resolve.ts';
import { check } from '../../../support/property.ts';

describe('ranges of addresses', () => {
  for (const [text, canonical] of [
    ['10.128.0.0/14', '10.128.0.0/14'],
    ['10.131.255.9/14', '10.128.0.0/14'],
    ['255.255.255.255/0', '0.0.0.0/0'],
    ['192.168.1.77/32', '192.168.1.77/32'],
    ['fd01::/48', 'fd01::/48'],
    ['FD01:0:0:0012::5/48', 'fd01::/48'],
    ['fd01:0:0:12:0:0:0:5/64', 'fd01:0:0:12::/64'],
    ['2001:db8:1:ffff::/47', '2001:db8::/47'],
    ['2001:db8:0:1:0:1:0:1/128', '2001:db8:0:1:0:1:0:1/128'],
    ['1:0:0:2:0:0:3:4/128', '1::2:0:0:3:4/128'],
    ['::/0', '::/0'],
    ['::1/128', '::1/128'],
    ['1::/16', '1::/16'],
    ['64:ff9b::10.1.2.3/128', '64:ff9b::a01:203/128'],
  ] as const)
    it(`${text} is ${canonical}`, () => {
      expect(parseCidr(text)?.text).to.equal(canonical);
    });

  for (const text of [
    '',
    '10.0.0.0',
    '10.0.0/8',
    '10.0.0.0/33',
    '10.0.0.0/08',
    '010.0.0.0/8',
    '10.0.0.256/8',
    '10.0.0.0/8,fd01::/48',
    '1.2.3.4.5/8',
    'fd01::',
    'fd01::/129',
    'fd01::/-1',
    'fd01:::/48',
    'fd01::1::/48',
    ':fd01::/48',
    '1:2:3:4:5:6:7/48',
    '1:2:3:4:5:6:7:8:9/48',
    '1:2:3:4::5:6:7:8/48',
    '12345::/48',
    'fd01::g/48',
    'fd01::%eth0/48',
    '10.1.2.3::/48',
    '::10.1.2.300/96',
    ' 10.0.0.0/8',
  ])
    it(`'${text}' is none`, () => {
      expect(parseCidr(text)).to.equal(undefined);
    });

  it('IPv6 is written as URLs write it, and what is canonical stays', () => {
    const group = fc.oneof(fc.constant(0), fc.nat(0xffff));
    check(
      fc.property(
        fc.array(group, { minLength: 8, maxLength: 8 }),
        fc.integer({ min: 0, max: 128 }),
        (groups, bits) => {
          const long = groups.map((unit) => unit.toString(16).padStart(4, '0')).join(':');
          expect(`[${parseCidr(`${long}/128`)?.text.replace('/128', '')}]`).to.equal(
            new URL(`http://[${long}]`).hostname,
          );
          const canonical = parseCidr(`${long}/${bits}`)?.text ?? '';
          expect(parseCidr(canonical)).to.deep.equal({ family: 'ipv6', text: canonical });
        },
      ),
    );
  });

  it('of pods and services are of one family', () => {
    expect(canonicalNetwork({ pod_cidr: 'FD01::1/48', service_cidr: 'fd02::/112' })).to.deep.equal({
      podCidr: 'fd01::/48',
      serviceCidr: 'fd02::/112',
    });
    expect(canonicalNetwork({ pod_cidr: '10.128.3.0/14' })).to.deep.equal({ podCidr: '10.128.0.0/14' });
    expect(canonicalNetwork({})).to.deep.equal({});
    expect(canonicalNetwork({ pod_cidr: 'fd01::/48', service_cidr: '172.30.0.0/16' })).to.deep.include({
      code: 'INVALID_CIDR',
      field: 'spec.network.service_cidr',
      message:
        "field 'spec.network.service_cidr' must be of the same family as 'spec.network.pod_cidr' ('fd01::/48'), but it is '172.30.0.0/16'",
    });
    expect(canonicalNetwork({ pod_cidr: 'fd01::/129' })).to.deep.include({ field: 'spec.network.pod_cidr' });
  });
});
