import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { startKubeServers, type KubeServers } from '../../ops/real/kube-apiserver/servers.ts';
import {
  createWorkerChannel,
  type HubChannel,
} from '../../src/adapters/management-cluster/kubernetes/channel.ts';
import type { ManagementCluster } from '../../src/app/management-cluster.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { objectAt, stringAt } from '../../src/domain/json-tools.ts';
import type { ManagementClusterUnderTest } from '../integration/management-cluster/contract-kit.ts';
import { describeManagementClusterContract } from '../integration/management-cluster/contract.ts';
import { kubeconfigOf } from '../support/kube-apiserver/kubeconfig.ts';
import { loadDefinitions } from '../support/kube-apiserver/start.ts';
import { collectionOf, kubeClient, type KubeAccess, type KubeClient } from '../support/kube-client.ts';
import { KUBE_BEHAVIOURS, conformanceContext, type ConformanceContext } from '../support/kube-conformance.ts';
import { eventually } from '../support/kube-conformance/context.ts';
import { startKubeFaultProxy, type KubeFaultProxy } from '../support/kube-fault-proxy.ts';
import { kubernetesHub, rbacOf, recordingLogger } from '../support/kubernetes-hub.ts';
import { startQuickOperator } from '../support/quick-operator.ts';

/**
 * What the stand-in is believed for, on a real kube-apiserver with etcd and controllers (ops/real/kube-apiserver): its
 * own list of behaviours, and the adapter's contract with exactly the rights of ops/rbac/hub-access.yaml. The first run
 * on a machine builds the server; where that cannot be done the pipeline's last line says so.
 */
const QUICK_WATCH = { backoffMs: 20, backoffMaxMs: 200 };
const binary = kubeBinary((line) => console.log(`  ${line}`));

const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** Installs our CRDs for the whole run: those that a suite takes away again go when they want to. */
const installDefinitions = async (admin: KubeClient): Promise<void> => {
  for (const definition of loadDefinitions()) {
    const { code, text } = await admin.post(DEFINITIONS, definition);
    expect(code, text).to.equal(201);
    const name = stringAt(objectAt(definition, 'metadata'), 'name');
    await eventually(`${name} is established`, async () => {
      const { body } = await admin.get(`${DEFINITIONS}/${name}`);
      return JSON.stringify(objectAt(body, 'status')['conditions'] ?? []).includes('"Established"');
    });
  }
};

describe('a real kube-apiserver', function () {
  this.timeout(120_000);
  let servers: KubeServers;
  let access: KubeAccess;
  let admin: KubeClient;

  before(async function () {
    if ('missing' in binary) {
      console.log(`      not run here: real kube-apiserver: ${binary.missing}`);
      this.skip();
    }
    servers = await startKubeServers(binary.path);
    access = { url: servers.url, ca: servers.ca, token: servers.adminToken };
    admin = kubeClient(access);
    await installDefinitions(admin);
  });
  after(async () => {
    admin?.close();
    await servers?.close();
  });

  describe('behaves as the stand-in does', () => {
    let context: ConformanceContext;
    before(async () => {
      context = await conformanceContext(access, loadDefinitions());
    });
    after(() => context.close());
    for (const { name, check } of KUBE_BEHAVIOURS) it(name, () => check(context));
  });

  describe('under the adapter', () => {
    let channel: HubChannel;
    let proxy: KubeFaultProxy;
    let hubs = 0;

    before(async () => {
      channel = createWorkerChannel({ logger: recordingLogger() });
      proxy = await startKubeFaultProxy(access);
    });
    after(async () => {
      await channel?.close();
      await proxy?.close();
    });

    /** A namespace with the service account `hub-access` and exactly its rights; gives its token. */
    const newHub = async (namespace: string): Promise<string> => {
      const post = async (path: string, body: JsonObject): Promise<JsonObject> => {
        const answer = await admin.post(path, body);
        expect([200, 201, 409], `${path}: ${answer.text}`).to.include(answer.code);
        return answer.body;
      };
      await post('/api/v1/namespaces', {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: namespace },
      });
      for (const object of rbacOf('hub-access', namespace)) await post(collectionOf(object), object);
      const asked = await post(`/api/v1/namespaces/${namespace}/serviceaccounts/hub-access/token`, {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { expirationSeconds: 3600 },
      });
      return stringAt(objectAt(asked, 'status'), 'token');
    };

    const underTest = async (): Promise<ManagementClusterUnderTest> => {
      hubs += 1;
      const namespace = `hub-${hubs}-${randomUUID().slice(0, 4)}`;
      const token = await newHub(namespace);
      const stopOperator = startQuickOperator(access, namespace);
      const opened: ManagementCluster[] = [];
      const open = async (): Promise<ManagementCluster> => {
        const kubeconfig = kubeconfigOf({ url: proxy.url, ca: proxy.ca, credentials: { token } });
        const { hub } = kubernetesHub({
          kubeconfigs: { '1': kubeconfig },
          namespace,
          watch: QUICK_WATCH,
          channel,
        });
        opened.push(hub);
        const signal = new AbortController().signal;
        const report = await hub.check({ effectId: 'check', deadlineMs: 10_000, signal });
        expect(report.problems).to.deep.equal([]);
        return hub;
      };
      const cluster = await open();
      const state = { paused: false };
      const healthy = async (): Promise<void> => {
        proxy.clear();
        if (state.paused) await proxy.resume();
        state.paused = false;
      };
      return {
        cluster,
        another: open,
        namespace,
        missingNamespace: 'nope',
        inMissingNamespace: 'unauthorized',
        patienceMs: 30_000,
        misbehave: {
          loseNextAnswer: async () => proxy.loseNextCreate(),
          neverAnswer: async () => proxy.hang(),
          refuseConnections: async () => {
            state.paused = true;
            await proxy.pause();
            // Reads find out which of the kept connections are closed.
            const read = { effectId: 'probe', deadlineMs: 5_000, signal: new AbortController().signal };
            await cluster.findClusterOrders(namespace, 'nobody', read).catch(() => undefined);
          },
          healthy,
        },
        close: async () => {
          await Promise.all(opened.map((each) => each.close()));
          await healthy();
          await stopOperator();
        },
      };
    };

    describeManagementClusterContract('on a real API server', underTest);

    // In a suite of its own: what stands beside suites runs before them.
    describe('in all of that', () => {
      it('asks for nothing that the rights of OSAC do not grant', () => {
        const refused = proxy
          .seen()
          .filter(({ code, path }) => code === 403 && !path.includes('/namespaces/nope/'));
        expect(proxy.seen().length).to.be.greaterThan(100);
        expect(refused).to.deep.equal([]);
      });
    });
  });
});
