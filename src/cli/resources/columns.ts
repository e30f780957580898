/**
 * Which columns each kind shows, as data. A kind without an entry shows what all kinds have in common, so that a new
 * declaration appears in tables by itself (OSAC).
 */
export type Column = {
  readonly title: string;
  /** Dotted path in the document; `*` stands for every entry of a list or map. */
  readonly path: string;
  /** Default: as text. */
  readonly as?: 'state' | 'age' | 'reference' | 'entries' | 'keys' | 'yes-no' | 'sizes' | 'nodes' | 'count';
  readonly wide?: true;
  /** Left out when no row has it. */
  readonly optional?: true;
};

/** Before a kind's own columns. TENANT has a rule of its own, see `tableView`. */
export const TENANT: Column = { title: 'tenant', path: 'metadata.tenant' };
/** Kinds that are their own tenant: a column for it would repeat the name. */
export const OWN_TENANTS: readonly string[] = ['tenant'];
export const FIRST: readonly Column[] = [
  { title: 'project', path: 'metadata.project', optional: true },
  { title: 'id', path: 'id' },
  { title: 'name', path: 'metadata.name' },
];

/** After them. */
export const LAST: readonly Column[] = [
  { title: 'deleting', path: 'metadata.deletion_timestamp', as: 'age', optional: true },
  { title: 'age', path: 'metadata.creation_timestamp', as: 'age' },
  { title: 'revision', path: 'metadata.version', wide: true },
  { title: 'creator', path: 'metadata.creator', wide: true },
  { title: 'labels', path: 'metadata.labels', as: 'entries', wide: true },
];

const STATE: Column = { title: 'state', path: 'status.state', as: 'state' };
const MESSAGE: Column = { title: 'message', path: 'status.message', wide: true };
const TITLE: Column = { title: 'title', path: 'title' };
const DESCRIPTION: Column = { title: 'description', path: 'description', wide: true };

const RANGES: readonly Column[] = [
  { title: 'ipv4 range', path: 'spec.ipv4_cidr' },
  { title: 'ipv6 range', path: 'spec.ipv6_cidr', optional: true },
];

/** As the annotation says it: pools and networks of one zone reach each other where it has one hub. */
const ZONE: Column = {
  title: 'zone',
  path: 'metadata.annotations.fulfillment-ledger/zone',
  optional: true,
};

/** For kinds that have no entry of their own. */
export const ANY_KIND: readonly Column[] = [
  { ...STATE, optional: true },
  { title: 'hub', path: 'status.hub', wide: true, optional: true },
];

export const COLUMNS: { readonly [kind: string]: readonly Column[] } = {
  computeInstance: [
    STATE,
    { title: 'internal address', path: 'status.internal_ip_address' },
    { title: 'external ip', path: 'status.external_ip_address' },
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  bareMetalInstance: [
    STATE,
    { title: 'internal address', path: 'status.network_attachment_statuses.*.ip_address' },
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  cluster: [
    { title: 'template', path: 'spec.template', as: 'reference' },
    { title: 'version', path: 'spec.version', as: 'reference' },
    STATE,
    { title: 'nodes', path: 'spec.node_sets', as: 'nodes' },
    { title: 'api url', path: 'status.api_url' },
    { title: 'console url', path: 'status.console_url', wide: true },
    { title: 'api endpoint', path: 'status.api_endpoint', wide: true },
    { title: 'ingress endpoint', path: 'status.ingress_endpoint', wide: true },
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  clusterTemplate: [
    TITLE,
    { title: 'node sets', path: 'node_sets', as: 'sizes' },
    { title: 'parameters', path: 'parameters.*.name', wide: true },
    DESCRIPTION,
  ],
  clusterCatalogItem: [
    TITLE,
    { title: 'template', path: 'template', as: 'reference' },
    { title: 'published', path: 'published', as: 'yes-no' },
    { title: 'fields', path: 'field_definitions.*.path', wide: true },
    DESCRIPTION,
  ],
  clusterVersion: [
    { title: 'version', path: 'spec.version' },
    { title: 'state', path: 'spec.state', as: 'state' },
    { title: 'enabled', path: 'spec.enabled', as: 'yes-no' },
    { title: 'default', path: 'spec.is_default', as: 'yes-no' },
    { title: 'image', path: 'spec.image', wide: true },
  ],
  hostType: [TITLE, { title: 'interfaces', path: 'interfaces.*.name', wide: true }, DESCRIPTION],
  instanceType: [
    { title: 'cores', path: 'spec.cores' },
    { title: 'memory gib', path: 'spec.memory_gib' },
    { title: 'gpu', path: 'spec.gpu.resource_name', optional: true },
    { title: 'state', path: 'spec.state', as: 'state' },
    { title: 'description', path: 'spec.description', wide: true },
  ],
  diskImage: [
    { title: 'os', path: 'spec.guest_os_family', as: 'state' },
    { title: 'architecture', path: 'spec.architecture.*', as: 'state' },
    { title: 'lifecycle', path: 'spec.lifecycle', as: 'state' },
    { title: 'source type', path: 'spec.source_type', as: 'state', wide: true },
    { title: 'source', path: 'spec.source_ref', wide: true },
  ],
  externalIp: [
    { title: 'pool', path: 'spec.pool', as: 'reference' },
    { title: 'address', path: 'status.address' },
    STATE,
    { title: 'attached', path: 'status.attached', as: 'yes-no' },
    MESSAGE,
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  externalIpAttachment: [
    { title: 'external ip', path: 'spec.external_ip', as: 'reference' },
    { title: 'cluster', path: 'spec.cluster', as: 'reference', optional: true },
    { title: 'endpoint', path: 'spec.target_endpoint', as: 'state' },
    { title: 'address', path: 'status.external_ip_address' },
    STATE,
    MESSAGE,
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  natGateway: [
    { title: 'virtual network', path: 'spec.virtual_network', as: 'reference' },
    { title: 'external ip', path: 'spec.external_ip', as: 'reference' },
    STATE,
    MESSAGE,
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  securityGroup: [
    { title: 'virtual network', path: 'spec.virtual_network', as: 'reference' },
    { title: 'in', path: 'spec.ingress', as: 'count' },
    { title: 'out', path: 'spec.egress', as: 'count' },
    STATE,
    MESSAGE,
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  externalIpPool: [
    { title: 'family', path: 'spec.ip_family', as: 'state' },
    ZONE,
    { title: 'cidrs', path: 'spec.cidrs.*', optional: true },
    { ...STATE, optional: true },
    { title: 'total', path: 'status.total', optional: true },
    { title: 'available', path: 'status.available' },
    MESSAGE,
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  networkClass: [
    TITLE,
    { title: 'strategy', path: 'implementation_strategy' },
    { title: 'default', path: 'is_default', as: 'yes-no' },
    STATE,
    DESCRIPTION,
  ],
  subnet: [
    { title: 'virtual network', path: 'spec.virtual_network', as: 'reference' },
    ...RANGES,
    STATE,
    MESSAGE,
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  virtualNetwork: [
    ...RANGES,
    ZONE,
    { title: 'network class', path: 'spec.network_class', as: 'reference', optional: true },
    STATE,
    MESSAGE,
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  hub: [
    { title: 'namespace', path: 'spec.namespace' },
    { title: 'zone', path: 'spec.zone' },
    { title: 'mode', path: 'spec.mode' },
    { title: 'adapter', path: 'status.adapter' },
    { title: 'controller', path: 'spec.controller', wide: true },
    { title: 'control planes', path: 'spec.capacity.control_planes', wide: true },
    { title: 'capacity', path: 'spec.capacity.nodes', as: 'entries', wide: true },
  ],
  storageBackend: [
    { title: 'provider', path: 'spec.provider' },
    { title: 'endpoint', path: 'spec.endpoint' },
    STATE,
    { title: 'description', path: 'spec.description', wide: true },
  ],
  storageTier: [
    { title: 'backend', path: 'spec.backends.*.backend_id' },
    { title: 'protocol', path: 'spec.backends.*.protocol', as: 'state' },
    STATE,
    { title: 'description', path: 'spec.description', wide: true },
  ],
  volume: [
    { title: 'tier', path: 'spec.storage_tier' },
    { title: 'gib', path: 'spec.size_gib' },
    { title: 'access', path: 'spec.access_mode', as: 'state' },
    STATE,
    MESSAGE,
    { title: 'backend', path: 'status.backend', wide: true },
    { title: 'hub', path: 'status.hub', wide: true, optional: true },
  ],
  tenant: [{ ...STATE, optional: true }, { title: 'domains', path: 'spec.domains.*' }, MESSAGE],
  project: [{ title: 'title', path: 'spec.title' }, STATE, MESSAGE],
  projectMembership: [
    { title: 'role', path: 'spec.role', as: 'state' },
    { title: 'users', path: 'spec.users.*', as: 'reference' },
    STATE,
    MESSAGE,
  ],
  user: [
    { title: 'username', path: 'spec.username' },
    { title: 'email', path: 'spec.email' },
    { title: 'enabled', path: 'spec.enabled', as: 'yes-no' },
    { title: 'phase', path: 'status.phase', optional: true },
  ],
  identityProvider: [
    { title: 'title', path: 'spec.title' },
    { title: 'enabled', path: 'spec.enabled', as: 'yes-no' },
    { title: 'issuer', path: 'spec.oidc.issuer' },
    { title: 'phase', path: 'status.phase', as: 'state' },
    MESSAGE,
  ],
  role: [{ title: 'title', path: 'spec.title' }, STATE, MESSAGE],
  roleBinding: [
    { title: 'role', path: 'spec.role', as: 'reference' },
    { title: 'users', path: 'spec.users.*', as: 'reference' },
    STATE,
    MESSAGE,
  ],
  secret: [
    { title: 'backend', path: 'backend', as: 'state' },
    { title: 'coordinates', path: 'coordinates', as: 'keys', wide: true },
  ],
};
