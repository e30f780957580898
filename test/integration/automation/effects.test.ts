import { expect } from 'chai';
import { createAutomations } from '../../../src/adapters/automation/automations.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import {
  createAutomationEffects,
  type AutomationEffectSettings,
  type JobArgs,
  type TriggerArgs,
} from '../../../src/app/automation-effects.ts';
import type { HubRegistry, RegisteredHub } from '../../../src/app/hub-registry.ts';
import type { EffectCall, EffectPort } from '../../../src/app/process-runner/types.ts';
import { hubFacts } from '../../../src/domain/hubs/hub-facts.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';
import { startAap, type AapOptions, type AapStandIn } from '../../support/aap/aap-server.ts';
import { effectCall } from '../../support/hub-fixture.ts';
import { startRulebook, type RulebookStandIn } from '../../support/rulebook/rulebook-server.ts';
import { eventually } from '../../support/toy-workflow.ts';
import { automatedHub, HUB, PLACE } from './automated-hub.ts';
import { CANARIES, HMAC_SECRET, orderCalled, secretStore, TOKEN } from './contract.ts';

const REPORT_TIME = 'osac.openshift.io/ansible-workflow-time';
/** Milliseconds in which requests settle here. */
const SETTLES = 120;
const QUICK: AutomationEffectSettings = {
  requestDeadlineMs: 80,
  queuedGraceMs: SETTLES - 80,
  launchGraceMs: SETTLES - 80,
  lookAgainMs: 10,
  callDeadlineMs: 2_000,
};

describe('effects of a hub’s automation', function () {
  this.timeout(10_000);
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  const portTo = (endpoints: JsonObject, adapter: RegisteredHub['adapter'], mode = 'eda'): EffectPort => {
    const refOf = (id: string) => ({ id, version: 'v1', kind: 'secret-data', fingerprint: 'f' }) as const;
    const registered = {
      facts: hubFacts({ id: HUB, document: { spec: { namespace: 'orders', endpoints, mode } } }),
      adapter,
      automation: { token: refOf(TOKEN), hmacSecret: refOf(HMAC_SECRET) },
      tenant: 'shared',
    } as unknown as RegisteredHub;
    const registry: Pick<HubRegistry, 'ready' | 'get'> = {
      ready: async () => undefined,
      get: (id) => (id === HUB ? registered : undefined),
    };
    return createAutomationEffects({
      registry,
      automations: createAutomations({ secrets: secretStore }),
      clock: systemClock(),
      timers: systemTimers(),
      settings: QUICK,
    });
  };
  const triggerArgs = (mode: 'eda' | 'aap', more: Partial<TriggerArgs> = {}): JsonObject =>
    ({ hub: HUB, mode, purpose: 'provision', place: PLACE, ...more }) as unknown as JsonObject;
  const now = (): string => new Date().toISOString();
  /** The attempt after one that was started just now and of which nothing is known. */
  const secondAttempt = (more: Partial<EffectCall> = {}): EffectCall =>
    effectCall({ attempt: 2, mode: 'observe', firstStartedAt: now(), ...more });
  const withoutSecrets = (outcome: EffectOutcome): EffectOutcome => {
    for (const secret of CANARIES) expect(JSON.stringify(outcome)).not.to.include(secret);
    return outcome;
  };
  const timed = async (work: Promise<EffectOutcome>): Promise<readonly [EffectOutcome, number]> => {
    const begun = performance.now();
    const outcome = withoutSecrets(await work);
    return [outcome, performance.now() - begun];
  };

  describe('with a rulebook', () => {
    const start = async () => {
      const { hub, cluster } = automatedHub();
      const rulebook: RulebookStandIn = await startRulebook({
        token: TOKEN,
        hmacSecret: HMAC_SECRET,
        playbook: ({ payload }) => hub.create(payload as JsonObject),
      });
      closing.push(rulebook.close);
      const port = portTo({ eda: rulebook.url }, cluster);
      return {
        hub,
        rulebook,
        trigger: (call: EffectCall, more = {}) => port('trigger', triggerArgs('eda', more), call),
      };
    };
    const POSTED = { outcome: 'done', result: { queued: true, did: 'posted' } };

    it('posts the order as the hub stores it', async () => {
      const { hub, rulebook, trigger } = await start();
      const order = hub.order;
      expect(await trigger(effectCall())).to.deep.equal(POSTED);
      await eventually('the playbook runs', () => rulebook.runs.length === 1);
      expect(rulebook.runs[0]?.payload).to.deep.equal(order);
    });

    it('does not post again what was queued before the answer was lost', async () => {
      const { rulebook, trigger } = await start();
      rulebook.next('cut');
      expect(withoutSecrets(await trigger(effectCall()))).to.include({ outcome: 'unknown' });
      expect(await trigger(secondAttempt())).to.deep.equal({
        outcome: 'done',
        result: { queued: true, did: 'observed', evidence: 'the infrastructure finalizer is set' },
      });
      expect(rulebook.requests).to.have.length(1);
    });

    it('posts again what got lost, once nothing of it can be under way', async () => {
      const { rulebook, trigger } = await start();
      rulebook.next('drop');
      expect(await trigger(effectCall())).to.include({ outcome: 'unknown' });
      const [outcome, ms] = await timed(trigger(secondAttempt()));
      expect(outcome).to.deep.equal(POSTED);
      expect(ms).to.be.at.least(SETTLES - 5);
      expect(rulebook.requests).to.have.length(2);
      await eventually('the playbook runs', () => rulebook.runs.length === 1);
    });

    it('sees a playbook that begins while it waits', async () => {
      const { hub, rulebook, trigger } = await start();
      const second = trigger(secondAttempt());
      await eventually('it has looked once', () => hub.looks === 1);
      await hub.create(orderCalled(PLACE.name));
      expect(await second).to.have.nested.property('result.did', 'observed');
      expect(rulebook.requests).to.deep.equal([]);
    });

    it('does not wait when the first attempt was long ago', async () => {
      const { trigger } = await start();
      const firstStartedAt = new Date(Date.now() - 60_000).toISOString();
      const [outcome, ms] = await timed(trigger(secondAttempt({ firstStartedAt })));
      expect(outcome).to.deep.equal(POSTED);
      expect(ms).to.be.lessThan(SETTLES);
    });

    it('a listener that accepts and forgets is asked again only after a look', async () => {
      const { rulebook, trigger } = await start();
      rulebook.next('forget');
      const since = now();
      expect(await trigger(effectCall())).to.deep.equal(POSTED);
      const [outcome, ms] = await timed(trigger(effectCall(), { since }));
      expect(outcome).to.deep.equal(POSTED);
      expect(ms).to.be.at.least(SETTLES / 2);
      await eventually('the playbook runs', () => rulebook.runs.length === 1);
      // And not a third time, now that something is to be seen.
      expect(await trigger(effectCall(), { since })).to.have.nested.property('result.did', 'observed');
      expect(rulebook.requests).to.have.length(2);
    });

    it('a listener that answers too late has accepted, and is not asked again', async () => {
      const { rulebook, trigger } = await start();
      rulebook.next({ late: 5_000 });
      const deadline = AbortSignal.timeout(100);
      expect(await trigger(effectCall({ signal: deadline }))).to.include({ outcome: 'unknown' });
      expect(await trigger(secondAttempt())).to.have.nested.property('result.did', 'observed');
      expect(rulebook.requests.length + rulebook.runs.length).to.be.at.most(2);
    });

    it('a listener that runs the playbook twice leaves one cluster', async () => {
      const { hub, rulebook, trigger } = await start();
      rulebook.next('twice');
      expect(await trigger(effectCall())).to.deep.equal(POSTED);
      await eventually('it runs twice', () => rulebook.runs.length === 2);
      expect(hub.hosted.size).to.equal(1);
      expect(rulebook.requests).to.have.length(1);
    });

    it('what a killed listener had queued is posted again', async () => {
      const { rulebook, trigger } = await start();
      rulebook.hold();
      const since = now();
      expect(await trigger(effectCall())).to.deep.equal(POSTED);
      await rulebook.kill();
      expect(await trigger(effectCall(), { since })).to.include({
        outcome: 'failed',
        reason: 'AutomationUnavailable',
      });
      await rulebook.restart();
      expect(await trigger(effectCall(), { since })).to.deep.equal(POSTED);
      await eventually('the playbook runs', () => rulebook.runs.length === 1);
    });

    it('a report counts by the hub’s own clock', async () => {
      const { hub, rulebook, trigger } = await start();
      const HOUR = 3_600_000;
      hub.clockSkewMs = HOUR;
      const stamp = (ms: number): void =>
        hub.mark([], { [REPORT_TIME]: new Date(Date.now() + HOUR + ms).toISOString() });
      stamp(-60_000);
      expect(await trigger(secondAttempt())).to.deep.equal(POSTED);
      stamp(60_000);
      expect(await trigger(secondAttempt())).to.have.nested.property(
        'result.evidence',
        'a workflow has reported since',
      );
      expect(rulebook.requests).to.have.length(1);
    });

    it('works where hosted clusters may not be read', async () => {
      const { hub, trigger } = await start();
      hub.readable = false;
      expect(await trigger(secondAttempt())).to.deep.equal(POSTED);
    });

    it('asks nothing for an order that is gone, when it was to be removed', async () => {
      const { hub, rulebook, trigger } = await start();
      hub.order = undefined;
      for (const call of [effectCall(), secondAttempt()]) {
        expect(await trigger(call, { purpose: 'deprovision' })).to.have.nested.property(
          'result.evidence',
          'the order is gone',
        );
      }
      expect(await trigger(effectCall())).to.include({ outcome: 'failed', reason: 'OrderMissing' });
      expect(rulebook.requests).to.deep.equal([]);
    });

    it('does not send an order of somebody else, nor one that is too large', async () => {
      const { hub, rulebook, trigger } = await start();
      hub.order = orderCalled('order-b');
      expect(await trigger(effectCall())).to.include({ outcome: 'refused', reason: 'NameTaken' });
      hub.order = orderCalled('order-a', { sshPublicKey: 'k'.repeat(1_100_000) });
      expect(await trigger(effectCall())).to.include({ outcome: 'refused', reason: 'AutomationRefused' });
      expect(rulebook.requests).to.deep.equal([]);
    });

    it('what is to be seen of an order of somebody else says nothing of ours', async () => {
      const { hub, rulebook, trigger } = await start();
      hub.order = orderCalled('order-b');
      hub.mark(['osac.openshift.io/infrastructure']);
      expect(await trigger(secondAttempt())).to.include({ outcome: 'refused', reason: 'NameTaken' });
      expect(rulebook.requests).to.deep.equal([]);
    });

    for (const [behaviour, outcome, reason] of [
      [{ status: 401 }, 'failed', 'AutomationUnauthorized'],
      [{ status: 413 }, 'refused', 'AutomationRefused'],
      [{ status: 405 }, 'failed', 'AutomationNotFound'],
      [{ status: 429 }, 'failed', 'AutomationThrottled'],
      [{ status: 503 }, 'failed', 'AutomationUnavailable'],
      [{ status: 500 }, 'unknown', 'OutcomeUnknown'],
    ] as const) {
      it(`answered with ${behaviour.status} it is ${outcome}: ${reason}`, async () => {
        const { rulebook, trigger } = await start();
        rulebook.next({ ...behaviour, text: `no ${TOKEN}` });
        expect(withoutSecrets(await trigger(effectCall()))).to.include({ outcome, reason });
      });
    }
  });

  describe('with an automation platform', () => {
    const start = async (more: AapOptions = {}) => {
      const { hub, cluster } = automatedHub();
      const aap: AapStandIn = await startAap({ token: TOKEN, pace: 'by-hand', ...more });
      closing.push(aap.close);
      const port = portTo({ aap: aap.url }, cluster);
      return {
        hub,
        aap,
        trigger: (call: EffectCall, args = {}) => port('trigger', triggerArgs('aap', args), call),
        lookUp: (call: EffectCall) => port('lookUp', triggerArgs('aap'), call),
        of: (operation: 'job' | 'cancel', job: JobArgs['job']) =>
          port(operation, { hub: HUB, job } as unknown as JsonObject, effectCall()),
      };
    };
    const jobIn = (outcome: EffectOutcome): { id: string; workflow: boolean } => {
      if (outcome.outcome !== 'done') throw new Error(JSON.stringify(outcome));
      return outcome.result['job'] as { id: string; workflow: boolean };
    };
    const looks = ({ requests }: AapStandIn): number =>
      requests.filter(({ path }) => path.includes('created__gte')).length;

    it('launches a job, tells how it is and ends it', async () => {
      const { aap, trigger, of } = await start();
      const launched = await trigger(effectCall());
      expect(launched).to.have.nested.property('result.did', 'launched');
      const job = jobIn(launched);
      expect(job).to.include({ workflow: true, template: 'osac-create-hosted-cluster', state: 'Pending' });
      await aap.advance(Number(job.id));
      expect(jobIn(await of('job', job))).to.include({ id: job.id, state: 'Waiting' });
      expect(await of('cancel', job)).to.deep.equal({ outcome: 'done', result: { cancelled: true } });
      expect(jobIn(await of('job', job))).to.include({ state: 'Canceled' });
      expect(await of('cancel', job)).to.deep.equal({ outcome: 'done', result: { cancelled: false } });
      aap.vanish(Number(job.id));
      expect(await of('job', job)).to.deep.equal({ outcome: 'done', result: { job: null } });
    });

    it('adopts the job of a launch whose answer was lost', async () => {
      const { aap, trigger } = await start();
      aap.nextLaunch('lose');
      const first = effectCall();
      expect(withoutSecrets(await trigger(first))).to.include({ outcome: 'unknown' });
      const outcome = await trigger(secondAttempt({ effectId: first.effectId }));
      expect(outcome).to.have.nested.property('result.did', 'adopted');
      expect(jobIn(outcome).id).to.equal(String(aap.jobs[0]?.id));
      // Found at once: who waits for what may be under way looks again after it.
      expect(looks(aap)).to.equal(1);
      expect(aap.jobs).to.have.length(1);
    });

    it('launches again only after two looks that found nothing, when no launch can be under way', async () => {
      const { aap, trigger } = await start();
      aap.nextLaunch('drop');
      const first = effectCall();
      expect(await trigger(first)).to.include({ outcome: 'unknown' });
      const [outcome, ms] = await timed(trigger(secondAttempt({ effectId: first.effectId })));
      expect(outcome).to.have.nested.property('result.did', 'launched');
      expect(ms).to.be.at.least(SETTLES + QUICK.lookAgainMs - 5);
      expect(looks(aap)).to.equal(3);
      expect(aap.jobs).to.have.length(1);
    });

    it('adopts a job that appears while it waits', async () => {
      const { aap, trigger } = await start();
      const first = effectCall();
      const second = trigger(secondAttempt({ effectId: first.effectId }));
      await eventually('it has looked once', () => looks(aap) === 1);
      await trigger(first);
      expect(await second).to.have.nested.property('result.did', 'adopted');
      expect(aap.jobs).to.have.length(1);
    });

    it('does not know, and launches nothing, while the platform does not tell', async () => {
      const { aap, trigger } = await start();
      await aap.kill();
      const outcome = await trigger(secondAttempt());
      expect(outcome).to.include({ outcome: 'failed', reason: 'AutomationUnavailable' });
      await aap.restart();
      expect(aap.jobs).to.deep.equal([]);
    });

    it('finds a job of an attempt that nobody remembers the time of', async () => {
      const { aap, trigger } = await start();
      const first = effectCall();
      await trigger(first);
      const { firstStartedAt: _forgotten, ...call } = secondAttempt({ effectId: first.effectId });
      expect(await trigger(call)).to.have.nested.property('result.did', 'adopted');
      expect(aap.jobs).to.have.length(1);
    });

    it('looks up what an attempt has left without launching anything', async () => {
      const { aap, trigger, lookUp } = await start();
      const first = effectCall();
      const nothing = await lookUp(secondAttempt({ effectId: first.effectId }));
      expect(nothing).to.deep.equal({ outcome: 'done', result: { job: null } });
      await trigger(first);
      const found = await lookUp(secondAttempt({ effectId: first.effectId }));
      expect(jobIn(found).id).to.equal(String(aap.jobs[0]?.id));
      expect(aap.jobs).to.have.length(1);
    });

    it('launches nothing for an order that is gone', async () => {
      const { hub, aap, trigger } = await start();
      hub.order = undefined;
      expect(await trigger(effectCall(), { purpose: 'deprovision' })).to.deep.equal({
        outcome: 'done',
        result: { job: null, did: 'observed', evidence: 'the order is gone' },
      });
      expect(aap.jobs).to.deep.equal([]);
    });
  });

  it('of a hub that was switched asks for each order what it was placed with', async () => {
    const rulebook = await startRulebook({ token: TOKEN, hmacSecret: HMAC_SECRET });
    const aap = await startAap({ token: TOKEN });
    closing.push(rulebook.close, aap.close);
    const port = portTo({ eda: rulebook.url, aap: aap.url }, automatedHub().cluster, 'aap');
    expect(await port('trigger', triggerArgs('eda'), effectCall())).to.have.nested.include({
      'result.queued': true,
    });
    expect([rulebook.requests.length, aap.jobs.length]).to.deep.equal([1, 0]);
    expect(await port('trigger', triggerArgs('aap'), effectCall())).to.have.nested.include({
      'result.did': 'launched',
    });
    expect([rulebook.requests.length, aap.jobs.length]).to.deep.equal([1, 1]);
  });

  it('says what is missing at the hub', async () => {
    const trigger = (port: EffectPort, more: Partial<TriggerArgs> = {}): Promise<EffectOutcome> =>
      port('trigger', triggerArgs('eda', more), effectCall());
    const { cluster } = automatedHub();
    expect(await trigger(portTo({ aap: 'http://127.0.0.1:1' }, cluster))).to.include({
      reason: 'EndpointMissing',
    });
    expect(await trigger(portTo({ eda: 'http://127.0.0.1:1' }, undefined))).to.include({
      reason: 'NoAdapter',
    });
    expect(await trigger(portTo({}, cluster), { hub: 'hub-z' })).to.include({ reason: 'HubNotRegistered' });
    expect(await portTo({}, cluster)('dance', {}, effectCall())).to.include({ reason: 'NoSuchOperation' });
  });

  it('is stopped while it waits without having sent anything', async () => {
    const rulebook = await startRulebook();
    closing.push(rulebook.close);
    const port = portTo({ eda: rulebook.url }, automatedHub().cluster);
    const stop = new AbortController();
    const waiting = port('trigger', triggerArgs('eda'), secondAttempt({ signal: stop.signal }));
    stop.abort();
    expect(await waiting).to.include({ outcome: 'failed', reason: 'Stopped' });
    expect(rulebook.requests).to.deep.equal([]);
  });
});
