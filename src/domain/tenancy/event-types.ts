import type { EventType } from '../event-type.ts';
import { list, text, typesOf } from '../schemas.ts';

/** Who is about to create something in a project (`project-entry.ts`). */
export const projectEntryTypes: readonly EventType[] = typesOf(
  { context: 'tenancy', audience: 'internal', resource: 'project', changesDocument: false },
  { ProjectEntered: { stream: text, left: list.exactOptional() } },
);
