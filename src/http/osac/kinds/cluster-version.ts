import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { valueAt, withoutValueAt, withValueAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { Creation } from '../creates.ts';
import { createDocument, documentRevision } from '../documents.ts';
import type { Revision } from '../updates.ts';

const IS_DEFAULT = 'spec.is_default';

/** Only admins choose the default, on the private surface; the previous one ceases to be it (osac-api.md §11). */
export const clusterVersionCreation: Creation<DocumentCommand> = {
  resolve: (object) => {
    const document =
      object.surface === 'public' ? withoutValueAt(object.document, IS_DEFAULT) : object.document;
    return {
      command: (secrets, abandonedBefore) =>
        createDocument({ ...object, document }, secrets, abandonedBefore),
    };
  },
};

/** What a public update says of the default is ignored, as on creation. */
export const clusterVersionRevision: Revision<DocumentCommand> = {
  command: (change) =>
    documentRevision.command(
      change.surface === 'public' ? { ...change, after: withDefaultOf(change.before, change.after) } : change,
    ),
};

const withDefaultOf = (before: JsonObject, after: JsonObject): JsonObject => {
  const stored = valueAt(before, IS_DEFAULT);
  return stored === undefined ? withoutValueAt(after, IS_DEFAULT) : withValueAt(after, IS_DEFAULT, stored);
};
