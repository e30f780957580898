import { HubError, type ManagementCluster, type StoredMark } from '../../../app/hubs/management-cluster.ts';
import { MARK_DURATION_MS, type HubMark } from '../../../domain/hubs/mark.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { objectAt, stringAt } from '../../../domain/json-tools.ts';
import { apiVersionOf } from '../../../domain/hubs/hub-object.ts';
import { LEASE, MARK_NAME } from '../../../domain/hubs/hub-objects.ts';
import type { Api } from './api.ts';

const ANNOTATION = 'fulfillment-ledger/';

export type MarkOperations = Pick<ManagementCluster, 'readMark' | 'writeMark'>;

/** The mark of the deployment that drives the hub: a Lease, so that `kubectl get leases` shows who and since when. */
export const markOperations = (api: Api, namespace: string): MarkOperations => ({
  readMark: async (by) => {
    const lease = await api.get(LEASE, { namespace, name: MARK_NAME }, by);
    return lease === undefined ? undefined : storedMark(lease);
  },
  writeMark: async (mark, over, by) => {
    const lease = leaseOf(mark, namespace, over);
    try {
      const stored = await (over === undefined
        ? api.create(LEASE, lease, by)
        : api.replace(LEASE, lease, by));
      return stringAt(objectAt(stored, 'metadata'), 'resourceVersion');
    } catch (error) {
      if (error instanceof HubError && LOST.includes(error.kind)) return undefined;
      // It was removed since it was read; a namespace that is not there says so at the next creation.
      if (over !== undefined && error instanceof HubError && error.kind === 'not-found') return undefined;
      throw error;
    }
  },
});

const LOST: readonly HubError['kind'][] = ['already-exists', 'conflict'];

const leaseOf = (mark: HubMark, namespace: string, resourceVersion: string | undefined): JsonObject => ({
  apiVersion: apiVersionOf(LEASE),
  kind: LEASE.kind,
  metadata: {
    name: MARK_NAME,
    namespace,
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    annotations: {
      [`${ANNOTATION}deployment-id`]: mark.deploymentId,
      [`${ANNOTATION}deployment-name`]: mark.name,
      [`${ANNOTATION}former-ids`]: mark.formerIds.join(','),
      [`${ANNOTATION}epoch`]: String(mark.epoch),
      [`${ANNOTATION}nonce`]: mark.nonce,
      [`${ANNOTATION}holder`]: mark.holder,
    },
  },
  spec: {
    // As leader election has it: nobody holds what was released.
    holderIdentity: mark.released ? '' : mark.holder,
    leaseDurationSeconds: MARK_DURATION_MS / 1000,
    renewTime: mark.renewedAt.replace(/Z$/, '000Z'),
  },
});

/** A Lease of this name without what we write is foreign: nobody's deployment, held by whom it says. */
const storedMark = (lease: JsonObject): StoredMark => {
  const metadata = objectAt(lease, 'metadata');
  const spec = objectAt(lease, 'spec');
  const told = (key: string): string => stringAt(objectAt(metadata, 'annotations'), `${ANNOTATION}${key}`);
  const formerIds = told('former-ids');
  return {
    version: stringAt(metadata, 'resourceVersion'),
    mark: {
      deploymentId: told('deployment-id'),
      name: told('deployment-name'),
      formerIds: formerIds === '' ? [] : formerIds.split(','),
      epoch: Number(told('epoch')) || 0,
      nonce: told('nonce'),
      holder: told('holder'),
      renewedAt: stringAt(spec, 'renewTime'),
      released: stringAt(spec, 'holderIdentity') === '',
    },
  };
};
