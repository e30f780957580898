import { raceAllocators } from '../../../support/pools/allocators.ts';

const OPERATIONS = Number(process.env['LEDGER_TEST_POOL_OPERATIONS'] ?? 5_000);

describe('64 allocators at once, as long as it takes', function () {
  this.timeout(900_000);
  for (const kind of ['vlan', 'prefix'] as const)
    for (const instances of [1, 2] as const)
      it(`share ${kind} pools on ${instances} instance(s)`, async () => {
        await raceAllocators(kind, {
          operations: instances === 1 ? OPERATIONS : OPERATIONS / 20,
          allocators: 64,
          seed: 11,
          instances,
        });
      });
});
