import { kinds } from '../../../src/domain/kinds.ts';
import { PRIVATE } from './caller.ts';

/** What a kind needs to be created by an admin, beside a name. */
type Sample = {
  /** What has to be said of it before tenants see it, or before it can be deleted. */
  readonly settled?: object;
  readonly body: (name: string, around: Around) => object;
};
export type Around = { /** A user that nobody has named before. */ readonly user: () => string };

export const SPEC = { template: { id: 'osac.templates.small' } };
export const named = (name: string, more: object = {}): object => ({
  metadata: { name, tenant: 't1', ...more },
});
const b64 = (text: string): string => Buffer.from(text).toString('base64');

const TIER = { backends: [{ backend_id: 'house-backend', protocol: 'STORAGE_PROTOCOL_NFS' }] };
const READY_POOL = { status: { state: 'EXTERNAL_IP_POOL_STATE_READY' } };

/** The pool that external IPs are taken from, and the tier of volumes. */
export const makeHousePool = async (
  admin: (
    verb: string,
    path: string,
    body: object,
  ) => Promise<{ readonly status: number; readonly text: string }>,
): Promise<void> => {
  const spec = { cidrs: ['192.0.2.0/24'], ip_family: 'IP_FAMILY_IPV4' };
  const path = `${PRIVATE}/external_ip_pools`;
  const backend = {
    provider: 'ceph',
    endpoint: 'https://ceph.example',
    credentials: { username: 'u', password: 'p' },
  };
  for (const [verb, at, body] of [
    ['POST', path, { id: 'house-pool', metadata: { name: 'house-pool' }, spec }],
    ['PATCH', `${path}/house-pool`, READY_POOL],
    [
      'POST',
      `${PRIVATE}/storage_backends`,
      { id: 'house-backend', metadata: { name: 'house-backend' }, spec: backend },
    ],
    ['POST', `${PRIVATE}/storage_tiers`, { metadata: { name: 'house-tier' }, spec: TIER }],
  ] as const) {
    const reply = await admin(verb, at, body);
    if (reply.status !== 200) throw new Error(reply.text);
  }
};

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
  externalIp: {
    settled: { status: { state: 'EXTERNAL_IP_STATE_ALLOCATED' } },
    body: (name) => ({ ...named(name), spec: { pool: { id: 'house-pool' } } }),
  },
  externalIpPool: {
    settled: READY_POOL,
    body: (name) => ({
      ...named(name),
      spec: { cidrs: ['192.0.2.0/24'], ip_family: 'IP_FAMILY_IPV4' },
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
  storageTier: { body: (name) => ({ ...named(name), spec: TIER }) },
  tenant: { body: (name) => ({ metadata: { name }, spec: { domains: [`${name}.example`] } }) },
  user: {
    body: (name) => ({
      ...named(name),
      spec: { username: name, credentials: { password: 'pw-of-12-letters' } },
    }),
  },
  volume: {
    body: (name) => ({
      ...named(name),
      spec: { storage_tier: 'house-tier', size_gib: '10', access_mode: 'VOLUME_ACCESS_MODE_READ_WRITE_ONCE' },
    }),
  },
};

export const KIND_SAMPLES: { readonly [kind: string]: Sample } = Object.fromEntries(
  kinds.map(({ kind, example }) => [
    kind,
    OWN[kind] ?? { body: (name: string) => ({ ...named(name), ...example }) },
  ]),
);
