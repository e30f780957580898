import type { LogReader } from '../log-reader.ts';
import type { View } from '../view.ts';
import {
  buildAndCheck,
  followInto,
  type CheckReport,
  type CopyContext,
  type CopyProgress,
  type RunningCopy,
} from './copy.ts';
import { digestOf, type Digest } from './digest.ts';
import type { Storage } from './storage.ts';

export type OnProgress = (progress: CopyProgress) => void;

/** A copy that is built and checked; then it can be followed like any other. */
export type BuildingCopy = {
  readonly checked: Promise<CheckReport>;
  /** Nothing is applied any more when it resolves. */
  readonly stop: () => Promise<void>;
};

/** Does the work on one view's copies: in worker threads in production, inline for specs and the simulation. */
export type CopyHost = {
  readonly follow: (copy: string, onProgress: OnProgress) => RunningCopy;
  /** `live` is the copy of the same version to compare with; undefined: there is none, the log is compared with. */
  readonly build: (copy: string, live: string | undefined, onProgress: OnProgress) => BuildingCopy;
  readonly digest: (copy: string) => Promise<Digest>;
};

export const inlineHost = (
  view: View,
  storage: Storage,
  reader: LogReader,
  pace: CopyContext['pace'],
): CopyHost => ({
  follow: (copy, onProgress) => followInto(copy, { view, storage, reader, pace, onProgress }),
  build: (copy, live, onProgress) => {
    const controller = new AbortController();
    const context = { view, storage, reader, pace, onProgress };
    const checked = buildAndCheck(copy, live, context, controller.signal);
    return {
      checked,
      stop: async () => {
        controller.abort();
        await checked.catch(() => undefined); // whoever holds `checked` was told
      },
    };
  },
  digest: async (copy) => digestOfCopy(copy, storage, view),
});

/** Of the copy as it is now, whatever is applied meanwhile. */
export const digestOfCopy = (copy: string, storage: Storage, view: View): Digest => {
  const snapshot = storage.snapshot(copy);
  try {
    return digestOf(snapshot, view);
  } finally {
    snapshot.close();
  }
};
