import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import type { Creation, CreateServices } from '../creates.ts';
import type { Removal } from '../deletes.ts';
import type { Revision } from '../updates.ts';
import { clusterVersionCreation } from './cluster-version.ts';
import { tenantCreation, tenantInUse } from './tenant.ts';
import { userCreation, userRevision } from './user.ts';

/** What a kind that shares the document decider does in its own way; everything else is common. */
export type DocumentParts = {
  readonly creation?: Creation<DocumentCommand>;
  readonly revision?: Revision<DocumentCommand>;
  readonly removal?: Partial<Removal<DocumentCommand>>;
};

/** By kind. One file per kind stands beside this one. */
export const documentParts: { readonly [kind: string]: (services: CreateServices) => DocumentParts } = {
  clusterVersion: () => ({ creation: clusterVersionCreation }),
  tenant: (services) => ({
    creation: tenantCreation(services),
    removal: { blocked: tenantInUse(services) },
  }),
  user: (services) => ({ creation: userCreation, revision: userRevision(services) }),
};
