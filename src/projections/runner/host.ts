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

/** A copy that is built, checked, and then followed like any other. */
export type RebuildingCopy = RunningCopy & { readonly checked: Promise<CheckReport> };

/** Does the work on one view's copies: in worker threads in production, inline for specs and the simulation. */
export type CopyHost = {
  readonly follow: (copy: string, onProgress: OnProgress) => RunningCopy;
  /** `live` is the copy of the same version to compare with; undefined: there is none, the log is compared with. */
  readonly rebuild: (copy: string, live: string | undefined, onProgress: OnProgress) => RebuildingCopy;
  readonly digest: (copy: string) => Promise<Digest>;
};

export const inlineHost = (
  view: View,
  storage: Storage,
  reader: LogReader,
  pace: CopyContext['pace'],
): CopyHost => ({
  follow: (copy, onProgress) => followInto(copy, { view, storage, reader, pace, onProgress }),
  rebuild: (copy, live, onProgress) => rebuildInto(copy, live, { view, storage, reader, pace, onProgress }),
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

/** Builds, checks, and goes on following, so that whoever asked for it can switch to it at any moment. */
export const rebuildInto = (copy: string, live: string | undefined, context: CopyContext): RebuildingCopy => {
  const controller = new AbortController();
  const checked = buildAndCheck(copy, live, context, controller.signal);
  let following: RunningCopy | undefined;
  const done = checked.then(() => {
    if (controller.signal.aborted) return undefined;
    following = followInto(copy, context);
    return following.done;
  });
  return {
    checked,
    done,
    retryParked: (stream) => following?.retryParked(stream) ?? Promise.resolve(false),
    stop: async () => {
      controller.abort();
      await following?.stop();
      await done.catch(() => undefined); // whoever holds `done` was told
    },
  };
};
