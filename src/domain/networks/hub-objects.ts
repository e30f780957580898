import { z } from 'zod';
import { base32, fnv1a64 } from '../hash.ts';
import { OSAC_GROUP, OWNED_VERBS, type OwnedObject, type OwnedShown } from '../hubs/hub-object.ts';
import { shownConditions, shownList, shownMeta, shownPart, shownText } from '../hubs/hub-codecs.ts';
import { MAX_RULES } from './security-rules.ts';

/** What external IPs and their pools are on a hub (OSAC's operator). */
export const shownStatus = { phase: shownText, conditions: shownConditions };

/** What both have in common; `word` is the kind's in labels and names. */
export const networkObject = (kind: string, word: string, called: string) => ({
  kind,
  group: OSAC_GROUP,
  version: 'v1alpha1',
  plural: `${word}s`,
  idLabel: `${OSAC_GROUP}/${word}-uuid`,
  ownLane: true as const,
  owner: called.slice(0, -1),
  called,
  nameOf: (id: string): string => `${word}-${base32(fnv1a64(id))}`,
  secretFields: [],
  // A hub that carries clusters alone needs none of them.
  rights: [
    { verbs: OWNED_VERBS, within: 'orders', setup: 'hub-access', optional: true },
    { verbs: OWNED_VERBS, within: 'anywhere', setup: 'tenant-namespaces', optional: true },
  ] as const,
});

export type Shown<Spec extends object> = OwnedShown<Spec> & {
  readonly phase: string;
  readonly message: string;
};

export const explained = (conditions: z.infer<typeof shownConditions>): string =>
  conditions.find(({ type, status }) => type === 'Ready' && status === 'False')?.message ?? '';

const poolSpec = z.object({
  cidrs: z.array(z.string()).readonly(),
  ipFamily: z.enum(['IPv4', 'IPv6']),
  implementationStrategy: z.exactOptional(z.string()),
});
const shownPool = shownPart({
  spec: shownPart({
    cidrs: shownList(shownText),
    ipFamily: z.enum(['IPv4', 'IPv6']).catch('IPv4'),
    implementationStrategy: z.exactOptional(z.string()).catch(undefined as never),
  }),
  status: shownPart(shownStatus),
});

export const EXTERNAL_IP_POOL: OwnedObject<z.infer<typeof poolSpec>, Shown<z.infer<typeof poolSpec>>> = {
  ...networkObject('ExternalIPPool', 'externalippool', 'external IP pools'),
  webhook: 'create-public-ip-pool',
  spec: poolSpec,
  sample: {
    spec: { cidrs: ['192.0.2.0/24'], ipFamily: 'IPv4', implementationStrategy: 'metallb-l2' },
    status: { phase: 'Ready' },
  },
  shown: (object) => {
    const { spec, status } = shownPool.parse(object);
    const meta = shownMeta(object, EXTERNAL_IP_POOL.idLabel);
    return { ...meta, spec, phase: status.phase, message: explained(status.conditions) };
  },
};

const ipSpec = z.object({ pool: z.string() });
const shownIp = shownPart({
  spec: shownPart({ pool: shownText }),
  status: shownPart({ ...shownStatus, state: shownText, address: shownText }),
});
const PHASE_OF_STATE: { readonly [state: string]: string } = { Allocated: 'Ready', Failed: 'Failed' };

/** The pool's own id is in its spec. */
export const EXTERNAL_IP: OwnedObject<
  z.infer<typeof ipSpec>,
  Shown<z.infer<typeof ipSpec>> & { readonly address: string }
> = {
  ...networkObject('ExternalIP', 'externalip', 'external IPs'),
  webhook: 'create-public-ip',
  spec: ipSpec,
  sample: { spec: { pool: 'check' }, status: { phase: 'Ready', state: 'Allocated', address: '192.0.2.1' } },
  shown: (object) => {
    const { spec, status } = shownIp.parse(object);
    const { state, address, conditions } = status;
    const meta = shownMeta(object, EXTERNAL_IP.idLabel);
    return { ...meta, spec, phase: PHASE_OF_STATE[state] ?? '', message: explained(conditions), address };
  },
};

const maybe = z.exactOptional(z.string());
const shownMaybe = maybe.catch(undefined as never);
const cidrs = { ipv4Cidr: maybe, ipv6Cidr: maybe };
const shownCidrs = { ipv4Cidr: shownMaybe, ipv6Cidr: shownMaybe };

const networkSpec = z.object({
  region: z.string(),
  networkClass: maybe,
  implementationStrategy: maybe,
  ...cidrs,
});
const shownNetwork = shownPart({
  spec: shownPart({
    region: shownText,
    networkClass: shownMaybe,
    implementationStrategy: shownMaybe,
    ...shownCidrs,
  }),
  status: shownPart(shownStatus),
});

export const VIRTUAL_NETWORK: OwnedObject<z.infer<typeof networkSpec>, Shown<z.infer<typeof networkSpec>>> = {
  ...networkObject('VirtualNetwork', 'virtualnetwork', 'virtual networks'),
  spec: networkSpec,
  sample: {
    spec: {
      region: 'default',
      networkClass: 'phys-net',
      implementationStrategy: 'phys_net',
      ipv4Cidr: '10.0.0.0/16',
      ipv6Cidr: 'fd00::/48',
    },
    status: { phase: 'Ready' },
  },
  shown: (object) => {
    const { spec, status } = shownNetwork.parse(object);
    const meta = shownMeta(object, VIRTUAL_NETWORK.idLabel);
    return { ...meta, spec, phase: status.phase, message: explained(status.conditions) };
  },
};

const subnetSpec = z.object({ virtualNetwork: z.string(), ...cidrs });
const shownSubnet = shownPart({
  spec: shownPart({ virtualNetwork: shownText, ...shownCidrs }),
  status: shownPart(shownStatus),
});

/** The network's own id is in its spec. */
export const SUBNET: OwnedObject<z.infer<typeof subnetSpec>, Shown<z.infer<typeof subnetSpec>>> = {
  ...networkObject('Subnet', 'subnet', 'subnets'),
  spec: subnetSpec,
  sample: {
    spec: { virtualNetwork: 'check', ipv4Cidr: '10.0.1.0/24', ipv6Cidr: 'fd00:0:0:1::/64' },
    status: { phase: 'Ready' },
  },
  shown: (object) => {
    const { spec, status } = shownSubnet.parse(object);
    const meta = shownMeta(object, SUBNET.idLabel);
    return { ...meta, spec, phase: status.phase, message: explained(status.conditions) };
  },
};

const protocol = z.enum(['tcp', 'udp', 'icmp', 'all']);
const port = z.exactOptional(z.int().min(1).max(65_535));
const hubRule = z.object({
  protocol,
  portFrom: port,
  portTo: port,
  sourceCidr: z.exactOptional(z.string()),
  destinationCidr: z.exactOptional(z.string()),
});
const groupSpec = z.object({
  virtualNetwork: z.string(),
  implementationStrategy: z.string(),
  ingressRules: z.array(hubRule).max(MAX_RULES).readonly(),
  egressRules: z.array(hubRule).max(MAX_RULES).readonly(),
});
const shownRules = shownList(hubRule, MAX_RULES);
const shownGroup = shownPart({
  spec: shownPart({
    virtualNetwork: shownText,
    implementationStrategy: shownText,
    ingressRules: shownRules,
    egressRules: shownRules,
  }),
  status: shownPart({ ...shownStatus, desiredConfigVersion: shownText }),
});

/** `version`: of the spec that its phase is about, as its operator calls it. */
export const SECURITY_GROUP: OwnedObject<
  z.infer<typeof groupSpec>,
  Shown<z.infer<typeof groupSpec>> & { readonly version: string }
> = {
  ...networkObject('SecurityGroup', 'securitygroup', 'security groups'),
  mayBeEmpty: ['ingressRules', 'egressRules'],
  spec: groupSpec,
  sample: {
    spec: {
      virtualNetwork: 'check',
      implementationStrategy: 'network_policy',
      ingressRules: [{ protocol: 'tcp', portFrom: 22, portTo: 22, sourceCidr: '192.0.2.0/24' }],
      egressRules: [{ protocol: 'all', destinationCidr: '192.0.2.0/24' }],
    },
    status: { phase: 'Ready', desiredConfigVersion: '0123456789abcdef' },
  },
  shown: (object) => {
    const { spec, status } = shownGroup.parse(object);
    const meta = shownMeta(object, SECURITY_GROUP.idLabel);
    const { phase, conditions, desiredConfigVersion: version } = status;
    return { ...meta, spec, phase, message: explained(conditions), version };
  },
};

const gatewaySpec = z.object({ virtualNetwork: z.string(), externalIP: z.string() });
const shownGateway = shownPart({
  spec: shownPart({ virtualNetwork: shownText, externalIP: shownText }),
  status: shownPart(shownStatus),
});

export const NAT_GATEWAY: OwnedObject<z.infer<typeof gatewaySpec>, Shown<z.infer<typeof gatewaySpec>>> = {
  ...networkObject('NATGateway', 'natgateway', 'NAT gateways'),
  spec: gatewaySpec,
  sample: { spec: { virtualNetwork: 'check', externalIP: 'check' }, status: { phase: 'Ready' } },
  shown: (object) => {
    const { spec, status } = shownGateway.parse(object);
    const meta = shownMeta(object, NAT_GATEWAY.idLabel);
    return { ...meta, spec, phase: status.phase, message: explained(status.conditions) };
  },
};

const attachmentSpec = z.object({
  externalIP: z.string(),
  computeInstance: z.exactOptional(z.string()),
  cluster: z.exactOptional(z.string()),
  baremetalInstance: z.exactOptional(z.string()),
  targetEndpoint: z.exactOptional(z.enum(['API', 'Ingress'])),
});
const shownTarget = z.exactOptional(z.string()).catch(undefined as never);
const shownAttachment = shownPart({
  spec: shownPart({
    externalIP: shownText,
    computeInstance: shownTarget,
    cluster: shownTarget,
    baremetalInstance: shownTarget,
    targetEndpoint: z.exactOptional(z.enum(['API', 'Ingress'])).catch(undefined as never),
  }),
  status: shownPart(shownStatus),
});

/** It names the ids of its address and its target. */
export const EXTERNAL_IP_ATTACHMENT: OwnedObject<
  z.infer<typeof attachmentSpec>,
  Shown<z.infer<typeof attachmentSpec>>
> = {
  ...networkObject('ExternalIPAttachment', 'externalipattachment', 'external IP attachments'),
  spec: attachmentSpec,
  sample: {
    spec: { externalIP: 'check', cluster: 'check', targetEndpoint: 'API' },
    status: { phase: 'Ready' },
  },
  shown: (object) => {
    const { spec, status } = shownAttachment.parse(object);
    const meta = shownMeta(object, EXTERNAL_IP_ATTACHMENT.idLabel);
    return { ...meta, spec, phase: status.phase, message: explained(status.conditions) };
  },
};
