/** What secrets are for: a value is sealed for one kind and opens as no other. */
export const SECRET_KINDS = [
  'kubeconfig',
  'pull-secret',
  'break-glass-password',
  'admin-password',
  'user-password',
  'client-secret',
  'secret-data',
  'user-data',
  'automation-token',
  'automation-key',
  'storage-credentials',
] as const;

/** Reference to a secret value; the only form in which a secret appears in events. */
export type SecretRef = {
  readonly id: string;
  readonly version: string;
  readonly kind: (typeof SECRET_KINDS)[number];
  /** HMAC-SHA-256 of the value under the deployment key, first 16 hex digits. */
  readonly fingerprint: string;
  /** Tenant that the value is stored under, when it is not the tenant of the document (a template's default). */
  readonly tenant?: string;
};
