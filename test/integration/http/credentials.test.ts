import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { openApi } from '../../support/openapi/document.ts';
import { readAll } from '../../support/process-runner/toy-workflow.ts';
import { textAt, type Caller, type TestService } from '../../support/http/service.ts';
import { LEDGER, linesOf, startDispatching, type Dispatching } from './dispatching.ts';
import { CLUSTERS } from './ordering.ts';

describe('credentials and admin routes over HTTP', () => {
  let service: TestService;
  let hub: Dispatching['hub'];
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let order: Dispatching['order'];
  let dispatched: Dispatching['dispatched'];

  before(async () => {
    ({ service, hub, admin, user, other, order, dispatched } = await startDispatching());
  });
  after(() => service.close());

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
      const api = openApi((await user('GET', '/openapi.json')).json as unknown as JsonObject);
      for (const [what, { status, text, headers }] of Object.entries({ kubeconfig, password })) {
        const answer = { status, contentType: headers.get('content-type') ?? '', text };
        expect(api.answerProblems('get', `${CLUSTERS}/${id}/${what}`, answer)).to.deep.equal([]);
      }
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
});
