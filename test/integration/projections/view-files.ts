import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import type { TestLog } from '../../support/projections/log.ts';
import { notesView } from '../../support/projections/open-notes.ts';

export const EVERYONE = { all: true } as const;
export const VERSION = notesView().version;

export const filesIn = (dir: string): string[] =>
  readdirSync(dir)
    .filter((name) => !/-(wal|shm)$/.test(name))
    .toSorted();
export const pointedAt = (dir: string): string => readFileSync(join(dir, 'resources.current'), 'utf8').trim();

export const textOf = (models: ReadModels, id: string): string =>
  String(
    (
      JSON.parse(models.resources.get('note', id, EVERYONE)?.privateJson ?? '{}') as {
        spec?: { text?: string };
      }
    ).spec?.text,
  );

/** Changes the live file behind the service's back. */
export const tamper = (dir: string, sql: string): void => {
  const db = new DatabaseSync(join(dir, pointedAt(dir)), { timeout: 5000 });
  db.exec(sql);
  db.close();
};

/** Leaves the thread to others now and then, as the readers of real logs do. */
export const breathing = (store: TestLog['store']): TestLog['store'] => ({
  ...store,
  subscribe: async function* (options) {
    let count = 0;
    for await (const item of store.subscribe(options)) {
      count += 1;
      if (count % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
      yield item;
    }
  },
});
