import { createHmac } from 'node:crypto';
import { configVersion } from '../../../../../domain/clusters/config-version.ts';
import {
  CLUSTER_ORDER,
  HOSTED_CLUSTER,
  type ClusterOrderManifest,
  type ClusterOrderSpec,
} from '../../../../../domain/clusters/hub-objects.ts';
import { SECRET } from '../../../../../domain/hubs/hub-objects.ts';
import type { Behaviour, Beside } from '../behaviour.ts';
import { live, type OrderLife } from './life.ts';
import { checkManifest, patchSpec } from './spec.ts';
import {
  kubeconfigSecret,
  passwordSecret,
  type Hosted,
  type OrderRecord,
  hostedNamespace,
  observedHosted,
} from './status-view.ts';

/**
 * The Secrets that HyperShift puts beside an available HostedCluster (OSAC's operator), derived from the
 * hub's own random secret, so that every read gives the same value and nothing more has to be stored.
 */
const readCredential = (
  record: OrderRecord,
  hosted: Hosted,
  hubSecret: string,
  secretName: string,
  key: string,
): string | undefined => {
  if (!hosted.available) return undefined;
  const derive = (purpose: string, encoding: 'hex' | 'base64url'): string =>
    createHmac('sha256', hubSecret).update(`${purpose}/${record.uid}`).digest(encoding);
  if (secretName === kubeconfigSecret(record.name) && key === 'kubeconfig') {
    return kubeconfig(record, derive('admin-token', 'hex'));
  }
  if (secretName === passwordSecret(record.name) && key === 'password') {
    // The shape of a kubeadmin password: four groups of five.
    return derive('password', 'base64url')
      .replace(/[-_]/g, 'x')
      .slice(0, 20)
      .replace(/(.{5})(?=.)/g, '$1-');
  }
  return undefined;
};

const kubeconfig = (record: OrderRecord, token: string): string => `apiVersion: v1
kind: Config
clusters:
  - name: ${record.name}
    cluster:
      server: https://api.${record.name}.${record.baseDomain}:6443
contexts:
  - name: admin
    context:
      cluster: ${record.name}
      namespace: default
      user: admin
current-context: admin
users:
  - name: admin
    user:
      token: ${token}
`;

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
