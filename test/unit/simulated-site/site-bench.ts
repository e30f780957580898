import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GivenScopes } from '../../../src/adapters/site/simulated/settings.ts';
import { createSimulatedSite } from '../../../src/adapters/site/simulated/simulated-site.ts';
import type { CallOptions } from '../../../src/app/hubs/management-cluster.ts';
import { SiteError, type OwnerMark } from '../../../src/app/site/ports.ts';
import { manualTime } from '../../support/manual-time.ts';

export const owner = (order: string, generation = 1): OwnerMark => ({ order, generation });

/** A simulated site in virtual time, on a file that tests read themselves. */
export const createSiteBench = (settings: GivenScopes = {}) => {
  const dir = mkdtempSync(join(tmpdir(), 'site-bench-'));
  const file = join(dir, 'east.sqlite');
  const time = manualTime();
  const open = (instance: string) =>
    createSimulatedSite({ zone: 'east', file, ...time, settings, instance, inline: true });
  const site = open('one');
  const others: (typeof site)[] = [];
  let calls = 0;
  return {
    file,
    time,
    site,
    another: () => {
      const other = open('two');
      others.push(other);
      return other;
    },
    by: (more: Partial<CallOptions> = {}): CallOptions => ({
      effectId: `e${(calls += 1)}`,
      deadlineMs: 5_000,
      signal: new AbortController().signal,
      ...more,
    }),
    close: async () => {
      for (const one of [site, ...others]) await one.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
};

/** The kind of error that a call fails with. */
export const kindOfFailure = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return 'none';
  } catch (error) {
    if (error instanceof SiteError) return error.kind;
    throw error;
  }
};
