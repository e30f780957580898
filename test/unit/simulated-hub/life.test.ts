import { expect } from 'chai';
import fc from 'fast-check';
import type { ObservedClusterOrder } from '../../../src/domain/clusters/hub-objects.ts';
import { live } from '../../../src/adapters/management-cluster/simulated/behaviours/cluster-order/life.ts';
import type { OrderRecord } from '../../../src/adapters/management-cluster/simulated/behaviours/cluster-order/status-view.ts';
import { lifeSettings, parseSettings } from '../../../src/adapters/management-cluster/simulated/settings.ts';
import { configVersion } from '../../../src/domain/clusters/config-version.ts';
import { manifestOf } from './hub-support.ts';
import { check } from '../../support/property.ts';

const T0 = Date.parse('2026-11-21T12:00:00.000Z');

type WriteAt = OrderRecord['writes'][number] extends infer W
  ? W extends OrderRecord['writes'][number]
    ? Omit<W, 'at'> & { at: number }
    : never
  : never;

const recordOf = (
  simulation = '',
  writes: readonly WriteAt[] = [],
  nodes = 2,
  spec: object = {},
): OrderRecord => {
  const manifest = manifestOf('order-a', { nodes, spec });
  return {
    kind: 'ClusterOrder',
    uid: 'uid-1',
    sequence: 7,
    namespace: manifest.namespace,
    name: manifest.name,
    id: 'cluster-1',
    labels: manifest.labels,
    annotations: manifest.annotations,
    createdAt: T0,
    spec: manifest.spec,
    configVersion: configVersion(manifest.spec),
    life: lifeSettings(parseSettings(simulation), {}),
    faults: {},
    baseDomain: 'sim.example',
    writes: writes.map((write) => ({ ...write, at: T0 + write.at })),
  };
};

const resizeTo = (nodes: number, at: number): WriteAt => {
  const { spec } = manifestOf('order-a', { nodes });
  return { kind: 'patch', spec, configVersion: configVersion(spec), at };
};

/** Every state that a watcher would have seen until `ms` after creation. */
const historyOf = (
  record: OrderRecord,
  ms: number,
): (ObservedClusterOrder & { ms: number; gone: boolean })[] => {
  const seen: (ObservedClusterOrder & { ms: number; gone: boolean })[] = [];
  live(record, (version, order) => {
    seen.push({ ...order(), ms: version.at - T0, gone: version.gone });
  })(T0 + ms);
  return seen;
};
const at = (record: OrderRecord, ms: number) => {
  const { object, beside, ...life } = live(record)(T0 + ms);
  return { ...life, order: object, hosted: beside };
};
const conditionOf = (order: { conditions: ObservedClusterOrder['conditions'] } | undefined, type: string) =>
  order?.conditions.find((condition) => condition.type === type);
const READY_MS = 3110;

describe('life of a ClusterOrder on the simulated hub', () => {
  describe('creation', () => {
    it('shows the states that the recorded runs show, in their order', () => {
      const history = historyOf(recordOf(), 60_000);
      const steps = history.map(({ phase, finalizers, conditions, jobs, clusterReference }) =>
        [
          phase ?? '-',
          `${finalizers.length}F`,
          `${conditions.filter(({ status }) => status === 'True').length}T`,
          jobs.at(-1)?.state ?? '-',
          clusterReference?.hostedClusterName ?? '-',
        ].join(' '),
      );
      expect([...new Set(steps)]).to.deep.equal([
        '- 0F 0T - -',
        '- 1F 0T - -',
        '- 1F 1T Pending ',
        'Progressing 1F 3T Pending ',
        'Progressing 2F 3T Running ',
        'Progressing 2F 4T Running order-a',
        'Progressing 2F 5T Running order-a',
        'Progressing 2F 6T Running order-a',
        'Ready 2F 5T Succeeded order-a',
      ]);
      expect(history.at(-1)?.ms).to.equal(READY_MS);
    });

    it('has exactly the recorded conditions when it is Ready', () => {
      const { order } = at(recordOf(), READY_MS);
      expect(
        order?.conditions.map(({ type, status, reason }) => `${type} ${status} ${reason ?? ''}`),
      ).to.have.members([
        'NamespaceCreated True AsExpected',
        'Accepted True Initialized',
        'Deleting False Initialized',
        'Progressing False AsExpected',
        'ControlPlaneCreated True AsExpected',
        'ControlPlaneAvailable True AsExpected',
        'ClusterAvailable True AsExpected',
      ]);
      expect(order?.desiredConfigVersion).to.equal(order?.jobs[0]?.configVersion);
      expect(order?.creationTimestamp).to.equal('2026-11-21T12:00:00Z');
    });

    it('brings nodes one by one and classes side by side', () => {
      const classes = [
        { resourceClass: 'a', numberOfNodes: 3 },
        { resourceClass: 'b', numberOfNodes: 1 },
      ];
      const record = recordOf('', [], 0, { nodeRequests: classes });
      const counts = [1800, 2050, 2250, 2450].map((ms) =>
        [...(at(record, ms).hosted?.pools.values() ?? [])].map(({ ready }) => ready),
      );
      expect(counts).to.deep.equal([
        [0, 0],
        [1, 1],
        [2, 1],
        [3, 1],
      ]);
    });

    it('stays without a phase as long as the operator does not work', () => {
      const stuck = at(recordOf('noPhase=forever'), 3_600_000).order;
      expect(stuck?.phase).to.equal(undefined);
      expect(stuck?.finalizers).to.deep.equal(['osac.openshift.io/finalizer']);
      expect(at(recordOf('noPhase=5s'), 5299).order?.phase).to.equal(undefined);
      expect(at(recordOf('noPhase=5s'), 5300).order?.phase).to.equal('Progressing');
    });

    it('never accepts names that make no namespace, nor negative counts', () => {
      const dotted = { ...recordOf(), name: 'order.a' };
      expect(at(dotted, 60_000).order?.conditions).to.deep.equal([]);
      const negative = at(recordOf('', [], -1), 60_000).order;
      expect([negative?.phase, negative?.jobs[0]?.state]).to.deep.equal([undefined, 'Pending']);
    });

    it('freezes the status while hosts are missing, then catches up in one step', () => {
      const record = recordOf('noHosts=10s');
      const frozen = at(record, 9_999);
      expect([frozen.order?.phase, conditionOf(frozen.order, 'ControlPlaneCreated')?.status]).to.deep.equal([
        'Progressing',
        'False',
      ]);
      expect(frozen.hosted?.complete).to.equal(true);
      expect(frozen.order).to.not.have.property('nodeSets');
      const thawed = at(record, 10_000).order;
      expect(thawed?.phase).to.equal('Ready');
      const { nodeSets } = at(recordOf(), 10_000).order ?? {};
      expect(nodeSets).to.have.length(1);
      expect(thawed?.nodeSets).to.deep.equal(nodeSets);
    });
  });

  describe('failure', () => {
    it('before the HostedCluster exists is phase Failed with the text, and the retry succeeds', () => {
      const record = recordOf('failInstall=1,failText=no hosts');
      const failed = at(record, 500).order;
      expect([failed?.phase, failed?.jobs[0]?.state, failed?.jobs[0]?.message]).to.deep.equal([
        'Failed',
        'Failed',
        'failed: no hosts',
      ]);
      expect(conditionOf(failed, 'Progressing')).to.include({
        status: 'False',
        reason: 'ProvisioningFailed',
        message: 'failed: no hosts',
      });
      const retried = at(record, 2_000).order;
      expect([retried?.phase, retried?.jobs.map(({ state }) => state)]).to.deep.equal([
        'Failed',
        ['Failed', 'Running'],
      ]);
      expect(at(record, 10_000).order?.phase).to.equal('Ready');
    });

    it('with a HostedCluster shows in the job only', () => {
      const failed = at(recordOf('failInstall=1,failWhen=late'), READY_MS).order;
      expect([
        failed?.phase,
        failed?.jobs[0]?.state,
        conditionOf(failed, 'ClusterAvailable')?.status,
      ]).to.deep.equal(['Progressing', 'Failed', 'True']);
    });

    it('for ever is retried with growing pauses, and ten jobs are kept', () => {
      const record = recordOf('failInstall=all');
      const launches = historyOf(record, 120_000)
        .filter((state, index, all) => state.jobs.at(-1)?.jobId !== all[index - 1]?.jobs.at(-1)?.jobId)
        .map(({ ms }) => ms);
      const gaps = launches.slice(1).map((ms, index) => ms - (launches[index] ?? 0));
      expect(gaps.slice(0, 6)).to.deep.equal([1000, 2000, 4000, 8000, 16_000, 32_000]);
      const later = historyOf(record, 4 * 3_600_000).map(({ jobs }) =>
        Date.parse(jobs.at(-1)?.timestamp ?? ''),
      );
      const pauses = [...new Set(later)].slice(-3).map((time, i, all) => time - (all[i - 1] ?? time));
      expect(pauses.slice(1), 'at most 30 minutes').to.deep.equal([1_800_000, 1_800_000]);
      expect(at(record, 3_600_000).order?.jobs).to.have.length(10);
    });

    it('a canceled job changes no condition and is launched again', () => {
      const record = recordOf('cancelJob=1');
      const canceled = at(record, 500).order;
      expect([canceled?.phase, canceled?.jobs[0]?.state]).to.deep.equal(['Progressing', 'Canceled']);
      expect(conditionOf(canceled, 'Progressing')?.status).to.equal('True');
      expect(at(record, 10_000).order?.phase).to.equal('Ready');
    });

    it('of nodes keeps the count short and fails the job again and again', () => {
      const life = at(recordOf('nodesStuckAt=1'), 10_000);
      expect([...(life.hosted?.pools.values() ?? [])]).to.deep.equal([
        { resourceClass: 'fc430', desired: 2, ready: 1 },
      ]);
      expect(life.order?.jobs.some(({ state }) => state === 'Succeeded')).to.equal(false);
    });
  });

  describe('after Ready', () => {
    it('a new size shows its hash at once and its nodes step by step, the phase stays Ready', () => {
      const record = recordOf('', [resizeTo(4, 5000)]);
      const history = historyOf(record, 60_000).filter(({ ms }) => ms >= 5000);
      expect(new Set(history.map(({ phase }) => phase))).to.deep.equal(new Set(['Ready']));
      expect(history[0]).to.include({ generation: 2, desiredConfigVersion: recordOf().configVersion });
      expect(history[1]?.desiredConfigVersion).not.to.equal(recordOf().configVersion);
      expect(history.at(-1)?.jobs.map(({ state }) => state)).to.deep.equal(['Succeeded', 'Succeeded']);
      const smaller = at(recordOf('', [resizeTo(4, 5000), resizeTo(1, 9000)]), 15_000);
      expect([...(smaller.hosted?.pools.values() ?? [])][0]).to.include({ desired: 1, ready: 1 });
    });

    it('a change during a job: Ready for the old spec first, then the next job', () => {
      const record = recordOf('', [resizeTo(3, 1000)]);
      const ready = historyOf(record, 60_000).find(({ phase }) => phase === 'Ready');
      expect(ready?.jobs).to.have.length(1);
      expect(ready?.jobs[0]?.configVersion).not.to.equal(ready?.desiredConfigVersion);
      const end = at(record, 60_000).order;
      expect(end?.jobs.at(-1)?.configVersion).to.equal(end?.desiredConfigVersion);
    });

    it('Degraded comes and goes on the HostedCluster alone', () => {
      const record = recordOf('degraded=2,degradedAfter=1s,degradedFor=500ms');
      const degradedAt = (ms: number) => conditionOf(at(record, READY_MS + ms).hosted, 'Degraded')?.status;
      expect([999, 1000, 1499, 1500, 2500, 3000].map(degradedAt)).to.deep.equal([
        'False',
        'True',
        'True',
        'False',
        'True',
        'False',
      ]);
      expect(historyOf(record, 60_000).at(-1)?.ms).to.equal(READY_MS);
    });

    it('a lost HostedCluster leaves no trace in the order', () => {
      const record = recordOf('vanishHostedCluster=5s');
      expect(at(record, 5000).hosted).to.equal(undefined);
      expect(at(record, 5000).order).to.deep.equal(at(record, 4999).order);
    });

    it('an order can vanish', () => {
      const life = at(recordOf('vanishOrder=2s'), 2000);
      expect([life.order, life.goneAt]).to.deep.equal([undefined, T0 + 2000]);
    });
  });

  describe('deletion', () => {
    const deletion: WriteAt = { kind: 'delete', at: 5000 };

    it('runs a job, loses the HostedCluster, then one finalizer after the other', () => {
      const steps = historyOf(recordOf('', [deletion]), 60_000)
        .filter(({ ms }) => ms >= 5000)
        .map(({ ms, phase, finalizers, jobs, gone }) =>
          [ms - 5000, phase, finalizers.length, jobs.at(-1)?.state, gone].join(' '),
        );
      expect(steps).to.deep.equal([
        '0 Ready 2 Succeeded false',
        '20 Deleting 2 Pending false',
        '120 Deleting 2 Running false',
        '1020 Deleting 2 Succeeded false',
        '1020 Deleting 1 Succeeded false',
        '1320 Deleting 0 Succeeded true',
      ]);
      expect(at(recordOf('', [deletion]), 5900).hosted).to.equal(undefined);
    });

    it('ends at once while the order has no finalizer', () => {
      expect(at(recordOf('', [{ kind: 'delete', at: 2 }]), 2).order).to.equal(undefined);
    });

    it('cancels a running job first', () => {
      const order = at(recordOf('', [{ kind: 'delete', at: 1000 }]), 1030).order;
      expect(order?.jobs.map(({ type, state }) => `${type} ${state}`)).to.deep.equal([
        'provision Canceled',
        'deprovision Pending',
      ]);
    });

    it('is only a timestamp while the operator does not work', () => {
      const order = at(recordOf('noPhase=forever', [deletion]), 3_600_000).order;
      expect([order?.phase, order?.deletionTimestamp]).to.deep.equal([undefined, '2026-11-21T12:00:05Z']);
    });

    const stuck: [place: string, finalizers: string[], job: string][] = [
      ['infrastructure', ['osac.openshift.io/infrastructure'], 'Succeeded'],
      ['namespace', ['osac.openshift.io/finalizer'], 'Succeeded'],
      ['job', ['osac.openshift.io/finalizer', 'osac.openshift.io/infrastructure'], 'Failed'],
    ];
    for (const [place, finalizers, job] of stuck) {
      it(`can hang on the ${place}, and ends when that is over`, () => {
        const hanging = at(recordOf(`stuckDeletion=forever,stuckAt=${place}`, [deletion]), 11_000).order;
        expect(hanging?.finalizers).to.deep.equal(finalizers);
        expect(hanging?.jobs.filter(({ type }) => type === 'deprovision')[0]?.state).to.equal(job);
        const freed = recordOf(`stuckDeletion=3s,stuckAt=${place}`, [deletion]);
        expect(at(freed, 7900).order).not.to.equal(undefined);
        expect(at(freed, 15_000).order).to.equal(undefined);
      });
    }

    it('ends when somebody takes the last finalizer away', () => {
      const finalizer = 'osac.openshift.io/infrastructure';
      const record = recordOf('stuckDeletion=forever', [
        deletion,
        { kind: 'remove-finalizer', finalizer, at: 9000 },
      ]);
      expect(at(record, 8999).order).not.to.equal(undefined);
      expect(at(record, 9000).order).to.equal(undefined);
    });
  });

  describe('for any settings and writes', () => {
    const settings = fc.constantFrom(
      '',
      'failInstall=1',
      'failInstall=all,failWhen=late',
      'cancelJob=1-2',
      'noPhase=1s',
      'noHosts=3s',
      'degraded=2',
      'stuckDeletion=2s,stuckAt=job',
      'perNode=0,operators=0,finish=0',
      'vanishOrder=4s',
      'vanishHostedCluster=2s',
      'nodesStuckAt=1',
    );
    const write = fc.oneof(
      fc.tuple(fc.integer({ min: 0, max: 5 }), fc.nat(8000)).map(([nodes, ms]) => resizeTo(nodes, ms)),
      fc.nat(8000).map((ms): WriteAt => ({ kind: 'delete', at: ms })),
      fc.nat(8000).map((ms): WriteAt => ({ kind: 'vanish', what: 'HostedCluster', at: ms })),
      fc.tuple(fc.constantFrom('finalizer', 'infrastructure'), fc.nat(8000)).map(
        ([name, ms]): WriteAt => ({
          kind: 'remove-finalizer',
          finalizer: `osac.openshift.io/${name}`,
          at: ms,
        }),
      ),
    );
    const writes = fc.array(write, { maxLength: 5 }).map((list) => list.toSorted((a, b) => a.at - b.at));

    it('a write changes nothing that was visible up to its time', () => {
      check(
        fc.property(settings, writes, write, fc.nat(8000), (simulation, before, next, extra) => {
          const time = Math.max(...before.map(({ at: ms }) => ms), 0) + extra;
          const past = historyOf(recordOf(simulation, before), time);
          const later = historyOf(recordOf(simulation, [...before, { ...next, at: time }]), time);
          expect(later.slice(0, past.length)).to.deep.equal(past);
        }),
        { numRuns: 150 },
      );
    });

    it('carried on moment by moment it is the life that one look shows', () => {
      const moments = fc
        .array(fc.nat(12_000), { maxLength: 6 })
        .map((list) => list.toSorted((a, b) => a - b));
      check(
        fc.property(settings, writes, moments, (simulation, all, looks) => {
          const record = recordOf(simulation, all);
          const carriedOn = live(record);
          for (const ms of [...looks, 12_000])
            expect(carriedOn(T0 + ms)).to.deep.equal(live(record)(T0 + ms));
        }),
        { numRuns: 150 },
      );
    });

    it('resource versions grow, what comes next is announced, and nothing follows the end', () => {
      check(
        fc.property(settings, writes, fc.nat(12_000), (simulation, all, ms) => {
          const record = recordOf(simulation, all);
          const versions = historyOf(record, 20_000).map(({ resourceVersion }) => Number(resourceVersion));
          expect(versions).to.deep.equal([...new Set(versions)].toSorted((a, b) => a - b));
          const next = historyOf(record, 20_000).find((state) => state.ms > ms);
          const { nextAt } = at(record, ms);
          const gone = historyOf(record, 20_000).map((state) => state.gone);
          expect(gone.indexOf(true)).to.be.oneOf([-1, gone.length - 1]);
          if (next !== undefined) expect(nextAt).to.be.within(T0 + ms + 1, T0 + next.ms);
        }),
        { numRuns: 150 },
      );
    });
  });
});
