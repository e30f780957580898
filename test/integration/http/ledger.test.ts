import { expect } from 'chai';
import type { ManagementCluster } from '../../../src/app/management-cluster.ts';
import { HubError } from '../../../src/app/management-cluster.ts';
import { clusterAggregate } from '../../../src/domain/kinds.ts';
import type { ClusterCommand } from '../../../src/domain/clusters/commands.ts';
import { readAll } from '../../support/toy-workflow.ts';
import { fakeContext } from '../../support/fake-context.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http-service.ts';

const CLUSTERS = `${PUBLIC}/clusters`;
const LEDGER = '/api/ledger/v1';
const AT = '2026-11-21T12:00:00.000Z';

const linesOf = (reply: Reply): Json[] =>
  reply.text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Json);

/** A hub of which only what a reveal reads is there. */
const readableHub = () => {
  const hub = {
    secrets: new Map<string, string>(),
    hosted: false,
    down: false,
    /** Whether anybody told where the HostedCluster is. */
    reference: true,
    asked: [] as string[],
    registered: true,
    reads: 0,
    /** Whose label the object has that is under the order's name. */
    owner: '',
    /** What is found by the label. */
    labelled: [] as { readonly name: string; readonly clusterId: string }[],
  };
  const cluster = {
    hubId: 'sim-1',
    simulated: true,
    getClusterOrder: async ({ name }: { name: string }) => {
      hub.reads += 1;
      if (hub.down) throw new HubError('unavailable', 'connection refused', { retryAfterMs: 4000 });
      const order = { name, clusterId: hub.owner };
      if (!hub.hosted || !hub.reference) return order;
      return { ...order, clusterReference: { namespace: 'ns', hostedClusterName: 'hc' } };
    },
    findClusterOrders: async () => hub.labelled,
    getHostedCluster: async ({ namespace, name }: { namespace: string; name: string }) => {
      hub.asked.push(`${namespace}/${name}`);
      if (!hub.hosted) return undefined;
      return { name, namespace, kubeconfigSecret: 'kc', passwordSecret: 'pw', conditions: [] };
    },
    readSecret: async ({ name, key }: { name: string; key: string }) => {
      const value = hub.secrets.get(`${name}/${key}`);
      return value === undefined ? undefined : Buffer.from(value);
    },
  };
  return { hub, cluster: cluster as unknown as ManagementCluster };
};

describe('credentials and admin routes over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  const { hub, cluster: port } = readableHub();
  let serial = 0;

  before(async () => {
    service = await startTestService({
      get hub(): ManagementCluster {
        return (hub.registered ? port : undefined) as ManagementCluster;
      },
    });
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    await seedCatalogue(admin);
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
  });
  after(() => service.close());

  const order = async (by = user, tenant?: string): Promise<string> => {
    const reply = await by('POST', by === user ? CLUSTERS : CLUSTERS.replace('fulfillment', 'private'), {
      metadata: { name: `l-${(serial += 1)}`, ...(tenant === undefined ? {} : { tenant }) },
      spec: { template: { id: 'osac.templates.small' } },
    });
    expect(reply.status, reply.text).to.equal(200);
    return textAt(reply.json, 'id');
  };
  /** What the workflow would do. */
  const run = async (id: string, ...commands: ClusterCommand[]): Promise<void> => {
    for (const [i, command] of commands.entries()) {
      const context = fakeContext(`${id} ${command.type} ${i}`, { tenant: 't1' });
      const outcome = await service.runner.execute(clusterAggregate, id, command, context);
      expect(outcome.outcome, JSON.stringify(outcome)).to.equal('accepted');
      await service.models.waitFor('resources', outcome.loaded.position ?? '', { timeoutMs: 5000 });
      await service.models.waitFor('timeline', outcome.loaded.position ?? '', { timeoutMs: 5000 });
    }
  };
  const dispatched = async (placed = order()): Promise<string> => {
    const id = await placed;
    const decision = { weightsVersion: 1, candidates: [] };
    await run(
      id,
      {
        type: 'SelectHub',
        at: AT,
        hub: 'sim-1',
        namespace: 'osac',
        mode: 'operator',
        simulated: true,
        orderName: 'order-abc',
        decision,
      },
      { type: 'StartDispatch', at: AT },
    );
    hub.owner = id;
    return id;
  };

  describe('kubeconfig and password', () => {
    it('are 404 with their own texts until the hub has them', async () => {
      hub.hosted = false;
      const waiting = await order();
      const sent = await dispatched();
      for (const id of [waiting, sent]) {
        const kubeconfig = await user('GET', `${CLUSTERS}/${id}/kubeconfig`);
        expect(kubeconfig.status).to.equal(404);
        expect(kubeconfig.json).to.deep.equal({
          code: 5,
          message: `kubeconfig for cluster with identifier '${id}' isn't yet available`,
        });
        const password = await user('GET', `${CLUSTERS}/${id}/password`);
        expect(password.json['message']).to.equal(
          `password for cluster with identifier '${id}' isn't available yet`,
        );
      }
    });

    it('come from the hub; each reveal is recorded before the answer', async () => {
      hub.hosted = true;
      hub.secrets.set('kc/kubeconfig', 'apiVersion: v1\n').set('pw/password', 'pa55-word');
      const id = await dispatched();
      const before = await user('GET', `${CLUSTERS}/${id}`);
      const kubeconfig = await user('GET', `${CLUSTERS}/${id}/kubeconfig`);
      expect(kubeconfig.status, kubeconfig.text).to.equal(200);
      expect(kubeconfig.headers.get('content-type')).to.equal('application/yaml');
      expect(kubeconfig.text).to.equal('apiVersion: v1\n');
      const password = await user('GET', `${CLUSTERS}/${id}/password`);
      expect(password.headers.get('content-type')).to.match(/^text\/plain/);
      expect(password.text).to.equal('pa55-word');
      const events = linesOf(
        await admin('GET', `${LEDGER}/events?stream=cluster-${id}&type=ClusterCredentialsRevealed`),
      );
      expect(events.map((event) => textAt(event, 'data', 'what'))).to.deep.equal(['kubeconfig', 'password']);
      expect((await user('GET', `${CLUSTERS}/${id}`)).json).to.deep.equal(before.json);
      expect((await other('GET', `${CLUSTERS}/${id}/kubeconfig`)).status).to.equal(404);
    });

    it('say who saw them from where, and are found by convention where nobody wrote where they are', async () => {
      const id = await dispatched();
      hub.reference = false;
      hub.asked.length = 0;
      const reply = await user('GET', `${CLUSTERS}/${id}/kubeconfig`, undefined, { 'user-agent': 'spec/1' });
      hub.reference = true;
      expect(reply.text).to.equal('apiVersion: v1\n');
      expect(hub.asked).to.deep.equal(['osac-order-abc/order-abc']);
      const [event] = (await readAll(service.store, `cluster-${id}`)).slice(-1);
      expect(event).to.deep.include({ type: 'ClusterCredentialsRevealed' });
      expect(event?.metadata).to.have.property('source');
      expect(event?.metadata).to.have.nested.property('actor.subjectId');
      expect(JSON.stringify(event)).to.not.contain('apiVersion');
    });

    it('are 404 while the secret is there and empty, and 503 where the hub cannot be reached from here', async () => {
      const id = await dispatched();
      hub.secrets.set('kc/kubeconfig', '');
      expect((await user('GET', `${CLUSTERS}/${id}/kubeconfig`)).status).to.equal(404);
      hub.secrets.set('kc/kubeconfig', 'apiVersion: v1\n');
      hub.registered = false;
      const away = await user('GET', `${CLUSTERS}/${id}/kubeconfig`);
      hub.registered = true;
      expect([away.status, away.headers.get('retry-after')]).to.deep.equal([503, '5']);
    });

    it('are those of the order with our label: never of what has its name, also of one under another name', async () => {
      const id = await dispatched();
      hub.owner = 'somebody-elses-cluster';
      for (const part of ['kubeconfig', 'password'])
        expect((await user('GET', `${CLUSTERS}/${id}/${part}`)).status).to.equal(404);
      const log = await admin('GET', `${LEDGER}/events?stream=cluster-${id}`);
      expect(log.text).not.to.contain('ClusterCredentialsRevealed');
      hub.labelled = [{ name: 'order-dcxpq', clusterId: id }];
      hub.asked.length = 0;
      const adopted = await user('GET', `${CLUSTERS}/${id}/kubeconfig`);
      hub.labelled = [];
      expect(adopted.text).to.equal('apiVersion: v1\n');
      expect(hub.asked).to.deep.equal(['osac-order-dcxpq/order-dcxpq']);
    });

    it('HEAD says that they are there, and nothing is revealed', async () => {
      const id = await dispatched();
      for (const part of ['kubeconfig', 'password']) {
        const reply = await user('HEAD', `${CLUSTERS}/${id}/${part}`);
        expect([reply.status, reply.text]).to.deep.equal([200, '']);
      }
      expect((await user('HEAD', `${CLUSTERS}/nobody/kubeconfig`)).status).to.equal(404);
      const log = await admin('GET', `${LEDGER}/events?stream=cluster-${id}`);
      expect(log.text).not.to.contain('ClusterCredentialsRevealed');
    });

    it("are not for everybody who can see a cluster of tenant 'shared'", async () => {
      const id = await dispatched(order(admin, 'shared'));
      expect((await user('GET', `${CLUSTERS}/${id}`)).status).to.equal(200);
      expect((await user('GET', `${CLUSTERS}/${id}/kubeconfig`)).status).to.equal(403);
      expect((await user('GET', `${CLUSTERS}/${id}/password`)).status).to.equal(403);
      expect((await admin('GET', `${CLUSTERS}/${id}/kubeconfig`)).status).to.equal(200);
    });

    it('are 503 with Retry-After while the hub does not answer', async () => {
      const id = await dispatched();
      hub.down = true;
      const reply = await user('GET', `${CLUSTERS}/${id}/kubeconfig`);
      hub.down = false;
      expect(reply.status).to.equal(503);
      expect(reply.headers.get('retry-after')).to.equal('4');
    });
  });

  describe('events', () => {
    it('are lines, redacted, with filters and a limit', async () => {
      const id = await order();
      const stream = linesOf(await admin('GET', `${LEDGER}/events?stream=cluster-${id}`));
      expect(stream).to.have.length(1);
      expect(stream[0]).to.include({
        stream: `cluster-${id}`,
        revision: 0,
        type: 'ClusterOrdered',
        tenant: 't1',
        command: 'OrderCluster',
      });
      expect(textAt(stream[0], 'data', 'id')).to.equal(id);
      const limited = linesOf(await admin('GET', `${LEDGER}/events?limit=3`));
      expect(limited).to.have.length(3);
      const rest = linesOf(
        await admin('GET', `${LEDGER}/events?limit=1&from=${textAt(limited[1], 'position')}`),
      );
      expect(rest[0]).to.deep.equal(limited[2]);
      const ofTenant = linesOf(
        await admin('GET', `${LEDGER}/events?tenant=t1&type=ClusterOrdered&limit=1000`),
      );
      expect(ofTenant.length).to.be.greaterThan(0);
      for (const event of ofTenant) expect(event).to.include({ tenant: 't1', type: 'ClusterOrdered' });
      const names = linesOf(await admin('GET', `${LEDGER}/events?type=NameReserved&limit=1`));
      expect(names[0]).to.deep.include({ internal: true, data: {} });
    });

    it('follow the log until the caller leaves', async () => {
      const controller = new AbortController();
      const token = await service.token({ user: 'root', admin: true });
      const response = await fetch(`${service.url}${LEDGER}/events?type=ClusterLabelled&follow=true`, {
        headers: { authorization: `Bearer ${token}` },
        signal: controller.signal,
      });
      expect(response.headers.get('content-type')).to.equal('application/x-ndjson');
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      const id = await order();
      await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { followed: 'yes' } } });
      let text = '';
      while (!text.includes('followed')) text += Buffer.from((await reader.read()).value ?? []).toString();
      expect(text).to.contain(`"stream":"cluster-${id}"`);
      controller.abort();
    });

    it('a service that stops ends who follows at once', async () => {
      const ending = new AbortController();
      const stopping = await startTestService({ ending: ending.signal });
      try {
        const token = await stopping.token({ user: 'root', admin: true });
        const response = await fetch(`${stopping.url}${LEDGER}/events?follow=true`, {
          headers: { authorization: `Bearer ${token}` },
        });
        ending.abort();
        expect(await response.text(), 'no line that says something failed').to.equal('');
      } finally {
        await stopping.close();
      }
    });

    for (const query of ['limit=x', 'from=1', 'from=other.0000000000000001', 'follow=perhaps'])
      it(`refuse ${query} with a problem document`, async () => {
        const reply = await admin('GET', `${LEDGER}/events?${query}`);
        expect(reply.status).to.equal(400);
        expect(reply.headers.get('content-type')).to.equal('application/problem+json');
        expect(reply.json).to.include({ status: 400, title: 'The request is wrong' });
        expect(textAt(reply.json, 'detail')).to.match(/limit|from|follow/);
        expect(textAt(reply.json, 'type')).to.match(/^urn:fulfillment-ledger:problem:/);
      });
  });

  describe('orders', () => {
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
      const page = await admin('GET', `${LEDGER}/orders?limit=1`);
      expect(itemsOf(page)).to.have.length(1);
      expect(page.json).to.include({ next_offset: 1 });
    });

    it('say why one waits, in the list and in full, and why one failed', async () => {
      const id = await order();
      const message = 'no management cluster fits: 1 full';
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

  it('what operators do is not carried out when it was only to be tried', async () => {
    for (const path of ['projections/resources/rebuild', 'store/backup', 'orders/nope/retry']) {
      const reply = await admin('POST', `${LEDGER}/${path}`, undefined, { 'x-dry-run': 'true' });
      expect([reply.status, reply.json['code']], path).to.deep.equal([501, 'NO_DRY_RUN']);
    }
  });

  describe('projections', () => {
    it('show state, digest, and are rebuilt while reads go on', async () => {
      const listed = await admin('GET', `${LEDGER}/projections`);
      expect(itemsOf(listed).map((item) => textAt(item, 'name'))).to.deep.equal([
        'resources',
        'timeline',
        'usage',
        'audit',
      ]);
      const one = await admin('GET', `${LEDGER}/projections/resources`);
      expect(one.json).to.include({ name: 'resources', state: 'live', caughtUp: true });
      expect(textAt(one.json, 'position')).to.match(/^memory\.\d+$/);
      const digest = await admin('GET', `${LEDGER}/projections/resources/digest`);
      expect(textAt(digest.json, 'digest')).to.match(/^[0-9a-f]{64}$/);
      const rebuilt = linesOf(await admin('POST', `${LEDGER}/projections/resources/rebuild`));
      expect(rebuilt.at(-1)?.['report'], JSON.stringify(rebuilt)).to.include({
        view: 'resources',
        outcome: 'switched',
      });
      const after = await admin('GET', `${LEDGER}/projections/resources/digest`);
      expect(after.json['digest']).to.equal(digest.json['digest']);
      expect((await admin('GET', `${LEDGER}/projections/nope`)).status).to.equal(404);
      expect((await admin('POST', `${LEDGER}/projections/resources/parked/cluster-x/retry`)).status).to.equal(
        404,
      );
    });
  });

  describe('store', () => {
    it('says what it is; backup and check are the adapter’s', async () => {
      const store = await admin('GET', `${LEDGER}/store`);
      expect(store.json).to.include({ kind: 'memory', store_id: 'memory', single_writer: true });
      expect(textAt(store.json, 'last_position')).to.match(/^memory\.\d+$/);
      expect((await admin('POST', `${LEDGER}/store/backup`, { file: '/var/backup/x.db' })).status).to.equal(
        501,
      );
      expect((await admin('POST', `${LEDGER}/store/check`)).status).to.equal(501);
    });
  });

  it('unknown routes of this surface are problem documents too', async () => {
    const reply = await admin('GET', `${LEDGER}/nope`);
    expect(reply.status).to.equal(404);
    expect(reply.headers.get('content-type')).to.equal('application/problem+json');
  });
});

describe('store routes with an adapter that can', () => {
  it('back up to an absolute path and report findings', async () => {
    const files: string[] = [];
    const service = await startTestService({
      ledger: {
        backupStore: async (file) => {
          files.push(file);
          return { file, bytes: 42 };
        },
        checkStore: async () => ({ events: 7, findings: ['page 3 is damaged'] }),
      },
    });
    try {
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      const done = await admin('POST', `${LEDGER}/store/backup`, { file: '/var/backup/x.db' });
      expect(done.json).to.deep.equal({ file: '/var/backup/x.db', bytes: 42 });
      for (const file of ['relative.db', '', 5, '/a\u0000b'])
        expect((await admin('POST', `${LEDGER}/store/backup`, { file })).status).to.equal(400);
      expect(files).to.deep.equal(['/var/backup/x.db']);
      const check = await admin('POST', `${LEDGER}/store/check`);
      expect(check.json).to.deep.equal({ events: 7, findings: ['page 3 is damaged'] });
    } finally {
      await service.close();
    }
  });
});

describe('health, log and metrics', () => {
  it('healthz is empty, readyz says what is missing, every request is one line and one observation', async () => {
    const seen: string[] = [];
    let ready = false;
    const service = await startTestService({
      readiness: () => ({
        ready,
        checks: [{ name: 'store', ok: ready, ...(ready ? {} : { message: 'down' }) }],
      }),
      onRequest: ({ method, route, status, seconds }) => {
        expect(seconds).to.be.within(0, 60);
        seen.push(`${method} ${route} ${status}`);
      },
    });
    try {
      const anonymous = callerOf(service);
      const health = await anonymous('GET', '/healthz');
      expect(`${health.status}${health.text}`).to.equal('200');
      const missing = await anonymous('GET', '/readyz');
      expect(missing.status).to.equal(503);
      expect(missing.json).to.deep.equal({
        ready: false,
        checks: [{ name: 'store', ok: false, message: 'down' }],
      });
      ready = true;
      expect((await anonymous('GET', '/readyz')).status).to.equal(200);
      const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
      const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const reply = await admin('GET', `${PRIVATE}/hubs/some-id`, undefined, {
        traceparent: trace,
        'x-request-id': 'call-7',
      });
      expect(reply.headers.get('x-request-id')).to.equal('call-7');
      await anonymous('GET', '/nowhere');
      await anonymous('GET', `${PUBLIC}/clusters/%zz`);
      expect(seen).to.deep.equal([
        'GET /healthz 200',
        'GET /readyz 503',
        'GET /readyz 200',
        `GET ${PRIVATE}/hubs/{id} 404`,
        'GET unknown 404',
        'GET unknown 400',
      ]);
      const line = service.logger.lines.find(
        ({ fields }) => (fields as { correlationId?: string }).correlationId === 'call-7',
      );
      expect(line?.fields).to.include({
        method: 'GET',
        route: `${PRIVATE}/hubs/{id}`,
        status: 404,
        tenant: 'shared',
        traceId: '0af7651916cd43dd8448eb211c80319c',
      });
      expect(JSON.stringify(service.logger.lines)).not.to.match(/Bearer|eyJ/);
    } finally {
      await service.close();
    }
  });
});
