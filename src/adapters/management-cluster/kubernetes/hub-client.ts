import { hash } from 'node:crypto';
import { HubError, type CallOptions, type HubReport } from '../../../app/management-cluster.ts';
import type { Clock, Timers } from '../../../app/ports.ts';
import { createApi, type Api } from './api.ts';
import { checkHub, type HubNeeds } from './check.ts';
import { openConnection } from './connection.ts';
import { clusterOrderController } from './controller.ts';
import { InvalidKubeconfig, readKubeconfig } from './kubeconfig.ts';
import { orderOperations } from './orders.ts';
import type { HubOperations } from './protocol.ts';
import { createRights } from './rights.ts';
import { surroundingsOperations } from './surroundings.ts';
import { watchOrders, type OrderWatch, type WatchNote, type WatchSettings } from './watch.ts';

export type HubClientOptions = {
  readonly clock: Clock;
  readonly timers: Timers;
  /** 0 to 1, for jitter. */
  readonly random: () => number;
  readonly note: WatchNote;
  readonly watch?: WatchSettings;
};

/** One hub with the credentials of the moment, in the thread where its sockets are. */
export type HubClient = {
  /** Takes credentials over, the first or others. Throws nothing: bad ones are told by `check` and every call. */
  open(needs: HubNeeds, kubeconfig: Uint8Array): Promise<void>;
  readonly operations: HubOperations;
  watch(namespace: string): OrderWatch;
  close(): void;
};

type Connected = { readonly api: Api; readonly operations: HubOperations };

export const createHubClient = (options: HubClientOptions): HubClient => {
  const { timers, note } = options;
  const watches = new Set<OrderWatch>();
  let connected: Connected | undefined;
  let refused: InvalidKubeconfig | undefined;
  /** Of kubeconfig and needs: the same again changes nothing. */
  let digest = '';
  let last: Promise<void> = Promise.resolve();

  const replace = async (needs: HubNeeds, kubeconfig: Uint8Array): Promise<void> => {
    const given = `${JSON.stringify(needs)} ${hash('sha256', kubeconfig, 'hex')}`;
    if (given === digest) return;
    const before = connected;
    try {
      connected = await connect(needs, kubeconfig, options);
      refused = undefined;
    } catch (error) {
      if (!(error instanceof InvalidKubeconfig)) throw error;
      connected = undefined;
      refused = error;
    }
    digest = given;
    for (const watch of watches) watch.restart();
    // Calls that are under way on the old sockets end; what they wrote is looked for as after any lost answer.
    before?.api.connection.close();
  };

  const current = (): Connected => {
    if (connected !== undefined) return connected;
    // Its work waits until somebody registers other credentials, as after a 401.
    throw new HubError('unauthorized', refused?.message ?? 'the hub has no credentials yet', {
      facts: { reason: 'InvalidKubeconfig' },
    });
  };

  const invalid = (error: InvalidKubeconfig): HubReport => ({
    problems: [{ code: 'InvalidKubeconfig', message: error.message, subject: 'kubeconfig' }],
  });

  return {
    open: (needs, kubeconfig) => {
      // One after the other: the later credentials win.
      last = last.catch(() => undefined).then(() => replace(needs, kubeconfig));
      return last;
    },
    operations: {
      check: async (by) => (refused === undefined ? current().operations.check(by) : invalid(refused)),
      inventory: async (by) => current().operations.inventory(by),
      ensureTenantNamespace: async (namespace, by) =>
        current().operations.ensureTenantNamespace(namespace, by),
      readClusterOrder: async (place, by) => current().operations.readClusterOrder(place, by),
      createClusterOrder: async (manifest, by) => current().operations.createClusterOrder(manifest, by),
      patchClusterOrder: async (place, spec, by) => current().operations.patchClusterOrder(place, spec, by),
      deleteClusterOrder: async (place, by) => current().operations.deleteClusterOrder(place, by),
      getClusterOrder: async (place, by) => current().operations.getClusterOrder(place, by),
      findClusterOrders: async (namespace, id, by) =>
        current().operations.findClusterOrders(namespace, id, by),
      getHostedCluster: async (ref, by) => current().operations.getHostedCluster(ref, by),
      readSecret: async (ref, by) => current().operations.readSecret(ref, by),
      prepare: async (place, by) => current().operations.prepare(place, by),
      writeStatus: async (place, status, by) => current().operations.writeStatus(place, status, by),
      release: async (place, by) => current().operations.release(place, by),
    },
    watch: (namespace) => {
      const started = watchOrders({
        api: async () => current().api,
        namespace,
        timers,
        random: options.random,
        note,
        ...(options.watch === undefined ? {} : { settings: options.watch }),
      });
      watches.add(started);
      return {
        ...started,
        close: () => {
          watches.delete(started);
          started.close();
        },
      };
    },
    close: () => {
      for (const watch of watches) watch.close();
      watches.clear();
      connected?.api.connection.close();
      connected = undefined;
    },
  };
};

const connect = async (
  needs: HubNeeds,
  kubeconfig: Uint8Array,
  { clock, timers }: HubClientOptions,
): Promise<Connected> => {
  const access = readKubeconfig(kubeconfig);
  const connection = await openConnection(access, timers);
  const proxyPassword = access.proxyUrl === undefined ? undefined : new URL(access.proxyUrl).password;
  const api = createApi(connection, [access.token, access.keyData, proxyPassword]);
  const rights = createRights(api, () => clock.monotonicMs());
  return {
    api,
    operations: {
      check: (by: CallOptions) => checkHub(api, rights, needs, clock, by),
      ...orderOperations(api),
      ...surroundingsOperations(api, rights, needs),
      ...clusterOrderController(api, needs.namespace, () => clock.now()),
    },
  };
};
