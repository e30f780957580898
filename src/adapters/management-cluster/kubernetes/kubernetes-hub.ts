import { setMaxListeners } from 'node:events';
import {
  HubError,
  isForbidden,
  type CallOptions,
  type CheckOptions,
  type HubController,
  type HubConnection,
  type HubReport,
  type ManagementCluster,
} from '../../../app/hubs/management-cluster.ts';
import type { HubObjectEvent, OwnedObject, OwnedShown } from '../../../domain/hubs/hub-object.ts';
import type { Timers } from '../../../app/ports.ts';
import { pause } from '../../../app/process-runner/pause.ts';
import { sameJson } from '../../../domain/json-tools.ts';
import { NotOpen, ThreadLost, type HubChannel } from './channel.ts';
import { openHubConsole } from './console.ts';
import { readKubeconfig } from './kubeconfig.ts';
import { isKinded, isWrite, type HubOperations, type Operation } from './protocol.ts';

export type KubernetesHub = ManagementCluster & {
  readonly controller: HubController;
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

  const run = async (op: Operation, args: readonly unknown[], by: CallOptions): Promise<unknown> => {
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
      return await Promise.race([asked, unanswered.promise]);
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
      return (await run('check', [thorough], by)) as HubReport;
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      const code = error.facts['reason'] === 'InvalidKubeconfig' ? 'InvalidKubeconfig' : 'Unreachable';
      return { problems: [{ code, message: error.message }] };
    }
  };

  /** An operation of the thread: of a declared kind its word alone is sent. */
  const remote = <Op extends Operation>(op: Op): HubOperations[Op] =>
    // Operation, arguments and result belong together by `HubOperations`; between them is a message.
    ((...all: readonly unknown[]) => {
      const [first, ...others] = all.slice(0, -1);
      const args = isKinded(op) ? [(first as OwnedObject).kind, ...others] : all.slice(0, -1);
      return run(op, args, all.at(-1) as CallOptions);
    }) as HubOperations[Op];

  const follow = async function* (
    kind: OwnedObject,
    namespace: string,
    signal: AbortSignal,
  ): AsyncGenerator<HubObjectEvent> {
    const watch = await withOpen(() => channel.ask(number, { do: 'watch', kind: kind.kind, namespace }));
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

  const watch = async function* <Shown extends OwnedShown>(
    kind: OwnedObject<object, Shown>,
    namespace: string,
    callerSignal: AbortSignal,
  ): AsyncGenerator<HubObjectEvent<Shown>> {
    const signal = AbortSignal.any([callerSignal, closing.signal]);
    while (!signal.aborted) {
      try {
        yield* follow(kind, namespace, signal) as AsyncGenerator<HubObjectEvent<Shown>>;
      } catch (error) {
        // The thread was lost, or the credentials are not there: listed anew when it works again.
        if (
          isForbidden(error) ||
          !(error instanceof HubError || error instanceof NotOpen || error instanceof ThreadLost)
        )
          throw error;
      }
      await pause(timers, WATCH_RETRY_MS, signal);
    }
  };

  const openConsole: ManagementCluster['openConsole'] = async (kind, place, type, by) => {
    // In the other thread, which knows the cluster: a console of another cluster's machine is nobody's.
    const object = await run('get', [kind.kind, place], by);
    if (object === undefined)
      throw new HubError('not-found', `no ${kind.kind} ${place.name} on hub ${hubId}`);
    const kubeconfig = await options.kubeconfigOf(connection);
    if (kubeconfig === undefined)
      throw new HubError('unauthorized', `the kubeconfig of hub ${hubId} is not in the secret store`);
    return openHubConsole(readKubeconfig(kubeconfig), kind, place, type, by, timers);
  };

  return {
    hubId,
    simulated: false,
    openConsole,
    update: (next) => {
      const before = connection;
      if (next.revision < before.revision || sameJson(useOf(before), useOf(next))) return;
      connection = next;
      // Watches do not call: without this they would go on with credentials that are to be thrown away.
      if (opening !== undefined) opened().catch(() => undefined);
    },
    check,
    identify: remote('identify'),
    inventory: remote('inventory'),
    ensureTenantNamespace: remote('ensureTenantNamespace'),
    removeTenantNamespace: remote('removeTenantNamespace'),
    create: remote('create'),
    patch: remote('patch'),
    delete: remote('delete'),
    get: remote('get'),
    read: remote('read'),
    find: remote('find'),
    digests: remote('digests'),
    readSecret: remote('readSecret'),
    readMark: remote('readMark'),
    writeMark: remote('writeMark'),
    controller: {
      prepare: remote('prepare'),
      writeStatus: remote('writeStatus'),
      release: remote('release'),
    },
    watch,
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
