import type { ObjectVersion, ObservedVersion } from './state.ts';
import type { ClusterObservation } from './observed.ts';

/** Which state of which objects an observation shows; undefined when it shows none, or does not say. */
export const versionOf = ({ order, hostedCluster }: ClusterObservation): ObservedVersion | undefined => {
  const shown = order === null ? undefined : stateOf(order);
  const hosted = hostedCluster === undefined || hostedCluster === null ? undefined : stateOf(hostedCluster);
  return shown === undefined || hosted === undefined ? shown : { ...shown, hosted };
};

const stateOf = ({ uid, resourceVersion }: Partial<ObjectVersion>): ObjectVersion | undefined =>
  uid === undefined || resourceVersion === undefined ? undefined : { uid, resourceVersion };

/**
 * The watch of a hub and timed reads tell of one order side by side, and what was read first may come last: an older
 * state would be told after a newer one, and stand until the next read. Of one state of the order that of its
 * HostedCluster counts, which changes by itself. In one process looks take turns (app/hub-looks.ts); another one, which
 * has just handed over, may still be answered. Versions that went back count only where the hub was asked after the newer
 * one had been taken in: it was restored from a backup then.
 */
export const isOvertaken = (
  last: (ObservedVersion & { readonly at: string }) | undefined,
  { version: shown, askedAt }: { readonly version?: ObservedVersion; readonly askedAt?: string },
): boolean => {
  if (last === undefined || shown === undefined) return false;
  if (askedAt !== undefined && askedAt > last.at) return false;
  const isSameOrder = isOfSame(shown, last) && shown.resourceVersion === last.resourceVersion;
  return isOlder(shown, last) || (isSameOrder && isOlder(shown.hosted, last.hosted));
};

const isOfSame = (left: ObjectVersion, right: ObjectVersion): boolean => left.uid === right.uid;

/** Versions of one object are numbers that rise on every API server; of others nothing is said. */
export const isOlder = (version: ObjectVersion | undefined, than: ObjectVersion | undefined): boolean =>
  version !== undefined &&
  than !== undefined &&
  isOfSame(version, than) &&
  /^\d+$/.test(version.resourceVersion) &&
  /^\d+$/.test(than.resourceVersion) &&
  BigInt(version.resourceVersion) < BigInt(than.resourceVersion);
