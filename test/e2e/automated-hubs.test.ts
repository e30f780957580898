import { expect } from 'chai';
import type { ApiClient } from '../../src/cli/api-client.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { startAap, orderOfJob } from '../support/aap/aap-server.ts';
import {
  CLUSTERS,
  PRIVATE,
  createStack,
  isReady,
  until,
  untilCluster,
  untilGone,
  type ClusterBody,
  type Stack,
} from '../support/e2e-stack.ts';
import { startKubeApiServer, type KubeApiServer } from '../support/kube-apiserver/start.ts';
import { playHub, type PlayedHub } from '../support/kube-controllers/hub.ts';
import { hubAccessOf, rbacOf } from '../support/kubernetes-hub.ts';
import { startRulebook } from '../support/rulebook/rulebook-server.ts';

const NS = 'osac-hub';
const TOKEN = 'token-of-the-automation';
const KEY = 'key-of-the-automation';

/** What runs the hub's playbooks, and how often it was asked for which. */
type Automated = {
  readonly spec: JsonObject;
  readonly asked: () => readonly string[];
  /** The next request is carried out, but its answer never arrives. */
  readonly loseNext: () => void;
  readonly close: () => Promise<void>;
};

const kindOf = (name: string): 'create' | 'delete' => (name.includes('create') ? 'create' : 'delete');

const automations: { readonly [mode: string]: (hub: PlayedHub) => Promise<Automated> } = {
  eda: async ({ ansible }) => {
    const rulebook = await startRulebook({
      token: TOKEN,
      hmacSecret: KEY,
      playbook: async ({ meta, payload }) => void ansible.start(kindOf(meta.endpoint), payload as JsonObject),
    });
    return {
      spec: { endpoints: { eda: rulebook.url }, automation: { token: TOKEN, hmac_secret: KEY } },
      asked: () => rulebook.runs.map(({ meta }) => kindOf(meta.endpoint)),
      loseNext: () => rulebook.next('cut'),
      close: rulebook.close,
    };
  },
  aap: async ({ ansible }) => {
    const aap = await startAap({
      token: TOKEN,
      playbook: async (job) => {
        const run = ansible.start(kindOf(job.template.name), orderOfJob(job));
        await until('the playbook has ended', () => run.result() !== undefined);
      },
    });
    return {
      spec: { endpoints: { aap: aap.url }, automation: { token: TOKEN } },
      asked: () => aap.jobs.map(({ template }) => kindOf(template.name)),
      loseNext: () => aap.nextLaunch('lose'),
      close: aap.close,
    };
  },
};

for (const [mode, start] of Object.entries(automations)) {
  describe(`a cluster order on a hub without an operator, in mode ${mode}, over HTTP`, function () {
    this.timeout(120_000);
    let stack: Stack;
    let alice: ApiClient;
    let admin: ApiClient;
    let server: KubeApiServer;
    let hub: PlayedHub;
    let automated: Automated;

    before(async () => {
      const objects = [...rbacOf('hub-access', NS), ...rbacOf('controller-ledger', NS)];
      server = await startKubeApiServer({ namespaces: [NS], objects });
      hub = playHub({ call: server.call, operator: false, pace: 0.05 });
      await hub.prepare({ fc430: 8 });
      hub.start(20);
      automated = await start(hub);
      stack = await createStack('sqlite');
      await stack.start();
      alice = await stack.client({ tenant: 'acme', user: 'alice' });
      admin = await stack.client({ admin: true, user: 'root' });
    });
    after(async () => {
      await stack.dispose();
      await hub.stop();
      await automated.close();
      await server.close();
    });

    it('becomes READY, is scaled, and is gone after its deletion; each playbook runs once for each wish, lost answers or not', async () => {
      const kubeconfig = server.kubeconfig({ token: server.tokenFor(hubAccessOf(NS)) });
      await admin.send('POST', `${PRIVATE}/hubs`, {
        id: 'munich',
        spec: {
          namespace: NS,
          mode,
          controller: 'ledger',
          kubeconfig: Buffer.from(kubeconfig).toString('base64'),
          ...automated.spec,
        },
      });
      type HubBody = {
        status?: { conditions?: readonly { type: string; status: string; message?: string }[] };
      };
      await until('the hub is ready', async () => {
        const { status } = await admin.get<HubBody>(`${PRIVATE}/hubs/munich`);
        const ready = status?.conditions?.find(({ type }) => type === 'Ready');
        return ready?.status === 'CONDITION_STATUS_TRUE';
      });

      automated.loseNext();
      const { id } = await alice.send<ClusterBody>('POST', CLUSTERS, {
        metadata: { name: 'automated' },
        spec: { template: { id: 'osac.templates.ocp_small' } },
      });
      await untilCluster(alice, id, isReady);
      expect(automated.asked()).to.deep.equal(['create']);

      await alice.send('PATCH', `${CLUSTERS}/${id}`, { spec: { node_sets: { workers: { size: 4 } } } });
      await untilCluster(alice, id, (one) => isReady(one) && one.spec.node_sets['workers']?.size === 4);
      await until('it was asked for once more', () => automated.asked().length === 2);
      expect(automated.asked()).to.deep.equal(['create', 'create']);

      await alice.send('DELETE', `${CLUSTERS}/${id}`);
      await untilGone(alice, id);
      expect(automated.asked()).to.deep.equal(['create', 'create', 'delete']);
      expect(server.list('clusterorders', NS)).to.deep.equal([]);
      expect(stack.service().log.join('\n')).not.to.include(TOKEN).and.not.include(KEY);
    });
  });
}
