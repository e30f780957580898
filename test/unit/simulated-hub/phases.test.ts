import { expect } from 'chai';
import { externalIpPoolBehaviour } from '../../../src/adapters/management-cluster/simulated/behaviours/external-ips.ts';
import { tenantBehaviour } from '../../../src/adapters/management-cluster/simulated/behaviours/tenants.ts';
import type { Behaviour } from '../../../src/adapters/management-cluster/simulated/behaviours/behaviour.ts';
import type { ObjectRecord } from '../../../src/adapters/management-cluster/simulated/record.ts';
import { lifeSettings, parseSettings } from '../../../src/adapters/management-cluster/simulated/settings.ts';

const T0 = Date.parse('2026-11-21T12:00:00.000Z');

const recordOf = ({ kind }: Behaviour, simulation: string, writes: ObjectRecord['writes']): ObjectRecord => ({
  kind: kind.kind,
  uid: 'uid-1',
  sequence: 1,
  namespace: 'osac',
  name: 'one',
  labels: {},
  annotations: {},
  createdAt: T0,
  spec: {},
  configVersion: '{}',
  life: lifeSettings(parseSettings(simulation), {}),
  faults: {},
  baseDomain: 'sim.example',
  writes,
});

/** Phase after so many milliseconds; `gone` when it is. */
const phasesOf = (
  behaviour: Behaviour,
  simulation: string,
  times: readonly number[],
  writes: ObjectRecord['writes'] = [],
): unknown[] => {
  const living = behaviour.live(recordOf(behaviour, simulation, writes));
  return times.map((ms) => {
    const { object } = living(T0 + ms);
    return object === undefined ? 'gone' : ((object as object as { readonly phase?: string }).phase ?? '');
  });
};

describe('objects that go through phases on a simulated hub', () => {
  it('become ready, and wait for their tenant where that is planted', () => {
    expect(phasesOf(externalIpPoolBehaviour, '', [100, 400, 700])).to.deep.equal([
      '',
      'Progressing',
      'Ready',
    ]);
    const late = 'tenantNotReady=5s';
    expect(phasesOf(externalIpPoolBehaviour, late, [100, 4_900, 5_700])).to.deep.equal([
      'Progressing',
      'Progressing',
      'Ready',
    ]);
    expect(phasesOf(externalIpPoolBehaviour, 'tenantNotReady=forever', [3_600_000])).to.deep.equal([
      'Progressing',
    ]);
  });
  it('a tenant is ready after a moment, fails where that is planted, and goes', () => {
    expect(phasesOf(tenantBehaviour, '', [700])).to.deep.equal(['Ready']);
    const failing = 'failInstall=1,retry=1s';
    expect(phasesOf(tenantBehaviour, failing, [700, 2_300])).to.deep.equal(['Failed', 'Ready']);
    const removal = [{ kind: 'delete', at: T0 + 1_000 }] as const;
    expect(phasesOf(tenantBehaviour, '', [1_500, 2_100], removal)).to.deep.equal(['Deleting', 'gone']);
  });
});
