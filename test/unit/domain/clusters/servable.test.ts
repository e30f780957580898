import { expect } from 'chai';
import fc from 'fast-check';
import { place, type Candidate } from '../../../../src/domain/hubs/placement.ts';
import {
  limitsWhenEmpty,
  neverGrown,
  neverServed,
  neverThere,
  type NodeSets,
  type StandingHub,
  type Wish,
} from '../../../../src/domain/clusters/servable.ts';
import { isRefused } from '../../../../src/domain/decider.ts';
import type { CapacityLimits } from '../../../../src/domain/hubs/capacity-events.ts';
import { type HubFacts, hubFacts } from '../../../../src/domain/hubs/hub-facts.ts';
import { candidates } from '../../../support/arbitraries/candidates.ts';
import { check } from '../../../support/property.ts';

const AT = '2026-11-21T12:00:00.000Z';
const hub = (
  id: string,
  nodes?: CapacityLimits['nodes'],
  facts: Partial<HubFacts> = {},
  more: Partial<StandingHub> = {},
): StandingHub => ({
  hub: { ...hubFacts({ id, document: { spec: { namespace: 'osac-hub' } } }), ...facts },
  deleting: false,
  adapter: true,
  health: {},
  limits: nodes === undefined ? {} : { nodes },
  ...more,
});
const sets = (counts: { readonly [hostType: string]: number }): NodeSets =>
  Object.fromEntries(
    Object.entries(counts).map(([id, size]) => [
      `set-${id}`,
      { hostType: { id, name: id.toUpperCase() }, size },
    ]),
  );
const wish = (counts: { readonly [hostType: string]: number }, zone?: string): Wish => ({
  tenant: 't1',
  template: 'small',
  nodeSets: sets(counts),
  ...(zone === undefined ? {} : { zone }),
});
const refusal = (wanted: Wish, ...hubs: readonly StandingHub[]): string | undefined =>
  neverServed(wanted, { hubs })?.message;

describe('clusters: what can never be served', () => {
  it('is nothing while no hub is registered, or one that is eligible has no limit', () => {
    expect(refusal(wish({ h100: 99 }, 'mars'))).to.equal(undefined);
    expect(refusal(wish({ h100: 99 }), hub('sim-1', { h100: 4 }), hub('sim-2'))).to.equal(undefined);
    expect(refusal(wish({ h100: 99 }, 'east'), hub('sim-1', undefined, { zone: 'east' }))).to.equal(
      undefined,
    );
  });
  it('is a zone that no hub has', () => {
    const east = hub('sim-1', undefined, { zone: 'east' });
    expect(refusal(wish({ h100: 1 }, 'mars'), east)).to.equal(
      "annotation 'fulfillment-ledger/zone': unknown zone 'mars': name another one, or leave the annotation out",
    );
    expect(neverServed(wish({ h100: 1 }, 'mars'), { hubs: [east] })).to.deep.include({
      kind: 'failed-precondition',
      code: 'NO_SUCH_ZONE',
      field: 'metadata.annotations',
    });
    expect(neverThere('mars', { hubs: [east] })?.code).to.equal('NO_SUCH_ZONE');
    expect(neverThere('east', { hubs: [east] })).to.equal(undefined);
    expect(neverThere('mars', { hubs: [] })).to.equal(undefined);
  });
  it('is more nodes of a class than any single hub of the zone could hold empty', () => {
    const hubs = [
      hub('sim-1', { h100: 4 }, { zone: 'east' }),
      hub('sim-2', { h100: 6 }, { zone: 'east' }),
      hub('sim-3', { h100: 90 }, { zone: 'west' }),
    ];
    expect(refusal(wish({ h100: 6 }, 'east'), ...hubs)).to.equal(undefined);
    expect(refusal(wish({ h100: 90 }), ...hubs)).to.equal(undefined);
    expect(neverServed(wish({ h100: 7 }, 'east'), { hubs })).to.deep.equal({
      rejected: true,
      kind: 'failed-precondition',
      code: 'CAPACITY_IMPOSSIBLE',
      message: "node set 'set-h100': 7 H100 can never be had: one cluster can have at most 6 in zone 'east'",
      field: 'spec.node_sets.set-h100.size',
      facts: { host_type: 'H100', wanted: 7, possible: 6 },
    });
    expect(refusal(wish({ tpu: 1 }), ...hubs)).to.match(
      /1 TPU can never be had: one cluster can have at most 0$/,
    );
  });
  it('counts the node sets of one class together, and says so when classes cannot be had together', () => {
    const two: NodeSets = {
      a: { hostType: { id: 'h100', name: 'h100' }, size: 3 },
      b: { hostType: { id: 'h100', name: 'h100' }, size: 2 },
    };
    expect(refusal({ ...wish({}), nodeSets: two }, hub('sim-1', { h100: 4 }))).to.equal(
      "node sets 'a', 'b': 5 h100 can never be had: one cluster can have at most 4",
    );
    const apart = [hub('sim-1', { h100: 4, g5: 0 }), hub('sim-2', { h100: 0, g5: 4 })];
    expect(refusal(wish({ h100: 1, g5: 1 }), ...apart)).to.equal(
      'the node sets of this cluster can never be had together: ask for fewer nodes',
    );
  });
  it('does not count what may pass: full, closed and unreachable hubs', () => {
    const away = { ok: false, since: AT, at: AT, problems: [] };
    for (const may of [
      hub('sim-1', { h100: 4 }, { scheduling: 'cordoned' }),
      hub('sim-1', { h100: 4 }, { scheduling: 'draining' }),
      hub('hub-1', { h100: 4 }, {}, { adapter: false }),
      hub('hub-1', { h100: 4 }, {}, { health: { reachable: away } }),
    ])
      expect(refusal(wish({ h100: 4 }), hub('sim-9', { h100: 1 }), may), may.hub.id).to.equal(undefined);
  });
  it('does not count a hub that goes, a template that is not offered, or simulated hubs beside a real one', () => {
    const small = hub(
      'hub-1',
      { h100: 1 },
      {},
      { health: { credentials: { ok: true, since: AT, at: AT, problems: [] } } },
    );
    expect(refusal(wish({ h100: 2 }), small, hub('hub-2', { h100: 9 }, {}, { deleting: true }))).to.match(
      /at most 1$/,
    );
    expect(refusal(wish({ h100: 2 }), small, hub('hub-2', { h100: 9 }, { templates: ['other'] }))).to.match(
      /at most 1$/,
    );
    expect(refusal(wish({ h100: 2 }), small, hub('sim-1', { h100: 9 }))).to.match(/at most 1$/);
    expect(refusal(wish({ h100: 1 }, 'sim'), small, hub('sim-1', { h100: 9 }, { zone: 'sim' }))).to.match(
      /unknown zone 'sim'/,
    );
    const simulated = { hubs: [hub('sim-1', { h100: 1 })], refusesSimulated: true };
    expect(neverServed(wish({ h100: 2 }), simulated), 'as without any hub').to.equal(undefined);
    expect(
      refusal(wish({ h100: 2 }), hub('sim-1', { h100: 1 }, { templates: ['other'] })),
      'it waits for the template',
    ).to.equal(undefined);
  });
  it('is any cluster where no hub carries control planes', () => {
    const full = hub('sim-1', undefined, {}, { limits: { controlPlanes: 0 } });
    expect(refusal(wish({ h100: 1 }), full)).to.equal(
      'no cluster can be had, whatever its size: ask your provider',
    );
  });
  it('takes a hub for empty with every host that it shows, and what it declares wins', () => {
    const hosts = {
      at: AT,
      counts: { h100: { free: 1, ours: 2, foreign: 3 }, g5: { free: 1, ours: 0, foreign: 0 } },
    };
    expect(limitsWhenEmpty({ nodes: { g5: 8 } }, hosts)).to.deep.equal({ nodes: { h100: 6, g5: 8 } });
    expect(limitsWhenEmpty({}, undefined)).to.deep.equal({});
  });
  it('is exactly what an empty hub could not be given, whatever the hubs look like', () => {
    check(
      fc.property(candidates(), fc.nat(12), (given, agents) => {
        // Everything that may pass has passed, and nothing is on any hub.
        const empty = given.map(
          (each): Candidate => ({
            ...each,
            hub: { ...each.hub, scheduling: 'open' },
            adapter: true,
            blocked: false,
            used: { controlPlanes: 0, nodes: {} },
          }),
        );
        const nodeSets = sets({ agent: agents });
        const never = neverServed({ tenant: 't1', template: 'small', nodeSets }, { hubs: empty });
        const claim = { controlPlanes: 1, nodes: agents === 0 ? {} : { agent: agents } };
        const placed = place(
          { holder: { kind: 'cluster', id: 'c' }, tenant: 't1', template: 'small', claim },
          empty,
        ).placed;
        const isAny = empty.some(({ deleting }) => !deleting);
        expect(never === undefined).to.equal(placed || !isAny);
      }),
    );
  });

  describe('of a change of a cluster that is on a hub', () => {
    const grown = (before: number, after: number, nodes: CapacityLimits['nodes'], free = 0) =>
      neverGrown(sets({ h100: before }), sets({ h100: after }), {
        limits: nodes === undefined ? {} : { nodes },
        free: () => free,
      });

    it('is refused with how many can be had, and how many are free', () => {
      const wrong = grown(2, 9, { h100: 5 }, 3);
      expect(wrong).to.deep.include({ kind: 'failed-precondition', code: 'CAPACITY_IMPOSSIBLE' });
      expect(wrong?.message).to.equal(
        "node set 'set-h100': 9 H100 can never be had: this cluster can have at most 5, 3 more are free now",
      );
      expect(wrong?.facts).to.deep.equal({ host_type: 'H100', wanted: 9, possible: 5, free: 3 });
    });
    it('is taken where it could fit later, or nothing limits it', () => {
      expect(grown(2, 5, { h100: 5 })).to.equal(undefined);
      expect(grown(2, 500, undefined)).to.equal(undefined);
    });
    it('can always be taken back, also on a hub that was made smaller', () => {
      check(
        fc.property(fc.nat(20), fc.nat(20), fc.nat(20), (before, after, limit) => {
          const wrong = grown(before, after, { h100: limit });
          expect(wrong !== undefined && isRefused(wrong)).to.equal(after > before && after > limit);
        }),
      );
      const limits = { controlPlanes: 0, nodes: { h100: 5 } };
      expect(
        neverGrown(sets({ h100: 2 }), sets({ h100: 3 }), { limits, free: () => 0 }),
        'control planes',
      ).to.equal(undefined);
    });
  });
});
