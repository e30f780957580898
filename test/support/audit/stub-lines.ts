import { setImmediate } from 'node:timers/promises';
import type { OpenExportLines } from '../../../src/adapters/audit/line-protocol.ts';

export type StubConfig = {
  /** Pages that are made; default: without end. */
  readonly pages?: number;
  /** Counts pages as they are made. */
  readonly made?: SharedArrayBuffer;
  /** What happens behind the last page, or at the start where `missing` is the file that is to be opened. */
  readonly ends?: 'fails' | 'disagrees' | 'exits';
  readonly missing?: string;
};

/** A module of export lines for specs: pages that say their number, and ways to fail. */
export const openExportLines: OpenExportLines<StubConfig> = async (config, tree) => {
  if (tree === config.missing) throw new Error(`there is no ${tree}`);
  return {
    pages: async function* () {
      for (let n = 0; n < (config.pages ?? Number.POSITIVE_INFINITY); n += 1) {
        if (config.made !== undefined) Atomics.add(new Int32Array(config.made), 0, 1);
        yield {
          text: Buffer.from(`${tree} ${n}\n`),
          hashes: Buffer.alloc(32, n),
          counts: { events: 1, full: 1, redacted: 0, withheld: 0 },
        };
        await setImmediate();
      }
      if (config.ends === 'exits') process.exit(3);
      if (config.ends === 'fails') throw new Error('it did not work');
      if (config.ends === 'disagrees')
        throw Object.assign(new Error('log and tree differ'), { name: 'BundleInconsistent' });
    },
    close: async () => undefined,
  };
};
