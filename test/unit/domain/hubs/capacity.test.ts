import { expect } from 'chai';
import fc from 'fast-check';
import { isRejection } from '../../../../src/domain/decider.ts';
import type { CapacityClaim, HubCapacityEvent } from '../../../../src/domain/hubs/capacity-events.ts';
import { holderKey } from '../../../../src/domain/holder.ts';
import {
  capacityLimitsOf,
  claimedBy,
  claimOf,
  hubCapacityDecider,
  limitsWithHosts,
  type HubCapacityCommand,
} from '../../../../src/domain/hubs/capacity.ts';
import { specify } from '../../../support/domain/decider-spec.ts';
import { capacityCommands } from '../../../support/arbitraries/capacity.ts';
import { check } from '../../../support/property.ts';

const { given } = specify(hubCapacityDecider);
const at = '2026-11-21T12:00:00.000Z';
const held = (id: string) => ({ kind: 'cluster', id });
const claim = (controlPlanes: number, fc430 = 0): CapacityClaim => ({
  controlPlanes,
  nodes: fc430 === 0 ? {} : { fc430 },
});
const declared = (controlPlanes: number, fc430?: number): HubCapacityEvent => ({
  type: 'HubCapacityDeclared',
  data: { at, hub: 'h1', limits: { controlPlanes, ...(fc430 === undefined ? {} : { nodes: { fc430 } }) } },
});
const reserve = (clusterId: string, wanted: CapacityClaim): HubCapacityCommand => ({
  type: 'ReserveCapacity',
  at,
  holder: held(clusterId),
  claim: wanted,
});
const resize = (clusterId: string, wanted: CapacityClaim): HubCapacityCommand => ({
  type: 'ResizeReservation',
  at,
  holder: held(clusterId),
  claim: wanted,
});
const reserved = (clusterId: string, wanted: CapacityClaim): HubCapacityEvent => ({
  type: 'HubCapacityReserved',
  data: { at, holder: held(clusterId), claim: wanted },
});

const closed = (hubRevision: number): HubCapacityEvent => ({
  type: 'HubCapacityClosed',
  data: { at, hub: 'h1', hubRevision },
});
const close = (hubRevision: number): HubCapacityCommand => ({
  type: 'CloseCapacity',
  at,
  hub: 'h1',
  hubRevision,
});

describe('hubs: closing', () => {
  it('is refused while anything holds capacity, even of no control planes', () => {
    given(reserved('c1', claim(0)))
      .when(close(0))
      .thenRejected('CAPACITY_IN_USE');
    given(declared(2), reserved('c1', claim(1)))
      .when(close(0))
      .thenRejected('CAPACITY_IN_USE', { message: '1 orders hold capacity on this hub' });
    given(reserved('c1', claim(1)), { type: 'HubCapacityReleased', data: { at, holder: held('c1') } })
      .when(close(0))
      .thenEvents(closed(0));
  });
  it('refuses reservations afterwards; a repetition changes nothing', () => {
    given(closed(3))
      .when(reserve('c1', claim(1)))
      .thenRejected('HUB_CLOSED');
    given(closed(3)).when(close(3)).thenNothing();
    given(closed(3)).when(close(5)).thenEvents(closed(5));
  });
  it('ends with a later wording of the hub, not with one that somebody still remembers', () => {
    const declare = (hubRevision?: number): HubCapacityCommand => ({
      type: 'DeclareCapacity',
      at,
      hub: 'h1',
      limits: { controlPlanes: 2 },
      ...(hubRevision === undefined ? {} : { hubRevision }),
    });
    given(declared(2), closed(3)).when(declare()).thenNothing();
    given(declared(2), closed(3)).when(declare(3)).thenNothing();
    given(declared(1), closed(3)).when(declare(3)).thenNothing();
    given(declared(2), closed(3)).when(declare(4)).thenEvents(declared(2));
    given(declared(2), closed(3), declared(2))
      .when(reserve('c1', claim(1)))
      .thenEvents(reserved('c1', claim(1)));
  });
});

describe('hubs: capacity', () => {
  it('is declared once per change', () => {
    const declare: HubCapacityCommand = {
      type: 'DeclareCapacity',
      at,
      hub: 'h1',
      limits: { controlPlanes: 2 },
    };
    given().when(declare).thenEvents(declared(2));
    given(declared(2)).when(declare).thenNothing();
    given(declared(3)).when(declare).thenEvents(declared(2));
    given()
      .when({ ...declare, limits: { controlPlanes: -1 } })
      .thenRejected('INVALID_CAPACITY');
    given()
      .when({ ...declare, limits: { nodes: { a: 1.5 } } })
      .thenRejected('INVALID_CAPACITY');
  });
  it('is unlimited until it is declared, and for what is not limited', () => {
    given()
      .when(reserve('c1', claim(1, 900)))
      .thenEvents(reserved('c1', claim(1, 900)));
    given(declared(1))
      .when(reserve('c1', claim(1, 900)))
      .thenEvents(reserved('c1', claim(1, 900)));
  });
  it('is never exceeded by a reservation', () => {
    given(declared(1), reserved('c1', claim(1)))
      .when(reserve('c2', claim(1)))
      .thenRejected('CAPACITY_EXCEEDED', { message: '1 control planes wanted, 0 left' });
    given(declared(5, 4))
      .when(reserve('c1', claim(1, 5)))
      .thenRejected('CAPACITY_EXCEEDED', { message: '5 fc430 nodes wanted, 4 left' });
    given(declared(5, 4))
      .when(reserve('c1', { controlPlanes: 1, nodes: { h100: 1 } }))
      .thenRejected('CAPACITY_EXCEEDED', { message: '1 h100 nodes wanted, 0 left' });
  });
  it('is reserved, resized and released once', () => {
    given(reserved('c1', claim(1, 2)))
      .when(reserve('c1', claim(1, 2)))
      .thenNothing();
    given(reserved('c1', claim(1, 2)))
      .when(reserve('c1', claim(1, 3)))
      .thenEvents({ type: 'HubCapacityResized', data: { at, holder: held('c1'), claim: claim(1, 3) } });
    given(reserved('c1', claim(1, 2)))
      .when(resize('c1', claim(1)))
      .thenEvents({ type: 'HubCapacityResized', data: { at, holder: held('c1'), claim: claim(1) } });
    given()
      .when(resize('c1', claim(1)))
      .thenRejected('NO_RESERVATION');
    const released: HubCapacityEvent = { type: 'HubCapacityReleased', data: { at, holder: held('c1') } };
    given(reserved('c1', claim(1)))
      .when({ type: 'ReleaseCapacity', at, holder: held('c1') })
      .thenEvents(released);
    given(reserved('c1', claim(1)), released)
      .when({ type: 'ReleaseCapacity', at, holder: held('c1') })
      .thenNothing();
  });
  it('is held by kind and id: another kind of the same id holds apart', () => {
    const pool = { kind: 'externalIpPool', id: 'c1' };
    const both: HubCapacityEvent[] = [
      reserved('c1', claim(1)),
      { type: 'HubCapacityReserved', data: { at, holder: pool, claim: claim(0, 2) } },
    ];
    const state = given(...both).state();
    expect(claimOf(state, held('c1'))).to.deep.equal(claim(1));
    expect(claimOf(state, pool)).to.deep.equal(claim(0, 2));
    expect(claimedBy(state)).to.deep.equal([held('c1'), pool]);
    given(...both)
      .when({ type: 'ReleaseCapacity', at, holder: pool })
      .thenEvents({ type: 'HubCapacityReleased', data: { at, holder: pool } });
  });
  it('lets a claim grow by what is left on a nearly full hub, its own share counted once', () => {
    const nearlyFull = [declared(2, 4), reserved('c1', claim(1, 2)), reserved('c2', claim(1, 1))];
    given(...nearlyFull)
      .when(resize('c1', claim(1, 3)))
      .thenEvents({ type: 'HubCapacityResized', data: { at, holder: held('c1'), claim: claim(1, 3) } });
    given(...nearlyFull)
      .when(resize('c1', claim(1, 4)))
      .thenRejected('CAPACITY_EXCEEDED', { message: '4 fc430 nodes wanted, 3 left' });
    given(...nearlyFull)
      .when(resize('c2', claim(1, 3)))
      .thenRejected('CAPACITY_EXCEEDED', { message: '3 fc430 nodes wanted, 2 left' });
  });
  it('drops counts of 0 and refuses broken claims', () => {
    given()
      .when(reserve('c1', { controlPlanes: 1, nodes: { fc430: 0 } }))
      .thenEvents(reserved('c1', claim(1)));
    given()
      .when(reserve('c1', { controlPlanes: 1, nodes: { fc430: -1 } }))
      .thenRejected('INVALID_CLAIM');
  });
  it('evicts nobody when it shrinks: what is held may stay or shrink, not grow', () => {
    const history = [
      declared(9, 9),
      reserved('c1', claim(1, 6)),
      reserved('c2', claim(1, 3)),
      declared(1, 4),
    ];
    given(...history)
      .when(resize('c1', claim(1, 5)))
      .thenEvents({ type: 'HubCapacityResized', data: { at, holder: held('c1'), claim: claim(1, 5) } });
    given(...history)
      .when(resize('c1', claim(1, 7)))
      .thenRejected('CAPACITY_EXCEEDED');
    given(...history)
      .when(reserve('c3', claim(1)))
      .thenRejected('CAPACITY_EXCEEDED');
  });
  it('is read from a hub’s document; an empty map of nodes limits nothing', () => {
    expect(capacityLimitsOf({ spec: { capacity: { control_planes: 0, nodes: { a: 1 } } } })).to.deep.equal({
      controlPlanes: 0,
      nodes: { a: 1 },
    });
    expect(capacityLimitsOf({ spec: { capacity: { nodes: {} } } })).to.deep.equal({});
    expect(capacityLimitsOf({})).to.deep.equal({});
  });
  it('lets unknown events pass', () => {
    const state = given(reserved('c1', claim(1))).state();
    const unknown = { type: 'SomethingNew', data: {} } as unknown as HubCapacityEvent;
    expect(hubCapacityDecider.evolve(state, unknown)).to.equal(state);
  });

  it('holds under every sequence of commands', () => {
    check(
      fc.property(fc.array(capacityCommands(), { maxLength: 60 }), (commands) => {
        let state = hubCapacityDecider.initialState();
        const claims = new Map<string, CapacityClaim>();
        for (const command of commands) {
          const before = state;
          const decision = hubCapacityDecider.decide(state, command);
          if (isRejection(decision)) continue;
          state = decision.reduce(hubCapacityDecider.evolve, state);
          expect(hubCapacityDecider.decide(state, command)).to.deep.equal([]);
          if (command.type === 'ReleaseCapacity') claims.delete(holderKey(command.holder));
          if ('claim' in command) {
            claims.set(holderKey(command.holder), claimOf(state, command.holder) ?? claim(0));
            // Whatever grew fits; what did not grow may stay above a lowered limit.
            const { controlPlanes: limit = Number.POSITIVE_INFINITY, nodes } = state.limits;
            if (state.used.controlPlanes > before.used.controlPlanes) {
              expect(state.used.controlPlanes).to.be.at.most(limit);
            }
            for (const [type, used] of Object.entries(state.used.nodes)) {
              const max = nodes === undefined ? Number.POSITIVE_INFINITY : (nodes[type] ?? 0);
              if (used > (before.used.nodes[type] ?? 0)) expect(used).to.be.at.most(max);
            }
          }
          const sum = [...claims.values()].reduce((total, each) => total + each.controlPlanes, 0);
          expect(state.used.controlPlanes).to.equal(sum);
          for (const type of ['fc430', 'g5']) {
            const nodes = [...claims.values()].reduce((total, each) => total + (each.nodes[type] ?? 0), 0);
            expect(state.used.nodes[type] ?? 0).to.equal(nodes);
          }
        }
      }),
    );
  });
});

describe('hubs: limits by the hosts that they show', () => {
  const hosts = { fc430: { free: 3, ours: 2 }, g5: { free: 0, ours: 1 } };

  it('are the free hosts and ours; a declared class wins, the others stay', () => {
    expect(limitsWithHosts({}, undefined)).to.deep.equal({});
    expect(limitsWithHosts({ controlPlanes: 4 }, hosts)).to.deep.equal({
      controlPlanes: 4,
      nodes: { fc430: 5, g5: 1 },
    });
    expect(limitsWithHosts({ nodes: { fc430: 1, h100: 8 } }, hosts)).to.deep.equal({
      nodes: { fc430: 1, g5: 1, h100: 8 },
    });
    expect(limitsWithHosts({}, {}), 'where hosts are made when they are ordered').to.deep.equal({});
  });
  it('take names that every object has for classes like others', () => {
    const odd = JSON.parse(
      '{"__proto__":{"free":1,"ours":0},"constructor":{"free":2,"ours":0}}',
    ) as typeof hosts;
    expect(Object.entries(limitsWithHosts({}, odd).nodes ?? {})).to.deep.equal([
      ['__proto__', 1],
      ['constructor', 2],
    ]);
  });
});
