import { expect } from 'chai';
import {
  PRIVATE,
  itemsOf,
  textAt,
  type Caller,
  type Json,
  type TestService,
} from '../../support/http/service.ts';
import { AT, LEDGER, startDispatching, type Dispatching } from './dispatching.ts';
import { CLUSTERS } from './ordering.ts';

describe('credentials and admin routes over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let order: Dispatching['order'];
  let run: Dispatching['run'];
  let dispatched: Dispatching['dispatched'];

  before(async () => {
    ({ service, admin, user, other, order, run, dispatched } = await startDispatching());
  });
  after(() => service.close());

  describe('orders', () => {
    // So that a page of one is not all there is.
    before(() => order());

    it('list what is under way, by state', async () => {
      const id = await order();
      const all = await admin('GET', `${LEDGER}/orders?limit=1000`);
      const mine = itemsOf(all).find((item) => textAt(item, 'id') === id);
      expect(mine).to.include({ tenant: 't1', state: 'accepted' });
      await admin('PATCH', `${PRIVATE}/clusters/${id}`, {
        status: {
          state: 'CLUSTER_STATE_FAILED',
          conditions: [
            { type: 'CLUSTER_CONDITION_TYPE_FAILED', status: 'CONDITION_STATUS_TRUE', message: 'no route' },
          ],
        },
      });
      const failed = itemsOf(await admin('GET', `${LEDGER}/orders?state=failed`));
      expect(failed.map((item) => textAt(item, 'id'))).to.deep.equal([id]);
      expect(failed[0]).to.include({ message: 'no route' });
    });

    it('are of one kind where the caller says so', async () => {
      const id = await order();
      const some = await admin('GET', `${LEDGER}/orders?kind=cluster&limit=1`);
      expect(itemsOf(some)[0]).to.include({ kind: 'cluster', id });
      expect((await admin('GET', `${LEDGER}/orders/${id}?kind=cluster`)).json).to.include({
        kind: 'cluster',
        id,
      });
      for (const path of [`orders?kind=hub`, `orders/${id}?kind=hub`])
        expect((await admin('GET', `${LEDGER}/${path}`)).status, path).to.equal(400);
      expect((await admin('POST', `${LEDGER}/orders/${id}/retry?kind=hub`)).status).to.equal(400);
    });

    it('list the newest first, page by page, whatever is ordered meanwhile', async () => {
      const idsOf = (answer: Awaited<ReturnType<Caller>>) =>
        itemsOf(answer).map((item) => textAt(item, 'id'));
      const ids = [await order(), await order(), await order()];
      const first = await admin('GET', `${LEDGER}/orders?limit=2`);
      expect(idsOf(first)).to.deep.equal([ids[2], ids[1]]);
      expect(itemsOf(first)[0]?.['ordered_at']).to.match(/^2\d{3}-.+Z$/);
      await order();
      const cursor = encodeURIComponent(textAt(first.json, 'next_cursor'));
      const rest = await admin('GET', `${LEDGER}/orders?limit=1000&cursor=${cursor}`);
      expect(idsOf(rest)[0]).to.equal(ids[0]);
      expect(rest.json).to.not.have.property('next_cursor');
      const all = await admin('GET', `${LEDGER}/orders?limit=1000`);
      expect(idsOf(all).slice(1)).to.deep.equal([...idsOf(first), ...idsOf(rest)]);
      for (const wrong of ['x', 'other-store.0000000000000001', '1'])
        expect((await admin('GET', `${LEDGER}/orders?cursor=${wrong}`)).status, wrong).to.equal(400);
    });

    it('list those of one tenant', async () => {
      const all = itemsOf(await admin('GET', `${LEDGER}/orders?limit=1000`));
      const mine = await admin('GET', `${LEDGER}/orders?tenant=t1&limit=1000`);
      expect(itemsOf(mine)).to.deep.equal(all.filter((item) => textAt(item, 'tenant') === 't1'));
      expect(itemsOf(mine)).to.not.have.length(0);
      const none = await admin('GET', `${LEDGER}/orders?tenant=nobody`);
      expect(none.json).to.include({ total: 0 });
      expect(itemsOf(none)).to.deep.equal([]);
    });

    it('list a cluster that runs degraded as that, and find it by its state', async () => {
      const id = await order();
      const told = (type: string, status: boolean, message: string) => ({
        type: `CLUSTER_CONDITION_TYPE_${type}`,
        status: `CONDITION_STATUS_${status ? 'TRUE' : 'FALSE'}`,
        message,
      });
      await admin('PATCH', `${PRIVATE}/clusters/${id}`, {
        status: {
          state: 'CLUSTER_STATE_READY',
          conditions: [told('READY', false, ''), told('DEGRADED', true, 'etcd has no leader')],
        },
      });
      const degraded = itemsOf(await admin('GET', `${LEDGER}/orders?state=degraded`));
      expect(degraded.map((item) => textAt(item, 'id'))).to.deep.equal([id]);
      expect(degraded[0]).to.include({ state: 'degraded', message: 'etcd has no leader' });
      const ready = itemsOf(await admin('GET', `${LEDGER}/orders?state=ready`));
      expect(ready.map((item) => textAt(item, 'id'))).to.not.include(id);
    });

    it('say why one waits, in the list and in full, and why one failed', async () => {
      const id = await order();
      const message = 'waiting for 3 × fc430';
      const decision = {
        weightsVersion: 1,
        candidates: [{ hub: 'sim-1', fits: false, reasons: ['full'], scores: {}, total: 0 }],
      };
      await run(id, { type: 'DeferPlacement', at: AT, message, decision });
      const listed = itemsOf(await admin('GET', `${LEDGER}/orders?limit=1000`));
      expect(listed.find((item) => textAt(item, 'id') === id)).to.include({ state: 'progressing', message });
      const waiting = await admin('GET', `${LEDGER}/orders/${id}`);
      expect(waiting.json).to.deep.include({ message, waiting: { message, decision } });
      await run(id, { type: 'RecordFailure', at: AT, reason: 'X', message: 'no', permanent: true });
      const failed = await admin('GET', `${LEDGER}/orders/${id}`);
      expect(failed.json).to.deep.include({ failure: { reason: 'X', message: 'no', permanent: true } });
    });

    it('show one with its conditions and timeline, also when it is gone', async () => {
      const id = await dispatched();
      const shown = await admin('GET', `${LEDGER}/orders/${id}`);
      expect(shown.status, shown.text).to.equal(200);
      expect(shown.json).to.include({ id, tenant: 't1', hub: 'sim-1' });
      expect(shown.json['conditions']).to.have.all.keys(
        'ClusterAvailable',
        'NodesReady',
        'InfrastructureReady',
        'TemplateApplied',
      );
      expect(
        (shown.json['timeline'] as unknown as Json[]).map((entry) => textAt(entry, 'type')),
      ).to.deep.equal(['ClusterOrdered', 'HubSelected', 'ClusterDispatchStarted']);
      const conditions = await admin('GET', `${LEDGER}/clusters/${id}`);
      expect(conditions.json).to.deep.include({ hub: 'sim-1', order_name: 'order-abc', namespace: 'osac' });
      const gone = await order();
      await user('DELETE', `${CLUSTERS}/${gone}`);
      const never = await admin('GET', `${LEDGER}/orders/${gone}`);
      expect(never.json, 'nothing will be observed of it').to.deep.include({
        state: 'deleted',
        conditions: {},
      });
      expect((await admin('GET', `${LEDGER}/orders/nope`)).status).to.equal(404);
    });

    it('show why a cluster that runs is not as it was ordered last, and let it be changed', async () => {
      const id = await dispatched();
      const fine = { status: 'True', reason: 'AsExpected', message: '' } as const;
      const four = {
        ClusterAvailable: fine,
        NodesReady: fine,
        InfrastructureReady: fine,
        TemplateApplied: fine,
      };
      const assessment = {
        found: true,
        uid: 'u',
        deleting: false,
        waitingFor: [],
        accepted: true,
        specMatches: true,
        conditions: four,
        ready: { workers: 3 },
        verdict: { kind: 'ready' },
      } as const;
      await run(id, { type: 'RecordObservation', at: AT, assessment });
      const resize = (size: number) =>
        user('PATCH', `${CLUSTERS}/${id}`, { spec: { node_sets: { workers: { size } } } });
      expect((await resize(4)).status).to.equal(200);
      const stopped = {
        why: 'failed',
        reason: 'JobFailed',
        message: "the provider's automation failed",
        detail: 'no hosts on aap.internal',
      } as const;
      const verdict = { kind: 'ready', stopped } as const;
      await run(
        id,
        { type: 'RecordApplied', at: AT, uid: 'u', generation: 1 },
        { type: 'RecordObservation', at: AT, assessment: { ...assessment, verdict } },
      );
      const message = "resize of node set 'workers' from 3 to 4 failed: the provider's automation failed";
      const ChangeFailed = { status: 'True', reason: 'JobFailed', message, since: AT };
      for (const path of ['clusters', 'orders']) {
        const shown = await admin('GET', `${LEDGER}/${path}/${id}`);
        expect(shown.json['conditions'], path).to.deep.include({ ChangeFailed });
      }
      const order = await admin('GET', `${LEDGER}/orders/${id}`);
      expect(order.json).to.deep.include({ state: 'ready', message });
      expect(order.json['change_failed']).to.include({ detail: 'no hosts on aap.internal' });
      const seen = await user('GET', `${CLUSTERS}/${id}`);
      const said = { status: 'CONDITION_STATUS_TRUE', reason: 'ChangeFailed', message };
      expect(seen.text).to.not.include('aap.internal');
      const conditions = (seen.json['status'] as Json)['conditions'] as unknown as Json[];
      expect(conditions.find((one) => textAt(one, 'type').endsWith('_READY'))).to.include(said);
      expect((await resize(3)).status).to.equal(200);
      const after = await admin('GET', `${LEDGER}/clusters/${id}`);
      expect(after.json['conditions']).to.not.have.property('ChangeFailed');

      await user('DELETE', `${CLUSTERS}/${id}`);
      const going = await admin('GET', `${LEDGER}/clusters/${id}`);
      const unknown = { status: 'Unknown', reason: 'Deleting', message: '' };
      expect(going.json['conditions'], 'nobody looks at them any more').to.deep.equal(
        Object.fromEntries(Object.keys(four).map((name) => [name, unknown])),
      );
    });

    it('show of one that is gone what was observed last, and not that it waits', async () => {
      const id = await dispatched();
      const seen = { status: 'False', reason: 'Teardown', message: 'nodes leave' } as const;
      const four = {
        ClusterAvailable: seen,
        NodesReady: seen,
        InfrastructureReady: seen,
        TemplateApplied: seen,
      };
      await run(id, {
        type: 'RecordObservation',
        at: AT,
        assessment: {
          found: true,
          uid: 'u',
          deleting: false,
          waitingFor: [],
          accepted: true,
          specMatches: true,
          conditions: four,
          ready: {},
          verdict: { kind: 'progressing' },
        },
      });
      await user('DELETE', `${CLUSTERS}/${id}`);
      await run(id, { type: 'ConfirmAbsence', at: AT });
      const last = { ...seen, since: AT };
      const conditions = Object.fromEntries(Object.keys(four).map((name) => [name, last]));
      const gone = await admin('GET', `${LEDGER}/orders/${id}`);
      expect(gone.json, gone.text).to.deep.include({ state: 'deleted', hub: 'sim-1', conditions });
      expect((await admin('GET', `${LEDGER}/clusters/${id}`)).json).to.deep.include({
        hub: 'sim-1',
        conditions,
      });
      const waits = await order();
      const decision = { weightsVersion: 1, candidates: [] };
      await run(waits, { type: 'DeferPlacement', at: AT, message: 'no hub fits', decision });
      expect((await admin('GET', `${LEDGER}/orders/${waits}`)).json).to.have.property('waiting');
      await user('DELETE', `${CLUSTERS}/${waits}`);
      expect((await admin('GET', `${LEDGER}/orders/${waits}`)).json).not.to.have.property('waiting');
    });

    it('keep their timeline for their tenant after they are gone, and for nobody else', async () => {
      const id = await order();
      expect((await user('DELETE', `${CLUSTERS}/${id}`)).status).to.equal(200);
      const end = await service.store.lastPosition();
      await service.models.waitFor('timeline', end ?? '', { timeoutMs: 5000 });
      for (const by of [user, admin]) {
        const reply = await by('GET', `${CLUSTERS}/${id}/timeline`);
        expect(reply.status, reply.text).to.equal(200);
        expect(itemsOf(reply).map((entry) => textAt(entry, 'type'))).to.deep.equal([
          'ClusterOrdered',
          'ClusterDeletionRequested',
          'ClusterDeleted',
        ]);
      }
      const foreign = await other('GET', `${CLUSTERS}/${id}/timeline`);
      const absent = await other('GET', `${CLUSTERS}/${id.replaceAll(/[0-9a-f]/g, '0')}/timeline`);
      expect(foreign.status).to.equal(404);
      expect(foreign.text.replaceAll(/[0-9a-f-]{36}/g, 'ID')).to.equal(
        absent.text.replaceAll(/[0-9a-f-]{36}/g, 'ID'),
      );
    });

    it('say that they are deleted when somebody wants to retry or cancel one', async () => {
      const id = await order();
      await user('DELETE', `${CLUSTERS}/${id}`);
      for (const action of ['retry', 'cancel']) {
        const reply = await admin('POST', `${LEDGER}/orders/${id}/${action}`);
        expect(reply.status, reply.text).to.equal(400);
        expect(reply.json).to.deep.include({ code: 'ORDER_DELETED' });
        expect(reply.json['detail']).to.match(/is deleted/);
        expect((await admin('POST', `${LEDGER}/orders/nope/${action}`)).status).to.equal(404);
      }
    });

    it('are listed by the states there are', async () => {
      const bogus = await admin('GET', `${LEDGER}/orders?state=bogus`);
      expect(bogus.status).to.equal(400);
      expect(bogus.json['detail']).to.match(/'state' must be one of accepted, progressing, ready/);
      expect((await admin('GET', `${LEDGER}/orders?state=delete_failed`)).status).to.equal(200);
    });

    it('are retried when they failed, and cancelled before they are dispatched', async () => {
      const id = await order();
      const early = await admin('POST', `${LEDGER}/orders/${id}/retry`);
      expect(early.status).to.equal(400);
      expect(early.json).to.include({ code: 'NOT_FAILED' });
      await run(id, { type: 'RecordFailure', at: AT, reason: 'X', message: 'no', permanent: true });
      const retried = await admin('POST', `${LEDGER}/orders/${id}/retry`, {});
      expect(retried.status, retried.text).to.equal(200);
      expect(retried.headers.get('x-ledger-position')).to.match(/^memory\./);
      const cancelled = await admin('POST', `${LEDGER}/orders/${id}/cancel`);
      expect(cancelled.status, cancelled.text).to.equal(200);
      expect((await user('GET', `${CLUSTERS}/${id}`)).status).to.equal(404);
      const late = await admin('POST', `${LEDGER}/orders/${await dispatched()}/cancel`);
      expect(late.status).to.equal(400);
      expect(late.json).to.include({ code: 'ALREADY_DISPATCHED' });
    });

    it('a body of another content type is 415, garbage 400', async () => {
      const path = `${LEDGER}/orders/nope/retry`;
      expect((await admin('POST', path, '{}', { 'content-type': 'text/plain' })).status).to.equal(415);
      expect((await admin('POST', path, '{', {})).status).to.equal(400);
      expect((await admin('POST', path, '[]', {})).status).to.equal(400);
      const put = await admin('PUT', path, {});
      expect(put.status).to.equal(405);
      expect(put.headers.get('allow')).to.equal('POST');
    });
  });
});
