import type { PendingEffect } from '../../domain/workflow.ts';
import type { Runtime } from '../ports.ts';
import type { Lanes } from './lanes.ts';
import type { RunIndex } from './run-index.ts';
import type { RunLog } from './run-log.ts';
import type { RunMemory } from './run-memory.ts';
import type { SteadyClock } from './steady-clock.ts';
import type { Failpoint, ProcessHooks, ProcessRunnerSettings, RunCodec } from './types.ts';
import type { Work } from './work.ts';

/** What the runs of one session, and the plans made for them, are built on. */
export type RunsOptions = {
  readonly index: RunIndex;
  readonly memory: RunMemory;
  readonly log: RunLog;
  readonly lanes: Lanes;
  readonly work: Work;
  readonly codec: RunCodec;
  readonly steady: SteadyClock;
  readonly hooks: ProcessHooks;
  readonly failpoint: Failpoint;
  readonly epoch: number;
  readonly settings: ProcessRunnerSettings;
  readonly effectDeadlinesMs?: { readonly [port: string]: number };
  readonly isHeldBack?: (effect: PendingEffect) => boolean;
  /** The index failed: everything stops and starts anew. */
  readonly broken: (error: unknown) => void;
} & Pick<Runtime, 'clock' | 'timers' | 'instance' | 'logger'>;
