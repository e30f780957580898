import { parseStreamName } from '../../../domain/stream-name.ts';
import type { Logger } from '../../../app/ports.ts';

/** Which streams of a log that others may share are ours. */
export type OurStreams = {
  has(stream: string): boolean;
  /** What the names of our streams begin with; undefined: everything that is not the store's own. */
  readonly prefixes: readonly string[] | undefined;
  /** Counts an event of somebody else. Says so once. */
  passOver(event: { readonly streamId: string; readonly type: string }): void;
};

/** `categories`: those of our streams; undefined: nobody else writes to this log. */
export const createOurStreams = (
  categories: readonly string[] | undefined,
  counters: { foreignEvents: number },
  logger: Logger | undefined,
): OurStreams => {
  const known = new Set(categories);
  return {
    has: (stream) => categories === undefined || known.has(parseStreamName(stream).category),
    prefixes: categories?.map((category) => `${category}-`),
    passOver: ({ streamId, type }) => {
      counters.foreignEvents += 1;
      if (counters.foreignEvents === 1)
        logger?.info({ stream: streamId, type }, 'passing over events of others in this event store');
    },
  };
};
