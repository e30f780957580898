import { raceAllocators } from '../../support/pools/allocators.ts';

/** At most a hundredth of what `long/` does. */
describe('64 allocators at once', () => {
  for (const kind of ['vlan', 'prefix'] as const)
    for (const instances of [1, 2] as const)
      it(`share ${kind} pools on ${instances} instance(s)`, async () => {
        await raceAllocators(kind, {
          operations: instances === 1 ? 600 : 300,
          allocators: 64,
          seed: 7,
          instances,
        });
      });
});
