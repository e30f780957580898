import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { text, typesOf } from '../schemas.ts';

/** Who is about to create something in a project (`project-entry.ts`). */
export const projectEntryTypes: readonly EventType[] = typesOf(
  { context: 'tenancy', audience: 'internal', resource: 'project', changesDocument: false },
  [['ProjectEntered', { stream: text, left: z.array(text).exactOptional() }]],
);
