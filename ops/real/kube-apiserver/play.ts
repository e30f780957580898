import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { playHub } from '../../../test/support/kube-controllers/hub.ts';
import { loadDefinitions } from '../../../test/support/kube-apiserver/start.ts';
import { collectionOf, kubeClient } from '../../../test/support/kube-client.ts';
import { rbacOf } from '../../../test/support/kubernetes-hub.ts';
import type { KubeServers } from './servers.ts';

/** What is played beside a real API server. */
export type PlayOptions = {
  /** Namespace of the ClusterOrders. */
  readonly namespace: string;
  /** All times of the players are multiplied by this; 1: as recorded from the real ones. */
  readonly pace: number;
  /** Hosts by resource class. */
  readonly hosts: Readonly<Record<string, number>>;
  /** False: nobody reconciles ClusterOrders, for a hub that is registered with `controller: ledger`. Default true. */
  readonly operator?: boolean;
};

export type PlayedServers = {
  /** File with the kubeconfig of the service account `hub-access`: exactly the rights of ops/rbac/hub-access.yaml. */
  readonly kubeconfig: string;
  stop(): Promise<void>;
};

const LOOK_MS = 100;
const TOKEN_SECONDS = 12 * 3_600;

/**
 * Makes a hub of a real API server: CRDs of ops/crds and open ones for HyperShift's and the agents' kinds, rights of
 * ops/rbac, and the players of test/support/kube-controllers for operator, AAP, Ansible, HyperShift and hosts. A tool
 * for trying things out: the product knows nothing of it.
 */
export const playOn = async (servers: KubeServers, options: PlayOptions): Promise<PlayedServers> => {
  const { namespace, pace, hosts, operator = true } = options;
  const admin = kubeClient({ url: servers.url, ca: servers.ca, token: servers.adminToken });
  const post = async (path: string, body: JsonObject): Promise<JsonObject> => {
    const { code, body: answer, text } = await admin.post(path, body);
    if (code >= 400 && code !== 409) throw new Error(`POST ${path}: ${code} ${text}`);
    return answer;
  };
  for (const definition of loadDefinitions())
    await post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
  await post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  const rights = [
    ...rbacOf('hub-access', namespace),
    ...(operator ? [] : rbacOf('controller-ledger', namespace)),
  ];
  for (const object of rights) await post(collectionOf(object), object);
  const asked = await post(`/api/v1/namespaces/${namespace}/serviceaccounts/hub-access/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS },
  });
  const kubeconfig = join(servers.folder, 'hub.kubeconfig');
  writeFileSync(kubeconfig, servers.kubeconfig(stringAt(objectAt(asked, 'status'), 'token')));
  chmodSync(kubeconfig, 0o600);
  const hub = playHub({ call: admin.call, namespace, pace, operator });
  await hub.prepare(hosts);
  hub.start(LOOK_MS);
  return {
    kubeconfig,
    stop: async () => {
      await hub.stop();
      admin.close();
    },
  };
};
