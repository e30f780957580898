import type { JsonObject } from '../../../src/domain/json.ts';
import { AAP_TIMINGS, playAap, type AapTimings, type Automation } from './aap.ts';
import { agent } from './agents.ts';
import { ANSIBLE_TIMINGS, playAnsible, type AnsibleTimings } from './ansible.ts';
import { kubeApi, type KubeCall } from './api.ts';
import { wallClock, type PlayClock } from './clock.ts';
import { HYPERSHIFT_TIMINGS, playHypershift, type HypershiftTimings } from './hypershift.ts';
import { playOperator } from './operator.ts';
import { playTenants } from './tenants.ts';

export type HubPlayOptions = {
  readonly call: KubeCall;
  /** Namespace of the ClusterOrders; default `osac-hub`. */
  readonly namespace?: string;
  readonly agentNamespace?: string;
  /** Default: the wall clock. A manual one makes every step exact. */
  readonly clock?: PlayClock;
  readonly baseDomain?: string;
  /** All times of the players are multiplied by this; 0 makes everything due at once. Default 1, as recorded. */
  readonly pace?: number;
  readonly aap?: Partial<AapTimings>;
  readonly ansible?: Partial<AnsibleTimings>;
  readonly hypershift?: Partial<HypershiftTimings>;
  /** Who runs the operator's jobs; default the played AAP. */
  readonly automation?: Automation;
  /** False: nobody reconciles ClusterOrders (`controller: ledger`, or an operator that is down). Default true. */
  readonly operator?: boolean;
};

export type PlayedHub = ReturnType<typeof playHub>;

/**
 * Everything that lives on a hub beside the API server: operator, AAP, Ansible, HyperShift, hosts. Driven by hand
 * (`step`, `settle`) or by a timer (`start`).
 */
export const playHub = (options: HubPlayOptions) => {
  const { call, clock = wallClock, pace = 1, agentNamespace = 'hardware-inventory' } = options;
  const namespace = options.namespace ?? 'osac-hub';
  const api = kubeApi(call);
  const ansible = playAnsible(
    api,
    clock,
    paced({ ...ANSIBLE_TIMINGS, ...options.ansible }, pace),
    options.baseDomain ?? 'bench.example',
  );
  const aap = playAap(ansible, clock, paced({ ...AAP_TIMINGS, ...options.aap }, pace));
  const hypershift = playHypershift(
    api,
    clock,
    paced({ ...HYPERSHIFT_TIMINGS, ...options.hypershift }, pace),
  );
  const operator = playOperator(api, options.automation ?? aap.automation, clock, {
    namespace,
    agentNamespace,
  });
  const tenants = playTenants(api, namespace);
  let operating = options.operator ?? true;
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> | undefined;
  let failure: unknown;

  /** One pass of everybody; true when somebody wrote something. */
  const step = async (): Promise<boolean> => {
    const before = api.writes();
    if (operating) await operator.step();
    if (operating) await tenants();
    aap.step();
    await ansible.step();
    await hypershift.step();
    return api.writes() !== before;
  };

  return {
    api,
    operator,
    aap,
    ansible,
    hypershift,
    step,
    /** Steps until a whole pass writes nothing; at most `limit` passes. */
    settle: async (limit = 40): Promise<void> => {
      for (let pass = 0; pass < limit; pass += 1) if (!(await step())) return;
    },
    /** The operator process dies, or comes back. */
    stopOperator: (): void => void (operating = false),
    startOperator: (): void => void (operating = true),
    /** What the operator needs before any order: its ClusterRole for the hub account, and hosts. */
    prepare: async (hosts: { readonly [resourceClass: string]: number } = {}): Promise<void> => {
      await call('POST', '/apis/rbac.authorization.k8s.io/v1/clusterroles', {
        body: {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'ClusterRole',
          metadata: { name: `${namespace}-hub-access-hosted-clusters` },
          rules: [
            { apiGroups: ['hypershift.openshift.io'], resources: ['hostedclusters'], verbs: ['get'] },
            { apiGroups: [''], resources: ['secrets'], verbs: ['get'] },
          ],
        },
      });
      await call('POST', '/api/v1/namespaces', {
        body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: agentNamespace } },
      });
      for (const [resourceClass, count] of Object.entries(hosts)) {
        for (let index = 0; index < count; index += 1)
          await addAgent(api, agentNamespace, resourceClass, index);
      }
    },
    /** Steps every so many milliseconds of wall time until `stop`. */
    start: (everyMs = 50): void => {
      const turn = (): void => {
        running = step()
          .then(() => void (failure = undefined))
          .catch((error: unknown) => void (failure = error))
          .finally(() => {
            if (timer !== undefined) timer = setTimeout(turn, everyMs);
          });
      };
      timer = setTimeout(turn, 0);
    },
    stop: async (): Promise<void> => {
      clearTimeout(timer);
      timer = undefined;
      await running;
    },
    /** Why the last pass of the timer broke off: the API server was away, or a bug here; undefined: it did not. */
    failure: (): unknown => failure,
  };
};

const addAgent = async (
  api: ReturnType<typeof kubeApi>,
  namespace: string,
  resourceClass: string,
  index: number,
): Promise<void> => {
  const body: JsonObject = agent(namespace, resourceClass, index);
  const made = await api.create('agents', namespace, body);
  await api.status('agents', made, { debugInfo: { state: 'known-unbound' } });
};

const paced = <T extends { readonly [name: string]: number }>(timings: T, pace: number): T =>
  Object.fromEntries(Object.entries(timings).map(([name, ms]) => [name, ms * pace])) as T;
