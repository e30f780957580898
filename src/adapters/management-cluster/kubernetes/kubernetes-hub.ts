import { setMaxListeners } from 'node:events';
import {
  HubError,
  type CallOptions,
  type CheckOptions,
  type ClusterOrderWatchEvent,
  type HubConnection,
  type HubReport,
  type ManagementCluster,
} from '../../../app/management-cluster.ts';
import type { Timers } from '../../../app/ports.ts';
import { pause } from '../../../app/process-runner/pause.ts';
import { sameJson } from '../../../domain/json-tools.ts';
import { NotOpen, ThreadLost, type HubChannel } from './channel.ts';
import { isWrite, type ArgumentsOf, type Operation, type ResultOf } from './protocol.ts';

export type KubernetesHub = ManagementCluster & {
  readonly controller: NonNullable<ManagementCluster['controller']>;
  readonly identify: NonNullable<ManagementCluster['identify']>;
  /** Takes over what changed: other credentials are used by the next call, and running watches start anew. */
  update(connection: HubConnection): void;
};

export type KubernetesHubOptions = {
  readonly connection: HubConnection;
  readonly channel: HubChannel;
  readonly timers: Timers;
  readonly monotonicMs: () => number;
  /** The kubeconfig of the connection; undefined when it is not stored (any more). */
  readonly kubeconfigOf: (connection: HubConnection) => Promise<Uint8Array | undefined>;
};

/** How much longer than its deadline a call may take before the thread counts as hung. */
const THREAD_GRACE_MS = 5_000;
/** A watch whose thread was lost is opened again after so long. */
const WATCH_RETRY_MS = 1_000;

/** Adapter of one hub: plain data goes to the thread where its client is. Nothing is opened before the first call. */
export const createKubernetesHub = (options: KubernetesHubOptions): KubernetesHub => {
  const { channel, timers, monotonicMs } = options;
  const hubId = options.connection.id;
  const number = channel.nextHub(hubId);
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  let connection = options.connection;
  let opening: { readonly of: HubConnection; readonly done: Promise<void> } | undefined;
  let calls = 0;

  const open = async (of: HubConnection): Promise<void> => {
    const kubeconfig = await options.kubeconfigOf(of).catch((cause: unknown) => {
      throw new HubError(
        'unavailable',
        `the kubeconfig of hub ${hubId} cannot be read from the secret store`,
        {
          cause,
        },
      );
    });
    if (kubeconfig === undefined)
      throw new HubError('unauthorized', `the kubeconfig of hub ${hubId} is not in the secret store`, {
        facts: { reason: 'InvalidKubeconfig' },
      });
    const needs = {
      namespace: of.namespace,
      controller: of.controller ?? 'operator',
      tenantNamespaces: of.tenantNamespaces ?? false,
      otherNamespaces: of.otherNamespaces ?? [],
    };
    const { cluster } = of;
    const known = cluster === undefined ? needs : { ...needs, cluster };
    await channel.ask(number, { do: 'open', needs: known, kubeconfig });
  };

  const opened = (): Promise<void> => {
    if (opening?.of === connection) return opening.done;
    const done = open(connection);
    const mine = { of: connection, done };
    opening = mine;
    // Tried again by the next call.
    done.catch(() => {
      if (opening === mine) opening = undefined;
    });
    return done;
  };

  /** Opens on first use, and once more when the thread has lost the hub: nothing was done there. */
  const withOpen = async <T>(work: () => Promise<T>): Promise<T> => {
    const first = opened();
    await first;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof NotOpen) || closing.signal.aborted) throw error;
      if (opening?.done === first) opening = undefined;
      await opened();
      return work();
    }
  };

  const run = async <Op extends Operation>(
    op: Op,
    args: ArgumentsOf<Op>,
    by: CallOptions,
  ): Promise<ResultOf<Op>> => {
    const what = `${op} on hub ${hubId}`;
    if (by.signal.aborted) throw new HubError('unavailable', `${what}: given up before it was sent`);
    if (closing.signal.aborted) throw new HubError('unavailable', `${what}: the adapter is closed`);
    const startedAt = monotonicMs();
    const { effectId, deadlineMs } = by;
    let sent = false;
    const unanswered = guard(timers, by.signal, closing.signal, deadlineMs + THREAD_GRACE_MS);
    try {
      const asked = withOpen(() => {
        const left = deadlineMs - (monotonicMs() - startedAt);
        if (left <= 0 || by.signal.aborted) throw new HubError('unavailable', `${what}: too late to be sent`);
        calls += 1;
        const call = calls;
        sent = true;
        unanswered.onAbort(() => void channel.ask(number, { do: 'abort', call }).catch(() => undefined));
        return channel.ask(number, { do: 'call', op, args, effectId, deadlineMs: left, call });
      });
      // Operation and result belong together by `HubOperations`; between them is a message.
      return (await Promise.race([asked, unanswered.promise])) as ResultOf<Op>;
    } catch (error) {
      if (error instanceof HubError) throw error;
      const kind = sent && isWrite(op) && !(error instanceof NotOpen) ? 'unknown-outcome' : 'unavailable';
      throw new HubError(kind, `${what}: ${error instanceof Error ? error.message : 'failed'}`, {
        cause: error,
      });
    } finally {
      unanswered.end();
    }
  };

  const check = async ({ thorough = false, ...by }: CheckOptions): Promise<HubReport> => {
    try {
      return await run('check', [thorough], by);
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      const code = error.facts['reason'] === 'InvalidKubeconfig' ? 'InvalidKubeconfig' : 'Unreachable';
      return { problems: [{ code, message: error.message }] };
    }
  };

  const follow = async function* (
    namespace: string,
    signal: AbortSignal,
  ): AsyncGenerator<ClusterOrderWatchEvent> {
    const watch = await withOpen(() => channel.ask(number, { do: 'watch', namespace }));
    const end = (): void => {
      channel.ask(number, { do: 'unwatch', watch }).catch(() => undefined);
    };
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    try {
      while (!signal.aborted) {
        const events = await channel.ask(number, { do: 'next', watch });
        if (events === undefined) return;
        for (const event of events) {
          if (signal.aborted) return;
          yield event;
        }
      }
    } finally {
      signal.removeEventListener('abort', end);
      end();
    }
  };

  const watchClusterOrders = async function* (
    namespace: string,
    callerSignal: AbortSignal,
  ): AsyncGenerator<ClusterOrderWatchEvent> {
    const signal = AbortSignal.any([callerSignal, closing.signal]);
    while (!signal.aborted) {
      try {
        yield* follow(namespace, signal);
      } catch (error) {
        // The thread was lost, or the credentials are not there: listed anew when it works again.
        if (!(error instanceof HubError || error instanceof NotOpen || error instanceof ThreadLost))
          throw error;
      }
      await pause(timers, WATCH_RETRY_MS, signal);
    }
  };

  return {
    hubId,
    simulated: false,
    update: (next) => {
      const before = connection;
      if (next.revision < before.revision || sameJson(useOf(before), useOf(next))) return;
      connection = next;
      // Watches do not call: without this they would go on with credentials that are to be thrown away.
      if (opening !== undefined) opened().catch(() => undefined);
    },
    check,
    identify: (by) => run('identify', [], by),
    inventory: (by) => run('inventory', [], by),
    ensureTenantNamespace: (namespace, by) => run('ensureTenantNamespace', [namespace], by),
    readClusterOrder: (place, by) => run('readClusterOrder', [place], by),
    createClusterOrder: (manifest, by) => run('createClusterOrder', [manifest], by),
    patchClusterOrder: (ref, spec, by) => run('patchClusterOrder', [ref, spec], by),
    deleteClusterOrder: (ref, by) => run('deleteClusterOrder', [ref], by),
    getClusterOrder: (ref, by) => run('getClusterOrder', [ref], by),
    findClusterOrders: (namespace, clusterId, by) => run('findClusterOrders', [namespace, clusterId], by),
    getHostedCluster: (ref, by) => run('getHostedCluster', [ref], by),
    readSecret: (ref, by) => run('readSecret', [ref], by),
    readMark: (by) => run('readMark', [], by),
    writeMark: (mark, over, by) => run('writeMark', [mark, over], by),
    controller: {
      prepare: (place, by) => run('prepare', [place], by),
      writeStatus: (place, status, by) => run('writeStatus', [place, status], by),
      release: (place, by) => run('release', [place], by),
    },
    watchClusterOrders,
    close: async () => {
      if (closing.signal.aborted) return;
      closing.abort();
      await channel.ask(number, { do: 'close' }).catch(() => undefined);
    },
  };
};

/** What of a connection decides how its hub is called; every look at a hub makes another revision. */
const useOf = (connection: HubConnection) => ({
  namespace: connection.namespace,
  tenant: connection.tenant,
  kubeconfig: connection.kubeconfig,
  controller: connection.controller,
  tenantNamespaces: connection.tenantNamespaces,
  otherNamespaces: connection.otherNamespaces,
  cluster: connection.cluster,
});

/** Ends the wait for a thread that does not answer; an abort is passed on, and answered by the thread. */
const guard = (timers: Timers, caller: AbortSignal, closing: AbortSignal, ms: number) => {
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => undefined);
  let abort = (): void => undefined;
  const onAbort = (): void => abort();
  const onClose = (): void => late.reject(new ThreadLost('the adapter was closed'));
  const cancel = timers.after(ms, () => late.reject(new ThreadLost('the thread of the hub does not answer')));
  caller.addEventListener('abort', onAbort, { once: true });
  closing.addEventListener('abort', onClose, { once: true });
  return {
    promise: late.promise,
    onAbort: (run: () => void): void => {
      abort = run;
    },
    end: (): void => {
      cancel();
      caller.removeEventListener('abort', onAbort);
      closing.removeEventListener('abort', onClose);
    },
  };
};
