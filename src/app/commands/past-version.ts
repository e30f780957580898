import { setImmediate } from 'node:timers/promises';
import type { VersionedType } from '../../domain/document-version.ts';
import type { EventStore } from '../log/event-store.ts';
import { commandOf } from './loaded-streams.ts';

/** Events that are looked at in one go. */
const SLICE = 256;

/**
 * Last revision at which the document of a stream had a version that is older than the one it has at `now`. Undefined:
 * an earlier object with the same id had it, or the store no longer has its events. Versions are counted backwards from
 * `now` as `countVersion` counts them forwards, so that an edit of a moment ago costs a few events.
 */
export const revisionOfVersion = async (
  { store, typeOf }: { readonly store: Pick<EventStore, 'readStream'>; readonly typeOf: TypeOf },
  stream: string,
  now: { readonly revision: number; readonly version: number },
  wanted: number,
  signal?: AbortSignal,
): Promise<number | undefined> => {
  let { version } = now;
  let append = { commandId: '', counts: false };
  let seen = 0;
  const backwards = { from: now.revision, direction: 'backward', ...(signal && { signal }) } as const;
  for await (const event of store.readStream(stream, backwards)) {
    const { commandId } = commandOf(event);
    if (seen > 0 && commandId !== append.commandId) {
      if (append.counts) version -= 1;
      if (version === wanted) return event.revision;
      // Behind version 0 lies an earlier object.
      if (version < 0) return undefined;
      append = { commandId, counts: false };
    }
    const { changesDocument = true } = typeOf(event.type) ?? {};
    append = { commandId, counts: append.counts || changesDocument };
    seen += 1;
    if (seen % SLICE === 0) await setImmediate();
  }
  return undefined;
};

type TypeOf = (type: string) => VersionedType | undefined;
