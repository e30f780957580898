import { listAt, objectAt, stringAt } from '../../domain/json-tools.ts';
import type { EventStore } from '../log/event-store.ts';
import { followEvents, type FindLeaves } from './rare-events.ts';
import type { Rest } from './tenant-heads.ts';

/** One erasure, as far as the log tells. */
export type ListedErasure = {
  readonly id: string;
  readonly subjectId: string;
  readonly tenant: string;
  /** All in whose history the subject appeared then; empty: only `tenant`. */
  readonly tenants: readonly string[];
  readonly reason: string;
  readonly requestId: string;
  readonly begunAt: string;
  /** Subject who asked for it. */
  readonly by: string;
  /** When the key was destroyed. */
  readonly completedAt?: string;
};

/** Every erasure that ever began, oldest first: what is over is no state of the aggregate any more. */
export type ErasureLog = { list(signal?: AbortSignal): Promise<readonly ListedErasure[]> };

export const createErasureLog = ({
  store,
  find,
  rest,
}: {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly find: FindLeaves;
  readonly rest: Rest;
}): ErasureLog => {
  const known = new Map<string, ListedErasure>();
  const followed = followEvents({
    store,
    find,
    rest,
    types: ['ErasureBegun', 'SubjectKeyDestroyed'],
    see: ({ type, data, metadata }) => {
      const id = stringAt(data, 'erasureId');
      const begun = known.get(id);
      if (type === 'SubjectKeyDestroyed') {
        if (begun !== undefined) known.set(id, { ...begun, completedAt: stringAt(data, 'at') });
        return;
      }
      known.set(id, {
        id,
        subjectId: stringAt(data, 'subjectId'),
        tenant: stringAt(data, 'tenant'),
        tenants: listAt(data, 'tenants').map(String),
        reason: stringAt(data, 'reason'),
        requestId: stringAt(data, 'requestId'),
        begunAt: stringAt(data, 'at'),
        by: stringAt(objectAt(metadata, 'actor'), 'subjectId'),
      });
    },
  });
  return {
    list: async (signal) => {
      await followed.catchUp(signal);
      return [...known.values()];
    },
  };
};
