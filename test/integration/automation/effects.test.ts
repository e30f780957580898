import { expect } from 'chai';
import type { JobArgs, TriggerArgs } from '../../../src/app/automation/automation-effects.ts';
import type { EffectCall, EffectPort } from '../../../src/app/process-runner/types.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';
import { startAap, type AapOptions, type AapStandIn } from '../../support/aap/aap-server.ts';
import { effectCall } from '../../support/hubs/hub-fixture.ts';
import { startRulebook } from '../../support/rulebook/rulebook-server.ts';
import { automatedHub, HUB } from './automated-hub.ts';
import { HMAC_SECRET, TOKEN } from './contract.ts';
import { effectsStage, QUICK, SETTLES } from './effects-stage.ts';
import { eventually } from '../../support/eventually.ts';

describe('effects of a hub’s automation', function () {
  this.timeout(10_000);
  const { closing, portTo, triggerArgs, secondAttempt, withoutSecrets, timed } = effectsStage();

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
