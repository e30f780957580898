import type { JsonObject } from '../../domain/json.ts';
import type { Lease } from '../deployment/ownership.ts';
import { nextTurn } from '../fairness/slicer.ts';
import { createBookkeeping } from '../log/bookkeeping.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type EventStore,
} from '../log/event-store.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import type { Anchor } from '../log/resume-point.ts';
import type { Runtime } from '../ports.ts';
import { createIntake } from './intake.ts';
import { createLanes, type Lanes } from './lanes.ts';
import { pause } from './pause.ts';
import { openRunIndex } from './run-index.ts';
import { createRunLog } from './run-log.ts';
import { createRunMemory, timerAlarm, timerOfAlarm } from './run-memory.ts';
import { createRuns } from './runs.ts';
import { createSteadyClock } from './steady-clock.ts';
import type {
  LaneStatus,
  ProcessRunnerOptions,
  ProcessRunnerSettings,
  ProcessRunnerStatus,
} from './types.ts';
import { createWork } from './work.ts';

/** Outside watch, audit tree and topics: the newest divergences of all instances. */
const CLOCK_STREAM = 'sys-clock';
const MAX_COUNT = 1_000;
const ATTEMPTS = 5;

/** Records that clock jump detected. Never throws: the divergence is in the log file as well. */
export const recordDivergence = async (
  options: {
    readonly store: EventStore;
    readonly deltaMs: number;
  } & Pick<Runtime, 'clock' | 'instance' | 'logger'>,
): Promise<void> => {
  const { store, clock, instance, logger, deltaMs } = options;
  const at = clock.now();
  const diverged = { type: 'ClockDiverged', data: { at, instance, deltaMs } } as const;
  const commandId = derivedCommandId(instance, 'clock', at, deltaMs);
  const event = createBookkeeping(instance)(CLOCK_STREAM, diverged, 'RecordDivergence', commandId);
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const expected = await store.currentRevision(CLOCK_STREAM);
      if (expected === 'no_stream') await store.setMaxCount(CLOCK_STREAM, MAX_COUNT);
      try {
        await store.append(CLOCK_STREAM, expected, [event]);
        return;
      } catch (error) {
        if (!(error instanceof WrongExpectedRevision)) throw error;
      }
    }
  } catch (error) {
    if (!(error instanceof StoreUnavailable) && !(error instanceof OutcomeUnknown)) throw error;
    logger.warn({ err: error }, 'clock jump not recorded');
  }
};

/** The time for which this instance owns the processes, from taking the lease to having given everything up. */
export type Session = {
  /** Returns when the lease ended and the work in flight has ended or was given up. */
  run(): Promise<void>;
  status(): Omit<ProcessRunnerStatus, 'clockDivergences'>;
  observe(run: string, observation: JsonObject): boolean;
  lookNow(run: string): boolean;
  isClosed(run: string): boolean;
  isUnknown(run: string): boolean;
  readonly lanes: Lanes;
  retry(run: string): boolean;
  parkedFor(run: string): string | undefined;
};

type SessionOptions = ProcessRunnerOptions & {
  readonly settings: ProcessRunnerSettings;
  readonly lease: Lease;
  readonly clockDiverged: () => void;
};

/** Runs that are looked at in one turn of the event loop, because a timer is due or after a start. */
const BATCH = 32;
/** Alarms that one news wakes; the others keep their own times, and the next news finds them. */
const WAKE_BATCH = 128;
/** Alarms that are anchored anew in one turn, and committed: a few milliseconds. */
const ANCHOR_BATCH = 200;
/** Runs that are written to the index in one turn. */
const FLUSH_BATCH = 64;
/** Milliseconds after which what was written to the index is committed. */
const COMMIT_MS = 1_000;
/** Milliseconds until paused lanes are read again, doubled each time. */
const PAUSES_FIRST_MS = 250;
const PAUSES_MAX_MS = 10_000;
/** Shortest wait between two looks at the timers. */
const TICK_MS = 5;

export const createSession = (options: SessionOptions): Session => {
  const { settings, lease, clock, timers, logger, hooks = {}, workflows } = options;
  const parts = { ...options, hooks, failpoint: options.failpoint ?? (() => undefined) };
  const index = openRunIndex(options.dataFile, identityOf(options));
  const steady = createSteadyClock(clock, settings.clockToleranceMs);
  /** Aborted when work in flight is given up. */
  const hardStop = new AbortController();
  let sleepsUntil = -Infinity;
  let wakeTicker: () => void = () => undefined;
  const memory = createRunMemory({
    index,
    workflows,
    cachedRuns: settings.cachedRuns,
    steady,
    broken: (key, error) => runs.poison(key, error),
    alarmSet: (dueMono) => {
      if (dueMono < sleepsUntil) wakeTicker();
    },
  });
  const log = createRunLog({
    ...parts,
    folded: (run) => memory.touch(run),
    signal: hardStop.signal,
  });
  const wakeTimer = (timerId: string, most = WAKE_BATCH): void => {
    if (index.wake(timerAlarm(timerId), steady.monotonicMs(), most) > 0) wakeTicker();
  };
  const lanes = createLanes({
    settings,
    timers,
    nowMs: () => clock.monotonicMs(),
    ...(options.lanePacing === undefined ? {} : { pacingOf: options.lanePacing }),
    changed: (lane) => {
      const { lane: name, breaker, paused, waiting, lastReason: reason } = lane;
      const level = breaker === 'open' || paused ? 'warn' : 'info';
      logger[level](
        { lane: name, breaker, paused, waiting, reason },
        paused ? 'lane paused' : LANE_NEWS[breaker],
      );
      hooks.laneChanged?.(lane);
    },
    wake: (lane, howMany) => {
      runs.wakeLane(lane, howMany);
      if (howMany === 'one') return;
      // What waits for a place may get one there now.
      for (const { timerId } of workflows.flatMap(({ wakes = [] }) => wakes)) wakeTimer(timerId);
    },
  });
  const work = createWork({ ...parts, log, signal: hardStop.signal });
  const epoch = lease.epoch;
  let anchored = false;
  const broken = Promise.withResolvers<never>();
  const runs = createRuns({
    ...parts,
    index,
    memory,
    log,
    lanes,
    work,
    steady,
    epoch,
    broken: broken.reject,
  });

  const reachedLive = Promise.withResolvers<void>();
  const intake = createIntake({
    ...parts,
    index,
    memory,
    runs,
    wake: wakeTimer,
    live: () => {
      reachedLive.resolve();
      wakeTicker();
      logger.info({ epoch, ...index.counts() }, 'process runner is live');
      for (const { run } of index.parked()) runs.unpark(run);
    },
  });

  /** True when more may be due. */
  const fireTimers = (): boolean => {
    const due = index.takeDue(steady.monotonicMs(), BATCH);
    let fired = 0;
    for (const { run, key } of due) {
      const timerId = timerOfAlarm(key);
      if (timerId === undefined) runs.post(run, { kind: 'look' });
      else {
        fired += 1;
        runs.post(run, { kind: 'timer', timerId });
      }
    }
    if (fired > 0) hooks.timersFired?.(fired);
    return due.length === BATCH;
  };

  const checkClock = (): void => {
    const delta = steady.divergence();
    if (delta === undefined) return;
    options.clockDiverged();
    hooks.clockDiverged?.(delta);
    logger.warn({ deltaMs: delta }, 'clock jump detected');
    // Beside the timers: a store that does not answer must not hold them up.
    recordDivergence({ ...options, deltaMs: delta }).catch((error: unknown) =>
      logger.error({ err: error }, 'clock jump not recorded'),
    );
  };

  /** Timers, clock comparison and commits of the index, in one loop while the lease lasts. */
  const tick = async (signal: AbortSignal): Promise<void> => {
    let checkedAt = steady.monotonicMs();
    let committedAt = checkedAt;
    while (!signal.aborted) {
      const hasRoom = intake.isLive() && runs.queued() < settings.maxQueuedInputs;
      if (hasRoom && fireTimers()) {
        await nextTurn();
        continue;
      }
      const now = steady.monotonicMs();
      if (now - checkedAt >= settings.clockCheckMs) {
        checkedAt = now;
        checkClock();
      }
      if (now - committedAt >= COMMIT_MS) {
        // Turn by turn: all that changed in between would hold the thread.
        if (intake.isLive() && !memory.flush(FLUSH_BATCH)) {
          await nextTurn();
          continue;
        }
        committedAt = now;
        commit();
      }
      const next = intake.isLive() ? (index.nextAlarm() ?? Infinity) - now : Infinity;
      const wait = Math.max(TICK_MS, Math.min(next, COMMIT_MS, settings.clockCheckMs));
      const woken = Promise.withResolvers<void>();
      sleepsUntil = now + wait;
      wakeTicker = () => {
        sleepsUntil = -Infinity;
        woken.resolve();
      };
      await Promise.race([pause(timers, wait, signal), woken.promise]);
      sleepsUntil = -Infinity;
    }
  };

  let lastAnchor: Anchor | undefined;
  const commit = (): void => {
    if (intake.isLive()) {
      // What the anchor passes is not read again: runs are written as far as they were folded.
      memory.flush();
      const anchor = intake.progress.anchor();
      if (anchor !== undefined && anchor !== lastAnchor) index.setAnchor(anchor);
      lastAnchor = anchor;
    }
    index.commit();
  };

  /** Before anything else looks at the alarms. A file of many is gone through turn by turn. */
  const anchor = async (signal: AbortSignal): Promise<void> => {
    const offset = steady.offset();
    while (!signal.aborted && index.reanchor(offset, ANCHOR_BATCH, steady.monotonicMs())) {
      index.commit();
      await nextTurn();
    }
    anchored = true;
  };

  /** Before anything may be let through: while the store does not say what is held back, everything is. */
  const restorePauses = async (signal: AbortSignal): Promise<void> => {
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        for (const [lane, held] of (await options.pausedLanes?.()) ?? []) lanes.pause(lane, held);
        return;
      } catch (error) {
        logger.warn({ err: error }, 'paused lanes unreadable; retrying');
        await pause(timers, Math.min(PAUSES_MAX_MS, PAUSES_FIRST_MS * 2 ** Math.min(tries, 10)), signal);
      }
    }
  };

  const runWhileLive = async (signal: AbortSignal): Promise<void> => {
    await reachedLive.promise;
    if (!signal.aborted) await options.whileLive?.(signal);
  };

  /** After a start every run with outstanding work is looked at, a bounded number at a time. */
  const lookAtAll = async (signal: AbortSignal): Promise<void> => {
    await reachedLive.promise;
    let after = '';
    while (!signal.aborted) {
      const keys = index.withWork(after, BATCH);
      for (const key of keys) runs.post(key, { kind: 'look', start: true });
      after = keys.at(-1) ?? after;
      if (keys.length < BATCH) return;
      await nextTurn();
      await room();
    }
  };

  const until = async (condition: () => boolean, signal: AbortSignal): Promise<void> => {
    while (!condition() && !signal.aborted) await pause(timers, TICK_MS, signal);
  };

  /** Lets what is under way end, within the bound; what is given up is observed by the next owner. */
  const windDown = async (): Promise<void> => {
    runs.drain();
    lanes.close();
    const cancelBound = timers.after(settings.stopGraceMs, () => hardStop.abort());
    await until(() => runs.idle(), hardStop.signal);
    cancelBound();
    hardStop.abort();
    runs.close();
    try {
      commit();
    } finally {
      index.close();
    }
  };

  const room = (): Promise<void> => until(() => runs.queued() < settings.maxQueuedInputs, lease.signal);

  return {
    lanes,
    observe: (run, observation) => intake.isLive() && runs.observe(run, observation),
    lookNow: (run) => intake.isLive() && runs.lookNow(run),
    isClosed: (run) => intake.isLive() && !runs.isClosing() && memory.isClosed(run),
    isUnknown: (run) => intake.isLive() && !runs.isClosing() && memory.revisionsOf(run) === undefined,
    retry: (run) => runs.unpark(run),
    parkedFor: (run) => runs.parkedFor(run),
    run: async () => {
      const failed = new AbortController();
      const signal = AbortSignal.any([lease.signal, failed.signal]);
      const letGo = (): void => reachedLive.resolve();
      if (signal.aborted) letGo();
      else signal.addEventListener('abort', letGo, { once: true });
      const loops = [
        restorePauses(signal)
          .then(() => anchor(signal))
          .then(() => Promise.all([intake.run(signal, room), tick(signal)])),
        lookAtAll(signal),
        runWhileLive(signal),
      ];
      broken.promise.catch(() => undefined);
      try {
        await Promise.race([Promise.all(loops), broken.promise]);
      } finally {
        failed.abort();
        await Promise.allSettled(loops);
        await windDown();
      }
    },
    status: () => {
      const live = intake.isLive();
      const behind = !live || intake.progress.open() > 0;
      const seen = intake.lastSeen();
      const { open, closed } = index.counts();
      return {
        state: live ? 'live' : 'catching-up',
        epoch,
        position: intake.progress.checkpoint(),
        lagSeconds:
          behind && seen !== undefined ? Math.max(0, (Date.parse(clock.now()) - Date.parse(seen)) / 1000) : 0,
        openRuns: open,
        closedRuns: closed,
        queuedInputs: runs.queued(),
        effectsInFlight: lanes.status().reduce((sum, lane) => sum + lane.inFlight, 0),
        timersDue: anchored ? index.countDue(steady.monotonicMs()) : 0,
        timerLatenessSeconds: anchored
          ? Math.max(0, (steady.monotonicMs() - (index.nextAlarm() ?? Infinity)) / 1000)
          : 0,
        lanes: lanes.status(),
        parkedRuns: index.parked(),
      };
    },
  };
};

const LANE_NEWS: { readonly [breaker in LaneStatus['breaker']]: string } = {
  open: 'lane closed off',
  'half-open': 'lane tried with one effect',
  closed: 'lane works',
};

/** What the index depends on: another store, workflow or shape of a state starts it anew. */
const identityOf = ({ store, workflows }: SessionOptions): string =>
  JSON.stringify([
    store.storeId,
    ...workflows.map((workflow) => `${workflow.name}@${workflow.stateVersion ?? 1}`).toSorted(),
  ]);
