const b64 = (text: string): string => Buffer.from(text).toString('base64');

/** How a kind gets, changes and loses a value. */
export type SecretSubject = {
  readonly kind: string;
  readonly collection: string;
  readonly body: (value: string) => object;
  readonly change: (value: string) => object;
  readonly clear: object;
};

/** One of each kind that keeps secrets, and the metadata of others; `next` gives numbers that were not given before. */
export const secretSubjects = (next: () => number) => {
  const metadata = () => ({ name: `n-${next()}`, tenant: 't1' });
  const oidc = (secret: string) => ({
    title: 'I',
    oidc: { issuer: 'https://idp.example', client_id: 'c', client_secret: secret },
  });
  const SUBJECTS: readonly SecretSubject[] = [
    {
      kind: 'identityProvider',
      collection: 'identity_providers',
      body: (value) => ({ metadata: metadata(), spec: oidc(value) }),
      change: (value) => ({ spec: { oidc: { client_secret: value } } }),
      clear: { spec: { oidc: { client_secret: null } } },
    },
    {
      kind: 'user',
      collection: 'users',
      body: (value) => ({ metadata: metadata(), spec: { username: 'u', credentials: { password: value } } }),
      change: (value) => ({ spec: { credentials: { password: value } } }),
      clear: { spec: { credentials: { password: null } } },
    },
    {
      kind: 'hub',
      collection: 'hubs',
      body: (value) => ({
        metadata: { name: metadata().name },
        spec: { namespace: 'osac', kubeconfig: b64(value) },
      }),
      change: (value) => ({ spec: { kubeconfig: b64(value) } }),
      clear: {},
    },
    {
      kind: 'clusterTemplate',
      collection: 'cluster_templates',
      body: (value) => ({
        id: `osac.templates.t${next()}`,
        title: 'T',
        node_sets: { workers: { host_type: { id: 'fc430' }, size: 1 } },
        spec_defaults: { pull_secret: value },
      }),
      change: (value) => ({ spec_defaults: { pull_secret: value } }),
      clear: { spec_defaults: { pull_secret: null } },
    },
    {
      kind: 'secret',
      collection: 'secrets',
      body: (value) => ({ metadata: metadata(), data: { 'pull-secret': b64(value), other: b64('o') } }),
      change: (value) => ({ data: { 'pull-secret': b64(value), 'a.data.b': b64(value) } }),
      clear: { data: { 'pull-secret': b64('last') } },
    },
    {
      kind: 'cluster',
      collection: 'clusters',
      body: (value) => ({
        metadata: metadata(),
        spec: { template: { id: 'osac.templates.small' }, pull_secret: value },
      }),
      change: (value) => ({ spec: { pull_secret: value } }),
      clear: { spec: { pull_secret: null } },
    },
  ];
  return { metadata, SUBJECTS };
};
