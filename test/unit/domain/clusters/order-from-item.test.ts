import { expect } from 'chai';
import {
  referenceProblems,
  resolveOrder,
  type Catalogue,
  type CatalogueObject,
  templateReference,
} from '../../../../src/domain/clusters/resolve.ts';
import { defaultMisfit, templateMisfit } from '../../../../src/domain/catalog/item-governance.ts';
import { CLUSTER_SPEC } from '../../../../src/domain/clusters/spec-paths.ts';
import { trialRejection } from '../../../../src/domain/clusters/item-trial.ts';
import { pullSecretIn } from '../../../../src/domain/clusters/revise.ts';
import { isRefused } from '../../../../src/domain/decider.ts';
import type { JsonObject, JsonValue } from '../../../../src/domain/json.ts';
import { refersTo, type Reference } from '../../../../src/domain/references.ts';

const GOOGLE = 'type.googleapis.com/google.protobuf.';
const object = (id: string, document: JsonObject, more: Partial<CatalogueObject> = {}): CatalogueObject => ({
  id,
  name: id,
  tenant: 'shared',
  document,
  secrets: {},
  revision: 4,
  deleting: false,
  ...more,
});
const template = object('small', {
  node_sets: {
    workers: { host_type: { id: 'fc430' }, size: 3 },
    infra: { host_type: { id: 'fc430' }, size: 1 },
  },
  parameters: [
    { name: 'replicas', type: `${GOOGLE}Int32Value`, default: { '@type': `${GOOGLE}Int32Value`, value: 1 } },
    { name: 'ratio', type: `${GOOGLE}DoubleValue` },
    { name: 'big', type: `${GOOGLE}Int64Value` },
    { name: 'flag', type: `${GOOGLE}BoolValue` },
    { name: 'a.b', type: `${GOOGLE}StringValue` },
  ],
  spec_defaults: { pull_secret_secret: { id: 's0', name: 'theirs' } },
});
const item = (id: string, ...field_definitions: JsonObject[]): CatalogueObject =>
  object(id, { title: id, published: true, template: { id: 'small', name: 'small' }, field_definitions });

const items = [
  item('closed'),
  item(
    'small-item',
    { path: 'node_sets', editable: true },
    { path: 'ssh_public_key', editable: true, default: 'ssh-ed25519 AAAA' },
    { path: 'version', editable: true },
  ),
  item(
    'bounded',
    { path: 'node_sets.workers.size', editable: true, default: 2, validation_schema: '"max 5"' },
    { path: 'template_parameters.replicas', default: 7 },
    { path: 'template_parameters.ratio', default: 2 },
    { path: 'template_parameters.big', default: 5 },
    { path: 'template_parameters.flag', default: true },
    { path: 'template_parameters.a.b', editable: true, default: 'plain', validation_schema: '"max 5"' },
  ),
  item('with-secret', { path: 'pull_secret_secret', editable: true, default: { name: 'mine' } }),
  item('lost-secret', { path: 'pull_secret_secret', default: { name: 'nobody' } }),
  item('with-value', { path: 'pull_secret', editable: true }),
  object('draft', { title: 'Draft', template: { id: 'small' } }),
  object('leaving', { title: 'x', published: true, template: { id: 'small' } }, { deleting: true }),
  object('orphan', { title: 'x', published: true, template: { id: 'gone' } }),
];

const lookup =
  (objects: readonly CatalogueObject[]) =>
  (reference: Reference): CatalogueObject | undefined =>
    objects.find((each) => refersTo(reference, each));
const version = object('v1', { spec: { version: '4.20.3', image: 'r:4.20.3', enabled: true } });
const catalogue: Catalogue = {
  template: lookup([template]),
  item: lookup(items),
  version: lookup([version]),
  defaultVersion: () => version,
  hostType: lookup([object('fc430', {})]),
  secret: lookup([object('mine', {}, { tenant: 't1' })]),
  addressPools: () => [],
  subnet: () => undefined,
  securityGroup: () => undefined,
  defaultNetwork: () => undefined,
  misfit: (schema, value) =>
    schema === '"max 5"' && (Number(value) > 5 || JSON.stringify(value).length > 7)
      ? 'must be at most 5'
      : undefined,
};

const order = (spec: JsonObject) => resolveOrder({ metadata: { name: 'c1' }, spec }, catalogue);
const from = (name: string, spec: JsonObject = {}) => order({ catalog_item: { name }, ...spec });
const accepted = (name: string, spec: JsonObject = {}) => {
  const resolved = from(name, spec);
  if (isRefused(resolved)) throw new Error(resolved.message);
  return resolved;
};
const refusal = (result: object, code: string, message?: string): void => {
  if (!isRefused(result)) throw new Error(`expected ${code}, got an order`);
  expect(result.code, result.message).to.equal(code);
  if (message !== undefined) expect(result.message).to.equal(message);
};

describe('clusters: ordered from a catalogue item', () => {
  it('take the template and the defaults of the item, and record which it was', () => {
    const resolved = accepted('small-item', { node_sets: { workers: { size: 4 } }, version: { name: 'v1' } });
    expect(resolved.catalogItem).to.deep.equal({ id: 'small-item', name: 'small-item', revision: 4 });
    expect(resolved.template).to.deep.equal({ id: 'small', name: 'small', revision: 4 });
    expect(resolved.sshPublicKey).to.equal('ssh-ed25519 AAAA');
    expect(resolved.nodeSets['workers']?.size).to.equal(4);
    expect(accepted('closed')).to.have.nested.property('nodeSets.workers.size', 3);
  });
  it('need what the item leaves open and gives no default for', () => {
    refusal(
      from('small-item'),
      'FIELD_REQUIRED',
      "field 'node_sets' is required: no value was given and catalog item 'small-item' has no default for it",
    );
    refusal(from('small-item', { node_sets: { workers: { size: 4 } } }), 'FIELD_REQUIRED');
  });
  it('may set nothing that the item does not speak of', () => {
    refusal(
      from('closed', { ssh_public_key: 'x', network: { pod_cidr: '10.0.0.0/14' } }),
      'FIELD_NOT_ALLOWED',
      "fields not allowed by catalog item 'closed': network.pod_cidr, ssh_public_key",
    );
    refusal(
      from('bounded', { node_sets: { workers: { size: 1, host_type: { id: 'fc430' } } } }),
      'FIELD_NOT_ALLOWED',
    );
    refusal(from('bounded', { node_sets: { 'workers.size': { size: 1 } } }), 'FIELD_NOT_ALLOWED');
    refusal(from('bounded', { node_sets: { workers: {} } }), 'FIELD_NOT_ALLOWED');
    refusal(
      from('closed', { template_parameters: { flag: { '@type': `${GOOGLE}BoolValue`, value: true } } }),
      'FIELD_NOT_ALLOWED',
      "fields not allowed by catalog item 'closed': template_parameters.flag",
    );
    refusal(from('closed', { version: {} }), 'REFERENCE_EMPTY');
    refusal(from('closed', { network: {} }), 'FIELD_NOT_ALLOWED');
    const many = Object.fromEntries(Array.from({ length: 14 }, (_, i) => [`set${i}`, { size: 1 }]));
    const { message } = from('closed', { node_sets: many }) as { message: string };
    expect(message).to.match(/^fields not allowed .*: node_sets\.set0\.size, .* and others$/);
  });
  it('are refused as fast when very much is not allowed, or covered', () => {
    const sets = Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`set${i}`, { size: 1 }]));
    const spent = (run: () => object): number => {
      const before = process.cpuUsage();
      expect(isRefused(run())).to.equal(true);
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    const run = (name: string) => (): object => from(name, { node_sets: sets });
    for (const name of ['closed', 'small-item']) {
      run(name)();
      expect(Math.min(...[1, 2, 3].map(() => spent(run(name)))), name).to.be.lessThan(50);
    }
  });
  it('may not set what is not editable, nor what its schema refuses', () => {
    const value = { '@type': `${GOOGLE}Int32Value`, value: 7 };
    refusal(
      from('bounded', { template_parameters: { replicas: value } }),
      'FIELD_NOT_EDITABLE',
      "field 'template_parameters.replicas' is not editable in catalog item 'bounded'",
    );
    refusal(
      from('bounded', { node_sets: { workers: { size: 6 } } }),
      'FIELD_INVALID',
      "validation failed for field 'node_sets.workers.size': must be at most 5",
    );
    const long = { '@type': `${GOOGLE}StringValue`, value: 'longer' };
    refusal(from('bounded', { template_parameters: { 'a.b': long } }), 'FIELD_INVALID');
    expect(accepted('bounded', { node_sets: { workers: { size: 5 } } })).to.have.nested.property(
      'nodeSets.workers.size',
      5,
    );
  });
  it('get defaults of parameters in the parameter’s own type', () => {
    const { templateParameters, nodeSets } = accepted('bounded');
    const any = (type: string, value: JsonValue): JsonObject => ({ '@type': GOOGLE + type, value });
    expect(templateParameters).to.deep.equal({
      replicas: any('Int32Value', 7),
      ratio: any('DoubleValue', 2),
      big: any('Int64Value', '5'),
      flag: any('BoolValue', true),
      'a.b': any('StringValue', 'plain'),
    });
    expect(nodeSets['workers']?.size).to.equal(2);
    expect(nodeSets['infra']?.size).to.equal(1);
  });
  it('come from items that are there, offered and not on their way out', () => {
    refusal(
      from('no-such'),
      'REFERENCE_NOT_FOUND',
      'reference validation failed: object.spec.catalog_item: ClusterCatalogItem "no-such" not found',
    );
    refusal(order({ catalog_item: {} }), 'REFERENCE_EMPTY');
    refusal(from('draft'), 'ITEM_NOT_PUBLISHED', "catalog item 'draft' is not published");
    expect((from('draft') as { kind: string }).kind).to.equal('not-found');
    refusal(from('leaving'), 'ITEM_DELETED');
    refusal(from('orphan'), 'FIELD_REQUIRED', 'template is mandatory');
    refusal(from('closed', { template: { id: 'small' } }), 'TEMPLATE_AND_ITEM');
    refusal(
      resolveOrder({ metadata: undefined, spec: { catalog_item: { name: 'closed' } } }, catalogue),
      'FIELD_REQUIRED',
    );
  });
  it('name every unknown reference at once', () => {
    const spec = { version: { id: 'x' }, catalog_item: { id: 'y' }, pull_secret_secret: { name: 'z' } };
    expect(referenceProblems(spec, catalogue).map(({ field }) => field)).to.deep.equal([
      'object.spec.version',
      'object.spec.catalog_item',
      'object.spec.pull_secret_secret',
    ]);
    expect(referenceProblems({}, catalogue)).to.deep.equal([]);
  });
  it('know the template before anything is resolved', () => {
    expect(templateReference({ catalog_item: { name: 'closed' } }, catalogue)).to.deep.equal({
      id: 'small',
      name: 'small',
    });
    expect(templateReference({ catalog_item: { name: 'no' } }, catalogue)).to.equal(undefined);
    expect(templateReference({ template: { id: 'a' } }, catalogue)).to.deep.equal({ id: 'a' });
  });
});

describe('clusters: what an item promises', () => {
  const promised = (...field_definitions: JsonObject[]) => ({ title: 'x', field_definitions });
  const trial = (...definitions: JsonObject[]) =>
    trialRejection(promised(...definitions), template, catalogue, () => undefined);
  const fits = (...definitions: JsonObject[]) =>
    templateMisfit(CLUSTER_SPEC, promised(...definitions), template);

  it('can be ordered', () => {
    for (const one of items)
      expect(
        trialRejection(one.document, template, catalogue, () => undefined),
        one.id,
      ).to.equal(undefined);
    expect(
      trial(
        { path: 'node_sets.workers.host_type', default: { id: 'fc430' } },
        { path: 'node_sets.workers.size', editable: true },
      ),
    ).to.equal(undefined);
  });
  it('is refused when nobody could order it', () => {
    for (const definition of [
      { path: 'network.service_cidr', default: 'x' },
      { path: 'node_sets.workers.host_type', default: { id: 'other' } },
      { path: 'node_sets.workers.size', default: 0 },
      { path: 'node_sets', default: { none: { size: 1 } } },
      { path: 'template_parameters', default: { none: 1 } },
      { path: 'template_parameters', default: { replicas: 'x' } },
      { path: 'ssh_public_key', default: 'x'.repeat(20_000) },
    ])
      expect(trial(definition), definition.path).to.include({ field: 'field_definitions' });
  });
  it('is about sets and parameters that the template has, in their types', () => {
    expect(
      fits({ path: 'node_sets.workers.size', default: 1 }, { path: 'network', editable: true }),
    ).to.equal(undefined);
    expect(
      fits({ path: 'template_parameters', editable: true }, { path: 'node_sets', editable: true }),
    ).to.equal(undefined);
    expect(fits({ path: 'node_sets.none.size', default: 1 })).to.include({
      field: 'field_definitions.0.path',
    });
    expect(fits({ path: 'template_parameters.none', editable: true })).to.include({
      field: 'field_definitions.0.path',
    });
    expect(fits({ path: 'template_parameters.replicas', default: 2 ** 31 })).to.include({
      field: 'field_definitions.0.default',
    });
    expect(fits({ path: 'template_parameters.replicas', default: 5 })).to.equal(undefined);
  });
  it('keeps to its own schemas', () => {
    const size = { path: 'node_sets.workers.size', editable: true, validation_schema: '"max 5"' };
    expect(defaultMisfit(CLUSTER_SPEC, promised({ ...size, default: 5 }), catalogue.misfit)).to.equal(
      undefined,
    );
    expect(defaultMisfit(CLUSTER_SPEC, promised(size), catalogue.misfit)).to.equal(undefined);
    expect(defaultMisfit(CLUSTER_SPEC, promised({ ...size, default: 6 }), catalogue.misfit)).to.include({
      field: 'field_definitions.0.default',
      message:
        "the default of field definition 'node_sets.workers.size' does not fit its validation_schema: must be at most 5",
    });
  });
});

describe('clusters: pull secrets that are objects', () => {
  const ref = { id: 'r', version: '1', kind: 'secret-data', fingerprint: 'f' } as const;

  it('are the order’s, else the item’s, else the template’s', () => {
    expect(order({ template: { id: 'small' }, pull_secret_secret: { id: 'mine' } })).to.deep.include({
      pullSecretSecret: { id: 'mine', name: 'mine' },
    });
    expect(accepted('with-secret')).to.deep.include({ pullSecretSecret: { id: 'mine', name: 'mine' } });
    expect(accepted('closed')).to.deep.include({ pullSecretSecret: { id: 's0', name: 'theirs' } });
    expect(accepted('with-value', { pull_secret: 'sent' })).to.not.have.any.keys(
      'pullSecret',
      'pullSecretSecret',
    );
  });
  it('stand alone', () => {
    refusal(
      order({ template: { id: 'small' }, pull_secret: 'x', pull_secret_secret: { id: 'mine' } }),
      'PULL_SECRET_TWICE',
    );
    refusal(from('lost-secret'), 'SECRET_MISSING');
  });
  it('hold the value under a key that is known, and belong to their tenant', () => {
    const found = (secrets: object): object =>
      pullSecretIn({ name: 's', tenant: 't1', secrets: secrets as { [path: string]: typeof ref } });
    expect(
      found({ 'data..dockerconfigjson': ref, 'data.pull-secret': { ...ref, id: 'other' } }),
    ).to.deep.equal({
      ...ref,
      tenant: 't1',
    });
    expect(found({ 'data.pull_secret': { ...ref, tenant: 't9' } })).to.deep.equal({ ...ref, tenant: 't9' });
    refusal(found({ 'data.token': ref }), 'NO_PULL_SECRET');
    refusal(found({}), 'NO_PULL_SECRET');
  });
});
