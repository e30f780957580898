import { expect } from 'chai';
import { ARRIVALS, simulateFillRate } from '../../../support/agents/fill-rate.ts';

const ORDERS = 1_000;

describe('hot pool over 1,000 orders', () => {
  it('fills what its service level says, within three standard deviations', () => {
    for (const arrivals of ARRIVALS) {
      const { serviceLevel: p } = arrivals;
      const least = p - 3 * Math.sqrt((p * (1 - p)) / ORDERS);
      expect(simulateFillRate(arrivals, ORDERS, 7), JSON.stringify(arrivals)).to.be.at.least(least);
    }
  });
});
