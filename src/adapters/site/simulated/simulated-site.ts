import { setMaxListeners } from 'node:events';
import type { CallOptions } from '../../../app/hubs/management-cluster.ts';
import type { Clock, Timers } from '../../../app/ports.ts';
import { pause } from '../../../app/process-runner/pause.ts';
import { SiteError, type OwnerMark, type Site } from '../../../app/site/ports.ts';
import { certainlyNotDone, EngineNotOpen } from '../../simulation/channel.ts';
import { createFarTime } from '../../simulation/far-time.ts';
import { withPatience } from '../../simulation/patience.ts';
import { createInlineSiteChannel, createSiteChannel, type SiteAsk, type SiteChannel } from './channel.ts';
import type { SiteAnswer } from './engine.ts';
import { scopedSettings, type GivenScopes } from './settings.ts';

export type SimulatedSiteOptions = {
  readonly zone: string;
  /**
   * SQLite file of this site; made when absent. Several instances, also of other processes, may use it at once.
   * `:memory:` is a site of this instance alone that ends with it.
   */
  readonly file: string;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Settings (README.md) below those stored by `configure`. Default: none. */
  readonly settings?: GivenScopes;
  /** Who calls, for the journal. Default `pid <n>`. */
  readonly instance?: string;
  /** True: run in this thread, for virtual time. Default false: in a worker thread. */
  readonly inline?: boolean;
  /** A worker shared with other sites. Default: its own, ended by `close`. */
  readonly channel?: SiteChannel;
};

export type SimulatedSite = Site & {
  /** Deeds of people behind our back; they reach every instance on the file. */
  readonly control: {
    /** Replaces the site's settings and starts counting calls anew; `{}` makes the site healthy. */
    configure(settings: GivenScopes): Promise<void>;
    /** `PRAGMA synchronous` of the connection that writes: 2 is FULL. */
    synchronous(): Promise<number>;
  };
  close(): Promise<void>;
};

/** A site of its own in a file. Nothing is opened before the first call. */
export const createSimulatedSite = (options: SimulatedSiteOptions): SimulatedSite => {
  const { zone, timers, clock } = options;
  const ownChannel = options.channel === undefined;
  const channel =
    options.channel ??
    (options.inline === true ? createInlineSiteChannel(() => clock.monotonicMs()) : createSiteChannel());
  const number = channel.next();
  const time = createFarTime(clock);
  const closing = new AbortController();
  setMaxListeners(0, closing.signal);
  let opening: Promise<void> | undefined;

  const engineOptions = {
    zone,
    file: options.file,
    settings: scopedSettings(options.settings ?? {}),
    instance: options.instance ?? `pid ${process.pid}`,
  };

  const open = (): Promise<void> => {
    const opened = channel.ask(number, { do: 'open', options: engineOptions }).then(
      () => undefined,
      (error: unknown) => {
        if (opening === opened) opening = undefined;
        const why = error instanceof Error ? `: ${error.message}` : '';
        throw new SiteError('unavailable', `the simulated site of zone ${zone} cannot be opened${why}`);
      },
    );
    return opened;
  };

  /** Opens on first use, and anew after the thread was lost. */
  const ask = async (question: SiteAsk): Promise<unknown> => {
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

  type Request = { readonly operation: string; readonly args: object; readonly owner?: OwnerMark };

  const carryOut = async (request: Request, effectId: string): Promise<unknown> => {
    let setOut: number | undefined;
    for (;;) {
      const call = { ...request, effectId, now: time.now(), ...(setOut === undefined ? {} : { setOut }) };
      const answer = (await ask({ do: 'call', call })) as SiteAnswer;
      time.notBefore(answer.now);
      switch (answer.kind) {
        case 'silent':
          return await new Promise<never>(() => undefined);
        case 'late':
          await pause(timers, answer.afterMs, closing.signal);
          ({ setOut } = answer);
          continue;
        case 'answer':
          if (answer.delayMs > 0) await pause(timers, answer.delayMs, closing.signal);
          if (!('error' in answer)) return answer.value;
          throw new SiteError(answer.error.kind, answer.error.message, answer.error.retryAfterMs);
      }
    }
  };

  const call = async <T>(operation: string, args: object, by: CallOptions, owner?: OwnerMark): Promise<T> => {
    const what = `${operation} at the simulated site of zone ${zone}`;
    if (by.signal.aborted) throw new SiteError('unavailable', `${what}: given up before it was sent`);
    if (closing.signal.aborted) throw new SiteError('unavailable', `${what}: the adapter is closed`);
    const inDoubt = isWrite(operation) ? 'unknown-outcome' : 'unavailable';
    const request = { operation, args, ...(owner === undefined ? {} : { owner }) };
    try {
      return (await withPatience(carryOut(request, by.effectId), {
        timers,
        deadlineMs: by.deadlineMs,
        signals: [by.signal, closing.signal],
        failure: (reason) => new SiteError(inDoubt, `${what}: ${reason}`),
      })) as T;
    } catch (error) {
      if (error instanceof SiteError) throw error;
      throw new SiteError(
        certainlyNotDone(error) ? 'unavailable' : inDoubt,
        `${what} failed: ${String(error)}`,
      );
    }
  };

  const close = async (): Promise<void> => {
    if (closing.signal.aborted) return;
    closing.abort();
    if (opening !== undefined) await channel.ask(number, { do: 'close' }).catch(() => undefined);
    if (ownChannel) await channel.close();
  };

  return {
    fabric: {
      createNetwork: (network, owner, by) => call('fabric.createNetwork', network, by, owner),
      deleteNetwork: (network, owner, by) => call('fabric.deleteNetwork', network, by, owner),
      bindPort: (port, owner, by) => call('fabric.bindPort', port, by, owner),
      resetPort: (port, owner, by) => call('fabric.resetPort', port, by, owner),
      observe: (of, by) => call('fabric.observe', of, by),
    },
    l3: {
      createNetwork: (network, owner, by) => call('l3.createNetwork', network, by, owner),
      deleteNetwork: (network, owner, by) => call('l3.deleteNetwork', network, by, owner),
      bind: (binding, owner, by) => call('l3.bind', binding, by, owner),
      unbind: (binding, owner, by) => call('l3.unbind', binding, by, owner),
      ensureNat: (nat, owner, by) => call('l3.ensureNat', nat, by, owner),
      removeNat: (nat, owner, by) => call('l3.removeNat', nat, by, owner),
      observe: (of, by) => call('l3.observe', of, by),
    },
    dns: {
      ensure: (records, owner, by) => call('dns.ensure', { records }, by, owner),
      remove: (records, owner, by) => call('dns.remove', { records }, by, owner),
      propagated: (records, by) => call('dns.propagated', { records }, by),
      observe: (of, by) => call('dns.observe', of, by),
    },
    agents: {
      label: (agent, owner, by) => call('agents.label', { agent }, by, owner),
      clean: (agent, owner, by) => call('agents.clean', { agent }, by, owner),
      observe: (of, by) => call('agents.observe', of, by),
    },
    discovery: {
      discover: (wanted, by) => call('discovery.discover', wanted, by),
      remaining: (of, by) => call('discovery.remaining', of, by),
      observe: (of, by) => call('discovery.observe', of, by),
    },
    tasks: { run: (task, owner, by) => call('tasks.run', task, by, owner) },
    control: {
      configure: async (settings) => {
        const now = await ask({ do: 'configure', settings: scopedSettings(settings), now: time.now() });
        time.notBefore(now as number);
      },
      synchronous: async () => (await ask({ do: 'synchronous' })) as number,
    },
    close,
  };
};

const READS = /\.(observe|propagated|remaining)$/;
const isWrite = (operation: string): boolean => !READS.test(operation);
