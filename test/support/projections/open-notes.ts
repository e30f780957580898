import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogReader } from '../../../src/projections/log-reader.ts';
import { openReadModels, type ReadModelsOptions } from '../../../src/projections/open-read-models.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { resourcesView } from '../../../src/projections/resources/resources-view.ts';
import type { View } from '../../../src/projections/view.ts';
import type { TestLog } from './log.ts';
import { noteCodec, noteKind } from './notes.ts';
import { eventually } from '../eventually.ts';

export type NotesOptions = {
  readonly dir?: string;
  readonly poison?: () => boolean;
  readonly retentionDays?: number;
  readonly view?: View;
  readonly reader?: LogReader;
  readonly pace?: 'microtask' | 'event-loop';
} & Partial<Pick<ReadModelsOptions, 'timers' | 'nowMs' | 'hooks' | 'logger' | 'maxWaiters'>>;

export const notesView = (options: Pick<NotesOptions, 'poison' | 'retentionDays'> = {}): View =>
  resourcesView({
    kinds: [noteKind(), noteKind('memo')],
    codec: noteCodec(options.poison),
    commandsOf: ['counter'],
    ...(options.retentionDays !== undefined && { retentionDays: options.retentionDays }),
  });

/** Read models of notes and memos, inline on a test log; in memory unless `dir` is given. */
export const openNotes = (log: TestLog, options: NotesOptions = {}): Promise<ReadModels> => {
  const { dir, poison, retentionDays, view, reader, pace = 'microtask', ...rest } = options;
  return openReadModels({
    dir,
    views: [
      view ??
        notesView({
          ...(poison !== undefined && { poison }),
          ...(retentionDays !== undefined && { retentionDays }),
        }),
    ],
    source: { kind: 'inline', reader: reader ?? log.store, pace },
    ...rest,
  });
};

/** Waits until the view is built and has applied everything that the log holds now. */
export const settle = async (models: ReadModels, log: TestLog, view = 'resources'): Promise<void> => {
  const last = await log.lastPosition();
  if (last !== undefined && !(await models.waitFor(view, last, { timeoutMs: 10_000 })))
    throw new Error(`${view} did not reach ${last}: ${JSON.stringify(models.status())}`);
  await eventually(`${view} is live`, () =>
    models.status().some(({ name, state }) => name === view && state !== 'rebuilding'),
  );
};

/** A folder of its own for each spec, removed afterwards by `clean`. */
export const temporaryFolders = (): { make: () => string; clean: () => void } => {
  const made: string[] = [];
  return {
    make: () => {
      const dir = mkdtempSync(join(tmpdir(), 'ledger-views-'));
      made.push(dir);
      return dir;
    },
    clean: () => {
      for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true });
    },
  };
};
