import type { ClusterCommand } from '../../../domain/clusters/commands.ts';
import { clusterCreation, clusterRevision } from '../clusters.ts';
import { credentialHandler } from '../credentials.ts';
import { throughItems, withinItem } from '../catalogue.ts';
import type { KindParts, PartServices } from './kind-parts.ts';

/** Clusters: resolved against the catalogue; kubeconfig and password on the public surface only (OSAC). */
export const clusterParts = (services: PartServices): KindParts<ClusterCommand> => {
  const { catalogue, room } = services;
  return {
    creation: throughItems(clusterCreation(catalogue, room, services), catalogue),
    revision: withinItem(clusterRevision(catalogue, room), catalogue, services.resources),
    removal: { command: (at) => ({ type: 'DeleteCluster', at }) },
    handlers: {
      kubeconfig: credentialHandler('kubeconfig', services),
      password: credentialHandler('password', services),
    },
  };
};
