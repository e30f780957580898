import type { EventType } from '../event-type.ts';
import { list, text, typesOf, type Shapes } from '../schemas.ts';

export const PROJECT_ENTRY = {
  ProjectEntered: { stream: text, left: list.exactOptional() },
} as const satisfies Shapes;

/** Who is about to create something in a project. */
export const projectEntryTypes: readonly EventType[] = typesOf(
  { context: 'tenancy', audience: 'internal', resource: 'project', changesDocument: false },
  PROJECT_ENTRY,
);
