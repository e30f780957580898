import { kinds } from '../../src/domain/kinds.ts';

/** What a kind needs to be created by an admin, beside a name. */
type Sample = {
  readonly body: (name: string, around: Around) => object;
};
export type Around = { /** A user that nobody has named before. */ readonly user: () => string };

export const SPEC = { template: { id: 'osac.templates.small' } };
export const named = (name: string, more: object = {}): object => ({
  metadata: { name, tenant: 't1', ...more },
});
const b64 = (text: string): string => Buffer.from(text).toString('base64');

/** Of kinds that need more than their declared example. */
const OWN: { readonly [kind: string]: Sample } = {
  cluster: { body: (name) => ({ ...named(name), spec: { ...SPEC, pull_secret: '{"auths":{}}' } }) },
  clusterCatalogItem: {
    body: (name) => ({ ...named(name), title: 'Item', template: { id: 'osac.templates.small' } }),
  },
  clusterTemplate: {
    body: (name) => ({
      ...named(name),
      id: `osac.templates.${name.replaceAll('-', '_')}`,
      title: 'T',
      node_sets: { workers: { host_type: { id: 'fc430' }, size: 1 } },
      spec_defaults: { pull_secret: '{"auths":{}}' },
    }),
  },
  clusterVersion: {
    body: (name) => ({
      ...named(name),
      spec: { version: `4.19.${name.split('-').at(-1)}`, image: `quay.example/r:${name}` },
    }),
  },
  diskImage: {
    body: (name) => ({
      ...named(name),
      spec: {
        source_type: 'SOURCE_TYPE_REGISTRY',
        source_ref: 'quay.example/i:1',
        architecture: ['ARCHITECTURE_AMD64'],
      },
    }),
  },
  hub: { body: (name) => ({ ...named(name), spec: { namespace: 'osac', kubeconfig: b64('K') } }) },
  instanceType: {
    body: (name) => ({ metadata: { name }, spec: { cores: 2, memory_gib: 4, description: 'I' } }),
  },
  identityProvider: {
    body: (name) => ({
      ...named(name),
      spec: {
        title: 'IdP',
        oidc: { issuer: 'https://idp.example', client_id: 'c', client_secret: 'S3CRET' },
      },
    }),
  },
  projectMembership: {
    body: (name, { user }) => ({
      ...named(name, { project: 'house' }),
      spec: { role: 'PROJECT_MEMBERSHIP_ROLE_VIEWER', users: [{ id: user() }] },
    }),
  },
  role: { body: (name) => ({ metadata: { name }, spec: { title: 'R' } }) },
  roleBinding: {
    body: (name, { user }) => ({
      ...named(name),
      spec: { role: { name: 'house-role' }, users: [{ id: user() }] },
    }),
  },
  secret: { body: (name) => ({ ...named(name), data: { key: b64('value') } }) },
  tenant: { body: (name) => ({ metadata: { name }, spec: { domains: [`${name}.example`] } }) },
  user: {
    body: (name) => ({
      ...named(name),
      spec: { username: name, credentials: { password: 'pw-of-12-letters' } },
    }),
  },
};

export const KIND_SAMPLES: { readonly [kind: string]: Sample } = Object.fromEntries(
  kinds.map(({ kind, example }) => [
    kind,
    OWN[kind] ?? { body: (name: string) => ({ ...named(name), ...example }) },
  ]),
);
