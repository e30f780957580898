import { expect } from 'chai';
import type { CatalogueObject } from '../../../../src/domain/clusters/resolve.ts';
import { resolveOrder, type Catalogue } from '../../../../src/domain/clusters/resolve.ts';
import { isRefused, type Rejection } from '../../../../src/domain/decider.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { refersTo, type Reference } from '../../../../src/domain/references.ts';

const GOOGLE = 'type.googleapis.com/google.protobuf';
const text = (value: string): JsonObject => ({ '@type': `${GOOGLE}.StringValue`, value });
const object = (id: string, document: JsonObject, more: Partial<CatalogueObject> = {}): CatalogueObject => ({
  id,
  name: id.slice(id.lastIndexOf('.') + 1),
  tenant: 'shared',
  document,
  secrets: {},
  revision: 4,
  deleting: false,
  ...more,
});

const small = object('osac.templates.small', {
  node_sets: {
    workers: { host_type: { id: 'fc430' }, size: 3 },
    gpu: { host_type: { name: 'g5' }, size: 1 },
  },
  parameters: [
    { name: 'flavour', type: `${GOOGLE}.StringValue`, default: text('plain') },
    { name: 'optional', type: `${GOOGLE}.StringValue` },
  ],
});
const secretRef = { id: 's', version: '1', kind: 'pull-secret', fingerprint: 'f' } as const;
const rich = object(
  'osac.templates.rich',
  {
    node_sets: { workers: { host_type: { id: 'fc430' }, size: 1 } },
    spec_defaults: {
      ssh_public_key: 'ssh-default',
      network: { pod_cidr: '10.9.8.7/14' },
      version: { name: 'old' },
    },
    parameters: [{ name: 'must', type: `${GOOGLE}.StringValue`, required: true, default: text('unused') }],
  },
  { secrets: { 'spec_defaults.pull_secret': secretRef } },
);
const broken = object('osac.templates.broken', {
  node_sets: { workers: { host_type: { id: 'gone' }, size: 1 } },
});
const leaving = object('osac.templates.leaving', {}, { deleting: true });
const version = (id: string, spec: JsonObject, more: Partial<CatalogueObject> = {}): CatalogueObject =>
  object(id, { spec: { version: '4.20.3', image: 'r/r:4.20.3', enabled: true, ...spec } }, more);
const versions = [
  version('v1', {}),
  version('old', { version: '4.17.0' }),
  version('disabled', { enabled: false }),
  version('obsolete', { state: 'CLUSTER_VERSION_STATE_OBSOLETE' }),
  version('going', {}, { deleting: true }),
];
const hosts = [
  object('fc430', {
    interfaces: [
      { name: 'bmc', role: 'management' },
      { name: 'nic1', role: 'fabric' },
    ],
  }),
  object('g5', {}),
];
const lookup =
  (objects: readonly CatalogueObject[]) =>
  (reference: Reference): CatalogueObject | undefined =>
    objects.find((each) => refersTo(reference, each));
const catalogue: Catalogue = {
  template: lookup([small, rich, broken, leaving]),
  version: lookup(versions),
  defaultVersion: () => versions[0],
  hostType: lookup(hosts),
  item: lookup([object('i', {})]),
  secret: lookup([]),
  addressPools: () => [],
  subnet: () => undefined,
  securityGroup: () => undefined,
  defaultNetwork: () => undefined,
  misfit: () => undefined,
};

const NAMED = { name: 'c1' };
const spec = (change: JsonObject = {}): JsonObject => ({
  template: { id: 'osac.templates.small' },
  ...change,
});
const resolve = (body: { metadata?: JsonObject; spec?: JsonObject }, from: Catalogue = catalogue) =>
  resolveOrder({ metadata: body.metadata, spec: body.spec }, from);
const resolved = (change: JsonObject = {}, metadata: JsonObject = NAMED) => {
  const order = resolve({ metadata, spec: spec(change) });
  if (isRefused(order)) throw new Error(order.message);
  return order;
};
const refused = (
  body: { metadata?: JsonObject; spec?: JsonObject },
  code: string,
  message?: string,
  from: Catalogue = catalogue,
): Rejection => {
  const order = resolve(body, from);
  if (!isRefused(order)) throw new Error(`expected ${code}, got an order`);
  expect(order.code, order.message).to.equal(code);
  if (message !== undefined) expect(order.message).to.equal(message);
  return order;
};

describe('clusters: from a request to the facts of an order', () => {
  it('fills everything from template, version and host types', () =>
    expect(resolved()).to.deep.equal({
      name: 'c1',
      labels: {},
      annotations: {},
      template: { id: 'osac.templates.small', name: 'small', revision: 4 },
      templateParameters: { flavour: text('plain') },
      nodeSets: {
        workers: { hostType: { id: 'fc430', name: 'fc430' }, size: 3, fabricInterface: 'nic1' },
        gpu: { hostType: { id: 'g5', name: 'g5' }, size: 1 },
      },
      version: { id: 'v1', name: 'v1', version: '4.20.3', releaseImage: 'r/r:4.20.3' },
    }));
  it('takes what the caller says before the template’s defaults', () => {
    const order = resolved(
      {
        node_sets: { workers: { size: 5 }, gpu: { host_type: { name: 'g5' }, size: 2 } },
        version: { name: 'old' },
        ssh_public_key: 'ssh-mine',
        network: { service_cidr: '172.31.1.1/16' },
        template_parameters: { flavour: text('hot') },
      },
      {
        name: 'c1',
        labels: { a: 'b' },
        annotations: { 'fulfillment-ledger/zone': 'east' },
        display_name: 'Mine',
        description: 'first',
      },
    );
    expect(order.nodeSets['workers']?.size).to.equal(5);
    expect(order).to.deep.include({
      zone: 'east',
      labels: { a: 'b' },
      displayName: 'Mine',
      description: 'first',
      sshPublicKey: 'ssh-mine',
      network: { serviceCidr: '172.31.0.0/16' },
      templateParameters: { flavour: text('hot') },
    });
    expect(order.version.id).to.equal('old');
  });
  it('takes the template’s defaults where the caller says nothing', () => {
    const body = {
      metadata: NAMED,
      spec: { template: { name: 'rich' }, template_parameters: { must: text('x') } },
    };
    const order = resolve(body);
    expect(order).to.deep.include({
      sshPublicKey: 'ssh-default',
      network: { podCidr: '10.8.0.0/14' },
      pullSecret: { ...secretRef, tenant: 'shared' },
    });
    // The value itself is stored before the order and comes with the command.
    const own = resolve({ ...body, spec: { ...body.spec, pull_secret: 'sent' } });
    expect(own).to.not.have.property('pullSecret');
    const held = { ...rich, secrets: { 'spec_defaults.pull_secret': { ...secretRef, tenant: 't9' } } };
    expect(resolve(body, { ...catalogue, template: () => held })).to.deep.include({
      pullSecret: { ...secretRef, tenant: 't9' },
    });
  });
  it('checks in the order of the running service', () => {
    refused({}, 'FIELD_REQUIRED', 'template is mandatory');
    refused({ metadata: NAMED }, 'FIELD_REQUIRED', 'template is mandatory');
    refused({ spec: spec() }, 'FIELD_REQUIRED', 'metadata is required: give metadata.name');
    refused({ metadata: {}, spec: spec() }, 'VALIDATION_FAILED');
    refused(
      { metadata: NAMED, spec: { template: {} } },
      'REFERENCE_EMPTY',
      'reference validation failed: object.spec.template: ClusterTemplate reference must specify id or name',
    );
    const unknown = refused(
      { metadata: NAMED, spec: { template: { id: 'no-such' } } },
      'REFERENCE_NOT_FOUND',
      'reference validation failed: object.spec.template: ClusterTemplate "no-such" not found',
    );
    expect(unknown.facts).to.deep.equal({ description: 'ClusterTemplate "no-such" not found' });
    refused({ metadata: NAMED, spec: spec({ version: { id: 'nope' } }) }, 'REFERENCE_NOT_FOUND');
    refused({ metadata: { name: 'c1', labels: { 'Bad Key': '' } }, spec: spec() }, 'INVALID_KEY');
  });
  it('refuses templates that cannot be ordered', () => {
    refused({ metadata: NAMED, spec: { template: { name: 'leaving' } } }, 'TEMPLATE_DELETED');
    refused({ metadata: NAMED, spec: { template: { name: 'broken' } } }, 'HOST_TYPE_MISSING');
  });
  it('refuses what this release has no objects for', () => {
    const both = { template: { name: 'small' }, catalog_item: { name: 'i' } };
    refused({ metadata: NAMED, spec: both }, 'TEMPLATE_AND_ITEM');
    refused({ metadata: NAMED, spec: { catalog_item: { name: 'no' } } }, 'REFERENCE_NOT_FOUND');
    refused({ metadata: NAMED, spec: spec({ pull_secret_secret: { name: 's' } }) }, 'REFERENCE_NOT_FOUND');
    refused(
      { metadata: NAMED, spec: spec({ network_attachment: { subnet: { name: 's' } } }) },
      'REFERENCE_NOT_FOUND',
    );
    refused({ metadata: NAMED, spec: spec({ network_attachment: {} }) }, 'REFERENCE_NOT_FOUND');
    refused({ metadata: NAMED, spec: spec({ auto_external_ip_attachment: true }) }, 'NO_EXTERNAL_IP_POOL');
  });
  it('attaches its nodes to a subnet that is named, or to the default one of its tenant', () => {
    const lying = (state: string, network = 'v1', hub = 'h1'): JsonObject => ({
      spec: { virtual_network: { id: network } },
      status: { state, hub },
    });
    const [READY, GROUP] = ['SUBNET_STATE_READY', 'SECURITY_GROUP_STATE_READY'];
    const [near, early] = [object('s1', lying(READY)), object('s2', lying('SUBNET_STATE_PENDING'))];
    const groups = [object('g1', lying(GROUP)), object('g2', lying(GROUP, 'v2'))];
    const within: Catalogue = { ...catalogue, subnet: lookup([near, early]), securityGroup: lookup(groups) };
    const fabric = {
      template: { id: 'osac.templates.rich' },
      template_parameters: { must: text('given') },
    };
    const order = (network_attachment: JsonObject, more: JsonObject = {}, from = within) => {
      const made = resolve({ metadata: NAMED, spec: spec({ ...fabric, network_attachment, ...more }) }, from);
      return isRefused(made) ? [made.kind, made.code] : made.networkAttachment;
    };
    const named = { subnet: { id: 's1' }, security_groups: [{ name: 'g1' }] };
    const attached = {
      subnet: { id: 's1', name: near.name },
      securityGroups: [{ id: 'g1', name: groups[0]?.name }],
      hub: 'h1',
    };
    expect(order(named)).to.deep.equal(attached);
    expect(order({ subnet: { id: 'no' } })).to.deep.equal(['invalid', 'REFERENCE_NOT_FOUND']);
    expect(order({ subnet: {} })).to.deep.equal(['invalid', 'REFERENCE_EMPTY']);
    expect(order({ subnet: { id: 's2' } })).to.deep.equal(['failed-precondition', 'NOT_READY']);
    expect(order({ ...named, security_groups: [{ id: 'g2' }] })).to.deep.equal([
      'failed-precondition',
      'OTHER_NETWORK',
    ]);
    const plain = { template: { id: 'osac.templates.small' }, template_parameters: {} };
    expect(order(named, plain)).to.deep.equal(['invalid', 'NO_FABRIC_INTERFACE']);
    const byDefault = (more: JsonObject, defaultNetwork: Catalogue['defaultNetwork']) => {
      const made = resolve(
        { metadata: NAMED, spec: spec({ ...fabric, ...more }) },
        { ...catalogue, defaultNetwork },
      );
      return isRefused(made) ? [made.kind, made.code] : made.networkAttachment;
    };
    const [securityGroup] = groups;
    if (securityGroup === undefined) throw new Error('no group');
    expect(byDefault({}, () => ({ subnet: near, securityGroup }))).to.deep.equal(attached);
    expect(byDefault({}, () => ({ subnet: early }))).to.deep.equal(['failed-precondition', 'NOT_READY']);
    expect(byDefault({}, () => undefined)).to.equal(undefined);
    expect(byDefault(plain, () => ({ subnet: near }))).to.equal(undefined);
    const pools = [{ pool: { id: 'p1', name: 'public' }, hub: 'h2' }];
    const both = { auto_external_ip_attachment: true };
    expect(order(named, both, { ...within, addressPools: () => pools })).to.deep.equal([
      'failed-precondition',
      'NO_EXTERNAL_IP_POOL',
    ]);
  });
  it('says which pools its external IPs could come from, where some are wanted', () => {
    const pools = [{ pool: { id: 'p1', name: 'public' }, hub: 'h1' }];
    const order = (wanted: boolean) =>
      resolve(
        { metadata: NAMED, spec: spec({ auto_external_ip_attachment: wanted }) },
        { ...catalogue, addressPools: () => pools },
      );
    expect(order(true)).to.deep.include({ pools });
    expect(order(false)).to.not.have.property('pools');
  });
  it('wants a usable version', () => {
    for (const [id, why] of [
      ['disabled', 'it is disabled'],
      ['obsolete', 'it is obsolete'],
      ['going', 'it is being deleted'],
    ]) {
      const message = `cluster version '${id}' cannot be used: ${why}`;
      refused(
        { metadata: NAMED, spec: spec({ version: { name: id ?? '' } }) },
        'VERSION_NOT_USABLE',
        message,
      );
    }
    refused(
      { metadata: NAMED, spec: spec() },
      'NO_VERSION',
      'no version specified and no system default version is configured',
      { ...catalogue, defaultVersion: () => undefined },
    );
    const body = {
      metadata: NAMED,
      spec: { template: { name: 'rich' }, template_parameters: { must: text('x') } },
    };
    refused(body, 'REFERENCE_NOT_FOUND', undefined, { ...catalogue, version: () => undefined });
  });
  it('checks node sets against the template', () => {
    const sets = (node_sets: JsonObject) => ({ metadata: NAMED, spec: spec({ node_sets }) });
    refused(
      sets({ storage: { size: 1 } }),
      'UNKNOWN_NODE_SET',
      "node set 'storage' doesn't exist in template 'osac.templates.small'; valid names are: gpu, workers",
    );
    refused(sets({ workers: { host_type: { id: 'g5' }, size: 1 } }), 'HOST_TYPE_MISMATCH');
    refused(
      sets({ workers: { size: 0 } }),
      'INVALID_SIZE',
      "size for node set 'workers' should be greater than zero, but it is 0",
    );
    refused(sets({ workers: {} }), 'INVALID_SIZE');
  });
  it('does not mistake a node set called "rejected" for a rejection', () => {
    const odd = object('osac.templates.odd', {
      node_sets: { rejected: { host_type: { id: 'fc430' }, size: 1 } },
      parameters: [{ name: 'rejected', type: 't' }],
    });
    const order = resolve({ metadata: NAMED, spec: spec() }, { ...catalogue, template: () => odd });
    expect(order).to.have.property('nodeSets').that.has.key('rejected');
  });
  it('checks parameters against the template', () => {
    const parameters = (template: string, template_parameters: JsonObject) => ({
      metadata: NAMED,
      spec: { template: { name: template }, template_parameters },
    });
    const unknown = refused(parameters('small', { nope: text('x') }), 'UNKNOWN_PARAMETER');
    expect(unknown.message).to.contain('valid names are: flavour, optional');
    const none = { ...catalogue, template: () => object('osac.templates.none', {}) };
    expect(
      refused(parameters('none', { x: text('x') }), 'UNKNOWN_PARAMETER', undefined, none).message,
    ).to.contain('it has none');
    refused(
      parameters('rich', {}),
      'PARAMETER_REQUIRED',
      "parameter 'must' of template 'osac.templates.rich' is mandatory",
    );
    refused(parameters('small', { flavour: { '@type': `${GOOGLE}.BoolValue` } }), 'PARAMETER_TYPE');
  });
  it('checks ranges and the key', () => {
    const network = (change: JsonObject) => ({ metadata: NAMED, spec: spec({ network: change }) });
    expect(refused(network({ pod_cidr: '10.0.0.0' }), 'INVALID_CIDR').field).to.equal(
      'spec.network.pod_cidr',
    );
    expect(
      refused(network({ pod_cidr: '10.0.0.0/8', service_cidr: 'fd00::/8' }), 'INVALID_CIDR').field,
    ).to.equal('spec.network.service_cidr');
    refused({ metadata: NAMED, spec: spec({ ssh_public_key: 'x'.repeat(16_385) }) }, 'INVALID_SSH_KEY');
  });
});
