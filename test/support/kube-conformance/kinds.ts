import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import { expectCode, expectRefusal, metaOf, type Behaviour } from './context.ts';

/** One kind of osac.openshift.io/v1alpha1: a spec that is good, and what must not be written. */
type KindRules = {
  readonly plural: string;
  readonly kind: string;
  readonly spec: JsonObject;
  /** Specs that are refused: what is laid over the good one, and the field that is named. */
  readonly refused: readonly (readonly [JsonObject, string])[];
  /** Merge patches of the good spec that are refused. */
  readonly fixed: readonly (readonly [JsonObject, string])[];
  /** A merge patch of the spec that is accepted. */
  readonly free?: JsonObject;
  /** Fields of the status besides its phase that a controller of OSAC writes; default none. */
  readonly status?: JsonObject;
  /** Fields that the original definition does not have: a hub drops them without a word. */
  readonly unknown?: JsonObject;
};

const REQUIRED = 'FieldValueRequired';
const INVALID = 'FieldValueInvalid';
const ENUM = 'FieldValueNotSupported';

const JOBS: JsonObject[] = [
  { jobID: '1', type: 'provision', state: 'Succeeded', timestamp: '2026-11-21T12:54:00Z' },
];

/** What the operator's CRDs say of each kind. */
const KINDS: readonly KindRules[] = [
  {
    plural: 'computeinstances',
    kind: 'ComputeInstance',
    spec: {
      templateID: 'osac.templates.vm',
      cores: 4,
      memoryGiB: 8,
      image: { sourceType: 'registry', sourceRef: 'quay.example/fedora:42' },
      bootDisk: { sizeGiB: 20 },
      runStrategy: 'Always',
      sshKey: 'ssh-ed25519 AAAA',
      networkAttachments: [{ subnetRef: 'subnet-a' }],
    },
    refused: [
      [{ cores: 129 }, `${INVALID} spec.cores`],
      [{ image: { sourceType: 'url', sourceRef: 'x' } }, `${ENUM} spec.image.sourceType`],
      [{ bootDisk: { sizeGiB: 0 } }, `${INVALID} spec.bootDisk.sizeGiB`],
      [{ bootDisk: { sizeGiB: 1, storageTier: 'Gold' } }, `${INVALID} spec.bootDisk.storageTier`],
      [
        { networkAttachments: Array.from({ length: 9 }, (_, index) => ({ subnetRef: `s${index}` })) },
        'FieldValueTooMany spec.networkAttachments',
      ],
      [
        { networkAttachments: [{ subnetRef: 'a' }, { subnetRef: 'a' }] },
        'FieldValueDuplicate spec.networkAttachments[1]',
      ],
    ],
    fixed: [
      [{ cores: 8 }, `${INVALID} spec.cores`],
      [{ sshKey: null }, `${INVALID} spec`],
      [{ gpu: { pciDeviceSelector: 'a', resourceName: 'b', count: 1 } }, `${INVALID} spec`],
      [{ networkAttachments: [{ subnetRef: 'subnet-b' }] }, `${INVALID} spec`],
    ],
    free: {
      runStrategy: 'Halted',
      networkAttachments: [{ subnetRef: 'subnet-a', securityGroupRefs: ['sg'] }],
    },
  },
  {
    plural: 'baremetalinstances',
    kind: 'BareMetalInstance',
    spec: {
      hostType: 'default',
      externalHostID: '',
      templateID: 'osac.templates.bm',
      networkAttachments: [{ subnetRef: 'a', primary: true }, { subnetRef: 'b' }],
    },
    refused: [
      [{ externalHostID: null }, `${REQUIRED} spec.externalHostID`],
      [
        { networkAttachments: [{ subnetRef: 'a' }, { subnetRef: 'b' }] },
        `${INVALID} spec.networkAttachments`,
      ],
    ],
    fixed: [
      [{ hostType: 'other' }, `${INVALID} spec.hostType`],
      [
        { networkAttachments: [{ subnetRef: 'a', primary: true, interface: 'eth0' }, { subnetRef: 'b' }] },
        `${INVALID} spec.networkAttachments[0]`,
      ],
    ],
    free: { externalHostID: 'host-1', restartTrigger: 7, runStrategy: 'Halted' },
  },
  {
    plural: 'tenants',
    kind: 'Tenant',
    spec: {},
    refused: [],
    fixed: [],
    status: { provisioningJobs: JOBS, storageBackendJobs: JOBS, clusterStorageJobs: JOBS },
    unknown: { storageJobs: JOBS },
  },
  {
    plural: 'virtualnetworks',
    kind: 'VirtualNetwork',
    spec: { region: 'r1', ipv4Cidr: '10.0.0.0/16' },
    refused: [[{ region: null }, `${REQUIRED} spec.region`]],
    fixed: [
      [{ region: 'r2' }, `${INVALID} spec.region`],
      [{ ipv6Cidr: 'fd00::/48' }, `${INVALID} spec`],
      [{ ipv4Cidr: null }, `${INVALID} spec`],
    ],
  },
  {
    plural: 'subnets',
    kind: 'Subnet',
    spec: { virtualNetwork: 'vn', ipv4Cidr: '10.0.1.0/24' },
    refused: [[{ virtualNetwork: null }, `${REQUIRED} spec.virtualNetwork`]],
    fixed: [[{ ipv4Cidr: '10.0.2.0/24' }, `${INVALID} spec.ipv4Cidr`]],
  },
  {
    plural: 'securitygroups',
    kind: 'SecurityGroup',
    spec: { virtualNetwork: 'vn', ingressRules: [{ protocol: 'tcp', portFrom: 22, portTo: 22 }] },
    refused: [
      [{ ingressRules: [{ protocol: 'gre' }] }, `${ENUM} spec.ingressRules[0].protocol`],
      [{ egressRules: [{ protocol: 'tcp', portFrom: 0 }] }, `${INVALID} spec.egressRules[0].portFrom`],
    ],
    fixed: [[{ virtualNetwork: 'other' }, `${INVALID} spec.virtualNetwork`]],
    free: { egressRules: [{ protocol: 'all' }] },
  },
  {
    plural: 'externalippools',
    kind: 'ExternalIPPool',
    spec: { cidrs: ['192.0.2.0/24'], ipFamily: 'IPv4' },
    refused: [
      [{ cidrs: [] }, `${INVALID} spec.cidrs`],
      [{ ipFamily: 'IPv5' }, `${ENUM} spec.ipFamily`],
    ],
    fixed: [[{ cidrs: ['192.0.2.0/25'] }, `${INVALID} spec.cidrs`]],
  },
  {
    plural: 'externalips',
    kind: 'ExternalIP',
    spec: { pool: 'p' },
    refused: [[{ pool: null }, `${REQUIRED} spec.pool`]],
    fixed: [[{ pool: 'q' }, `${INVALID} spec.pool`]],
  },
  {
    plural: 'externalipattachments',
    kind: 'ExternalIPAttachment',
    spec: { externalIP: 'ip', cluster: 'c', targetEndpoint: 'API' },
    refused: [
      [{ computeInstance: 'v' }, `${INVALID} spec`],
      [{ targetEndpoint: null }, `${INVALID} spec`],
      [{ cluster: null, computeInstance: 'v' }, `${INVALID} spec`],
    ],
    fixed: [[{ targetEndpoint: 'Ingress' }, `${INVALID} spec`]],
  },
  {
    plural: 'natgateways',
    kind: 'NATGateway',
    spec: { virtualNetwork: 'vn', externalIP: 'ip' },
    refused: [[{ externalIP: null }, `${REQUIRED} spec.externalIP`]],
    fixed: [[{ externalIP: 'other' }, `${INVALID} spec`]],
  },
  {
    plural: 'volumes',
    kind: 'Volume',
    spec: { storageTier: 'gold', sizeGiB: 10, accessMode: 'ReadWriteOnce' },
    refused: [
      [{ sizeGiB: 0 }, `${INVALID} spec.sizeGiB`],
      [{ storageTier: '' }, `${INVALID} spec.storageTier`],
      [{ accessMode: 'Any' }, `${ENUM} spec.accessMode`],
    ],
    fixed: [[{ sizeGiB: 20 }, `${INVALID} spec.sizeGiB`]],
    status: { backend: 'vast-1', protocol: 'Block', vendorVolumeID: 'v-1', conditions: [] },
    unknown: { provisioningJobs: JOBS, desiredConfigVersion: '0123456789abcdef' },
  },
];

const without = (spec: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== null));

const checkOf = ({
  plural,
  kind,
  spec,
  refused,
  fixed,
  free,
  status: told = {},
  unknown,
}: KindRules): Behaviour => ({
  name: `${kind}: what its definition accepts, refuses and keeps`,
  check: async ({ admin, namespace, name }) => {
    const all = `/apis/osac.openshift.io/v1alpha1/namespaces/${namespace}/${plural}`;
    const body = (of: JsonObject): JsonObject => ({
      apiVersion: 'osac.openshift.io/v1alpha1',
      kind,
      metadata: { name: name('one') },
      spec: of,
    });
    const good = await admin.post(all, body(spec));
    expectCode(good, 201);
    expect(good.body['spec']).to.deep.equal(spec);
    const path = `${all}/${metaOf(good.body)['name'] as string}`;
    for (const [change, cause] of refused) {
      expectRefusal(await admin.post(all, body(without({ ...spec, ...change }))), 422, 'Invalid', cause);
    }
    for (const [patch, cause] of fixed) {
      expectRefusal(await admin.merge(path, { spec: patch }), 422, 'Invalid', cause);
    }
    if (free !== undefined) expectCode(await admin.merge(path, { spec: free }), 200);
    const phase = plural === 'computeinstances' ? 'Running' : 'Ready';
    const status = await admin.merge(`${path}/status`, { status: { phase, ...told, ...unknown } });
    expectCode(status, 200);
    expect(objectAt(status.body, 'status')).to.deep.equal({ phase, ...told });
  },
});

/** Every kind of ours, as its CustomResourceDefinition has it. */
export const OUR_KINDS: readonly Behaviour[] = KINDS.map(checkOf);
