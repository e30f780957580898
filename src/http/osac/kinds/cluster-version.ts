import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import { withoutValueAt } from '../../../domain/json-tools.ts';
import type { Creation } from '../creates.ts';
import { createDocument } from '../documents.ts';

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
