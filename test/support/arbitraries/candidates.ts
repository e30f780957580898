import fc from 'fast-check';
import type { Candidate } from '../../../src/domain/hubs/placement.ts';
import { hubFacts } from '../../../src/domain/hubs/hub-facts.ts';

const count = fc.integer({ min: 0, max: 12 });

/** Up to six hubs in all sorts of conditions, simulated and real. */
export const candidates = (): fc.Arbitrary<Candidate[]> =>
  fc
    .uniqueArray(fc.constantFrom('sim-1', 'sim-2', 'sim-3', 'hub-1', 'hub-2', 'hub-3'), { maxLength: 6 })
    .chain((ids) => fc.tuple(...ids.map(candidate)));

const candidate = (id: string): fc.Arbitrary<Candidate> =>
  fc.record({
    hub: fc.constant(hubFacts({ id, document: { spec: { namespace: 'osac-hub' } } })),
    deleting: fc.boolean(),
    adapter: fc.boolean(),
    blocked: fc.boolean(),
    limits: fc.constantFrom({}, { controlPlanes: 4 }, { controlPlanes: 6, nodes: { agent: 8 } }),
    used: fc.record({ controlPlanes: count, nodes: fc.record({ agent: count }) }),
    tenantClusters: count,
  });
