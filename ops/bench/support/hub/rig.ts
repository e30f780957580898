import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { createApiClient, type ApiClient } from '../../../../src/cli/api-client.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../../src/domain/json-tools.ts';
import { kubeconfigOf } from '../../../../test/support/kube-apiserver/kubeconfig.ts';
import {
  kubeClient,
  type KubeAccess,
  type KubeClient,
} from '../../../../test/support/kube-apiserver/client.ts';
import { grantHubAccess } from '../../../../test/support/hubs/kubernetes-hub.ts';
import { kubeBinary } from '../../../real/kube-apiserver/binary.ts';
import { installDefinitions } from '../../../real/kube-apiserver/play.ts';
import { startKubeServers } from '../../../real/kube-apiserver/servers.ts';
import { startBenchService, type BenchService } from '../service.ts';

export const ORDERS = '/apis/osac.openshift.io/v1alpha1';
export const CLUSTERS = '/api/fulfillment/v1/clusters';
const STAND_IN = join(import.meta.dirname, '../../../../test/support/kube-apiserver/main.ts');
const PATIENCE_MS = 300_000;
/** As much as a hub's document may ask for: what is measured is us, not the pace that a hub was given. */
const UNPACED = { calls_per_second: 10_000, burst: 10_000 };

/** One API server in processes of its own, and a service that some namespaces of it are registered with as hubs. */
export type HubRig = {
  readonly bench: BenchService;
  /** The administrator's way to the API server. */
  readonly access: KubeAccess;
  readonly kube: KubeClient;
  readonly user: ApiClient;
  readonly admin: ApiClient;
  /** Makes a namespace with the rights of OSAC's own service, registers it and waits until it was looked at. */
  addHub(hub: NewHub): Promise<void>;
  /** Orders a cluster in a zone and returns its id. */
  order(name: string, zone?: string): Promise<string>;
  close(): Promise<void>;
};

export type NewHub = {
  /** Id and namespace at once. */
  readonly id: string;
  /** Where the service finds the API server, when not directly. */
  readonly through?: Pick<KubeAccess, 'url' | 'ca'>;
};

/** `real`: etcd and kube-apiserver in place of the stand-in. Throws when this machine cannot have them. */
export const startHubRig = async (real: boolean, nodeOptions: readonly string[] = []): Promise<HubRig> => {
  const server = real ? await realServer() : await standIn();
  const kube = kubeClient(server.access);
  try {
    const bench = await startBenchService('api,processes', nodeOptions);
    const [user, admin] = [bench.userToken, bench.adminToken].map((token) =>
      createApiClient(bench.service.http, token),
    ) as [ApiClient, ApiClient];
    return {
      bench,
      access: server.access,
      kube,
      user,
      admin,
      addHub: (hub) => addHub(kube, admin, server.access, hub),
      order: async (name, zone) => {
        const annotations = zone === undefined ? {} : { 'fulfillment-ledger/zone': zone };
        const body = {
          metadata: { name, annotations },
          spec: { template: { id: 'osac.templates.ocp_small' } },
        };
        return (await user.send<{ id: string }>('POST', CLUSTERS, body)).id;
      },
      close: async () => {
        await bench.close();
        kube.close();
        await server.close();
      },
    };
  } catch (error) {
    kube.close();
    await server.close();
    throw error;
  }
};

type Server = { readonly access: KubeAccess; close(): Promise<void> };

const standIn = async (): Promise<Server> => {
  const child = spawn(process.execPath, [STAND_IN], { stdio: ['ignore', 'pipe', 'inherit'] });
  const orphaned = (): void => void child.kill('SIGKILL');
  process.once('exit', orphaned);
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return {
    access: JSON.parse(line) as KubeAccess,
    close: async () => {
      process.removeListener('exit', orphaned);
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
};

const realServer = async (): Promise<Server> => {
  const binary = kubeBinary((line) => console.log(line));
  if ('missing' in binary) throw new Error(`no real API server here: ${binary.missing}`);
  const servers = await startKubeServers(binary.path);
  const access = { url: servers.url, ca: servers.ca, token: servers.adminToken };
  const kube = kubeClient(access);
  try {
    await installDefinitions(kube);
  } finally {
    kube.close();
  }
  return { access, close: servers.close };
};

const addHub = async (
  kube: KubeClient,
  admin: ApiClient,
  access: KubeAccess,
  { id, through = access }: NewHub,
): Promise<void> => {
  const token = await grantHubAccess(kube.call, id);
  const kubeconfig = kubeconfigOf({ url: through.url, ca: through.ca, credentials: { token } });
  await admin.send('POST', '/api/private/v1/hubs', {
    id,
    spec: {
      namespace: id,
      zone: id,
      kubeconfig: Buffer.from(kubeconfig).toString('base64'),
      pacing: UNPACED,
    },
  });
  await eventually(`hub ${id} was looked at`, async () => {
    const conditions = listAt(
      objectAt(await admin.get<JsonObject>(`/api/private/v1/hubs/${id}`), 'status'),
      'conditions',
    );
    return conditions
      .filter(isObject)
      .some((one) => one['type'] === 'Ready' && one['status'] === 'CONDITION_STATUS_TRUE');
  });
};

/** When each order was first seen on the API server, by cluster; through a watch of all namespaces. */
export const watchCreations = async (
  kube: KubeClient,
): Promise<{ readonly seenAt: ReadonlyMap<string, number>; close(): void }> => {
  const seenAt = new Map<string, number>();
  const watch = await kube.watch(`${ORDERS}/clusterorders`);
  const follow = async (): Promise<void> => {
    while (!watch.ended()) {
      const event = await watch.next(60_000);
      const at = performance.now();
      const labels = objectAt(objectAt(event?.object ?? {}, 'metadata'), 'labels');
      const id = stringAt(labels, 'osac.openshift.io/clusterorder-uuid');
      if (id !== '' && !seenAt.has(id)) seenAt.set(id, at);
    }
  };
  follow().catch((error: unknown) => console.error(error));
  return { seenAt, close: watch.close };
};

/** Waits until something holds, looking often at first; throws after `patienceMs`, by default five minutes. */
export const eventually = async (
  what: string,
  holds: () => Promise<boolean> | boolean,
  patienceMs = PATIENCE_MS,
): Promise<void> => {
  const end = performance.now() + patienceMs;
  for (let wait = 10; !(await holds()); wait = Math.min(200, wait * 1.3)) {
    if (performance.now() > end) throw new Error(`not within ${patienceMs / 1000} s: ${what}`);
    await pause(wait);
  }
};

/** Does something with each, so many at once. */
export const inParallel = async <T>(
  items: readonly T[],
  atOnce: number,
  act: (item: T, index: number) => Promise<void>,
): Promise<void> => {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next;
      next += 1;
      await act(items[index] as T, index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker));
};
