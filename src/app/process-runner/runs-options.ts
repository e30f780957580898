import type { Lanes } from './lanes.ts';
import type { RunIndex } from './run-index.ts';
import type { RunLog } from './run-log.ts';
import type { RunMemory } from './run-memory.ts';
import type { SteadyClock } from './steady-clock.ts';
import type { PartOptions } from './types.ts';
import type { Work } from './work.ts';

/** What the runs of one session, and the plans made for them, are built on. */
export type RunsOptions = {
  readonly index: RunIndex;
  readonly memory: RunMemory;
  readonly log: RunLog;
  readonly lanes: Lanes;
  readonly work: Work;
  readonly steady: SteadyClock;
  readonly epoch: number;
  /** The index failed: everything stops and starts anew. */
  readonly broken: (error: unknown) => void;
} & PartOptions;
