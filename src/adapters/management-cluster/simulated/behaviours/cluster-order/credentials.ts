import { createHmac } from 'node:crypto';
import { kubeconfigSecret, passwordSecret, type Hosted, type OrderRecord } from './status-view.ts';

/**
 * The Secrets that HyperShift puts beside an available HostedCluster (OSAC's operator), derived from the
 * hub's own random secret, so that every read gives the same value and nothing more has to be stored.
 */
export const readCredential = (
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
