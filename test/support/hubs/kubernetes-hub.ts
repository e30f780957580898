import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import type { HubChannel } from '../../../src/adapters/management-cluster/kubernetes/channel.ts';
import {
  createKubernetesClusters,
  type KubernetesClusters,
} from '../../../src/adapters/management-cluster/kubernetes/kubernetes-hubs.ts';
import type { KubernetesHub } from '../../../src/adapters/management-cluster/kubernetes/kubernetes-hub.ts';
import { createInlineChannel } from '../../../src/adapters/management-cluster/kubernetes/inline-channel.ts';
import type { WatchSettings } from '../../../src/adapters/management-cluster/kubernetes/watch.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { HubConnection } from '../../../src/app/hubs/management-cluster.ts';
import type { Clock, Logger, Timers } from '../../../src/app/ports.ts';
import type { HubObject } from '../../../src/domain/hubs/hub-object.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import type { SecretRef } from '../../../src/domain/secret-ref.ts';
import type { JsonObject } from '../kube-apiserver/types.ts';
import { collectionOf, type KubeAnswer, type RequestOptions } from '../kube-apiserver/client.ts';

/** Lines of a log as objects, to look for what must not be in them. */
export const recordingLogger = (): Logger & { readonly lines: object[] } => {
  const lines: object[] = [];
  const line =
    (level: string) =>
    (fields: object, message: string): void =>
      void lines.push({ level, ...fields, message });
  const logger = {
    debug: line('debug'),
    info: line('info'),
    warn: line('warn'),
    error: line('error'),
    child: () => logger,
    lines,
  };
  return logger;
};

/** Files of `ops/rbac`. */
export type RightsFile = 'hub-access' | 'controller-ledger' | 'node-counts' | 'tenant-namespaces';

/** Objects of a file of `ops/rbac` for a hub in `namespace`. */
export const rbacOf = (file: RightsFile, namespace: string): JsonObject[] => {
  const text = readFileSync(new URL(`../../../ops/rbac/${file}.yaml`, import.meta.url), 'utf8');
  return parseAllDocuments(text.replaceAll('osac-hub', namespace)).map(
    (document) => document.toJS() as JsonObject,
  );
};

/** The user whose rights those are. */
export const hubAccessOf = (namespace: string) => ({
  name: `system:serviceaccount:${namespace}:hub-access`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

const TOKEN_SECONDS = 12 * 3_600;

/**
 * Makes a hub of a namespace: the namespace, the service account `hub-access` and its rights, those of `hub-access.yaml`
 * and of the files in `more`. Returns a token of that account. `call` must be an administrator's.
 */
export const grantHubAccess = async (
  call: (method: string, path: string, options?: RequestOptions) => Promise<KubeAnswer>,
  namespace: string,
  more: readonly RightsFile[] = [],
): Promise<string> => {
  const post = async (path: string, body: JsonObject): Promise<JsonObject> => {
    const answer = await call('POST', path, { body });
    if (answer.code >= 300 && answer.code !== 409) {
      throw new Error(`POST ${path}: ${answer.code} ${answer.text || JSON.stringify(answer.body)}`);
    }
    return answer.body;
  };
  await post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  for (const file of ['hub-access', ...more] as const) {
    for (const object of rbacOf(file, namespace)) await post(collectionOf(object), object);
  }
  const asked = await post(`/api/v1/namespaces/${namespace}/serviceaccounts/hub-access/token`, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: TOKEN_SECONDS },
  });
  return stringAt(objectAt(asked, 'status'), 'token');
};

export const secretRef = (version: string): SecretRef => ({
  id: 'kubeconfig-of-hub',
  version,
  kind: 'kubeconfig',
  fingerprint: '0123456789abcdef',
});

export const connectionOf = (namespace: string, more: Partial<HubConnection> = {}): HubConnection => ({
  id: 'hub-a',
  namespace,
  tenant: 'system',
  revision: 1,
  kubeconfig: secretRef('1'),
  ...more,
});

export type KubernetesFixture = {
  readonly clusters: KubernetesClusters;
  readonly hub: KubernetesHub;
  readonly logger: ReturnType<typeof recordingLogger>;
};

/** An adapter of one hub, in the test's thread unless a channel is given. */
export const kubernetesHub = (options: {
  /** By version of the secret. */
  readonly kubeconfigs: { readonly [version: string]: string | undefined };
  readonly namespace: string;
  readonly connection?: Partial<HubConnection>;
  readonly channel?: HubChannel;
  readonly clock?: Clock;
  readonly timers?: Timers;
  readonly watch?: WatchSettings;
  readonly random?: () => number;
  /** Kinds that the adapter knows; not with a channel. Default: all declared ones. */
  readonly objects?: readonly HubObject[];
}): KubernetesFixture => {
  const logger = recordingLogger();
  const clock = options.clock ?? systemClock();
  const timers = options.timers ?? systemTimers();
  const random = options.random ?? Math.random;
  const clusters = createKubernetesClusters({
    secrets: {
      reveal: ({ version }) => {
        const text = options.kubeconfigs[version];
        return Promise.resolve(text === undefined ? undefined : Buffer.from(text));
      },
    },
    clock,
    timers,
    logger,
    channel:
      options.channel ??
      createInlineChannel({
        clock,
        timers,
        logger,
        random,
        ...(options.objects === undefined ? {} : { objects: options.objects }),
        ...(options.watch === undefined ? {} : { watch: options.watch }),
      }),
  });
  const hub = clusters.of(connectionOf(options.namespace, options.connection));
  if (hub === undefined) throw new Error('the hub has no adapter');
  return { clusters, hub, logger };
};
