import {
  CLUSTER_ORDER,
  HOSTED_CLUSTER,
  type ClusterOrderManifest,
  type ClusterOrderSpec,
} from '../../../../../domain/clusters/hub-objects.ts';
import { configVersion } from '../../../../../domain/clusters/config-version.ts';
import { SECRET } from '../../../../../domain/hubs/hub-objects.ts';
import type { Behaviour, Beside } from '../behaviour.ts';
import { readCredential } from './credentials.ts';
import { live, type OrderLife } from './life.ts';
import {
  hostedNamespace,
  kubeconfigSecret,
  observedHosted,
  passwordSecret,
  type OrderRecord,
} from './status-view.ts';
import { checkManifest, patchSpec } from './spec.ts';

const inHostedNamespace: Beside['isOf'] = (record, { namespace }) => hostedNamespace(record) === namespace;
const hostedOf = (life: object) => (life as OrderLife).beside;

const orderOfSecret = (secretName: string): string => {
  for (const suffix of [kubeconfigSecret(''), passwordSecret('')]) {
    if (secretName.endsWith(suffix)) return secretName.slice(0, -suffix.length);
  }
  return secretName;
};

/** ClusterOrders with the operator's, the automation's and HyperShift's part of their lives. */
export const clusterOrderBehaviour: Behaviour = {
  kind: CLUSTER_ORDER,
  check: (manifest) => checkManifest(manifest as ClusterOrderManifest),
  merge: (name, current, change) => patchSpec(name, current as ClusterOrderSpec, change),
  versionOf: (spec) => configVersion(spec as ClusterOrderSpec),
  live: (record, onVersion) => live(record as OrderRecord, onVersion),
  beside: [
    {
      kind: HOSTED_CLUSTER,
      recordName: (name) => name,
      isOf: inHostedNamespace,
      shown: (record, life) => {
        const hosted = hostedOf(life);
        return hosted === undefined ? undefined : observedHosted(record as OrderRecord, hosted);
      },
    },
    {
      kind: SECRET,
      recordName: orderOfSecret,
      isOf: inHostedNamespace,
      shown: (record, life, { name, key, hubSecret }) => {
        const hosted = hostedOf(life);
        return hosted === undefined
          ? undefined
          : readCredential(record as OrderRecord, hosted, hubSecret, name, key);
      },
    },
  ],
};
