import { setMaxListeners } from 'node:events';
import {
  CLUSTER_ORDER_UUID_LABEL,
  HubError,
  type CallOptions,
  type ClusterOrderWatchEvent,
  type HubReport,
  type ManagementCluster,
  type ObservedClusterOrder,
  type ObservedHostedCluster,
} from '../../../app/management-cluster.ts';
import type { Clock, Timers } from '../../../app/ports.ts';
import type { JsonObject } from '../../../domain/json.ts';
import {
  createInlineChannel,
  createWorkerChannel,
  EngineFailed,
  EngineNotOpen,
  type Ask,
  type EngineChannel,
  type Told,
} from './channel.ts';
import type { HubEngineOptions } from './engine.ts';
import { createHubTime } from './hub-time.ts';
import { pause, withPatience } from './patience.ts';
import { hubError, isWrite, type CallRequest, type Ref, type Tampering } from './protocol.ts';
import { givenSettings, parseSettings } from './settings.ts';

export type SimulatedHubOptions = {
  readonly hubId: string;
  /**
   * SQLite file of this hub; made when absent. Several instances, also of other processes, may use it at once.
   * `:memory:` is a hub of this instance alone that ends with it, for simulations that build hundreds.
   */
  readonly file: string;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Namespaces that exist on the hub. Default: every one does. */
  readonly namespaces?: readonly string[];
  /** Settings of every object and call (README.md), below those stored by `configure`. Default: none. */
  readonly settings?: string | { readonly [key: string]: string | number };
  /** Seed of uids and credentials of a new file. Default: random. */
  readonly seed?: string;
  /** DNS domain of the clusters. Default `sim.example`. */
  readonly baseDomain?: string;
  /** Who calls, for the journal. Default `pid <n>`. */
  readonly instance?: string;
  /** Milliseconds after which a watch looks for what other instances wrote. Default 200. */
  readonly watchPollMs?: number;
  /** True: run in this thread, for virtual time. Default false: in a worker thread. */
  readonly inline?: boolean;
  /** A worker shared with other hubs. Default: its own, ended by `close`. */
  readonly channel?: EngineChannel;
};

/** Deeds of people and programs on the hub behind our back; they reach every instance on the file. */
export type HubControl = {
  /** Replaces the hub's settings and starts counting calls anew; `{}` makes the hub healthy. */
  configure(settings: string | { readonly [key: string]: string | number }): Promise<void>;
  vanish(ref: Ref, what: 'order' | 'hosted-cluster'): Promise<void>;
  removeFinalizer(ref: Ref, finalizer: string): Promise<void>;
  /** `PRAGMA synchronous` of the connection that writes: 2 is FULL. */
  synchronous(): Promise<number>;
};

export type SimulatedHub = ManagementCluster & { readonly control: HubControl };

const WATCH_POLL_MS = 200;
/** Shortest time between two looks of a watch, however much is written. */
const WATCH_GATHER_MS = 5;
/** A watch that failed on our own side (disk, thread) is tried again after so long. */
const WATCH_RETRY_MS = 500;

/** A hub of its own in a file. Nothing is opened before the first call. */
export const createSimulatedHub = (options: SimulatedHubOptions): SimulatedHub => {
  const { timers } = options;
  const ownChannel = options.channel === undefined;
  const channel =
    options.channel ??
    (options.inline === true
      ? createInlineChannel(() => options.clock.monotonicMs())
      : createWorkerChannel());
  const number = channel.nextHub();
  const time = createHubTime(options.clock);
  const wakers = new Set<() => void>();
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  let opening: Promise<void> | undefined;

  const engineOptions: HubEngineOptions = {
    hubId: options.hubId,
    file: options.file,
    namespaces: options.namespaces ?? [],
    seed: options.seed ?? '',
    settings: readSettings(options.settings ?? {}),
    baseDomain: options.baseDomain ?? 'sim.example',
    instance: options.instance ?? `pid ${process.pid}`,
  };

  const open = (): Promise<void> => {
    const opened = channel.ask(number, { do: 'open', options: engineOptions }).then(
      () => undefined,
      (error: unknown) => {
        if (opening === opened) opening = undefined;
        throw new HubError('unavailable', `simulated hub ${options.hubId} cannot be opened`, {
          cause: error,
        });
      },
    );
    return opened;
  };

  /** Opens on first use, and anew after the thread was lost. */
  const ask = async <A extends Ask>(question: A): Promise<Told<A>> => {
    opening ??= open();
    const opened = opening;
    await opened;
    try {
      return await channel.ask(number, question);
    } catch (error) {
      if (!(error instanceof EngineNotOpen) || closing.signal.aborted) throw error;
      // The thread ended since; nothing was done, so asking once more is safe.
      if (opening === opened) opening = open();
      await opening;
      return await channel.ask(number, question);
    }
  };

  const carryOut = async <T>(request: CallRequest, call: CallOptions): Promise<T> => {
    let arrived = false;
    for (;;) {
      const meta = { now: time.now(), effectId: call.effectId, arrived };
      const answer = await ask({ do: 'call', request, meta });
      time.notBefore(answer.now);
      switch (answer.kind) {
        case 'silent':
          return await new Promise<never>(() => undefined);
        case 'late':
          await pause(timers, answer.afterMs, closing.signal, new Set());
          arrived = true;
          continue;
        case 'answer':
          if (isWrite(request.op)) wake();
          if (answer.delayMs > 0) await pause(timers, answer.delayMs, closing.signal, new Set());
          if (!answer.outcome.ok) throw hubError(answer.outcome.error);
          return answer.outcome.value as T;
      }
    }
  };

  const wake = (): void => {
    for (const waker of wakers) waker();
  };

  const call = async <T>(request: CallRequest, options_: CallOptions): Promise<T> => {
    const what = `${request.op} on simulated hub ${options.hubId}`;
    const write = isWrite(request.op);
    if (options_.signal.aborted) throw new HubError('unavailable', `${what}: given up before it was sent`);
    if (closing.signal.aborted) throw new HubError('unavailable', `${what}: the adapter is closed`);
    const { deadlineMs } = options_;
    const signals = [options_.signal, closing.signal];
    try {
      return await withPatience(carryOut<T>(request, options_), {
        timers,
        deadlineMs,
        signals,
        isWrite: write,
        what,
      });
    } catch (error) {
      if (error instanceof HubError) throw error;
      throw troubleOfOurOwn(error, write, what);
    }
  };

  /** Tried once: what keeps a mark comes back every few seconds. */
  const markCall = async <T>(verb: string, by: CallOptions, run: () => Promise<T>): Promise<T> => {
    const what = `${verb} on simulated hub ${options.hubId}`;
    if (by.signal.aborted) throw new HubError('unavailable', `${what}: given up before it was sent`);
    if (closing.signal.aborted) throw new HubError('unavailable', `${what}: the adapter is closed`);
    return run().catch((error: unknown) => {
      throw error instanceof HubError ? error : troubleOfOurOwn(error, verb === 'write mark', what);
    });
  };

  const tamper = async (deed: Tampering): Promise<void> => {
    const meta = { now: time.now(), effectId: 'tampering', arrived: true };
    const { now } = await ask({ do: 'tamper', deed, meta });
    time.notBefore(now);
    wake();
  };

  /** One watch from its list on; returns when it broke or was ended. */
  const follow = async function* (
    namespace: string,
    signal: AbortSignal,
  ): AsyncGenerator<ClusterOrderWatchEvent> {
    const watch = await ask({ do: 'watch', namespace });
    try {
      while (!signal.aborted) {
        const told = await ask({ do: 'poll', watch, now: time.now() });
        time.notBefore(told.now);
        for (const event of told.events) {
          if (signal.aborted) return;
          yield event;
        }
        // What many writes bring at once is told at once.
        await pause(timers, WATCH_GATHER_MS, signal, new Set());
        if (told.events.length > 0) continue;
        const untilNext = told.nextAt === undefined ? Number.POSITIVE_INFINITY : told.nextAt - time.now();
        const waitMs = Math.min(Math.max(1, untilNext), options.watchPollMs ?? WATCH_POLL_MS);
        await pause(timers, waitMs, signal, wakers);
      }
    } finally {
      await ask({ do: 'unwatch', watch }).catch(() => undefined);
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
        if (signal.aborted) return;
        // Lists again afterwards, as a watch does after `410 Gone`; callers hear it by the next `synced`.
        if (!(error instanceof Error)) throw error;
        await pause(timers, WATCH_RETRY_MS, signal, new Set());
      }
    }
  };

  const close = async (): Promise<void> => {
    if (closing.signal.aborted) return;
    closing.abort();
    if (opening !== undefined) await channel.ask(number, { do: 'close' }).catch(() => undefined);
    if (ownChannel) await channel.close();
  };

  return {
    hubId: options.hubId,
    simulated: true,
    createClusterOrder: (manifest, by) => call<ObservedClusterOrder>({ op: 'create', manifest }, by),
    patchClusterOrder: (ref, spec, by) => call<ObservedClusterOrder>({ op: 'patch', ref, spec }, by),
    deleteClusterOrder: (ref, by) => call<boolean>({ op: 'delete', ref }, by),
    getClusterOrder: (ref, by) => call<ObservedClusterOrder | undefined>({ op: 'get', ref }, by),
    findClusterOrders: (namespace, clusterId, by) =>
      call<readonly ObservedClusterOrder[]>({ op: 'find', namespace, clusterId }, by),
    getHostedCluster: (ref, by) =>
      call<ObservedHostedCluster | undefined>({ op: 'get-hosted-cluster', ref }, by),
    readSecret: async ({ namespace, name, key }, by) => {
      const text = await call<string | undefined>({ op: 'read-secret', ref: { namespace, name }, key }, by);
      return text === undefined ? undefined : Buffer.from(text, 'utf8');
    },
    check: (by) => checkedBy(call<unknown>({ op: 'find', namespace: 'default', clusterId: '' }, by)),
    // It has as many hosts as anybody asks for.
    inventory: async () => undefined,
    // Namespaces of a simulated hub need not be made.
    ensureTenantNamespace: async () => ({ created: false }),
    readClusterOrder: async (ref, by) => {
      const order = await call<ObservedClusterOrder | undefined>({ op: 'get', ref }, by);
      return order === undefined ? undefined : wholeObject(ref.namespace, order);
    },
    readMark: (by) => markCall('read mark', by, () => ask({ do: 'read-mark' })),
    writeMark: (mark, over, by) => markCall('write mark', by, () => ask({ do: 'write-mark', mark, over })),
    watchClusterOrders,
    close,
    control: {
      configure: (settings) => tamper({ op: 'configure', settings: readSettings(settings) }),
      vanish: (ref, what) => tamper({ op: 'vanish', ref, what }),
      removeFinalizer: (ref, finalizer) => tamper({ op: 'remove-finalizer', ref, finalizer }),
      synchronous: () => ask({ do: 'synchronous' }),
    },
  };
};

/** A call that reaches it is all there is to check of a simulated hub. */
const checkedBy = async (probe: Promise<unknown>): Promise<HubReport> => {
  try {
    await probe;
    return { problems: [], version: 'simulated', canReadNodePools: true, canReadAgents: false };
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    const code = error.kind === 'unauthorized' ? 'CredentialsRefused' : 'Unreachable';
    return { problems: [{ code, message: error.message }] };
  }
};

/** A ClusterOrder in the form in which an API server would tell it. */
const wholeObject = (namespace: string, order: ObservedClusterOrder): JsonObject =>
  JSON.parse(
    JSON.stringify({
      apiVersion: 'osac.openshift.io/v1alpha1',
      kind: 'ClusterOrder',
      metadata: {
        name: order.name,
        namespace,
        uid: order.uid,
        resourceVersion: order.resourceVersion,
        generation: order.generation,
        creationTimestamp: order.creationTimestamp,
        deletionTimestamp: order.deletionTimestamp,
        finalizers: order.finalizers,
        annotations: order.annotations,
        labels: order.clusterId === undefined ? {} : { [CLUSTER_ORDER_UUID_LABEL]: order.clusterId },
      },
      spec: order.spec,
      status: {
        phase: order.phase,
        conditions: order.conditions,
        desiredConfigVersion: order.desiredConfigVersion,
        clusterReference: order.clusterReference,
      },
    }),
  ) as JsonObject;

const readSettings = (settings: string | { readonly [key: string]: string | number }) =>
  typeof settings === 'string' ? parseSettings(settings) : givenSettings(settings);

/** SQLite result codes after which the transaction is certainly rolled back: BUSY, FULL, READONLY, CANTOPEN. */
const CERTAINLY_NOT_DONE = new Set([5, 13, 8, 14]);

/** The hub's own disk or thread failed. Only some failures leave no doubt that nothing was done. */
const troubleOfOurOwn = (error: unknown, write: boolean, what: string): HubError => {
  const sure =
    !write ||
    error instanceof EngineNotOpen ||
    (error instanceof EngineFailed && CERTAINLY_NOT_DONE.has((error.errcode ?? 0) & 0xff));
  return new HubError(sure ? 'unavailable' : 'unknown-outcome', `${what} failed`, { cause: error });
};
