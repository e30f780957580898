import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '../../../src/domain/json.ts';

const FOLDER = join(import.meta.dirname, '../../../fixtures/events');

/** The stored sample of every event type, with its type. */
export const sampleEvents = (): { readonly type: string; readonly data: JsonObject }[] =>
  readdirSync(FOLDER)
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({
      type: name.split('.')[0] ?? '',
      data: JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as JsonObject,
    }));
