import { ZONE_ANNOTATION } from '../../../src/domain/hubs/placement.ts';
import { networkClass } from '../../../src/domain/networks/network-class.resource.ts';

/** A simulated hub that takes no time of its own. */
export const AT_ONCE = { simulation: 'factor=0' };

/** Another object: its collection, its body, and the end of the state that is waited for, if any. */
export type Needed = readonly [collection: string, body: object, ready?: string];

export type Subject = {
  /** End of the name of its state when it is as wanted. */
  readonly ready: string;
  /** What all of them refer to. */
  readonly before: readonly Needed[];
  /** What each has to itself, by its number; it is made before anything is measured. */
  readonly each?: (n: number) => readonly (Needed | undefined)[];
  readonly spec: (n: number) => object;
};

/** All on the one hub of a zone: an address is of use on its own hub alone. */
const ON_ONE_HUB = { ...AT_ONCE, [ZONE_ANNOTATION]: 'west' };
const metadata = (name: string, more: object = {}) => ({ name, annotations: ON_ONE_HUB, ...more });
const ofTenant = (id: string) => ({ id, metadata: metadata(id, { tenant: 'acme' }) });
const POOL: Needed = [
  'external_ip_pools',
  {
    id: 'bench',
    metadata: metadata('bench'),
    spec: { cidrs: ['10.0.0.0/12'], ip_family: 'IP_FAMILY_IPV4' },
  },
  'READY',
];
const CLASS: Needed = ['network_classes', { ...networkClass.example, metadata: {} }];
const network = (id: string): Needed => [
  'virtual_networks',
  {
    ...ofTenant(id),
    spec: { region: 'default', network_class: { name: 'phys-net' }, ipv4_cidr: '10.0.0.0/8' },
  },
  'READY',
];
const NETWORKS = [CLASS, network('bench')];
const IN_NETWORK = { virtual_network: { id: 'bench' } };
const address = (id: string): Needed => [
  'external_ips',
  { ...ofTenant(id), spec: { pool: { id: 'bench' } } },
  'ALLOCATED',
];
const cluster = (id: string): Needed => [
  'clusters',
  { ...ofTenant(id), spec: { template: { id: 'osac.templates.ocp_small' } } },
  'READY',
];

/** Every kind that acts has its row; the bench names those that have none. */
export const SUBJECTS: { readonly [kind: string]: Subject } = {
  bareMetalInstance: {
    ready: 'RUNNING',
    before: [],
    spec: () => ({ catalog_item: { id: 'gpu-server' } }),
  },
  cluster: { ready: 'READY', before: [], spec: () => ({ template: { id: 'osac.templates.ocp_small' } }) },
  computeInstance: {
    ready: 'RUNNING',
    before: [
      ...NETWORKS,
      ['subnets', { ...ofTenant('bench'), spec: { ...IN_NETWORK, ipv4_cidr: '10.0.0.0/12' } }, 'READY'],
    ],
    spec: () => ({
      template: { id: 'osac.templates.vm' },
      network_attachments: [{ subnet: { id: 'bench' } }],
    }),
  },
  externalIpPool: {
    ready: 'READY',
    before: [],
    spec: (n) => ({ cidrs: [`10.${n >> 8}.${n & 255}.0/24`], ip_family: 'IP_FAMILY_IPV4' }),
  },
  externalIp: { ready: 'ALLOCATED', before: [POOL], spec: () => ({ pool: { id: 'bench' } }) },
  externalIpAttachment: {
    ready: 'READY',
    before: [POOL],
    each: (n) => [
      address(`for-attachment-${n}`),
      n % 2 === 1 ? cluster(`attached-${(n - 1) >> 1}`) : undefined,
    ],
    spec: (n) => ({
      external_ip: { id: `for-attachment-${n}` },
      cluster: { id: `attached-${(n - 1) >> 1}` },
      target_endpoint: `EXTERNAL_IP_ATTACHMENT_ENDPOINT_${n % 2 === 0 ? 'API' : 'INGRESS'}`,
    }),
  },
  natGateway: {
    ready: 'READY',
    before: [POOL, CLASS],
    each: (n) => [address(`for-gateway-${n}`), network(`of-gateway-${n}`)],
    spec: (n) => ({
      virtual_network: { id: `of-gateway-${n}` },
      external_ip: { id: `for-gateway-${n}` },
    }),
  },
  securityGroup: {
    ready: 'READY',
    before: NETWORKS,
    spec: () => ({
      ...IN_NETWORK,
      ingress: [{ protocol: 'PROTOCOL_TCP', port_from: 22, port_to: 22, ipv4_cidr: '192.0.2.0/24' }],
    }),
  },
  subnet: {
    ready: 'READY',
    before: NETWORKS,
    spec: (n) => ({ ...IN_NETWORK, ipv4_cidr: `10.${16 + (n >> 8)}.${n & 255}.0/24` }),
  },
  virtualNetwork: {
    ready: 'READY',
    before: [CLASS],
    spec: () => ({ region: 'default', network_class: { name: 'phys-net' }, ipv4_cidr: '10.0.0.0/8' }),
  },
  volume: {
    ready: 'AVAILABLE',
    before: [],
    spec: () => ({
      storage_tier: 'fast',
      size_gib: '10',
      access_mode: 'VOLUME_ACCESS_MODE_READ_WRITE_ONCE',
    }),
  },
};
