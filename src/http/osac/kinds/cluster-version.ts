import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { valueAt, withoutValueAt, withValueAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { invalid, type ApiError } from '../../errors.ts';
import type { Creation } from '../creates.ts';
import { createDocument, documentRevision } from '../documents.ts';
import type { Revision } from '../updates.ts';

const IS_DEFAULT = 'spec.is_default';

/** The public message has no release image (OSAC), and a version without one cannot be ordered. */
const withoutImage = (): ApiError =>
  invalid(
    'a version needs a release image, which public versions do not show: create it on the private surface',
    'spec.image',
  );

/** Only the private surface creates versions and chooses the default; the previous one ceases to be it. */
export const clusterVersionCreation: Creation<DocumentCommand> = {
  resolve: (object) => {
    if (object.surface === 'public') throw withoutImage();
    return {
      command: (secrets, abandonedBefore) => createDocument(object, secrets, abandonedBefore),
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
