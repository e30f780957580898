import type { LogReader } from '../log-reader.ts';
import type { View } from '../view.ts';
import {
  buildAndCompare,
  followInto,
  verify,
  type CheckReport,
  type CopyContext,
  type CopyProgress,
  type RunningCopy,
} from './copy.ts';
import { digestOf, type Digest } from './digest.ts';
import type { Storage } from './storage.ts';

export type OnProgress = (progress: CopyProgress) => void;

/** A copy that is built, checked against the live one, and then followed like any other. */
export type RebuildingCopy = RunningCopy & { readonly checked: Promise<CheckReport> };

/** Does the work on one view's copies: in worker threads in production, inline for specs and the simulation. */
export type CopyHost = {
  readonly follow: (copy: string, onProgress: OnProgress) => RunningCopy;
  readonly rebuild: (copy: string, live: string, onProgress: OnProgress) => RebuildingCopy;
  /** Checks a fresh copy that has caught up and that nothing can be compared with. */
  readonly verify: (copy: string) => Promise<CheckReport>;
  readonly digest: (copy: string) => Promise<Digest>;
};

export const inlineHost = (
  view: View,
  storage: Storage,
  reader: LogReader,
  pace: CopyContext['pace'],
): CopyHost => {
  const onSnapshot = async <Result>(
    copy: string,
    work: (db: ReturnType<Storage['snapshot']>) => Result | Promise<Result>,
  ): Promise<Result> => {
    const snapshot = storage.snapshot(copy);
    try {
      return await work(snapshot);
    } finally {
      snapshot.close();
    }
  };
  return {
    follow: (copy, onProgress) => followInto(copy, { view, storage, reader, pace, onProgress }),
    rebuild: (copy, live, onProgress) => rebuildInto(copy, live, { view, storage, reader, pace, onProgress }),
    verify: (copy) => onSnapshot(copy, (db) => verify(db, view, reader)),
    digest: (copy) => onSnapshot(copy, (db) => digestOf(db, view)),
  };
};

/** Builds, checks, and goes on following, so that whoever asked for it can switch to it at any moment. */
export const rebuildInto = (copy: string, live: string, context: CopyContext): RebuildingCopy => {
  const controller = new AbortController();
  const checked = buildAndCompare(copy, live, context, controller.signal);
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
