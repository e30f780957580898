import type { DocumentCommand, Secrets } from '../../domain/catalog/document.ts';
import type { Creation, NewObject } from './creates.ts';
import { documentOf, type Revision } from './updates.ts';

/** Creation of catalogue-like kinds: one for all, unless a kind has its own in `kinds/`. */
export const documentCreation: Creation<DocumentCommand> = {
  resolve: (object) => ({
    command: (secrets, abandonedBefore) => createDocument(object, secrets, abandonedBefore),
  }),
};

export const createDocument = (
  { id, at, tenant, project, name, creator, document }: NewObject,
  secrets: Secrets,
  abandonedBefore: number,
): DocumentCommand => ({
  type: 'CreateDocument',
  id,
  at,
  tenant,
  project,
  name,
  creator,
  document,
  ...(Object.keys(secrets).length === 0 ? {} : { secrets }),
  abandonedBefore,
});

export const documentRevision: Revision<DocumentCommand> = {
  command: (change) => ({
    type: 'ReviseDocument',
    at: change.at,
    document: documentOf(change),
    ...(Object.keys(change.secrets).length === 0 ? {} : { secrets: change.secrets }),
  }),
};
