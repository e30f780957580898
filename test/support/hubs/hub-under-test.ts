import { expect } from 'chai';
import type { HubChannel } from '../../../src/adapters/management-cluster/kubernetes/channel.ts';
import type { ManagementCluster } from '../../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import type { ManagementClusterUnderTest } from '../../integration/management-cluster/contract-kit.ts';
import { kubeconfigOf } from '../kube-apiserver/kubeconfig.ts';
import { kubeClient, type KubeAccess } from '../kube-apiserver/client.ts';
import { grantHubAccess, hubAccessOf, kubernetesHub } from './kubernetes-hub.ts';
import { startQuickOperator } from './quick-operator.ts';

/** Milliseconds that are short for a suite and long for a machine on loopback. */
const QUICK_WATCH = { backoffMs: 20, backoffMaxMs: 200 };

/** An API server whose namespaces are put under the adapter's contract, and how it is made to misbehave. */
export type FarSide = {
  /** The administrator's way to it. */
  readonly access: KubeAccess;
  /** Where the adapter finds it, when not directly. */
  readonly through?: Pick<KubeAccess, 'url' | 'ca'>;
  /** Default: the test's own thread. */
  readonly channel?: HubChannel;
  /** Within which an order becomes Ready there. */
  readonly patienceMs: number;
  /** `user` is whom the adapter comes as. */
  readonly faults: {
    readonly loseNextCreate: (user: string) => void;
    readonly hang: (user: string) => void;
    readonly clear: () => void;
    /** Closes the port; `resume` opens it again. */
    readonly pause: () => Promise<void>;
    readonly resume: () => Promise<void>;
  };
};

/**
 * Gives each test a namespace of its own there, named `name` and a number, with exactly the rights of
 * ops/rbac/hub-access.yaml and a quick operator; for the contract of management clusters.
 */
export const hubsUnderTest = (
  name: string,
  far: () => FarSide,
): (() => Promise<ManagementClusterUnderTest>) => {
  let hubs = 0;
  return async () => {
    const { access, through = access, channel, patienceMs, faults } = far();
    hubs += 1;
    const namespace = `${name}-${hubs}`;
    const user = hubAccessOf(namespace).name;
    const admin = kubeClient(access);
    const token = await grantHubAccess(admin.call, namespace);
    admin.close();
    const stopOperator = startQuickOperator(access, namespace);
    const opened: ManagementCluster[] = [];
    const open = async (): Promise<ManagementCluster> => {
      const { url, ca } = through;
      const { hub } = kubernetesHub({
        kubeconfigs: { '1': kubeconfigOf({ url, ca, credentials: { token } }) },
        namespace,
        watch: QUICK_WATCH,
        ...(channel === undefined ? {} : { channel }),
      });
      opened.push(hub);
      // It asks for every right, with a connection for most: one namespace is granted what all are.
      if (hubs > 1) return hub;
      const signal = new AbortController().signal;
      const report = await hub.check({ effectId: 'check', deadlineMs: 60_000, signal });
      expect(report.problems).to.deep.equal([]);
      return hub;
    };
    const cluster = await open();
    let paused = false;
    const healthy = async (): Promise<void> => {
      faults.clear();
      if (paused) await faults.resume();
      paused = false;
    };
    return {
      cluster,
      another: open,
      namespace,
      missingNamespace: 'nope',
      inMissingNamespace: 'unauthorized',
      patienceMs,
      misbehave: {
        loseNextAnswer: async () => faults.loseNextCreate(user),
        neverAnswer: async () => faults.hang(user),
        refuseConnections: async () => {
          paused = true;
          await faults.pause();
          // Reads find out which of the kept connections are closed: more of them than a hub keeps.
          const read = { effectId: 'probe', deadlineMs: 60_000, signal: new AbortController().signal };
          await Promise.allSettled(
            Array.from({ length: 16 }, () => cluster.find(CLUSTER_ORDER, namespace, 'nobody', read)),
          );
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
};
