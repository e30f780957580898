import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import type { HubProblemFact } from './health-events.ts';

/**
 * Which cluster a hub is: the uid of its namespace `kube-system`, which is made with a cluster, cannot be deleted, and
 * comes back with a restored backup. The stock role may read it (OSAC's operator). Recorded by the first look;
 * a cluster with another one is another hub, whose orders say nothing about ours.
 */
export const IDENTITY_NAMESPACE = 'kube-system';

/**
 * Annotation of a hub that was rebuilt: the uid of the cluster that it is now. It wins over what was recorded, so that
 * credentials of that cluster, and of no other, are taken.
 */
export const CLUSTER_ANNOTATION = 'fulfillment-ledger/cluster';

/** Undefined: the document does not say which cluster the hub is. */
export const acceptedCluster = (document: JsonObject): string | undefined =>
  stringAt(objectAt(objectAt(document, 'metadata'), 'annotations'), CLUSTER_ANNOTATION) || undefined;

/** The cluster that answers is another one than the hub is known to be. Nothing of it is a credential. */
export const differentCluster = (expected: string, seen: string): HubProblemFact => ({
  code: 'DifferentCluster',
  message:
    `another cluster answers: its namespace ${IDENTITY_NAMESPACE} has uid ${seen}, that of the hub ${expected}; correct ` +
    `the kubeconfig or its address. If the hub was rebuilt, its orders are gone from it; then accept it: ledgerctl hubs ` +
    `credentials <id> --accept-cluster ${seen}, with --kubeconfig where that is new`,
  subject: seen,
});
