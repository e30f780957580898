import { setImmediate } from 'node:timers/promises';
import type { Folding } from '../adapters/folding/fold-protocol.ts';
import { createEventCodec } from '../app/log/event-codec.ts';
import { foldRecorded } from '../app/commands/loaded-streams.ts';
import { aggregates } from '../domain/kinds.ts';
import { eventTypes } from '../domain/registry.ts';
import { openLogReader, type LogReaderConfig } from './log-reader-module.ts';

/** Events between two looks at the messages of the worker. */
const SLICE = 1_000;

/** Entry of the worker for long folds: every aggregate of the service, over a reader of its own. */
export const openFolding = async (config: LogReaderConfig): Promise<Folding> => {
  const reader = await openLogReader(config);
  const codec = createEventCodec(eventTypes);
  const byCategory = new Map(aggregates.map((aggregate) => [aggregate.category, aggregate]));
  return {
    fold: async ({ category, stream, folded, upTo }) => {
      const aggregate = byCategory.get(category);
      if (aggregate === undefined) throw new TypeError(`no aggregate has streams of category ${category}`);
      const from = folded.revision === 'no_stream' ? 0 : folded.revision + 1;
      const limit = upTo === undefined ? {} : { limit: upTo - from + 1 };
      let count = 0;
      for await (const event of reader.readStream(stream, { from, ...limit })) {
        foldRecorded(folded, aggregate.decider.evolve, codec, event);
        count += 1;
        if (count % SLICE === 0) await setImmediate();
      }
      return folded;
    },
    close: () => reader.close(),
  };
};
