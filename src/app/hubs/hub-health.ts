import { fnv1a32 } from '../../domain/hash.ts';
import { ASPECTS, type HubFindings, type HubHealth } from '../../domain/hubs/health.ts';
import { aggregateOf, hub as hubKind } from '../../domain/kinds.ts';
import { defined } from '../../domain/json-tools.ts';
import type { Automation, AutomationCandidate, Automations } from '../automation/automation.ts';
import type { CommandRunner } from '../commands/command.ts';
import { StoreUnavailable, OutcomeUnknown, type Position } from '../log/event-store.ts';
import { automationConnectionOf, lookAtHub, type HubCheck, type Look } from './hub-check.ts';
import type { HubRegistry, RegisteredHub } from './hub-registry.ts';
import type { ManagementCluster } from './management-cluster.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { hubContext } from '../log/metadata.ts';
import type { Clock, Ids, Logger, Timers } from '../ports.ts';
import { aborted, pause } from '../process-runner/pause.ts';

/**
 * Health of the registered hubs: each is looked at as soon as it is registered or changed and then every half minute, by
 * a loop of its own, so that one that hangs delays no other. What changed is recorded on the hub's stream, and so is in
 * its document, in placement and in metrics. Simulated hubs are files of this service and are looked at when asked only.
 */
export type HubHealthMonitor = {
  /** Looks until the signal is aborted; only for the owner of the processes. */
  run(signal: AbortSignal): Promise<void>;
  /** Looks at a hub now, and records what it finds. Undefined: nothing reaches it. */
  check(
    hub: RegisteredHub,
    signal: AbortSignal,
  ): Promise<{ readonly check: HubCheck; readonly position?: Position } | undefined>;
  /** Looks at a hub that is not registered, or with other credentials than it has; records nothing. */
  checkCandidate(
    adapter: ManagementCluster,
    automation: AutomationCandidate | undefined,
    signal: AbortSignal,
  ): Promise<HubCheck>;
  /** Records what was found otherwise than by a look. */
  report(hub: RegisteredHub, findings: HubFindings): Promise<void>;
  /** Something says that this hub may have changed: its loop looks at it now instead of later. */
  lookSoon(id: string): void;
};

export type HubHealthOptions = {
  readonly registry: HubRegistry;
  readonly commandRunner: CommandRunner;
  /** Absent: automation is not looked at. */
  readonly automations?: Automations;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly ids: Ids;
  readonly logger: Logger;
  /** Milliseconds between two looks at one hub, give or take a tenth. Default 30,000. */
  readonly intervalMs?: number;
  /** Called when a look finds a hub well that has been found otherwise. */
  readonly recovered?: (id: string) => void;
  /** Effects wait because this hub refused one: without a right it is looked at every few seconds. Default: never. */
  readonly isHeldUp?: (id: string) => boolean;
};

const INTERVAL_MS = 30_000;
/** Milliseconds after which a hub that did not answer, or refused us, is looked at again before that counts. */
const CONFIRM_MS = 5_000;

/** What a hub shows for a moment while its API server starts: no connection, then 403 to everything. */
type Doubt = 'Unreachable' | 'RightMissing';

const doubtOf = ({ reachable, requirements }: HubFindings): Doubt | undefined => {
  if (reachable?.some(({ code }) => code === 'Unreachable') === true) return 'Unreachable';
  return requirements?.some(({ code }) => code === 'RightMissing') === true ? 'RightMissing' : undefined;
};

/** It counts when the look before found it too, or when nothing else was known of the hub. */
const counts = (doubt: Doubt, before: Doubt | undefined, { reachable, requirements }: HubHealth): boolean =>
  doubt === 'Unreachable'
    ? before !== undefined || reachable?.ok !== true
    : before === doubt || requirements?.ok !== true;

type Loop = { revision: number; wake: () => void; readonly stop: AbortController };

export const createHubHealth = (options: HubHealthOptions): HubHealthMonitor => {
  const { registry, commandRunner, automations, clock, timers, ids, logger } = options;
  const { intervalMs = INTERVAL_MS } = options;
  const aggregate = aggregateOf(hubKind);
  const loops = new Map<string, Loop>();

  type How = Pick<Look, 'thorough' | 'awaited' | 'signal'>;
  const lookAt = (cluster: ManagementCluster, automation: Automation | undefined, how: How) =>
    lookAtHub({ hub: cluster.hubId, cluster, ...how, ...defined({ automation }), timers, logger });

  const look = async (hub: RegisteredHub, how: How): Promise<HubCheck | undefined> => {
    if (hub.adapter === undefined) return undefined;
    const connection = automationConnectionOf(hub);
    return lookAt(hub.adapter, connection === undefined ? undefined : automations?.of(connection), how);
  };

  const record = async (hub: RegisteredHub, findings: HubFindings): Promise<Position | undefined> => {
    const { id } = hub.facts;
    const commandId = derivedCommandId('hub-check', id, ids.uuidv7());
    const used = defined({ kubeconfig: hub.kubeconfig?.version });
    const outcome = await commandRunner.execute(
      aggregate,
      id,
      { type: 'ReportHubCheck', at: clock.now(), ...used, findings },
      hubContext(commandId, 'hub-health', id, hub),
    );
    if (outcome.outcome === 'rejected' || outcome.events.length === 0) return undefined;
    const news = outcome.events.map(({ type }) => type);
    const well = 'health' in outcome.loaded.state && outcome.loaded.state.health?.ready?.ok === true;
    logger[well ? 'info' : 'warn']({ hub: id, news, problems: problemsOf(findings) }, 'a hub changed');
    return outcome.loaded.position;
  };

  /** One look of the loop: what a second look has to confirm, and whether this one was that. */
  const lookOnce = async (
    hub: RegisteredHub,
    thorough: boolean,
    before: Doubt | undefined,
    signal: AbortSignal,
  ): Promise<{ readonly doubt?: Doubt; readonly counted: boolean }> => {
    const check = await look(hub, { thorough, awaited: false, signal });
    if (check === undefined || signal.aborted) return { counted: true };
    const { id } = hub.facts;
    const doubt = doubtOf(check.findings);
    if (doubt !== undefined && !counts(doubt, before, hub.health)) {
      logger.info({ hub: id, code: doubt }, 'hub check failed once; repeating it before it counts');
      return { doubt, counted: false };
    }
    await record(hub, check.findings);
    if (check.problems.length === 0) options.recovered?.(id);
    return { ...(doubt === undefined ? {} : { doubt }), counted: true };
  };

  const watch = async (id: string, loop: Loop, signal: AbortSignal): Promise<void> => {
    let doubt: Doubt | undefined;
    let counted = true;
    /** Revision at which the hub answered a thorough look. */
    let looked: number | undefined;
    while (!signal.aborted) {
      const hub = registry.get(id);
      if (hub === undefined) return;
      const woken = Promise.withResolvers<void>();
      loop.wake = woken.resolve;
      try {
        ({ doubt, counted } = await lookOnce(hub, hub.revision !== looked, doubt, signal));
        if (doubt === undefined) looked = hub.revision;
      } catch (error) {
        if (signal.aborted) return;
        // Nothing was recorded, so the next look finds the same news.
        if (!(error instanceof StoreUnavailable || error instanceof OutcomeUnknown)) throw error;
        logger.warn({ err: error, hub: id }, 'hub health not recorded');
      }
      const isSoon = doubt === 'Unreachable' || (doubt !== undefined && options.isHeldUp?.(id) === true);
      const rest = isSoon || !counted ? Math.min(CONFIRM_MS, intervalMs) : jittered(id, intervalMs);
      const rested = new AbortController();
      const resting = pause(timers, rest, AbortSignal.any([signal, rested.signal]));
      // Two looks at one moment of a hub say no more than one.
      await (counted ? Promise.race([resting, woken.promise]) : resting);
      rested.abort();
    }
  };

  const follow = (id: string, hub: RegisteredHub | undefined, start: (loop: Loop) => void): void => {
    const known = loops.get(id);
    if (hub === undefined || hub.facts.simulated || hub.adapter === undefined) {
      known?.stop.abort();
      loops.delete(id);
      return;
    }
    if (known === undefined) {
      const loop = { revision: hub.revision, wake: () => undefined, stop: new AbortController() };
      loops.set(id, loop);
      start(loop);
    } else if (known.revision !== hub.revision) {
      known.revision = hub.revision;
      known.wake();
    }
  };

  return {
    run: async (signal) => {
      if (signal.aborted) return;
      const running = new Set<Promise<void>>();
      const broken = Promise.withResolvers<never>();
      const unsubscribe = registry.onChange((id, hub) =>
        follow(id, hub, (loop) => {
          const ended = watch(id, loop, AbortSignal.any([signal, loop.stop.signal]))
            .catch(broken.reject)
            .finally(() => running.delete(ended));
          running.add(ended);
        }),
      );
      try {
        await Promise.race([broken.promise, aborted(signal)]);
      } finally {
        unsubscribe();
        for (const { stop } of loops.values()) stop.abort();
        loops.clear();
        await Promise.all(running);
      }
    },
    check: async (hub, signal) => {
      const check = await look(hub, { thorough: true, awaited: true, signal });
      if (check === undefined) return undefined;
      signal.throwIfAborted();
      const position = await record(hub, check.findings);
      return { check, ...(position === undefined ? {} : { position }) };
    },
    checkCandidate: (adapter, candidate, signal) => {
      const automation = candidate === undefined ? undefined : automations?.candidate?.(candidate);
      return lookAt(adapter, automation, { thorough: true, awaited: true, signal });
    },
    report: async (hub, findings) => {
      await record(hub, findings);
    },
    lookSoon: (id) => loops.get(id)?.wake(),
  };
};

const problemsOf = (findings: HubFindings): readonly string[] =>
  ASPECTS.flatMap((aspect) =>
    (findings[aspect] ?? []).map(({ code, subject }) =>
      subject === undefined ? code : `${code} ${subject}`,
    ),
  );

/** Nine to eleven tenths of the interval, always the same for one hub: many hubs are not looked at in one moment. */
const jittered = (id: string, intervalMs: number): number =>
  intervalMs * (0.9 + (0.2 * fnv1a32(id)) / 2 ** 32);
