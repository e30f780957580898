import { expect } from 'chai';
import type { ApiClient } from '../../src/cli/api-client.ts';
import {
  CLUSTERS,
  E2E_STORE,
  PRIVATE,
  createStack,
  isReady,
  refusal,
  registerNowhere,
  until,
  untilCluster,
  untilGone,
  type ClusterBody,
  type Stack,
} from '../support/service/stack.ts';

/** Hubs work ten times as fast as they do by themselves. */
const FAST = { simulation: 'factor=0.1' };

const small = (name: string, more: object = {}): object => ({
  metadata: { name, annotations: FAST, ...more },
  spec: { template: { id: 'osac.templates.ocp_small' } },
});

for (const store of [E2E_STORE]) {
  describe(`a cluster order over HTTP (${store})`, function () {
    this.timeout(180_000);
    let stack: Stack;
    let alice: ApiClient;
    let admin: ApiClient;
    const linesAbout = (id: string) =>
      stack
        .service()
        .log.map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter(({ cluster, msg }) => cluster === id && /order/.test(String(msg)));

    before(async () => {
      stack = await createStack(store);
      await stack.start();
      alice = await stack.client({ tenant: 'acme', user: 'alice' });
      admin = await stack.client({ admin: true, user: 'root' });
      await registerNowhere(stack);
    });
    after(() => stack.dispose());

    it('becomes READY, is scaled, shows its credentials, and is gone after its deletion', async () => {
      const ordered = await alice.send<ClusterBody>('POST', CLUSTERS, small('whole-life'));
      expect(ordered.status).to.deep.equal({ state: 'CLUSTER_STATE_PROGRESSING' });
      const ready = await untilCluster(alice, ordered.id, isReady);
      expect(ready.status?.node_sets?.['workers']?.size).to.equal(2);
      expect(await alice.text(`${CLUSTERS}/${ordered.id}/kubeconfig`)).to.include('clusters:');
      expect((await alice.text(`${CLUSTERS}/${ordered.id}/password`)).length).to.be.greaterThan(10);

      await alice.send('PATCH', `${CLUSTERS}/${ordered.id}`, {
        spec: { node_sets: { workers: { size: 4 } } },
      });
      const scaled = await untilCluster(
        alice,
        ordered.id,
        (c) => isReady(c) && c.status?.node_sets?.['workers']?.size === 4,
      );
      expect(scaled.spec.node_sets['workers']).to.deep.equal({
        host_type: { id: 'fc430', name: 'fc430' },
        size: 4,
      });

      await alice.send('DELETE', `${CLUSTERS}/${ordered.id}`);
      await untilGone(alice, ordered.id);
      const again = await alice.send<ClusterBody>('POST', CLUSTERS, small('whole-life'));
      expect(again.id, 'the name is free again').not.to.equal(ordered.id);
      await alice.send('DELETE', `${CLUSTERS}/${again.id}`);
    });

    it('becomes READY after one whose id is a name that every object has, of another tenant', async () => {
      const other = await stack.client({ tenant: 'globex', user: 'mallory' });
      for (const id of ['constructor', '__proto__'])
        await other.send('POST', CLUSTERS, { id, ...small(`odd-${id.replaceAll('_', '')}`) });
      const { id } = await alice.send<ClusterBody>('POST', CLUSTERS, small('after-odd-ones'));
      await untilCluster(alice, id, isReady);
      for (const odd of ['constructor', '__proto__']) {
        await untilCluster(other, odd, isReady);
        await other.send('DELETE', `${CLUSTERS}/${odd}`);
        await untilGone(other, odd);
      }
      await alice.send('DELETE', `${CLUSTERS}/${id}`);
    });

    it('tells its story in the timeline, without provider facts for the tenant', async () => {
      const { id } = await alice.send<ClusterBody>('POST', CLUSTERS, small('story'));
      await untilCluster(alice, id, isReady);
      type Items = { items: { type: string; data: object }[] };
      let told: Items['items'] = [];
      await until('the timeline tells that it is ready', async () => {
        told = (await alice.get<Items>(`${CLUSTERS}/${id}/timeline`)).items;
        return told.some(({ type }) => type === 'ClusterBecameReady');
      });
      expect(told.map(({ type }) => type)).to.include.members(['ClusterOrdered', 'HubSelected']);
      expect(JSON.stringify(told)).not.to.match(/sim-(east|west)-\d|candidates|releaseImage/);
      const whole = (await admin.get<{ timeline: { type: string }[] }>(`/api/ledger/v1/orders/${id}`))
        .timeline;
      expect(whole.map(({ type }) => type)).to.include('EffectStarted');
    });

    it('is one order however often it is posted with one key, and a conflict with another body', async () => {
      const key = { 'idempotency-key': '"once-only"' };
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => alice.send<ClusterBody>('POST', CLUSTERS, small('once'), key)),
      );
      expect(new Set(answers.map(({ id }) => id)).size).to.equal(1);
      expect(
        new Set(answers.map((answer) => JSON.stringify(answer))).size,
        'every answer is the same',
      ).to.equal(1);
      const other = await refusal(alice.send('POST', CLUSTERS, small('other'), key));
      expect(other.status).to.equal(422);
    });

    it('waits with a stated reason while no hub has room, and goes on when one does', async () => {
      const training = (name: string, size: number): object => ({
        metadata: { name, annotations: FAST },
        spec: { template: { id: 'osac.templates.ocp_training' }, node_sets: { training: { size } } },
      });
      const never = await refusal(alice.send('POST', CLUSTERS, training('too-big', 20)));
      expect(never.status).to.equal(400);
      expect(never.body).to.deep.include({
        code: 9,
        message: "node set 'training': 20 h100 can never be had: one cluster can have at most 16",
      });
      const first = await alice.send<ClusterBody>('POST', CLUSTERS, training('first', 10));
      await untilCluster(alice, first.id, isReady);
      const { id } = await alice.send<ClusterBody>('POST', CLUSTERS, training('second', 10));
      const waiting = await untilCluster(alice, id, (c) =>
        (c.status?.conditions ?? []).some(({ reason }) => reason === 'WaitingForCapacity'),
      );
      expect(waiting.status?.state).to.equal('CLUSTER_STATE_PROGRESSING');
      expect(waiting.status?.conditions?.map(({ message }) => message)).to.include('waiting for 10 × h100');
      await admin.send('PATCH', `${PRIVATE}/hubs/sim-east-2`, {
        spec: { capacity: { nodes: { h100: 64, fc430: 48 } } },
      });
      await untilCluster(alice, id, isReady);
      for (const done of [id, first.id]) {
        await alice.send('DELETE', `${CLUSTERS}/${done}`);
        await untilGone(alice, done);
      }
    });

    it('can be cancelled before its dispatch, in the same request', async () => {
      const { id } = await alice.send<ClusterBody>('POST', CLUSTERS, {
        metadata: { name: 'never-placed', annotations: { 'fulfillment-ledger/zone': 'nowhere' } },
        spec: { template: { id: 'osac.templates.ocp_small' } },
      });
      await admin.send('POST', `/api/ledger/v1/orders/${id}/cancel`);
      expect((await refusal(alice.get(`${CLUSTERS}/${id}`))).status).to.equal(404);
    });

    it('fails with a reason, and is tried again when an operator says so', async () => {
      const { id } = await alice.send<ClusterBody>(
        'POST',
        CLUSTERS,
        small('refused-once', { annotations: { simulation: 'factor=0.1,422=1' } }),
      );
      const failed = await untilCluster(alice, id, (c) => c.status?.state === 'CLUSTER_STATE_FAILED');
      const reason = failed.status?.conditions?.find(
        ({ type }) => type === 'CLUSTER_CONDITION_TYPE_FAILED',
      )?.reason;
      expect(reason).to.be.a('string').and.not.equal('AsExpected');
      await admin.send('POST', `/api/ledger/v1/orders/${id}/retry`);
      await untilCluster(alice, id, isReady);
      const lines = linesAbout(id);
      expect(lines.map(({ msg }) => msg)).to.deep.equal(['order failed', 'order ready']);
      for (const line of lines) {
        expect(line).to.include({ level: 'info', tenant: 'acme' });
        expect(line['hub']).to.match(/^sim-/);
        expect(line['correlationId']).to.match(/./);
      }
      expect(lines[0]).to.include({ reason });
    });

    it('that a rule refuses has a line in the log with the code', async () => {
      const refused = await refusal(
        alice.send('POST', CLUSTERS, { metadata: { name: 'none' }, spec: { template: { id: 'no.such' } } }),
      );
      expect(refused.status).to.be.within(400, 404);
      const said = stack.service().log.filter((line) => line.includes('"msg":"order refused"'));
      const line = JSON.parse(said.at(-1) ?? '{}') as Record<string, unknown>;
      expect(line).to.include({ level: 'info', tenant: 'acme', outcome: 'rejected' });
      expect(line['code']).to.match(/^[A-Z_]+$/);
      expect(line['correlationId']).to.match(/./);
    });

    it("is invisible to another tenant, which gets the same answer as for an id that doesn't exist", async () => {
      const bob = await stack.client({ tenant: 'globex', user: 'bob' });
      const { id } = await alice.send<ClusterBody>('POST', CLUSTERS, small('private-thing'));
      for (const call of [
        (of: string) => bob.get(`${CLUSTERS}/${of}`),
        (of: string) => bob.send('PATCH', `${CLUSTERS}/${of}`, { metadata: { labels: { a: 'b' } } }),
        (of: string) => bob.send('DELETE', `${CLUSTERS}/${of}`),
        (of: string) => bob.get(`${CLUSTERS}/${of}/timeline`),
        (of: string) => bob.text(`${CLUSTERS}/${of}/kubeconfig`),
      ]) {
        const foreign = await refusal(call(id));
        const absent = await refusal(call('no-such-id'));
        expect(foreign.status).to.equal(404);
        expect(JSON.stringify(foreign.body).replaceAll(id, 'ID')).to.equal(
          JSON.stringify(absent.body).replaceAll('no-such-id', 'ID'),
        );
      }
      expect((await bob.get<{ total?: number }>(`${CLUSTERS}?limit=0`)).total ?? 0).to.equal(0);
    });

    it('is found by a read that asks for its position, on this store only', async () => {
      const token = await stack.token({ tenant: 'acme', user: 'alice' });
      const headers = { authorization: `Bearer ${token}` };
      const body = JSON.stringify(small('positioned'));
      const posted = await fetch(`${stack.http()}${CLUSTERS}`, { method: 'POST', headers, body });
      const position = posted.headers.get('x-ledger-position') ?? '';
      const { id } = (await posted.json()) as ClusterBody;
      const read = await fetch(`${stack.http()}${CLUSTERS}/${id}`, {
        headers: { ...headers, 'x-ledger-min-position': position },
      });
      expect(read.status).to.equal(200);
      const foreign = await fetch(`${stack.http()}${CLUSTERS}/${id}`, {
        headers: { ...headers, 'x-ledger-min-position': position.replace(/^[^.]+/, 'other-store') },
      });
      expect(foreign.status).to.equal(400);
    });

    it('is in read models that a rebuild from the first event reproduces', async () => {
      for (const view of ['resources', 'timeline', 'usage']) {
        const lines: { report?: { outcome: string; differences: string[] } }[] = [];
        for await (const line of admin.lines<(typeof lines)[number]>(
          'POST',
          `/api/ledger/v1/projections/${view}/rebuild`,
        ))
          lines.push(line);
        expect(lines.at(-1)?.report, view).to.include({ outcome: 'switched' });
      }
    });

    it('leaves a service that stops cleanly', async () => {
      await until('the service is ready', async () => (await fetch(`${stack.http()}/readyz`)).ok);
      expect(await stack.stop('SIGTERM')).to.equal(0);
      expect(stack.service().log.filter((line) => line.includes('"level":"error"'))).to.deep.equal([]);
    });
  });
}
