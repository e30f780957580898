import type { JsonSchemas } from '../../../app/json-schema/json-schemas.ts';
import type { DocumentCommand } from '../../../domain/catalog/document.ts';
import type { AfterWrite } from '../after-write.ts';
import type { Creation, CreateServices } from '../creates.ts';
import type { HubAdapters } from '../credentials.ts';
import type { Removal } from '../deletes.ts';
import type { Surface } from '../messages.ts';
import type { KindService } from '../rest.ts';
import type { RoomCheck } from '../room-check.ts';
import type { Revision } from '../updates.ts';
import { catalogItemCreation, catalogItemRevision, hidingUnpublished } from './cluster-catalog-item.ts';
import { clusterVersionCreation, clusterVersionRevision } from './cluster-version.ts';
import {
  boundUsersCreation,
  boundUsersRevision,
  roleBindingCreation,
  roleBindingRevision,
} from './bound-users.ts';
import { externalIpCreation, hidingUnoffered, poolCreation } from './external-ip.ts';
import { hubCreation, hubRevision } from './hub.ts';
import { projectRemoval } from './project.ts';
import { belongingsOf, settleTenant, tenantCreation, tenantInUse } from './tenant.ts';
import { userCreation, userRevision } from './user.ts';

/** What a kind that shares the document decider does in its own way; everything else is common. */
export type DocumentParts = {
  readonly creation?: Creation<DocumentCommand>;
  readonly revision?: Revision<DocumentCommand>;
  readonly removal?: Partial<Removal<DocumentCommand>>;
  readonly after?: AfterWrite;
  /** What it serves in its own way, on one surface. */
  readonly serving?: (service: KindService, surface: Surface) => KindService;
};

export type PartServices = CreateServices & {
  readonly schemas: JsonSchemas;
  readonly hubs: HubAdapters;
  readonly room: RoomCheck;
};

const boundUsers = (services: CreateServices): DocumentParts => ({
  creation: boundUsersCreation(services),
  revision: boundUsersRevision(services),
});

/** By kind. One file per kind stands beside this one. */
export const documentParts: { readonly [kind: string]: (services: PartServices) => DocumentParts } = {
  clusterCatalogItem: (services) => ({
    creation: catalogItemCreation(services),
    revision: catalogItemRevision(services),
    serving: (service, surface) => (surface === 'public' ? hidingUnpublished(service, services) : service),
  }),
  clusterVersion: () => ({ creation: clusterVersionCreation, revision: clusterVersionRevision }),
  externalIp: (services) => ({ creation: externalIpCreation(services) }),
  externalIpPool: (services) => ({
    creation: poolCreation(services.room),
    serving: (service, surface) => (surface === 'public' ? hidingUnoffered(service, services) : service),
  }),
  hub: (services) => ({
    creation: hubCreation(services.hubs.refusesSimulated === true),
    revision: hubRevision({ ...services, ...services.hubs }),
  }),
  project: (services) => ({ removal: projectRemoval(services) }),
  projectMembership: boundUsers,
  roleBinding: (services) => ({
    creation: roleBindingCreation(services),
    revision: roleBindingRevision(services),
  }),
  tenant: (services) => {
    const belongings = belongingsOf(services);
    return {
      creation: tenantCreation(services, belongings),
      removal: { blocked: tenantInUse(services) },
      after: settleTenant(belongings),
    };
  },
  user: (services) => ({ creation: userCreation(services), revision: userRevision(services) }),
};
