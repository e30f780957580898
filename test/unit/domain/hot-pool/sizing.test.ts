import { expect } from 'chai';
import { expected, withOrder, type Demand } from '../../../../src/domain/hot-pool/forecast.ts';
import { isLow, refill } from '../../../../src/domain/hot-pool/refill.ts';
import {
  baseStock,
  floorFor,
  idleCost,
  isNewTarget,
  SERVICE_LEVELS,
} from '../../../../src/domain/hot-pool/sizing.ts';

const single = { meanSize: 1, meanSquare: 1 };

describe('hot pool: sizing', () => {
  for (const [ordersPerHour, leadHours, ...stocks] of [
    [2, 0.25, 2, 3, 4],
    [2, 1, 5, 6, 8],
    [10, 0.25, 5, 7, 9],
    [10, 1, 15, 18, 21],
    [60, 0.25, 22, 25, 28],
    [60, 1, 73, 79, 85],
  ] as const)
    it(`of single nodes: ${ordersPerHour} an hour, ${leadHours} h until a host is there`, () => {
      const found = SERVICE_LEVELS.map((serviceLevel) =>
        baseStock({ ...single, ordersPerHour, leadHours, serviceLevel }),
      );
      expect(found).to.deep.equal(stocks);
    });

  it('of larger orders', () => {
    const orders = { ordersPerHour: 10, meanSize: 4, meanSquare: 20, serviceLevel: 0.99 } as const;
    expect([0.25, 1].map((leadHours) => baseStock({ ...orders, leadHours }))).to.deep.equal([27, 73]);
  });

  it('keeps nothing where nothing is expected', () => {
    expect(baseStock({ ...single, ordersPerHour: 0, leadHours: 1, serviceLevel: 0.999 })).to.equal(0);
  });

  it('leaves a target alone until it changes by 1 and by a tenth', () => {
    expect(
      [
        [0, 1],
        [9, 10],
        [20, 21],
        [20, 22],
        [20, 18],
      ].map(([before = 0, after = 0]) => isNewTarget(before, after)),
    ).to.deep.equal([true, true, false, true, true]);
  });

  it('takes the largest order of high priority as floor, and the mean at least', () => {
    expect([floorFor(4, 2.5), floorFor(0, 2.5)]).to.deep.equal([4, 3]);
  });

  it('says what idle hosts cost', () => {
    const inputs = { ...single, ordersPerHour: 10, leadHours: 1, serviceLevel: 0.95 } as const;
    expect(idleCost(15, inputs, 2)).to.equal(10);
  });
});

describe('hot pool: refill', () => {
  it('asks for what the target and waiting orders lack, as far as slots and hardware go', () => {
    const stock = { target: 10, free: 3, discovering: 2, awaited: 4 };
    expect(refill(stock, 20)).to.equal(9);
    expect(refill(stock, 5)).to.equal(5);
    expect(refill({ ...stock, known: 2 }, 20)).to.equal(2);
    expect(refill({ ...stock, free: 30 }, 20)).to.equal(0);
  });

  it('is low below its target', () => {
    expect(isLow({ target: 3, free: 1, discovering: 1 })).to.equal(true);
    expect(isLow({ target: 3, free: 1, discovering: 2 })).to.equal(false);
  });
});

describe('hot pool: forecast', () => {
  const hour = (n: number): string => new Date(Date.UTC(2026, 10, 23) + n * 3_600_000).toISOString();
  const steady = (hours: number, perHour: number, agents: number): Demand | undefined => {
    let demand: Demand | undefined;
    for (let n = 0; n < hours; n += 1)
      for (let order = 0; order < perHour; order += 1)
        demand = withOrder(demand, { at: hour(n), agents, isHigh: true });
    return demand;
  };

  it('expects of a steady stream what it was', () => {
    expect(expected(steady(5, 3, 2), hour(5), 0)).to.deep.equal({
      ordersPerHour: 3,
      meanSize: 2,
      meanSquare: 4,
    });
  });

  it('halves what is a day old', () => {
    const { ordersPerHour, meanSize } = expected(steady(1, 8, 3), hour(25), 0);
    expect(ordersPerHour).to.be.closeTo(4, 1e-9);
    expect(meanSize).to.be.closeTo(3, 1e-9);
  });

  it('never expects less than the floor, and nothing else where no order ever came', () => {
    expect(expected(undefined, hour(1), 2)).to.deep.equal({ ordersPerHour: 2, ...single });
    expect(expected(steady(1, 1, 1), hour(200), 2).ordersPerHour).to.equal(2);
  });

  it('remembers the largest order of high priority', () => {
    const demand = withOrder(steady(1, 1, 5), { at: hour(0), agents: 9, isHigh: false });
    expect(demand.largestHigh).to.equal(5);
  });
});
