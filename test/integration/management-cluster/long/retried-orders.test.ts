import { expect } from 'chai';
import { createObjectLooks } from '../../../../src/app/hubs/hub-looks.ts';
import { createManagementClusterEffects } from '../../../../src/app/hubs/management-cluster-effects.ts';
import type { ClusterObservation } from '../../../../src/domain/clusters/observed.ts';
import { configVersion } from '../../../../src/domain/clusters/observation.ts';
import { orderName } from '../../../../src/domain/clusters/cluster-order-manifest.ts';
import { shownState } from '../../../../src/domain/clusters/shown-status.ts';
import { isStoredCluster } from '../../../../src/domain/clusters/state.ts';
import { objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { manualClock } from '../../../support/kube-controllers/clock.ts';
import { playHub } from '../../../support/kube-controllers/hub.ts';
import { effectCall, hubFixture } from '../../../support/hubs/hub-fixture.ts';
import { createOrderRun, done, placedOn } from '../../../unit/domain/clusters/order-run.ts';
import { ID, time } from '../../../unit/domain/clusters/samples.ts';
import { kubernetesStage, NS } from '../kubernetes-stage.ts';

const HUB = 'hub-1';
const NAME = orderName(ID);
const PULL_SECRET = '{"auths":{}}';
/** The operator launches a failed job again by itself after this time. */
const BACK_OFF_MS = 2 * 60_000;
const FAILING = { result: 'failed', afterMs: 1_000, traceback: 'task 12 failed', idle: true } as const;

/** An order's run, its effects and watch on an API server where the operator reconciles, as it was recorded. */
describe('a retry on a hub whose operator launches the jobs', function () {
  this.timeout(60_000);
  const stage = kubernetesStage();

  const setOut = async () => {
    const clock = manualClock();
    const hub = playHub({ call: stage.server.call, clock, namespace: NS });
    await hub.prepare({ fc430: 6, g5: 4 });
    const { hub: cluster } = stage.open();
    const fixture = hubFixture({ of: () => cluster });
    stage.closers.push(() => fixture.stop());
    await fixture.register(HUB, { namespace: NS });
    const port = createManagementClusterEffects({
      registry: fixture.registry,
      secrets: { reveal: async () => new TextEncoder().encode(PULL_SECRET) },
      clock: { now: () => new Date(clock.now()).toISOString() },
      looks: createObjectLooks(),
    });
    const run = createOrderRun();
    /** Carries out the effect that is pending, and returns what it did. */
    const perform = async (kind: string, more: Parameters<typeof effectCall>[0] = {}): Promise<string> => {
      const { effectId, operation, args } = run.start(kind);
      const outcome = await port(operation, args, effectCall({ tenant: 't1', ...more }));
      run.result(effectId, outcome);
      run.commands();
      return outcome.outcome === 'done' ? stringAt(outcome.result, 'did') : outcome.outcome;
    };
    const look = async (): Promise<void> => {
      const { operation, args } = run.effect('read');
      const outcome = await port(operation, args, effectCall({ tenant: 't1' }));
      if (outcome.outcome !== 'done') throw new Error(outcome.reason);
      run.observe(outcome.result as unknown as ClusterObservation);
      run.commands();
    };
    /** Everybody acts for so long, and the order is looked at after each of it. */
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 500) {
        clock.advance(500);
        await hub.settle();
        await look();
      }
    };
    const order = (): JsonObject => {
      const found = stage.server.find('clusterorders', NS, NAME);
      if (found === undefined) throw new Error('the order is not on the hub');
      return found as JsonObject;
    };
    const shown = (): string => {
      const state = run.cluster();
      return isStoredCluster(state) ? shownState(state).replace('CLUSTER_STATE_', '') : 'none';
    };
    run.order();
    run.perform('place', done({ ...placedOn(HUB), namespace: NS, simulated: false }));
    run.commands();
    return { clock, hub, run, port, perform, pass, look, order, shown };
  };
  const parametersOf = (order: JsonObject): string => stringAt(objectAt(order, 'spec'), 'templateParameters');
  const retry = { type: 'RetryCluster', at: time(45) } as const;

  it('after a failed job launches at once, once, and the same is ordered', async () => {
    const { hub, run, perform, pass, look, order, shown } = await setOut();
    hub.ansible.failNext('create', FAILING);
    expect(await perform('apply')).to.equal('created');
    const ordered = parametersOf(order());
    await pass(5_000);
    expect(shown()).to.equal('FAILED');
    expect(run.command(retry).accepted).to.equal(true);
    expect(shown()).to.equal('PROGRESSING');
    expect(await perform('apply')).to.equal('patched');
    // Seen before the operator has seen it: the job that failed was for what was stored before.
    await look();
    expect(shown()).to.equal('PROGRESSING');
    expect(JSON.parse(parametersOf(order()))).to.deep.equal(JSON.parse(ordered));
    await pass(1_000);
    expect(hub.aap.launches()).to.have.lengthOf(2);
    expect(shown()).to.equal('PROGRESSING');
    await pass(20_000);
    expect(shown()).to.equal('READY');
    await pass(BACK_OFF_MS * 2);
    expect(hub.aap.launches()).to.have.lengthOf(2);
    expect(run.effects(), 'what we wrote is no drift').to.deep.equal(['read']);
  });

  it('works each time', async () => {
    const { hub, run, perform, pass, shown } = await setOut();
    for (let failure = 0; failure < 3; failure += 1) hub.ansible.failNext('create', FAILING);
    await perform('apply');
    for (let tried = 1; tried <= 3; tried += 1) {
      await pass(5_000);
      expect(shown()).to.equal('FAILED');
      expect(hub.aap.launches()).to.have.lengthOf(tried);
      run.command(retry);
      expect(await perform('apply')).to.equal('patched');
    }
    await pass(20_000);
    expect(shown()).to.equal('READY');
  });

  it('whose answer was lost is not sent a second time', async () => {
    const { hub, run, perform, pass, port } = await setOut();
    hub.ansible.failNext('create', FAILING);
    await perform('apply');
    await pass(5_000);
    run.command(retry);
    const { effectId, operation, args } = run.start('apply');
    await port(operation, args, effectCall({ tenant: 't1' }));
    run.result(effectId, { outcome: 'unknown', reason: 'OutcomeUnknown', message: 'no answer' });
    for (let look = 0; look < 2; look += 1) {
      const again = await port(operation, args, effectCall({ tenant: 't1', mode: 'observe' }));
      expect(again.outcome === 'done' && again.result['did']).to.equal('unchanged');
      await hub.settle();
    }
    expect(await perform('apply', { mode: 'observe' })).to.equal('unchanged');
    await pass(20_000);
    expect(hub.aap.launches()).to.have.lengthOf(2);
  });

  it('leaves a job alone that the operator has launched again by itself', async () => {
    const { hub, run, perform, pass, shown, clock } = await setOut();
    hub.ansible.failNext('create', FAILING);
    await perform('apply');
    await pass(5_000);
    clock.advance(BACK_OFF_MS);
    await hub.settle();
    run.command(retry);
    expect(await perform('apply')).to.equal('unchanged');
    await pass(20_000);
    expect(shown()).to.equal('READY');
    expect(hub.aap.launches()).to.have.lengthOf(2);
  });

  it('of a change that failed launches it again, while the cluster stays there', async () => {
    const { hub, run, perform, pass, shown } = await setOut();
    await perform('apply');
    await pass(20_000);
    expect(shown()).to.equal('READY');
    hub.ansible.failNext('create', FAILING);
    run.command({
      type: 'ReviseCluster',
      at: time(40),
      changes: {
        nodeSets: {
          workers: { hostType: { id: 'fc430' }, size: 4 },
          gpu: { hostType: { id: 'g5' }, size: 2 },
        },
      },
    });
    run.commands();
    run.perform('resize', done({ resized: true }));
    await perform('apply');
    await pass(5_000);
    expect(shown()).to.equal('READY');
    expect(run.cluster()).to.have.property('changeFailed');
    expect(run.command(retry)).to.have.property('accepted', true);
    expect(await perform('apply')).to.equal('patched');
    await pass(1_000);
    expect(run.cluster()).to.not.have.property('changeFailed');
    expect(hub.aap.launches()).to.have.lengthOf(3);
    await pass(20_000);
    expect(shown()).to.equal('READY');
    expect(run.cluster()).to.not.have.property('changeFailed');
  });

  it('after a lost HostedCluster has it built again', async () => {
    const { hub, run, perform, pass, shown, order } = await setOut();
    await perform('apply');
    await pass(20_000);
    expect(shown()).to.equal('READY');
    for (const pool of await hub.api.list('nodepools', `${NS}-${NAME}`))
      await hub.api.remove('nodepools', `${NS}-${NAME}`, stringAt(objectAt(pool, 'metadata'), 'name'));
    await hub.api.remove('hostedclusters', `${NS}-${NAME}`, NAME);
    await pass(10_000);
    await perform('check');
    expect(shown()).to.equal('FAILED');
    expect(run.command(retry).accepted).to.equal(true);
    expect(await perform('apply')).to.equal('patched');
    await pass(1_000);
    expect(hub.aap.launches()).to.have.lengthOf(2);
    expect(shown()).to.equal('PROGRESSING');
    await pass(20_000);
    expect(shown()).to.equal('READY');
    const { desiredConfigVersion } = objectAt(order(), 'status');
    expect(desiredConfigVersion).to.equal(configVersion(order()['spec'] as never));
  });
});
