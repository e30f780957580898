import { z } from 'zod';
import type { EventType } from './event-type.ts';
import { listOf, text, typesOf, type EventOf, type Shapes } from './schemas.ts';

export const REFERENCES_ANNOUNCED = 'ReferencesAnnounced';
export const DELETION_ANNOUNCED = 'DeletionAnnounced';

const SHAPES = {
  /** The next event of this stream makes its object refer to these. */
  [REFERENCES_ANNOUNCED]: { targets: listOf(z.strictObject({ kind: text, id: text })) },
  /** The next event of this stream deletes its object. */
  [DELETION_ANNOUNCED]: {},
  /** What was announced does not come any more: an append that still expects the former revision fails. */
  AnnouncementWithdrawn: {},
} as const satisfies Shapes;

/**
 * What is about to happen to an object, said in its own stream beforehand on a log with other writers, so that who refers
 * to an object and who deletes it see each other (`app/references`). It counts only while it is the last event of
 * the stream: whatever follows ends it. No document changes by it.
 */
export type Announcement = EventOf<typeof SHAPES>;

export const announcementTypes: readonly EventType[] = typesOf(
  { context: 'naming', audience: 'internal', changesDocument: false },
  SHAPES,
);
