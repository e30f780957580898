import { expect } from 'chai';
import type { HubWatchStatus } from '../../../src/app/hubs/hub-observer.ts';
import { watchesByHub } from '../../../src/app/hubs/hub-watches.ts';

const status = (hub: string, namespace: string, more: Partial<HubWatchStatus> = {}): HubWatchStatus => ({
  hub,
  namespace,
  kind: 'ClusterOrder',
  synced: true,
  orders: 1,
  unknown: 0,
  observations: 9,
  orphans: 0,
  failures: 0,
  ...more,
});

describe('how a hub is watched, over its namespaces', () => {
  it('is well only when each of them is, and tells the latest error', () => {
    const watches = watchesByHub([
      status('hub-1', 'b', {
        synced: false,
        failures: 2,
        lastError: 'old',
        lastErrorAt: '2026-11-21T10:00:00Z',
      }),
      status('hub-1', 'c', { orphans: 3, lastError: 'new', lastErrorAt: '2026-11-21T11:00:00Z' }),
      status('hub-1', 'a', { synced: false, orders: 5, unknown: 2 }),
      status('__proto__', 'a'),
    ]);
    expect(watches.get('hub-1')).to.deep.equal({
      namespaces: 3,
      synced: false,
      notSynced: ['a', 'b'],
      orders: 7,
      unknown: 2,
      orphans: 3,
      failures: 2,
      lastError: 'new',
      lastErrorAt: '2026-11-21T11:00:00Z',
    });
    expect(watches.get('__proto__')).to.deep.include({ synced: true, orders: 1 });
    expect(watches.get('hub-2')).to.equal(undefined);
  });
  it('is well without kinds that no hub must have, and says what is missing for them', () => {
    const POOLS = { kind: 'ExternalIPPool', synced: false } as const;
    const watches = watchesByHub([
      status('hub-1', 'a'),
      status('hub-1', 'a', {
        ...POOLS,
        failures: 1,
        lastError: 'may not list',
        lastErrorAt: '2026-11-21T10:00:00Z',
      }),
      status('hub-1', 'b', POOLS),
    ]);
    const watch = watches.get('hub-1');
    expect(watch).to.deep.include({ synced: true, notSynced: [], failures: 1 });
    expect(watch).to.not.have.property('lastError');
    expect(watch?.kindsNotSynced).to.deep.equal([
      'ExternalIPPool in a: may not list',
      'ExternalIPPool in b: not listed yet',
    ]);
  });
});
