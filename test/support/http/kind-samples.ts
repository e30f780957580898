import { fnv1a32 } from '../../../src/domain/hash.ts';
import { bareMetalInstanceType } from '../../../src/domain/bare-metal/bare-metal-instance-type.resource.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { networkClass } from '../../../src/domain/networks/network-class.resource.ts';
import { eventually } from '../eventually.ts';
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

const ALLOCATED = { status: { state: 'EXTERNAL_IP_STATE_ALLOCATED' } };
const READY_NETWORK = { status: { state: 'VIRTUAL_NETWORK_STATE_READY' } };

const counted = new WeakMap<Around, Map<string, number>>();
/** Another number for each of these, from 0 on. */
const next = (what: string, around: Around): number => {
  const counts = counted.get(around) ?? new Map<string, number>();
  const count = counts.get(what) ?? 0;
  counted.set(around, counts.set(what, count + 1));
  return count;
};
/** Another range of the house's network each time. */
const nextRange = (around: Around): string => {
  const count = next('subnet', around);
  return `10.${Math.floor(count / 256)}.${count % 256}.0/24`;
};

/** Attachments, and as many NAT gateways: each has an external IP of the house to itself, and a network or an endpoint. */
const USERS = 16;
const nextAttachment = (around: Around): object => {
  const n = next('attachment', around) % USERS;
  return {
    external_ip: { id: `house-ip-${n}` },
    cluster: { id: `house-cluster-${n >> 1}` },
    target_endpoint: `EXTERNAL_IP_ATTACHMENT_ENDPOINT_${n % 2 === 0 ? 'API' : 'INGRESS'}`,
  };
};
const nextGateway = (around: Around): object => {
  const n = next('gateway', around) % USERS;
  return { virtual_network: { id: `house-network-${n}` }, external_ip: { id: `house-ip-${USERS + n}` } };
};

/** What objects of the house need: a pool with external IPs, clusters, the network that subnets lie in, a tier. */
export const makeHousePool = async (
  admin: (
    verb: string,
    path: string,
    body: object,
  ) => Promise<{ readonly status: number; readonly text: string }>,
  /** Of what is placed on a hub. */
  annotations: object = {},
): Promise<void> => {
  const one = async (verb: string, at: string, body: object): Promise<void> => {
    let text = '';
    // Where hubs work, what it needs may not be ready yet.
    await eventually(
      () => `${verb} ${at}: ${text}`,
      async () => {
        const reply = await admin(verb, `${PRIVATE}/${at}`, body);
        text = reply.text;
        return reply.status === 200;
      },
    );
  };
  const spec = { cidrs: ['192.0.2.0/24'], ip_family: 'IP_FAMILY_IPV4' };
  const [pools, networks] = ['external_ip_pools', 'virtual_networks'];
  const backend = {
    provider: 'ceph',
    endpoint: 'https://ceph.example',
    credentials: { username: 'u', password: 'p' },
  };
  const network = { region: 'default', network_class: { name: 'phys-net' }, ipv4_cidr: '10.0.0.0/8' };
  for (const [verb, at, body] of [
    ['POST', pools, { id: 'house-pool', metadata: { name: 'house-pool', annotations }, spec }],
    ['PATCH', `${pools}/house-pool`, READY_POOL],
    ['POST', 'network_classes', { ...networkClass.example, metadata: {} }],
    ['POST', networks, { id: 'house-network', ...named('house-network', { annotations }), spec: network }],
    ['PATCH', `${networks}/house-network`, READY_NETWORK],
    ['POST', 'subnets', HOUSE_SUBNET],
    ['PATCH', 'subnets/house-subnet', { status: { state: 'SUBNET_STATE_READY' } }],
    ['POST', 'instance_types', HOUSE_TYPE],
    ['POST', 'disk_images', { id: 'house-image', ...named('house-image'), spec: IMAGE }],
    ['POST', 'compute_instance_templates', HOUSE_MACHINE],
    ['POST', 'baremetal_instance_templates', { ...HOUSE_SERVER, ...named('house-server') }],
    ['POST', 'baremetal_instance_catalog_items', HOUSE_ITEM],
    ['POST', 'storage_backends', { id: 'house-backend', metadata: { name: 'house-backend' }, spec: backend }],
    ['POST', 'storage_tiers', { metadata: { name: 'house-tier' }, spec: TIER }],
  ] as const)
    await one(verb, at, body);
  await Promise.all(
    Array.from({ length: 2 * USERS }, async (_, n) => {
      const ip = `house-ip-${n}`;
      await one('POST', 'external_ips', { id: ip, ...named(ip), spec: { pool: { id: 'house-pool' } } });
      await one('PATCH', `external_ips/${ip}`, ALLOCATED);
      if (n >= USERS) return;
      const id = `house-network-${n}`;
      await one('POST', networks, { id, ...named(id, { annotations }), spec: network });
      await one('PATCH', `${networks}/${id}`, READY_NETWORK);
      const house = `house-cluster-${n}`;
      if (2 * n < USERS)
        await one('POST', 'clusters', { id: house, ...named(house, { annotations }), spec: SPEC });
    }),
  );
};

const IMAGE = {
  source_type: 'SOURCE_TYPE_REGISTRY',
  source_ref: 'quay.example/i:1',
  architecture: ['ARCHITECTURE_AMD64'],
};
const HOUSE_SUBNET = {
  id: 'house-subnet',
  ...named('house-subnet'),
  spec: { virtual_network: { id: 'house-network' }, ipv4_cidr: '10.255.255.0/24' },
};
const HOUSE_TYPE = {
  metadata: { name: 'house-type' },
  spec: { cores: 2, memory_gib: 4, description: 'House' },
};
const HOUSE_MACHINE = {
  id: 'house.machine',
  ...named('house-machine'),
  title: 'House',
  spec_defaults: {
    boot_disk: { size_gib: 20 },
    run_strategy: 'Always',
    instance_type: { name: 'house-type' },
    disk_image: { id: 'house-image' },
  },
};
const HOUSE_SERVER = { id: 'house.server', title: 'House' };
const HOUSE_ITEM = {
  id: 'house-server',
  ...named('house-server'),
  title: 'House',
  template: { id: 'house.server' },
  published: true,
  field_definitions: [
    { path: 'network_attachments', display_name: 'Networks', editable: true, default: [] },
    {
      path: 'run_strategy',
      display_name: 'Power',
      editable: true,
      default: 'BARE_METAL_INSTANCE_RUN_STRATEGY_ALWAYS',
    },
    { path: 'restart_trigger', display_name: 'Restart', editable: true, default: '0' },
  ],
};
/** In the house's subnet. */
const MACHINE = {
  template: { id: 'house.machine' },
  network_attachments: [{ subnet: { id: 'house-subnet' } }],
};

/** Of kinds that need more than their declared example. */
const OWN: { readonly [kind: string]: Sample } = {
  bareMetalInstance: {
    body: (name) => ({
      ...named(name),
      spec: {
        catalog_item: { id: 'house-server' },
        network_attachments: [{ subnet: { id: 'house-subnet' } }],
      },
    }),
  },
  bareMetalInstanceCatalogItem: {
    body: (name) => ({ ...named(name), title: 'Item', template: { id: 'house.server' }, published: true }),
  },
  bareMetalInstanceTemplate: {
    body: (name) => ({
      ...named(name),
      id: `house.templates.bm_${name.replaceAll('-', '_')}`,
      title: 'T',
    }),
  },
  bareMetalInstanceType: {
    body: (name) => ({ metadata: { name }, ...bareMetalInstanceType.example }),
  },
  cluster: { body: (name) => ({ ...named(name), spec: { ...SPEC, pull_secret: '{"auths":{}}' } }) },
  computeInstance: { body: (name) => ({ ...named(name), spec: MACHINE }) },
  computeInstanceCatalogItem: {
    body: (name) => ({ ...named(name), title: 'Item', template: { id: 'house.machine' }, published: true }),
  },
  computeInstanceTemplate: {
    body: (name) => ({
      ...named(name),
      id: `house.templates.${name.replaceAll('-', '_')}`,
      title: 'T',
      spec_defaults: { boot_disk: { size_gib: 20 } },
    }),
  },
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
      spec: IMAGE,
    }),
  },
  externalIp: {
    settled: ALLOCATED,
    body: (name) => ({ ...named(name), spec: { pool: { id: 'house-pool' } } }),
  },
  externalIpAttachment: {
    body: (name, around) => ({ ...named(name), spec: nextAttachment(around) }),
  },
  externalIpPool: {
    settled: READY_POOL,
    body: (name) => ({
      ...named(name),
      spec: { cidrs: [rangeOf(name)], ip_family: 'IP_FAMILY_IPV4' },
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
  natGateway: { body: (name, around) => ({ ...named(name), spec: nextGateway(around) }) },
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
  securityGroup: {
    body: (name) => ({
      ...named(name),
      spec: {
        virtual_network: { id: 'house-network' },
        ingress: [{ protocol: 'PROTOCOL_TCP', port_from: 22, port_to: 22, ipv4_cidr: '192.0.2.0/24' }],
      },
    }),
  },
  secret: { body: (name) => ({ ...named(name), data: { key: b64('value') } }) },
  storageTier: { body: (name) => ({ ...named(name), spec: TIER }) },
  subnet: {
    body: (name, around) => ({
      ...named(name),
      spec: { virtual_network: { id: 'house-network' }, ipv4_cidr: nextRange(around) },
    }),
  },
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
  virtualNetwork: {
    settled: READY_NETWORK,
    body: (name) => ({
      ...named(name),
      spec: { region: 'default', network_class: { name: 'phys-net' }, ipv4_cidr: '10.0.0.0/16' },
    }),
  },
};

/** A pool's own: no two overlap. */
const rangeOf = (name: string): string => {
  const part = fnv1a32(name) % 2 ** 20;
  return `10.${part >> 12}.${(part >> 4) & 255}.${(part & 15) << 4}/28`;
};

export const KIND_SAMPLES: { readonly [kind: string]: Sample } = Object.fromEntries(
  kinds.map(({ kind, example }) => [
    kind,
    OWN[kind] ?? { body: (name: string) => ({ ...named(name), ...example }) },
  ]),
);
