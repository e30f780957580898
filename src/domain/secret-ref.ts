/** Reference to a secret value; the only form in which a secret appears in events (fleet-and-networks.md §1.9). */
export type SecretRef = {
  readonly id: string;
  readonly version: string;
  readonly kind:
    | 'kubeconfig'
    | 'pull-secret'
    | 'break-glass-password'
    | 'admin-password'
    | 'user-password'
    | 'client-secret'
    | 'secret-data';
  /** HMAC-SHA-256 of the value under the deployment key, first 16 hex digits. */
  readonly fingerprint: string;
  /** Tenant that the value is stored under, when it is not the tenant of the document (a template's default). */
  readonly tenant?: string;
};
