import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ToyRunner } from '../../support/process-runner/toy-workflow.ts';
import { eventually } from '../../support/eventually.ts';

export type IndexStage = {
  /** Stopped after each spec. */
  readonly running: ToyRunner[];
  /** The file of the index; each spec has its own. */
  readonly dataFile: () => string;
  readonly live: (runner: ToyRunner) => Promise<void>;
};

/** What specs of a process runner and the file of its index start from: to be called in their `describe`. */
export const indexStage = (): IndexStage => {
  const running: ToyRunner[] = [];
  let folder = '';
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'process-index-'));
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((runner) => runner.stop()));
    rmSync(folder, { recursive: true });
  });
  const dataFile = (): string => join(folder, 'processes.sqlite');
  const live = (runner: ToyRunner) => eventually('live', () => runner.status().state === 'live');
  return { running, dataFile, live };
};
