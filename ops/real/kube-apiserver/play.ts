import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { playHub } from '../../../test/support/kube-controllers/hub.ts';
import { loadDefinitions } from '../../../test/support/kube-apiserver/start.ts';
import { kubeClient, type KubeClient } from '../../../test/support/kube-apiserver/client.ts';
import { grantHubAccess } from '../../../test/support/hubs/kubernetes-hub.ts';
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
const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const ESTABLISHED_MS = 30_000;

/** Our CRDs and the open ones beside them, for as long as the server runs; resolves when all are served. */
export const installDefinitions = async (admin: KubeClient): Promise<void> => {
  for (const definition of loadDefinitions()) {
    const { code, text } = await admin.post(DEFINITIONS, definition);
    if (code >= 300 && code !== 409) throw new Error(`POST ${DEFINITIONS}: ${code} ${text}`);
  }
  for (const definition of loadDefinitions()) {
    const name = stringAt(objectAt(definition, 'metadata'), 'name');
    const end = performance.now() + ESTABLISHED_MS;
    for (;;) {
      const { body } = await admin.get(`${DEFINITIONS}/${name}`);
      if (JSON.stringify(objectAt(body, 'status')['conditions'] ?? []).includes('"Established"')) break;
      if (performance.now() > end) throw new Error(`${name} is not served after ${ESTABLISHED_MS / 1000} s`);
      await pause(20);
    }
  }
};

/**
 * Makes a hub of a real API server: CRDs of ops/crds and open ones for HyperShift's and the agents' kinds, rights of
 * ops/rbac, and the players of test/support/kube-controllers for operator, AAP, Ansible, HyperShift and hosts. A tool
 * for trying things out: the product knows nothing of it.
 */
export const playOn = async (servers: KubeServers, options: PlayOptions): Promise<PlayedServers> => {
  const { namespace, pace, hosts, operator = true } = options;
  const admin = kubeClient({ url: servers.url, ca: servers.ca, token: servers.adminToken });
  await installDefinitions(admin);
  const token = await grantHubAccess(admin.call, namespace, operator ? [] : ['controller-ledger']);
  const kubeconfig = join(servers.folder, 'hub.kubeconfig');
  writeFileSync(kubeconfig, servers.kubeconfig(token));
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
