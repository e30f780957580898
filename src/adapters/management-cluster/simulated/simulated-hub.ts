import { setMaxListeners } from 'node:events';
import {
  HubError,
  type CallOptions,
  type HubReport,
  type ManagementCluster,
} from '../../../app/hubs/management-cluster.ts';
import { duplexLine } from '../../../app/consoles/duplex-line.ts';
import type { Clock, Timers } from '../../../app/ports.ts';
import { pause } from '../../../app/process-runner/pause.ts';
import { isOwned } from '../../../domain/hub-objects.ts';
import {
  apiVersionOf,
  type HubObject,
  type HubObjectEvent,
  type ObjectPlace,
  type OwnedObject,
  type OwnedShown,
} from '../../../domain/hubs/hub-object.ts';
import { SECRET } from '../../../domain/hubs/hub-objects.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { certainlyNotDone, EngineNotOpen } from '../../simulation/channel.ts';
import { createFarTime } from '../../simulation/far-time.ts';
import { withPatience } from '../../simulation/patience.ts';
import type { Behaviour } from './behaviours/behaviour.ts';
import {
  createInlineChannel,
  createWorkerChannel,
  type Ask,
  type EngineChannel,
  type Told,
} from './channel.ts';
import type { HubEngineOptions } from './engine.ts';
import { hubError, isWrite, type CallRequest, type Tampering } from './protocol.ts';
import { serialPrompt } from './consoles/serial.ts';
import { vncServer } from './consoles/vnc.ts';
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
  /** Milliseconds after which a watch looks for what other instances wrote; four times as many at rest. Default 1,000. */
  readonly watchPollMs?: number;
  /** True: run in this thread, for virtual time. Default false: in a worker thread. */
  readonly inline?: boolean;
  /** Kinds that it knows; only inline. Default: all declared ones. */
  readonly behaviours?: readonly Behaviour[];
  /** A worker shared with other hubs. Default: its own, ended by `close`. */
  readonly channel?: EngineChannel;
};

/** Deeds of people and programs on the hub behind our back; they reach every instance on the file. */
type HubControl = {
  /** Replaces the hub's settings and starts counting calls anew; `{}` makes the hub healthy. */
  configure(settings: string | { readonly [key: string]: string | number }): Promise<void>;
  /** `what`: one beside it disappears, and not the object itself. */
  vanish(kind: OwnedObject, ref: ObjectPlace, what?: HubObject): Promise<void>;
  removeFinalizer(kind: OwnedObject, ref: ObjectPlace, finalizer: string): Promise<void>;
  /** `PRAGMA synchronous` of the connection that writes: 2 is FULL. */
  synchronous(): Promise<number>;
};

export type SimulatedHub = ManagementCluster & { readonly control: HubControl };

const WATCH_POLL_MS = 1_000;
/** Looks of a watch that find nothing come this much later in the end. */
const POLL_AT_REST = 4;
/** Shortest time between two looks of a watch, however much is written. */
const WATCH_GATHER_MS = 50;
/** Objects that one call compares: the thread of the hubs has others to answer. */
const DIGESTS_AT_ONCE = 50;
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
  const number = channel.next();
  const time = createFarTime(options.clock);
  const watchers = new Set<Watcher>();
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
    ...(options.behaviours === undefined ? {} : { behaviours: options.behaviours }),
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
          await pause(timers, answer.afterMs, closing.signal);
          arrived = true;
          continue;
        case 'answer':
          if (isWrite(request.op)) wake(request.kind);
          if (answer.delayMs > 0) await pause(timers, answer.delayMs, closing.signal);
          if (!answer.outcome.ok) throw hubError(answer.outcome.error);
          return answer.outcome.value as T;
      }
    }
  };

  /** This instance has written an object of that kind; undefined: something of any kind changed. */
  const wake = (kind?: string): void => {
    for (const watcher of watchers) if (kind === undefined || watcher.kind === kind) watcher.wake();
  };

  /** For so long, or until it is woken; at once when that was so since its last look. */
  const rest = (watcher: Watcher, ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (watcher.woken) return resolve();
      const cancel = timers.after(ms, resolve);
      watcher.stir = () => {
        cancel();
        resolve();
      };
    });

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
        failure: (reason) => new HubError(write ? 'unknown-outcome' : 'unavailable', `${what}: ${reason}`),
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
    { kind }: OwnedObject,
    namespace: string,
    signal: AbortSignal,
  ): AsyncGenerator<HubObjectEvent> {
    const watch = await ask({ do: 'watch', kind, namespace });
    const watcher = createWatcher(kind);
    watchers.add(watcher);
    signal.addEventListener('abort', watcher.wake);
    const pollMs = options.watchPollMs ?? WATCH_POLL_MS;
    let waitMs = pollMs;
    try {
      while (!signal.aborted) {
        watcher.woken = false;
        const told = await ask({ do: 'poll', watch, now: time.now() });
        time.notBefore(told.now);
        for (const event of told.events) {
          if (signal.aborted) return;
          yield event;
        }
        // What many writes bring at once is told at once.
        await pause(timers, WATCH_GATHER_MS, signal);
        const untilNext = (told.nextAt ?? Infinity) - time.now();
        waitMs = told.down || told.events.length > 0 ? pollMs : Math.min(2 * waitMs, POLL_AT_REST * pollMs);
        await rest(watcher, Math.min(Math.max(1, untilNext), waitMs));
      }
    } finally {
      watchers.delete(watcher);
      signal.removeEventListener('abort', watcher.wake);
      await ask({ do: 'unwatch', watch }).catch(() => undefined);
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
        if (signal.aborted) return;
        // Lists again afterwards, as a watch does after `410 Gone`; callers hear it by the next `synced`.
        if (!(error instanceof Error)) throw error;
        await pause(timers, WATCH_RETRY_MS, signal);
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
    create: ({ kind }, manifest, by) => call({ op: 'create', kind, manifest }, by),
    patch: ({ kind }, ref, spec, by) => call({ op: 'patch', kind, ref, spec }, by),
    delete: ({ kind }, ref, by) => call({ op: 'delete', kind, ref }, by),
    get: ({ kind }, ref, by) => call({ op: 'get', kind, ref }, by),
    read: async (kind, ref, by) => {
      const shown = await call<OwnedShown | undefined>({ op: 'get', kind: kind.kind, ref }, by);
      return shown === undefined ? undefined : wholeObject(kind, shown);
    },
    find: ({ kind }, namespace, id, by) => call({ op: 'find', kind, namespace, id }, by),
    digests: async ({ kind, observed }, looks, by) => {
      const found: (string | undefined)[] = [];
      const beside = observed === undefined ? {} : { beside: observed.beside.kind };
      for (let at = 0; at < looks.length; at += DIGESTS_AT_ONCE) {
        const some = looks.slice(at, at + DIGESTS_AT_ONCE);
        const told = await call<(string | null)[]>({ op: 'digests', kind, looks: some, ...beside }, by);
        found.push(...told.map((digest) => digest ?? undefined));
      }
      return found;
    },
    readSecret: async ({ key, ...ref }, by) => {
      const text = await call<string | undefined>({ op: 'read-secret', kind: SECRET.kind, ref, key }, by);
      return text === undefined ? undefined : Buffer.from(text, 'utf8');
    },
    check: (by) => checkedBy(call<unknown>({ op: 'check', kind: '' }, by)),
    // It has as many hosts as anybody asks for.
    inventory: async () => undefined,
    // Namespaces of a simulated hub need not be made.
    ensureTenantNamespace: async () => ({ created: false }),
    removeTenantNamespace: async () => ({ existed: false }),
    readMark: (by) => markCall('read mark', by, () => ask({ do: 'read-mark' })),
    writeMark: (mark, over, by) => markCall('write mark', by, () => ask({ do: 'write-mark', mark, over })),
    watch,
    openConsole: async ({ kind }, place, type, by) => {
      const shown = await call<OwnedShown | undefined>({ op: 'get', kind, ref: place }, by);
      // A machine that does not run has nobody at the other end.
      if (shown === undefined || !('phase' in shown) || shown.phase !== 'Running')
        throw new HubError('not-found', `no running machine ${place.name} on simulated hub ${options.hubId}`);
      const machine = { name: place.name, now: time.now };
      const stream = type === 'serial' ? serialPrompt(machine) : vncServer(machine);
      return { ...duplexLine(stream), close: () => stream.destroy() };
    },
    close,
    control: {
      configure: (settings) => tamper({ op: 'configure', settings: readSettings(settings) }),
      vanish: ({ kind }, ref, what) => tamper({ op: 'vanish', kind, ref, what: what?.kind ?? kind }),
      removeFinalizer: ({ kind }, ref, finalizer) => tamper({ op: 'remove-finalizer', kind, ref, finalizer }),
      synchronous: () => ask({ do: 'synchronous' }),
    },
  };
};

/** One watch between its looks. */
type Watcher = {
  readonly kind: string;
  woken: boolean;
  /** Ends its rest. */
  stir: () => void;
  readonly wake: () => void;
};
const createWatcher = (kind: string): Watcher => {
  const watcher: Watcher = {
    kind,
    woken: false,
    stir: () => undefined,
    wake: () => {
      watcher.woken = true;
      watcher.stir();
    },
  };
  return watcher;
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

/** In the form in which an API server would tell it. */
const wholeObject = (kind: HubObject, shown: OwnedShown): JsonObject => {
  const { name, namespace, uid, id, resourceVersion, generation, creationTimestamp, ...rest } = shown;
  const { deletionTimestamp, finalizers, annotations, spec, ...status } = rest;
  const labels = id === undefined || !isOwned(kind) ? {} : { [kind.idLabel]: id };
  const times = { generation, creationTimestamp, deletionTimestamp };
  const metadata = { name, namespace, uid, resourceVersion, ...times, finalizers, annotations, labels };
  return JSON.parse(
    JSON.stringify({ apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, spec, status }),
  ) as JsonObject;
};

const readSettings = (settings: string | { readonly [key: string]: string | number }) =>
  typeof settings === 'string' ? parseSettings(settings) : givenSettings(settings);

/** The hub's own disk or thread failed. Only some failures leave no doubt that nothing was done. */
const troubleOfOurOwn = (error: unknown, write: boolean, what: string): HubError => {
  const sure = !write || certainlyNotDone(error);
  return new HubError(sure ? 'unavailable' : 'unknown-outcome', `${what} failed`, { cause: error });
};
