import type { CreateServices } from '../creates.ts';
import {
  bareMetalCreation,
  bareMetalRevision,
  bareMetalTemplateCreation,
  bareMetalTemplateRevision,
  OFFERED_BARE_METAL,
} from './bare-metal-instance.ts';
import { catalogItemCreation, catalogItemRevision, hidingUnpublished, type Offered } from './catalog-item.ts';
import { offeredClusters } from './cluster-catalog-item.ts';
import { clusterParts } from './cluster.ts';
import { clusterVersionCreation, clusterVersionRevision } from './cluster-version.ts';
import {
  boundUsersCreation,
  boundUsersRevision,
  roleBindingCreation,
  roleBindingRevision,
} from './bound-users.ts';
import { attachmentCreation } from './external-ip-attachment.ts';
import { OFFERED_INSTANCES } from './compute-instance-catalog-item.ts';
import { instanceCreation, instanceRevision } from './compute-instance.ts';
import { externalIpCreation, hidingUnoffered, placedCreation } from './external-ip.ts';
import { hubCreation, hubHoldsTenants, hubRevision } from './hub.ts';
import type { KindParts, PartServices } from './kind-parts.ts';
import { inNetworkCreation, virtualNetworkCreation } from './networks.ts';
import { natGatewayCreation } from './nat-gateway.ts';
import { projectRemoval } from './project.ts';
import { tierCreation, tierRevision, volumeCreation } from './storage.ts';
import { belongingsOf, settleTenant, tenantCreation, tenantInUse } from './tenant.ts';
import { userCreation, userRevision } from './user.ts';

const boundUsers = (services: CreateServices): KindParts => ({
  creation: boundUsersCreation(services),
  revision: boundUsersRevision(services),
});

const catalogItems = (services: PartServices, offered: Offered): KindParts => ({
  creation: catalogItemCreation(services, offered),
  revision: catalogItemRevision(services, offered),
  serving: (service, surface) => (surface === 'public' ? hidingUnpublished(service, services) : service),
});

/** By kind. One file per kind stands beside this one. */
export const kindParts: { readonly [kind: string]: (services: PartServices) => KindParts } = {
  // Its commands are more than those of documents.
  bareMetalInstance: (services) =>
    ({
      creation: bareMetalCreation(services),
      revision: bareMetalRevision(services),
    }) as unknown as KindParts,
  bareMetalInstanceCatalogItem: (services) => catalogItems(services, OFFERED_BARE_METAL),
  bareMetalInstanceTemplate: (services) => ({
    creation: bareMetalTemplateCreation(services),
    revision: bareMetalTemplateRevision(services),
  }),
  // Its commands are its own; nobody gives them but its own parts.
  cluster: (services) => clusterParts(services) as unknown as KindParts,
  clusterCatalogItem: (services) => catalogItems(services, offeredClusters(services)),
  clusterVersion: () => ({ creation: clusterVersionCreation, revision: clusterVersionRevision }),
  // Its commands are more than those of documents.
  computeInstance: (services) =>
    ({ creation: instanceCreation(services), revision: instanceRevision(services) }) as unknown as KindParts,
  computeInstanceCatalogItem: (services) => catalogItems(services, OFFERED_INSTANCES),
  externalIp: (services) => ({ creation: externalIpCreation(services) }),
  externalIpAttachment: (services) => ({ creation: attachmentCreation(services) }),
  externalIpPool: (services) => ({
    creation: placedCreation(services.room, services),
    serving: (service, surface) => (surface === 'public' ? hidingUnoffered(service, services) : service),
  }),
  hub: (services) => ({
    creation: hubCreation(services.hubs.refusesSimulated === true),
    revision: hubRevision({ ...services, ...services.hubs }),
    removal: { blocked: hubHoldsTenants(services) },
  }),
  natGateway: (services) => ({ creation: natGatewayCreation(services) }),
  project: (services) => ({ removal: projectRemoval(services) }),
  projectMembership: boundUsers,
  roleBinding: (services) => ({
    creation: roleBindingCreation(services),
    revision: roleBindingRevision(services),
  }),
  storageTier: (services) => ({
    creation: tierCreation(services),
    revision: tierRevision(services),
  }),
  securityGroup: (services) => ({ creation: inNetworkCreation(services) }),
  subnet: (services) => ({ creation: inNetworkCreation(services) }),
  tenant: (services) => {
    const belongings = belongingsOf(services);
    return {
      creation: tenantCreation(services),
      removal: { blocked: tenantInUse(services) },
      after: settleTenant(belongings),
    };
  },
  volume: (services) => ({ creation: volumeCreation(services) }),
  user: (services) => ({ creation: userCreation(services), revision: userRevision(services) }),
  virtualNetwork: (services) => ({ creation: virtualNetworkCreation(services, services.room) }),
};
