import { expect } from 'chai';
import type { EffectCall } from '../../../src/app/process-runner/types.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { effectCall } from '../../support/hubs/hub-fixture.ts';
import { startRulebook, type RulebookStandIn } from '../../support/rulebook/rulebook-server.ts';
import { automatedHub, PLACE } from './automated-hub.ts';
import { HMAC_SECRET, orderCalled, TOKEN } from './contract.ts';
import { effectsStage, SETTLES } from './effects-stage.ts';
import { eventually } from '../../support/eventually.ts';

const REPORT_TIME = 'osac.openshift.io/ansible-workflow-time';

describe('effects of a hub’s automation', function () {
  this.timeout(10_000);
  const { closing, portTo, triggerArgs, now, secondAttempt, withoutSecrets, timed } = effectsStage();

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
      const { hub, trigger } = await start();
      const firstStartedAt = new Date(Date.now() - 60_000).toISOString();
      expect(await trigger(secondAttempt({ firstStartedAt }))).to.deep.equal(POSTED);
      // Once for what runs already and once for what is sent; waiting is looking again and again.
      expect(hub.looks).to.equal(2);
    });

    it('a listener that accepts and forgets is asked again only after a look', async () => {
      const { rulebook, trigger } = await start();
      rulebook.next('forget');
      const since = now();
      expect(await trigger(effectCall())).to.deep.equal(POSTED);
      expect(await trigger(effectCall(), { since })).to.deep.equal(POSTED);
      // From the first: on a slow machine that has taken a part of it.
      expect(Date.now() - Date.parse(since)).to.be.at.least(SETTLES / 2);
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

    it('asks again for a teardown that has left its mark, and not when the mark is off by then', async () => {
      const { hub, rulebook, trigger } = await start();
      hub.mark(['osac.openshift.io/infrastructure']);
      const since = new Date(Date.now() - 1_800_000).toISOString();
      const again = { purpose: 'deprovision', since, cleaning: true } as const;
      rulebook.next('forget');
      expect(await trigger(effectCall(), again)).to.deep.equal(POSTED);
      expect(rulebook.requests).to.have.length(1);
      hub.mark([]);
      expect(await trigger(effectCall(), again)).to.have.nested.property('result.did', 'observed');
      expect(rulebook.requests).to.have.length(1);
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
      [{ status: 403 }, 'failed', 'AutomationForbidden'],
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
});
