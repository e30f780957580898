import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, numberAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import {
  INFRASTRUCTURE,
  ORDER_LABEL,
  PREFIX,
  finalizersOf,
  isDeleting,
  nameOf,
  namespaceOf,
  type KubeApi,
  type Plural,
} from './api.ts';
import type { PlayClock } from './clock.ts';

/** Milliseconds from the start of a playbook (OSAC's operator). */
export type AnsibleTimings = {
  readonly finalizers: number;
  readonly hostedCluster: number;
  readonly endpoints: number;
  /** Earliest end of a create playbook. */
  readonly created: number;
  /** When the delete playbook deletes the HostedCluster. */
  readonly teardown: number;
  /** Earliest end of a delete playbook. */
  readonly removed: number;
};

export const ANSIBLE_TIMINGS: AnsibleTimings = {
  finalizers: 100,
  hostedCluster: 120,
  endpoints: 300,
  created: 4600,
  teardown: 20,
  removed: 3000,
};

export type PlaybookResult = 'successful' | 'failed' | 'error' | 'canceled';

export type PlaybookRun = {
  readonly kind: 'create' | 'delete';
  /** `undefined` while it runs. */
  result(): PlaybookResult | undefined;
  traceback(): string;
  cancel(): void;
};

/** How a run goes wrong: it ends with `result` after so many milliseconds, whatever it has done until then. */
export type PlaybookFault = {
  readonly result: PlaybookResult;
  readonly afterMs: number;
  readonly traceback?: string;
  /** It does not touch the cluster at all. Default false. */
  readonly idle?: boolean;
};

type Step = { readonly at: number; done: boolean; run(): Promise<boolean> };

/** Plays the playbooks of OSAC's Ansible content: what they create, annotate, hold and remove on a hub. */
export const playAnsible = (api: KubeApi, clock: PlayClock, timings: AnsibleTimings, baseDomain: string) => {
  const runs = new Set<{ step(): Promise<void> }>();
  const faults: { kind: 'create' | 'delete'; fault: PlaybookFault }[] = [];
  const kept = new Set<string>();

  const hold = async (plural: Plural, namespace: string, name: string): Promise<boolean> => {
    const object = await api.get(plural, namespace, name);
    if (object === undefined) return plural === 'clusterorders';
    const finalizers = finalizersOf(object);
    if (finalizers.includes(INFRASTRUCTURE) || isDeleting(object)) return true;
    await api.finalizers(plural, object, [...finalizers, INFRASTRUCTURE]);
    return true;
  };

  const letGo = async (plural: Plural, namespace: string, name: string): Promise<void> => {
    if (kept.has(`${plural}/${name}`)) return;
    const object = await api.get(plural, namespace, name);
    if (object === undefined || !finalizersOf(object).includes(INFRASTRUCTURE)) return;
    await api.finalizers(
      plural,
      object,
      finalizersOf(object).filter((one) => one !== INFRASTRUCTURE),
    );
  };

  const createSteps = (order: JsonObject): Omit<Step, 'done'>[] => {
    const [name, namespace] = [nameOf(order), namespaceOf(order)];
    const place = `${namespace}-${name}`;
    return [
      {
        at: timings.finalizers,
        run: async () =>
          (await hold('clusterorders', namespace, name)) && (await hold('namespaces', '', place)),
      },
      {
        at: timings.hostedCluster,
        run: async () => {
          if ((await api.get('namespaces', '', place)) === undefined) return false;
          await ensureHosted(order, place);
          return true;
        },
      },
      {
        at: timings.endpoints,
        run: async () => {
          const annotations = {
            [`${PREFIX}api-endpoint`]: '10.9.0.5',
            [`${PREFIX}ingress-endpoint`]: '10.9.0.6',
          };
          if ((await api.get('clusterorders', namespace, name)) !== undefined) {
            await api.merge('clusterorders', namespace, name, { metadata: { annotations } });
          }
          return true;
        },
      },
      { at: timings.created, run: () => Promise.resolve(true) },
    ];
  };

  const ensureHosted = async (order: JsonObject, place: string): Promise<void> => {
    const name = nameOf(order);
    const spec = objectAt(order, 'spec');
    const labels = { [ORDER_LABEL]: name };
    if ((await api.get('hostedclusters', place, name)) === undefined) {
      await api.create('hostedclusters', place, {
        apiVersion: 'hypershift.openshift.io/v1beta1',
        kind: 'HostedCluster',
        metadata: {
          name,
          namespace: place,
          labels: { ...labels, 'cluster.open-cluster-management.io/clusterset': 'default' },
        },
        spec: {
          release: { image: stringAt(spec, 'releaseImage') },
          dns: { baseDomain },
          infraID: name,
          platform: { type: 'Agent', agent: { agentNamespace: 'hardware-inventory' } },
        },
      });
    }
    await ensurePools(name, place, spec);
  };

  /** Pools of duplicate classes collapse; those no longer asked for go. */
  const ensurePools = async (name: string, place: string, spec: JsonObject): Promise<void> => {
    const wanted = new Map(requestsOf(spec).map((one) => [one.resourceClass, one.numberOfNodes]));
    const existing = await api.list('nodepools', place, `${ORDER_LABEL}=${name}`);
    for (const pool of existing) {
      const resourceClass = stringAt(
        objectAt(objectAt(pool, 'metadata'), 'labels'),
        `${PREFIX}resource_class`,
      );
      const replicas = wanted.get(resourceClass);
      wanted.delete(resourceClass);
      if (replicas === undefined) await api.remove('nodepools', place, nameOf(pool));
      else if (numberAt(objectAt(pool, 'spec'), 'replicas') !== replicas) {
        await api.merge('nodepools', place, nameOf(pool), { spec: { replicas } });
      }
    }
    for (const [resourceClass, replicas] of wanted) {
      const labels = { [ORDER_LABEL]: name, [`${PREFIX}resource_class`]: resourceClass };
      await api.create('nodepools', place, {
        apiVersion: 'hypershift.openshift.io/v1beta1',
        kind: 'NodePool',
        metadata: { name: `nodepool-${name}-${resourceClass}`, namespace: place, labels },
        spec: { clusterName: name, replicas, management: { autoRepair: false, upgradeType: 'InPlace' } },
      });
    }
  };

  const deleteSteps = (order: JsonObject): Omit<Step, 'done'>[] => {
    const [name, namespace] = [nameOf(order), namespaceOf(order)];
    const place = `${namespace}-${name}`;
    return [
      {
        at: timings.teardown,
        run: async () => {
          for (const pool of await api.list('nodepools', place, `${ORDER_LABEL}=${name}`)) {
            await api.remove('nodepools', place, nameOf(pool));
          }
          await api.remove('hostedclusters', place, name);
          return true;
        },
      },
      { at: timings.teardown, run: async () => (await api.get('hostedclusters', place, name)) === undefined },
      {
        at: timings.teardown,
        run: async () => {
          await letGo('clusterorders', namespace, name);
          await letGo('namespaces', '', place);
          return true;
        },
      },
      { at: timings.removed, run: () => Promise.resolve(true) },
    ];
  };

  return {
    /** Starts a playbook with the ClusterOrder as it was at the launch. */
    start: (kind: 'create' | 'delete', order: JsonObject): PlaybookRun => {
      const begun = clock.now();
      const steps = (kind === 'create' ? createSteps(order) : deleteSteps(order)).map((one) => ({
        ...one,
        done: false,
      }));
      const index = faults.findIndex((one) => one.kind === kind);
      const fault = index === -1 ? undefined : faults.splice(index, 1)[0]?.fault;
      let result: PlaybookResult | undefined;
      let traceback = '';
      const run = {
        step: async (): Promise<void> => {
          const age = clock.now() - begun;
          if (fault !== undefined && age >= fault.afterMs) {
            [result, traceback] = [fault.result, fault.traceback ?? ''];
          }
          for (const step of fault?.idle === true ? [] : steps) {
            if (result !== undefined || step.at > age) break;
            if (step.done) continue;
            step.done = await step.run();
            if (!step.done) break;
          }
          if (result === undefined && steps.every(({ done }) => done)) result = 'successful';
          if (result !== undefined) runs.delete(run);
        },
      };
      runs.add(run);
      return {
        kind,
        result: () => result,
        traceback: () => traceback,
        cancel: () => {
          result ??= 'canceled';
          runs.delete(run);
        },
      };
    },
    /** One pass over the running playbooks. */
    step: async (): Promise<void> => {
      for (const run of runs) await run.step();
    },
    /** The next playbook of this kind goes wrong. */
    failNext: (kind: 'create' | 'delete', fault: PlaybookFault): void => void faults.push({ kind, fault }),
    /** The delete playbook leaves `infrastructure` on this object (OSAC's operator), until `release`. */
    keepFinalizer: (plural: 'clusterorders' | 'namespaces', name: string): void =>
      void kept.add(`${plural}/${name}`),
    release: (plural: 'clusterorders' | 'namespaces', name: string): void =>
      void kept.delete(`${plural}/${name}`),
    /** Removes `infrastructure` by hand, as an administrator would. */
    letGo,
  };
};

export type PlayedAnsible = ReturnType<typeof playAnsible>;

export type NodeRequest = { readonly resourceClass: string; readonly numberOfNodes: number };

export const requestsOf = (spec: JsonObject): NodeRequest[] => {
  const { nodeRequests } = spec;
  return (Array.isArray(nodeRequests) ? (nodeRequests as JsonValue[]).filter(isObject) : []).map((one) => ({
    resourceClass: stringAt(one, 'resourceClass'),
    numberOfNodes: numberAt(one, 'numberOfNodes'),
  }));
};
