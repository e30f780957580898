import type { ClusterObservation } from '../observed.ts';
import type { ObservedVersion, OpenRun } from './run.ts';

/** Which state of which object an observation shows; undefined when it shows none, or does not say. */
export const versionOf = ({ order }: ClusterObservation): ObservedVersion | undefined =>
  order?.resourceVersion === undefined
    ? undefined
    : { uid: order.uid, resourceVersion: order.resourceVersion };

/**
 * The watch of a hub and timed reads tell of one order side by side, and what was read first may come last: an older
 * state would be told after a newer one, and stand until the next read. Versions that went back count only where the
 * hub was asked after the newer one had been taken in: it was restored from a backup then.
 */
export const isOvertaken = ({ observation: last }: OpenRun, observation: ClusterObservation): boolean => {
  const shown = versionOf(observation);
  if (last?.version === undefined || shown === undefined || shown.uid !== last.version.uid) return false;
  const { askedAt } = observation;
  return (
    isOlder(shown.resourceVersion, last.version.resourceVersion) &&
    (askedAt === undefined || askedAt <= last.at)
  );
};

/** Versions are numbers that rise on every API server; of others nothing is said. */
const isOlder = (version: string, than: string): boolean =>
  /^\d+$/.test(version) && /^\d+$/.test(than) && BigInt(version) < BigInt(than);
