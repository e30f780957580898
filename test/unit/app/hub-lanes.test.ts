import { expect } from 'chai';
import {
  DEFAULT_PACING,
  lookWhenClosed,
  pacingOfLanes,
  probeOnNewCredentials,
} from '../../../src/app/hubs/hub-lanes.ts';
import type { RegisteredHub } from '../../../src/app/hubs/hub-registry.ts';
import type { LaneStatus } from '../../../src/app/process-runner/types.ts';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import { ownedObjects } from '../../../src/domain/hub-objects.ts';
import { laneOf } from '../../../src/domain/hubs/hub-object.ts';
import { hubFacts } from '../../../src/domain/hubs/hub-facts.ts';
import type { JsonObject } from '../../../src/domain/json.ts';

describe('lanes of hubs', () => {
  const hub = (id: string, spec: JsonObject = {}, version = '1'): RegisteredHub => ({
    facts: hubFacts({ id, document: { spec: { namespace: 'n', ...spec } } }),
    deleting: false,
    limits: {},
    health: {},
    adapter: undefined,
    kubeconfig: { id: 'k', version, kind: 'kubeconfig', fingerprint: 'f' },
    revision: 0,
    tenant: 'shared',
    project: '',
  });

  it('go as fast as the hub’s document says, real ones otherwise at the default, simulated ones unpaced', () => {
    const hubs = new Map(
      [hub('hub-1'), hub('sim-1'), hub('hub-2', { pacing: { calls_per_second: 5, burst: 7 } })].map(
        (each) => [each.facts.id, each],
      ),
    );
    const pacingOf = pacingOfLanes({ get: (id) => hubs.get(id) }, () => 500);
    expect(pacingOf('hub:hub-1')).to.deep.equal(DEFAULT_PACING);
    expect(pacingOf('hub:hub-2')).to.deep.equal({ callsPerSecond: 5, burst: 7 });
    for (const unpaced of ['hub:sim-1', 'hub:nope', 'scheduler'])
      expect(pacingOf(unpaced)).to.equal(undefined);
  });
  it('of a kind with its own go beside that of the hub, each at the pace of the hub', () => {
    const kind = { kind: 'ExternalIP', ownLane: true } as const;
    expect([laneOf('hub-1'), laneOf('hub-1', kind), laneOf('hub-1', CLUSTER_ORDER)]).to.deep.equal([
      'hub:hub-1',
      'hub:hub-1:ExternalIP',
      'hub:hub-1',
    ]);
    const pacingOf = pacingOfLanes({ get: (id) => (id === 'hub-1' ? hub(id) : undefined) }, () => 10_000);
    expect(pacingOf('hub:hub-1:ExternalIP')).to.deep.equal(DEFAULT_PACING);
    expect(pacingOf('hub:hub-1')?.callsPerSecond).to.equal(190);
    const looked: string[] = [];
    const lane = { lane: 'hub:hub-1:ExternalIP', breaker: 'open' } as LaneStatus;
    lookWhenClosed((id) => looked.push(id)).laneChanged?.(lane);
    expect(looked).to.deep.equal(['hub-1']);
  });
  it('may burst to twice their pace where the document names the pace alone, as by default', () => {
    for (const [rate, burst] of [
      [100, 200],
      [2.5, 5],
      [0.1, 1],
    ] as const) {
      const paced = hub('hub-1', { pacing: { calls_per_second: rate } });
      expect(pacingOfLanes({ get: () => paced }, () => 0)('hub:hub-1')).to.deep.equal({
        callsPerSecond: rate,
        burst,
      });
    }
  });
  it('of hubs with many clusters go fast enough by default to look at each of them once a minute', () => {
    const rate = (orders: number): number | undefined =>
      pacingOfLanes({ get: () => hub('hub-1') }, (id) => (id === 'hub-1' ? orders : 0))('hub:hub-1')
        ?.callsPerSecond;
    for (const orders of [1_500, 3_000, 10_000])
      expect((rate(orders) ?? 0) * 60, `a minute's effects for ${orders}`).to.be.within(
        orders * 1.1,
        orders * 1.1 + 600,
      );
    expect([rate(0), rate(1_000), rate(1_000_000)], 'at least and at most').to.deep.equal([20, 20, 200]);
    const declared = hub('hub-1', { pacing: { calls_per_second: 5, burst: 7 } });
    expect(pacingOfLanes({ get: () => declared }, () => 10_000)('hub:hub-1')).to.deep.equal({
      callsPerSecond: 5,
      burst: 7,
    });
  });
  it('have their hub looked at when they close', () => {
    const looked: string[] = [];
    const told: string[] = [];
    const hooks = lookWhenClosed((id) => looked.push(id), {
      laneChanged: ({ lane }) => void told.push(lane),
    });
    const status = (lane: string, breaker: LaneStatus['breaker']): LaneStatus => ({
      lane,
      breaker,
      paused: false,
      inFlight: 0,
      waiting: 0,
      consecutiveFailures: 1,
      failing: [],
      failingOrders: 0,
    });
    hooks.laneChanged?.(status('hub:hub-1', 'open'));
    hooks.laneChanged?.(status('hub:hub-1', 'closed'));
    hooks.laneChanged?.(status('scheduler', 'open'));
    hooks.laneChanged?.(status('automation:eda:hub-2', 'open'));
    expect(looked).to.deep.equal(['hub-1', 'hub-2']);
    expect(told).to.have.lengthOf(4);
  });
  it('try one effect at once when their hub has new credentials', () => {
    const probed: string[] = [];
    let tell: (id: string, hub: RegisteredHub | undefined) => void = () => undefined;
    probeOnNewCredentials(
      {
        onChange: (listener) => {
          tell = listener;
          return () => undefined;
        },
      },
      (lane) => probed.push(lane),
    );
    tell('hub-1', hub('hub-1'));
    tell('hub-1', hub('hub-1', { zone: 'east' }));
    expect(probed).to.deep.equal([]);
    tell('hub-1', hub('hub-1', {}, '2'));
    const ofKinds = ownedObjects().flatMap((each) =>
      each.ownLane === true ? [`hub:hub-1:${each.kind}`] : [],
    );
    expect(ofKinds).to.include.members(['hub:hub-1:ExternalIPPool', 'hub:hub-1:ExternalIP']);
    const lanes = ['hub:hub-1', ...ofKinds, 'automation:eda:hub-1', 'automation:aap:hub-1'];
    expect(probed.splice(0)).to.deep.equal(lanes);
    const token = { id: 't', version: '1', kind: 'automation-token', fingerprint: 'f' } as const;
    tell('hub-1', { ...hub('hub-1', {}, '2'), automation: { token } });
    expect(probed.splice(0), 'of its automation').to.deep.equal(lanes);
    const former = { eda: { token: { ...token, version: '2' } } };
    tell('hub-1', { ...hub('hub-1', {}, '2'), automation: { token }, formerAutomation: former });
    expect(probed.splice(0), 'of the mode before').to.deep.equal(lanes);
    tell('hub-1', undefined);
    tell('hub-1', hub('hub-1', {}, '3'));
    expect(probed).to.deep.equal([]);
  });
});
