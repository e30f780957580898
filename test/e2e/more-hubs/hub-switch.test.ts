import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { startAap, orderOfJob } from '../../support/aap/aap-server.ts';
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
} from '../../support/service/stack.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { playHub, type PlayedHub } from '../../support/kube-controllers/hub.ts';
import { hubAccessOf, rbacOf } from '../../support/hubs/kubernetes-hub.ts';
import { startRulebook } from '../../support/rulebook/rulebook-server.ts';

const NS = 'osac-hub';
/** Each system has a token of its own. */
const TOKENS = { eda: 'token-of-the-listener', aap: 'token-of-the-platform' };
const KEY = 'key-of-the-automation';

/** What runs the hub's playbooks, and how often it was asked for which. */
type Automated = {
  readonly token: string;
  readonly spec: JsonObject;
  readonly asked: () => readonly string[];
  readonly close: () => Promise<void>;
};

const kindOf = (name: string): 'create' | 'delete' => (name.includes('create') ? 'create' : 'delete');

const automations: { readonly [Mode in 'eda' | 'aap']: (hub: PlayedHub) => Promise<Automated> } = {
  eda: async ({ ansible }) => {
    const token = TOKENS.eda;
    const rulebook = await startRulebook({
      token,
      hmacSecret: KEY,
      playbook: async ({ meta, payload }) => void ansible.start(kindOf(meta.endpoint), payload as JsonObject),
    });
    return {
      token,
      spec: { endpoints: { eda: rulebook.url }, automation: { token, hmac_secret: KEY } },
      asked: () => rulebook.runs.map(({ meta }) => kindOf(meta.endpoint)),
      close: rulebook.close,
    };
  },
  aap: async ({ ansible }) => {
    const token = TOKENS.aap;
    const aap = await startAap({
      token,
      playbook: async (job) => {
        const run = ansible.start(kindOf(job.template.name), orderOfJob(job));
        await until('the playbook has ended', () => run.result() !== undefined);
      },
    });
    return {
      token,
      spec: { endpoints: { aap: aap.url }, automation: { token } },
      asked: () => aap.jobs.map(({ template }) => kindOf(template.name)),
      close: aap.close,
    };
  },
};

/** A hub without an operator, with its agents and playbooks played, and the service. */
const createStage = async () => {
  const objects = [...rbacOf('hub-access', NS), ...rbacOf('controller-ledger', NS)];
  const server: KubeApiServer = await startKubeApiServer({ namespaces: [NS], objects });
  const hub = playHub({ call: server.call, operator: false, pace: 0.05 });
  await hub.prepare({ fc430: 8 });
  hub.start(20);
  const stack: Stack = await createStack('sqlite');
  await stack.start();
  const alice = await stack.client({ tenant: 'acme', user: 'alice' });
  const admin = await stack.client({ admin: true, user: 'root' });
  const isWell = (): Promise<void> =>
    until('the hub is ready', async () => {
      const { status } = await admin.get<HubBody>(`${PRIVATE}/hubs/munich`);
      const ready = status?.conditions?.find(({ type }) => type === 'Ready');
      return ready?.status === 'CONDITION_STATUS_TRUE';
    });
  return {
    server,
    hub,
    stack,
    alice,
    admin,
    isWell,
    register: async (mode: string, spec: JsonObject): Promise<void> => {
      const kubeconfig = server.kubeconfig({ token: server.tokenFor(hubAccessOf(NS)) });
      await admin.send('POST', `${PRIVATE}/hubs`, {
        id: 'munich',
        spec: {
          namespace: NS,
          mode,
          controller: 'ledger',
          kubeconfig: Buffer.from(kubeconfig).toString('base64'),
          ...spec,
        },
      });
      await isWell();
    },
    order: async (name: string): Promise<string> => {
      const { id } = await alice.send<ClusterBody>('POST', CLUSTERS, {
        metadata: { name },
        spec: { template: { id: 'osac.templates.ocp_small' } },
      });
      return id;
    },
    close: async () => {
      await stack.dispose();
      await hub.stop();
      await server.close();
    },
  };
};
type HubBody = { status?: { conditions?: readonly { type: string; status: string; message?: string }[] } };
type Stage = Awaited<ReturnType<typeof createStage>>;

describe('a hub that is switched from a listener to a platform, and back, while orders run on it', function () {
  this.timeout(120_000);
  let stage: Stage;
  let eda: Automated;
  let aap: Automated;

  before(async () => {
    stage = await createStage();
    [eda, aap] = await Promise.all([automations.eda(stage.hub), automations.aap(stage.hub)]);
  });
  after(async () => {
    await stage.close();
    await Promise.all([eda.close(), aap.close()]);
  });

  it('new orders follow the new mode, running ones end in theirs, each with its own address and token', async () => {
    const { alice, admin, isWell } = stage;
    await stage.register('eda', eda.spec);
    const first = await stage.order('first');
    await untilCluster(alice, first, isReady);

    // The address of the listener is not even named any more.
    await admin.send('PATCH', `${PRIVATE}/hubs/munich`, { spec: { mode: 'aap', ...aap.spec } });
    await isWell();
    const second = await stage.order('second');
    await untilCluster(alice, second, isReady);
    expect([eda.asked(), aap.asked()]).to.deep.equal([['create'], ['create']]);

    await alice.send('DELETE', `${CLUSTERS}/${first}`);
    await untilGone(alice, first);
    expect([eda.asked(), aap.asked()]).to.deep.equal([['create', 'delete'], ['create']]);

    await admin.send('PATCH', `${PRIVATE}/hubs/munich`, { spec: { mode: 'eda' } });
    await isWell();
    await alice.send('DELETE', `${CLUSTERS}/${second}`);
    await untilGone(alice, second);
    const third = await stage.order('third');
    await untilCluster(alice, third, isReady);
    expect(aap.asked()).to.deep.equal(['create', 'delete']);
    expect(eda.asked()).to.deep.equal(['create', 'delete', 'create']);
  });
});
