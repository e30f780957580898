import { expect } from 'chai';
import { isPlainMessage, MESSAGES } from '../../../../src/http/osac/messages.ts';
import { isPublished, MAX_FIELD_DEFINITIONS } from '../../../../src/domain/catalog/catalog-item.ts';
import { clusterCatalogItem } from '../../../../src/domain/catalog/cluster-catalog-item.resource.ts';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import { INSTANCE_SPEC } from '../../../../src/domain/compute/instance-spec.ts';
import { CLUSTER_SPEC } from '../../../../src/domain/clusters/spec-paths.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';

type ClusterCatalogItemEvent = EventOf<typeof clusterCatalogItem>;

const { segmentsOf: specSegments } = CLUSTER_SPEC;
const at = '2026-11-21T12:00:00.000Z';
const facts = { at, id: 'i1', tenant: 'shared', project: '', name: 'small-item', creator: 'system' };
const sent: JsonObject = { title: 'Small', template: { id: 't', name: 't' }, published: true };
const create = (document: JsonObject): DocumentCommand => ({ type: 'CreateDocument', ...facts, document });
const offered = (document: JsonObject): ClusterCatalogItemEvent => ({
  type: 'ClusterCatalogItemOffered',
  data: { ...facts, document },
});
const withFields = (...field_definitions: JsonObject[]): JsonObject => ({ ...sent, field_definitions });

describe('cluster catalog items', () => {
  const { given } = specify(clusterCatalogItem.decider);

  it('need a title, and a template before they are published', () => {
    given().when(create(sent)).thenEvents(offered(sent));
    given()
      .when(create({ template: { id: 't' } }))
      .thenRejected('FIELD_REQUIRED', { field: 'title' });
    given()
      .when(create({ title: 'x', published: true }))
      .thenRejected('FIELD_REQUIRED', { field: 'template' });
    given()
      .when(create({ title: 'Draft' }))
      .thenEvents(offered({ title: 'Draft' }));
    given(offered({ title: 'Draft' }))
      .when({ type: 'ReviseDocument', at, document: { title: 'Draft', published: true } })
      .thenRejected('FIELD_REQUIRED', { field: 'template' });
    expect([isPublished(sent), isPublished({})]).to.deep.equal([true, false]);
  });
  it('define fields that a cluster has, each once, with a default where nobody else sets it', () => {
    const key: JsonObject = { path: 'ssh_public_key', editable: true };
    const refused: [JsonObject[], string, string][] = [
      [[{}], 'field_definitions.0.path', 'every field definition needs a path'],
      [[key, { path: 'nope', editable: true }], 'field_definitions.1.path', "no field 'nope'"],
      [[{ path: 'template', editable: true }], 'field_definitions.0.path', "no field 'template'"],
      [[{ path: 'x'.repeat(300), editable: true }], 'field_definitions.0.path', 'has no field'],
      [[key, key], 'field_definitions.1.path', 'speak of the same field'],
      [
        [
          { path: 'network', editable: true },
          { path: 'network.pod_cidr', editable: true },
        ],
        'field_definitions.1.path',
        "'network' and 'network.pod_cidr' speak of the same field",
      ],
      [
        [
          { path: 'node_sets.workers.size', editable: true },
          { path: 'node_sets', editable: true },
        ],
        'field_definitions.1.path',
        'speak of the same field',
      ],
      [[{ path: 'ssh_public_key' }], 'field_definitions.0.default', 'is not editable, so it needs a default'],
      [[{ path: 'ssh_public_key', default: null }], 'field_definitions.0.default', 'needs a default'],
      [
        [{ path: 'pull_secret', editable: true, default: 'x' }],
        'field_definitions.0.default',
        'a secret cannot be',
      ],
      [
        [{ path: 'ssh_public_key', default: 'x'.repeat(16_384) }],
        'field_definitions.0.default',
        'has more than 16384 characters',
      ],
      [
        Array.from({ length: MAX_FIELD_DEFINITIONS + 1 }, (_, i) => ({
          path: `template_parameters.p${i}`,
          editable: true,
        })),
        'field_definitions',
        'at most 100 field definitions',
      ],
    ];
    for (const [definitions, field, problem] of refused) {
      const { decision } = given().when(create(withFields(...definitions)));
      expect(decision, problem).to.include({ field });
      expect((decision as { message: string }).message).to.contain(problem);
    }
    const good = withFields(
      key,
      { path: 'node_sets.workers.size', default: 3 },
      { path: 'node_sets.workers.host_type', editable: true },
      { path: 'template_parameters.a.b', editable: true, default: 1 },
      { path: 'template_parameters.a', editable: true },
      { path: 'pull_secret', editable: true },
    );
    given().when(create(good)).thenEvents(offered(good));
  });
  it('take null for no default', () => {
    const definition = { path: 'ssh_public_key', editable: true };
    given()
      .when(create(withFields({ ...definition, default: null })))
      .thenEvents(offered(withFields(definition)));
  });
  it('point at their template and at the version that is their default', () => {
    const document = withFields(
      { path: 'version', default: { id: 'v1', name: 'v' } },
      { path: 'ssh_public_key', default: 'x' },
    );
    expect(clusterCatalogItem.pointsAt(document)).to.deep.equal([
      { kind: 'clusterTemplate', id: 't' },
      { kind: 'clusterVersion', id: 'v1' },
    ]);
    expect(clusterCatalogItem.pointsAt({})).to.deep.equal([]);
  });
  it('show what is stored', () => {
    expect(clusterCatalogItem.view(given(offered(sent)).state())).to.have.nested.property(
      'document.title',
      'Small',
    );
  });
});

for (const { message: name, words, segmentsOf } of [CLUSTER_SPEC, INSTANCE_SPEC])
  describe(`fields of a ${words} spec that can be governed`, () => {
    const message = MESSAGES[name]?.public?.fields.find((field) => field.name === 'spec')?.message;

    it('are those of the message, but for what says which item is meant', () => {
      const names = (message?.fields ?? []).map((field) => field.name);
      expect(names.filter((field) => segmentsOf(field) === undefined).sort()).to.deep.equal([
        'catalog_item',
        'template',
      ]);
      for (const field of message?.fields ?? []) {
        const inner = field.message;
        const isList = field.fieldKind === 'list';
        if (inner === undefined || isList || !isPlainMessage(inner) || segmentsOf(field.name) === undefined)
          continue;
        const prefix = field.fieldKind === 'map' ? `${field.name}.key` : field.name;
        const open = inner.fields.filter((one) => segmentsOf(`${prefix}.${one.name}`) !== undefined);
        expect(
          open.map((one) => one.name),
          field.name,
        ).to.deep.equal(inner.fields.map((one) => one.name));
        expect(segmentsOf(`${prefix}.no_such_field`), field.name).to.equal(undefined);
      }
    });
  });

describe('paths of fields that can be governed', () => {
  it('are walked key by key; names of parameters may hold dots, none may be empty', () => {
    expect(specSegments('template_parameters.a.b')).to.deep.equal(['template_parameters', 'a.b']);
    expect(specSegments('node_sets.workers.size')).to.deep.equal(['node_sets', 'workers', 'size']);
    for (const path of [
      '',
      'node_sets.',
      'template_parameters.',
      'node_sets..size',
      '*',
      'constructor',
      'network.*',
    ])
      expect(specSegments(path), path).to.equal(undefined);
    expect(specSegments('node_sets.__proto__.size')).to.deep.equal(['node_sets', '__proto__', 'size']);
  });
});
