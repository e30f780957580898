import { expect } from 'chai';
import { addressIn } from '../../../src/adapters/management-cluster/simulated/behaviours/machines.ts';

describe('addresses of simulated machines', () => {
  for (const [cidr, turn, address] of [
    ['10.0.1.0/24', 0, '10.0.1.2'],
    ['10.0.1.0/24', 252, '10.0.1.254'],
    ['10.0.1.0/24', 253, '10.0.1.2'],
    ['192.0.2.8/30', 7, '192.0.2.10'],
    ['192.0.2.8/32', 3, '192.0.2.8'],
    ['fd00::/64', 3, 'fd00::4'],
    ['', 0, undefined],
  ] as const)
    it(`the one of turn ${turn} in '${cidr}' is ${address}`, () => {
      expect(addressIn(cidr, turn)).to.equal(address);
    });
});
