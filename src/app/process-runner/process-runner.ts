import { streamName } from '../../domain/stream-name.ts';
import { LogReplaced } from '../log/event-store.ts';
import type { Lease } from '../deployment/ownership.ts';
import { pause } from './pause.ts';
import { discardRunIndex, isDamage } from './run-index.ts';
import { createSession, type Session } from './session.ts';
import {
  DEFAULT_SETTINGS,
  type ProcessRunner,
  type ProcessRunnerOptions,
  type ProcessRunnerStatus,
} from './types.ts';

/**
 * Runs workflows: folds their runs, records what they decide, carries out what is outstanding
 * and keeps their timers. Works only while this instance owns the processes; everything it holds in memory or in its
 * index follows from the log.
 */
export const createProcessRunner = (options: ProcessRunnerOptions): ProcessRunner => {
  const settings = { ...DEFAULT_SETTINGS, ...options.settings };
  let session: Session | undefined;
  let running = false;
  let divergences = 0;
  let error: string | undefined;

  const whileOwner = async (lease: Lease): Promise<void> => {
    session = createSession({
      ...options,
      settings,
      lease,
      clockDiverged: () => {
        divergences += 1;
      },
    });
    error = undefined;
    try {
      await session.run();
    } finally {
      session = undefined;
    }
  };

  const status = (): ProcessRunnerStatus => {
    if (session !== undefined) return { ...session.status(), clockDivergences: divergences };
    const state = !running ? 'stopped' : error === undefined ? 'standby' : 'failed';
    return {
      ...NOT_RUNNING,
      state,
      clockDivergences: divergences,
      ...(error === undefined ? {} : { error }),
    };
  };

  /** A breakdown (a damaged index, a bug) is shown and tried again: everything needed is in the log. */
  const start = async (signal: AbortSignal): Promise<void> => {
    running = true;
    for (let failures = 0; !signal.aborted; failures += 1) {
      const begun = options.clock.monotonicMs();
      try {
        await options.ownership.hold(signal, whileOwner);
      } catch (cause) {
        if (signal.aborted) break;
        error = cause instanceof Error ? cause.message : String(cause);
        const isReplaced = cause instanceof LogReplaced;
        if (isDamage(cause) || isReplaced) discardRunIndex(options.dataFile);
        // What broke down long after the last time is news, and starts again at once.
        if (options.clock.monotonicMs() - begun >= HEALTHY_MS) failures = 0;
        if (isReplaced) options.logger.warn({ reason: error }, 'log replaced: rebuilding the index of runs');
        else options.logger.error({ err: cause }, 'process runner broke down; restarting it');
        await pause(options.timers, Math.min(RESTART_MAX_MS, RESTART_FIRST_MS * 2 ** failures), signal);
      }
    }
    running = false;
  };

  return {
    start,
    status,
    observe: (workflow, runId, observation) =>
      session?.observe(streamName(workflow, runId), observation) ?? false,
    lookNow: (workflow, runId) => session?.lookNow(streamName(workflow, runId)) ?? false,
    isClosed: (workflow, runId) => session?.isClosed(streamName(workflow, runId)) ?? false,
    isUnknown: (workflow, runId) => session?.isUnknown(streamName(workflow, runId)) ?? false,
    pauseLane: (lane, pause) => session?.lanes.pause(lane, pause),
    resumeLane: (lane) => session?.lanes.resume(lane),
    laneBlocked: (lane, order) => session?.lanes.blocked(lane, order) ?? false,
    probeLane: (lane) => session?.lanes.probe(lane),
    laneCalls: (lane) => session?.lanes.calls(lane),
    parkedFor: (workflow, runId) => session?.parkedFor(streamName(workflow, runId)),
    retryRun: async (workflow, runId) => session?.retry(streamName(workflow, runId)) ?? false,
  };
};

const RESTART_FIRST_MS = 1_000;
const RESTART_MAX_MS = 30_000;
/** Milliseconds without a breakdown after which earlier ones are forgotten. */
const HEALTHY_MS = 60_000;

const NOT_RUNNING: Omit<ProcessRunnerStatus, 'state' | 'clockDivergences'> = {
  epoch: undefined,
  position: undefined,
  lagSeconds: 0,
  openRuns: 0,
  closedRuns: 0,
  queuedInputs: 0,
  effectsInFlight: 0,
  timersDue: 0,
  timerLatenessSeconds: 0,
  lanes: [],
  parkedRuns: [],
};
