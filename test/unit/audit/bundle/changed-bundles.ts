import { findingText } from '../../../../src/app/audit/bundle/findings.ts';
import { verifyBundle, type BundleReport } from '../../../../src/app/audit/bundle/verify.ts';
import {
  bundleOf,
  eventsOf,
  historyOf,
  memorySource,
  type Ask,
  type MemoryBundle,
} from '../../../support/audit/signed-history.ts';

export const SIZE = 60;
export const history = historyOf(eventsOf(SIZE));
export const other = historyOf(eventsOf(SIZE, 1));

export const verify = (files: MemoryBundle, trust = history.trust): Promise<BundleReport> =>
  verifyBundle(memorySource(files), { trust });

export const changed = async (ask: Ask, change: (files: MemoryBundle) => void): Promise<BundleReport> => {
  const files = await bundleOf(history, ask);
  change(files);
  return verify(files);
};

export const nameOf = (place: number): string => {
  const event = history.events[place];
  return `${event?.stream}@${event?.revision}`;
};

export const codes = ({ findings }: BundleReport): string[] => [...new Set(findings.map(({ code }) => code))];
export const texts = ({ findings }: BundleReport): string => findings.map(findingText).join('\n');
