import {
  HubError,
  type HubErrorKind,
  type ManagementCluster,
} from '../../../src/app/hubs/management-cluster.ts';

/** A hub to test an adapter on. The hub must bring orders to Ready by itself within `patienceMs`. */
export type ManagementClusterUnderTest = {
  readonly cluster: ManagementCluster;
  /** Another instance of the adapter on the same hub, as a second process would have it. */
  readonly another: () => Promise<ManagementCluster>;
  /** A namespace that exists on the hub, and one that does not. */
  readonly namespace: string;
  readonly missingNamespace: string;
  /** What a creation there comes to; default `not-found`, which only who has rights there is told. */
  readonly inMissingNamespace?: HubErrorKind;
  readonly patienceMs: number;
  /** Makes the hub misbehave from now on; `healthy` ends it. */
  readonly misbehave: {
    readonly loseNextAnswer: () => Promise<void>;
    readonly neverAnswer: () => Promise<void>;
    readonly refuseConnections: () => Promise<void>;
    readonly healthy: () => Promise<void>;
  };
  readonly close: () => Promise<void>;
};

const POLL_MS = 20;

/** Polls until the condition holds; fails after `ms` milliseconds with the last value seen. */
export const untilHolds = async <T>(
  read: () => Promise<T>,
  holds: (value: T) => boolean,
  ms: number,
): Promise<T> => {
  const end = performance.now() + ms;
  for (;;) {
    const value = await read();
    if (holds(value)) return value;
    if (performance.now() > end) throw new Error(`still not so: ${JSON.stringify(value)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

/** The HubError that a call fails with. */
export const failure = async (work: Promise<unknown>): Promise<HubError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof HubError) return error;
    throw error;
  }
  throw new Error('the call succeeded');
};
