import { expect } from 'chai';
import { ARRIVALS, simulateFillRate } from '../../../support/agents/fill-rate.ts';

describe('hot pool over 100,000 orders', () => {
  for (const arrivals of ARRIVALS) {
    const { ordersPerHour, leadHours, sizes, serviceLevel } = arrivals;
    it(`fills ${serviceLevel} of ${ordersPerHour} orders an hour, ${leadHours} h, of ${sizes.join(' or ')}`, () =>
      expect(simulateFillRate(arrivals, 100_000, 7)).to.be.at.least(serviceLevel));
  }
});
