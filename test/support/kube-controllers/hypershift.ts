import type { JsonObject } from '../../../src/domain/json.ts';
import { numberAt, objectAt, sameJson, stringAt } from '../../../src/domain/json-tools.ts';
import { finalizersOf, isDeleting, nameOf, namespaceOf, uidOf, type KubeApi } from './api.ts';
import { timestamp, type PlayClock } from './clock.ts';

/** Milliseconds from the creation of a HostedCluster, but `replica` and `deletion` (OSAC's operator). */
export type HypershiftTimings = {
  readonly endpoint: number;
  readonly available: number;
  readonly versionSucceeding: number;
  /** Between one more (or one less) node of a pool and the next. */
  readonly replica: number;
  /** From the deletion of a HostedCluster until it is gone. */
  readonly deletion: number;
};

export const HYPERSHIFT_TIMINGS: HypershiftTimings = {
  endpoint: 400,
  available: 900,
  versionSucceeding: 2000,
  replica: 600,
  deletion: 1000,
};

type Trouble = { readonly type: 'Degraded' | 'Available'; readonly reason: string; readonly message: string };

const FINALIZER = 'hypershift.openshift.io/finalizer';

/** Plays HyperShift: HostedClusters come up, NodePools fill, Secrets appear; trouble on command. */
export const playHypershift = (api: KubeApi, clock: PlayClock, timings: HypershiftTimings) => {
  const seen = new Map<string, number>();
  const trouble = new Map<string, readonly Trouble[]>();
  const lastReplica = new Map<string, number>();
  const held = new Set<string>();
  const deletedAt = new Map<string, number>();
  /** Whose Secrets are there. */
  const equipped = new Set<string>();

  const conditionsOf = (hosted: JsonObject, age: number): JsonObject[] => {
    const now = new Map((trouble.get(nameOf(hosted)) ?? []).map((one) => [one.type, one]));
    const make = (type: string, healthy: string, reached: boolean): JsonObject => {
      const wrong = now.get(type as Trouble['type']);
      const sick = healthy === 'True' ? 'False' : 'True';
      const status = wrong === undefined ? (reached ? healthy : sick) : sick;
      const reason = wrong?.reason ?? (reached ? 'AsExpected' : 'Waiting');
      return { type, status, reason, message: wrong?.message ?? '', observedGeneration: 1 };
    };
    return [
      make('Available', 'True', age >= timings.available),
      make('Degraded', 'False', true),
      make('ClusterVersionSucceeding', 'True', age >= timings.versionSucceeding),
    ];
  };

  /** The new conditions; one that did not change keeps its time. */
  const timed = (hosted: JsonObject, wanted: readonly JsonObject[]): JsonObject[] => {
    const { conditions } = objectAt(hosted, 'status');
    const old = Array.isArray(conditions) ? (conditions as JsonObject[]) : [];
    return wanted.map((one) => {
      const before = old.find((other) => other['type'] === one['type']);
      const kept = before?.['status'] === one['status'] ? stringAt(before, 'lastTransitionTime') : '';
      return { ...one, lastTransitionTime: kept || timestamp(clock.now()) };
    });
  };

  const secret = async (hosted: JsonObject, name: string, data: { [key: string]: string }): Promise<void> => {
    const namespace = namespaceOf(hosted);
    if ((await api.get('secrets', namespace, name)) !== undefined) return;
    const encoded = Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    );
    await api.create('secrets', namespace, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name },
      data: encoded,
    });
  };

  const bringUp = async (hosted: JsonObject): Promise<void> => {
    const name = nameOf(hosted);
    const age = clock.now() - (seen.get(uidOf(hosted)) ?? clock.now());
    const domain = stringAt(objectAt(objectAt(hosted, 'spec'), 'dns'), 'baseDomain');
    const up = age >= timings.endpoint;
    const status: JsonObject = {
      conditions: timed(hosted, conditionsOf(hosted, age)),
      ...(up ? { controlPlaneEndpoint: { host: `api.${name}.${domain}`, port: 6443 } } : {}),
      ...(up ? { kubeconfig: { name: `${name}-admin-kubeconfig` } } : {}),
      ...(up ? { kubeadminPassword: { name: `${name}-kubeadmin-password` } } : {}),
    };
    if (up && !equipped.has(uidOf(hosted))) {
      const kubeconfig = [
        'apiVersion: v1',
        'kind: Config',
        `clusters: [{name: ${name}, cluster: {server: "https://api.${name}.${domain}:6443"}}]`,
        `current-context: ${name}`,
        '',
      ].join('\n');
      await secret(hosted, `${name}-admin-kubeconfig`, { kubeconfig });
      await secret(hosted, `${name}-kubeadmin-password`, { password: `password-of-${name}` });
      equipped.add(uidOf(hosted));
    }
    if (!sameJson(objectAt(hosted, 'status'), status)) await api.status('hostedclusters', hosted, status);
  };

  const takeDown = async (hosted: JsonObject): Promise<void> => {
    const since = deletedAt.get(uidOf(hosted)) ?? clock.now();
    deletedAt.set(uidOf(hosted), since);
    if (held.has(nameOf(hosted)) || clock.now() - since < timings.deletion) return;
    await api.finalizers(
      'hostedclusters',
      hosted,
      finalizersOf(hosted).filter((one) => one !== FINALIZER),
    );
  };

  const pool = async (nodePool: JsonObject): Promise<void> => {
    if (isDeleting(nodePool)) return;
    const uid = uidOf(nodePool);
    const wanted = numberAt(objectAt(nodePool, 'spec'), 'replicas');
    const { replicas } = objectAt(nodePool, 'status');
    const now = typeof replicas === 'number' ? replicas : undefined;
    if (now === undefined) {
      lastReplica.set(uid, clock.now());
      await api.status('nodepools', nodePool, { replicas: 0 });
      return;
    }
    if (now === wanted || clock.now() - (lastReplica.get(uid) ?? 0) < timings.replica) return;
    lastReplica.set(uid, clock.now());
    await api.status('nodepools', nodePool, { replicas: now + Math.sign(wanted - now) });
  };

  return {
    /** One pass over everything. */
    step: async (): Promise<void> => {
      for (const hosted of await api.list('hostedclusters', '')) {
        if (!seen.has(uidOf(hosted))) {
          seen.set(uidOf(hosted), clock.now());
          if (!isDeleting(hosted) && !finalizersOf(hosted).includes(FINALIZER)) {
            await api.finalizers('hostedclusters', hosted, [...finalizersOf(hosted), FINALIZER]);
            continue;
          }
        }
        await (isDeleting(hosted) ? takeDown(hosted) : bringUp(hosted));
      }
      for (const nodePool of await api.list('nodepools', '')) await pool(nodePool);
    },
    /** From the next pass on the HostedCluster of this name is in trouble: `Degraded` True or `Available` False. */
    afflict: (name: string, ...what: readonly Trouble[]): void => void trouble.set(name, what),
    /** Healthy again from the next pass on. */
    heal: (name: string): void => void trouble.delete(name),
    /** The HostedCluster of this name cannot be deleted until `release`. */
    hold: (name: string): void => void held.add(name),
    release: (name: string): void => void held.delete(name),
  };
};

export type PlayedHypershift = ReturnType<typeof playHypershift>;
