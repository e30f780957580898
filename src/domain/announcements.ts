import type { DomainEvent } from './decider.ts';
import type { EventType } from './event-type.ts';
import { text, typesOf } from './schemas.ts';
import { z } from 'zod';

/**
 * What is about to happen to an object, said in its own stream beforehand on a log with other writers, so that who refers
 * to an object and who deletes it see each other (`app/announcements.ts`). It counts only while it is the last event of
 * the stream: whatever follows ends it. No document changes by it.
 */
export type Announcement =
  /** The next event of this stream makes its object refer to these. */
  | DomainEvent<
      'ReferencesAnnounced',
      { readonly at: string; readonly targets: readonly { readonly kind: string; readonly id: string }[] }
    >
  /** The next event of this stream deletes its object. */
  | DomainEvent<'DeletionAnnounced', { readonly at: string }>
  /** What was announced does not come any more: an append that still expects the former revision fails. */
  | DomainEvent<'AnnouncementWithdrawn', { readonly at: string }>;

export const REFERENCES_ANNOUNCED = 'ReferencesAnnounced';
export const DELETION_ANNOUNCED = 'DeletionAnnounced';

export const announcementTypes: readonly EventType[] = typesOf(
  { context: 'naming', audience: 'internal', changesDocument: false },
  [
    [REFERENCES_ANNOUNCED, { targets: z.array(z.strictObject({ kind: text, id: text })) }],
    [DELETION_ANNOUNCED, {}],
    ['AnnouncementWithdrawn', {}],
  ],
);
