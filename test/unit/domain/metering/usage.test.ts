import { expect } from 'chai';
import {
  createUsageSum,
  secondsOf,
  type UsageInterval,
  type UsageQuery,
} from '../../../../src/domain/metering/usage.ts';

const interval = (change: Partial<UsageInterval> = {}): UsageInterval => ({
  kind: 'cluster',
  resource: 'c1',
  tenant: 't1',
  project: 'p1',
  template: 'small',
  resourceName: 'first',
  templateName: 'Small',
  deliveredMs: 0,
  component: 'control_plane',
  nodeSet: '_control_plane',
  hostType: '_control_plane',
  nodeCount: 1,
  sinceMs: 100,
  untilMs: 200,
  ...change,
});
const workers = interval({ component: 'worker', nodeSet: 'workers', hostType: 'fc430', nodeCount: 3 });

const given = (...intervals: readonly UsageInterval[]) => ({
  when: (query: Partial<UsageQuery>) => {
    const sum = createUsageSum({
      periods: [{ fromMs: 0, toMs: 1_000 }],
      by: [],
      only: {},
      asOfMs: 1_000,
      ...query,
    });
    for (const one of intervals) sum.add(one);
    const rows = sum.rows().map((row) => [row.period, ...row.values, row.resourceMs, row.nodeMs]);
    return {
      thenRows: (...expected: readonly (string | number)[][]) => expect(rows).to.deep.equal(expected),
    };
  },
});

describe('usage of a period', () => {
  it('is the time of the control plane, and of each node', () =>
    given(interval(), workers).when({}).thenRows([0, 100, 300]));

  describe('before delivery', () => {
    const rowsOf = (...intervals: readonly UsageInterval[]) => {
      const periods = [
        { fromMs: 0, toMs: 150 },
        { fromMs: 150, toMs: 1_000 },
      ];
      const sum = createUsageSum({ periods, by: [], only: {}, asOfMs: 1_000 });
      for (const one of intervals) sum.add(one);
      return sum
        .rows()
        .map(({ period, resourceMs, nodeMs, provisioningMs, provisioningNodeMs }) => [
          period,
          resourceMs,
          nodeMs,
          provisioningMs,
          provisioningNodeMs,
        ]);
    };

    it('is provisioning, and not billed', () => {
      const never = { deliveredMs: undefined };
      expect(rowsOf(interval(never), { ...workers, ...never })).to.deep.equal([
        [0, 0, 0, 50, 150],
        [1, 0, 0, 50, 150],
      ]);
    });

    it('ends with the first READY, from which on it is billed', () =>
      expect(rowsOf(interval({ deliveredMs: 160 }), { ...workers, deliveredMs: 160 })).to.deep.equal([
        [0, 0, 0, 50, 150],
        [1, 40, 120, 10, 30],
      ]));
  });

  it('carries the names of resource and template beside their ids', () => {
    const sum = createUsageSum({
      periods: [{ fromMs: 0, toMs: 1_000 }],
      by: ['template', 'resource'],
      only: {},
      asOfMs: 1_000,
    });
    sum.add(interval());
    expect(sum.rows().map(({ values, names }) => [values, names])).to.deep.equal([
      [
        ['small', 'c1'],
        ['Small', 'first'],
      ],
    ]);
  });

  it('begins and ends with the period', () => {
    given(interval())
      .when({ periods: [{ fromMs: 150, toMs: 180 }] })
      .thenRows([0, 30, 0]);
    given(interval())
      .when({ periods: [{ fromMs: 0, toMs: 100 }] })
      .thenRows();
    given(interval())
      .when({ periods: [{ fromMs: 200, toMs: 300 }] })
      .thenRows();
  });

  it('is cut at every period that it touches', () =>
    given(interval({ sinceMs: 50, untilMs: 350 }))
      .when({
        periods: [
          { fromMs: 0, toMs: 100 },
          { fromMs: 100, toMs: 200 },
          { fromMs: 200, toMs: 300 },
          { fromMs: 300, toMs: 400 },
          { fromMs: 400, toMs: 500 },
        ],
      })
      .thenRows([0, 50, 0], [1, 100, 0], [2, 100, 0], [3, 50, 0]));

  it('counts what goes on up to the moment that is asked for', () => {
    given(interval({ untilMs: undefined }))
      .when({ asOfMs: 150 })
      .thenRows([0, 50, 0]);
    given(interval()).when({ asOfMs: 150 }).thenRows([0, 50, 0]);
    given(interval({ untilMs: undefined }))
      .when({ asOfMs: 50 })
      .thenRows();
  });

  it('is told apart by what is asked for, in order', () =>
    given(
      interval({ tenant: 't2' }),
      interval({ project: 'p0' }),
      interval(),
      interval({ resource: 'c2', sinceMs: 0, untilMs: 10 }),
    )
      .when({ by: ['tenant', 'project'] })
      .thenRows([0, 't1', 'p0', 100, 0], [0, 't1', 'p1', 110, 0], [0, 't2', 'p1', 100, 0]));

  it('is of what is asked for alone', () => {
    const all = [interval(), interval({ tenant: 't2' }), interval({ template: 'large', kind: 'vm' })];
    given(...all)
      .when({ only: { tenant: 't2' } })
      .thenRows([0, 100, 0]);
    given(...all)
      .when({ only: { kind: 'vm', template: 'large' } })
      .thenRows([0, 100, 0]);
    given(...all)
      .when({ only: { project: 'none' } })
      .thenRows();
    given(...all)
      .when({ only: { resource: 'c1' }, by: ['kind'] })
      .thenRows([0, 'cluster', 200, 0], [0, 'vm', 100, 0]);
  });

  it('has no row for what has no length or no nodes', () => {
    given(interval({ untilMs: 100 }))
      .when({})
      .thenRows();
    given({ ...workers, nodeCount: 0 })
      .when({})
      .thenRows();
  });

  it('is exact beyond what numbers hold: a year of many nodes in milliseconds', () => {
    const year = 365 * 86_400_000;
    const sum = createUsageSum({ periods: [{ fromMs: 0, toMs: year }], by: [], only: {}, asOfMs: year });
    sum.add({ ...workers, nodeCount: 1_000_000, sinceMs: 0, untilMs: year });
    for (let i = 0; i < 1_001; i += 1) sum.add({ ...workers, nodeCount: 1, sinceMs: i, untilMs: i + 1 });
    expect(sum.rows()[0]?.nodeMs).to.equal(31_536_000_000_001_001n);
    expect(secondsOf(31_536_000_000_001_001n)).to.equal(31_536_000_000_001);
    expect(secondsOf(1_500)).to.equal(1.5);
  });

  it('has a row for each period and value, in the order of the periods', () => {
    const day = 86_400_000;
    const periods = Array.from({ length: 365 }, (_, i) => ({ fromMs: i * day, toMs: (i + 1) * day }));
    const sum = createUsageSum({ periods, by: ['tenant'], only: {}, asOfMs: 365 * day });
    for (let i = 0; i < 300; i += 1)
      sum.add(interval({ resource: `c${i}`, tenant: `t${i % 10}`, sinceMs: 0, untilMs: undefined }));
    expect(sum.size()).to.equal(3_650);
    expect(sum.rows()).to.have.length(3_650);
    expect(sum.rows()[10]).to.deep.equal({
      period: 1,
      values: ['t0'],
      names: [undefined],
      resourceMs: 30 * day,
      nodeMs: 0,
      provisioningMs: 0,
      provisioningNodeMs: 0,
    });
  });

  it('takes names for what they are', () =>
    given(interval({ project: '__proto__' }), interval({ project: 'constructor' }))
      .when({ by: ['project'] })
      .thenRows([0, '__proto__', 100, 0], [0, 'constructor', 100, 0]));
});
