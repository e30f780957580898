import { expect } from 'chai';
import {
  createWorkerChannel,
  type HubChannel,
} from '../../../src/adapters/management-cluster/kubernetes/channel.ts';
import type { ManagementCluster } from '../../../src/app/management-cluster.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { hubAccessOf, kubernetesHub, rbacOf, recordingLogger } from '../../support/kubernetes-hub.ts';
import { startQuickOperator } from '../../support/quick-operator.ts';
import type { ManagementClusterUnderTest } from './contract-kit.ts';
import { describeManagementClusterContract } from './contract.ts';

/** Milliseconds that are short for a suite and long for a machine in this process. */
const QUICK_WATCH = { backoffMs: 20, backoffMaxMs: 200 };

/** The contract on the stand-in, with exactly the rights of ops/rbac/hub-access.yaml. */
const suite = (name: string, inWorker: boolean): void => {
  let server: KubeApiServer;
  let channel: HubChannel | undefined;
  let hubs = 0;

  const underTest = async (): Promise<ManagementClusterUnderTest> => {
    hubs += 1;
    const namespace = `hub-${hubs}`;
    server.seed({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    for (const object of rbacOf('hub-access', namespace)) server.seed(object);
    const user = hubAccessOf(namespace);
    const stopOperator = startQuickOperator(
      { url: server.url, ca: server.ca, token: server.adminToken },
      namespace,
    );
    const opened: ManagementCluster[] = [];
    const open = async (): Promise<ManagementCluster> => {
      const kubeconfigs = { '1': server.kubeconfig({ token: server.tokenFor(user) }) };
      const { hub } = kubernetesHub({
        kubeconfigs,
        namespace,
        watch: QUICK_WATCH,
        ...(channel === undefined ? {} : { channel }),
      });
      opened.push(hub);
      const signal = new AbortController().signal;
      const report = await hub.check({ effectId: 'check', deadlineMs: 10_000, signal });
      expect(report.problems).to.deep.equal([]);
      return hub;
    };
    const cluster = await open();
    let paused = false;
    return {
      cluster,
      another: open,
      namespace,
      missingNamespace: 'nope',
      inMissingNamespace: 'unauthorized',
      patienceMs: 10_000,
      misbehave: {
        loseNextAnswer: () => {
          server.faults.next({ user: user.name, verb: 'create' }, { kind: 'lost-answer' });
          return Promise.resolve();
        },
        neverAnswer: () => {
          server.faults.always({ user: user.name }, { kind: 'hang' });
          return Promise.resolve();
        },
        refuseConnections: async () => {
          paused = true;
          await server.pause();
          // Reads find out which of the kept connections are closed.
          const read = { effectId: 'probe', deadlineMs: 5_000, signal: new AbortController().signal };
          await cluster.findClusterOrders(namespace, 'nobody', read).catch(() => undefined);
        },
        healthy: async () => {
          server.faults.clear();
          if (paused) await server.resume();
          paused = false;
        },
      },
      close: async () => {
        await Promise.all(opened.map((each) => each.close()));
        server.faults.clear();
        if (paused) await server.resume();
        await stopOperator();
      },
    };
  };

  describe(`Kubernetes adapter ${name}`, () => {
    before(async function () {
      this.timeout(20_000);
      server = await startKubeApiServer();
      channel = inWorker ? createWorkerChannel({ logger: recordingLogger() }) : undefined;
    });
    after(async () => {
      await channel?.close();
      await server.close();
    });

    describeManagementClusterContract(name, underTest);

    describe(`rights of the adapter ${name}`, () => {
      it('those of hub-access.yaml are enough for everything above', () => {
        const calls = server
          .audit()
          .filter(({ user, path }) => user.includes(':hub-access') && !path.includes('/namespaces/nope/'));
        expect(calls.length).to.be.greaterThan(100);
        expect(calls.filter(({ code }) => code === 403)).to.deep.equal([]);
      });
    });
  });
};

suite('in a worker thread', true);
suite('in the same thread', false);
