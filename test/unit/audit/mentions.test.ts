import { expect } from 'chai';
import { clusterOrderWorkflow } from '../../../src/domain/clusters/order-workflow/workflow.ts';
import { isObject } from '../../../src/domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { kindOf } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { isLeafStream } from '../../../src/app/audit/merkle/leaf.ts';
import { eventDataSchema } from '../../../src/http/asyncapi/event-schema.ts';
import { RUNS_OF } from '../../../src/projections/audit/facts.ts';
import { eventSamples } from '../../support/domain/event-samples.ts';
import { isHidden, MENTIONS, namedIn, STREAMS_OF } from '../../../src/projections/audit/mentions.ts';

/** Every path of texts in a JSON Schema; `*` stands for each entry of a list or map. */
const pathsOf = (schema: JsonValue | undefined, path: readonly string[] = []): string[] => {
  if (!isObject(schema)) return [];
  const inner = (key: string): string[] => {
    const value = schema[key];
    const at = key === 'items' || key === 'additionalProperties' ? [...path, '*'] : path;
    return Array.isArray(value)
      ? (value as JsonValue[]).flatMap((each) => pathsOf(each, at))
      : pathsOf(value, at);
  };
  const properties = schema['properties'];
  return [
    ...(schema['type'] === 'string' && schema['format'] === undefined ? [path.join('.')] : []),
    ...(isObject(properties)
      ? Object.entries(properties).flatMap(([name, each]) => pathsOf(each, [...path, name]))
      : []),
    ...['items', 'additionalProperties', 'anyOf', 'oneOf', 'allOf'].flatMap(inner),
  ];
};

/** Names of fields that may hold the id of an object, or the name of a stream. */
const LIKE_AN_ID =
  /(^|\.)(id|hub|holder|stream|cluster|resource|target|object|node|machine|lease|tenant|project|subject|scope)(\.\*)?$|(Id|Ids|Stream|From)(\.\*)?$|(^|\.)(tenants|targets|left|holders|hubs|clusters)\.\*/;

/** Fields that name no other object on which the event is an action, and why. */
const NO_ACTION: readonly (readonly [path: RegExp, why: string])[] = [
  [/^(id|tenant|project)$/, 'the object itself, and to whom it belongs, as its stream and metadata say'],
  [/^tenants\.\*$|^request\.tenant$/, 'whose history it is'],
  [/^(commandId|effectId|timerId|erasureId|requestId|holdId|runId)$/, 'names no object of a kind'],
  [/^creator$/, 'who did it is the subject in the metadata'],
  [/^(secrets\.\*|spec\.pullSecret|pullSecret)\.(id|tenant)$/, 'a value in the secret store'],
  [
    /(^|\.)(template|catalogItem|version|hostType|instanceType|diskImage|pullSecretSecret)\.id$|^(spec\.)?pullSecret(Secret)?\.id$|^targets\.\*\.(id|kind)$/,
    'a reference is no action on what it points at',
  ],
  [/^(hub|decision\.candidates\.\*\.hub)$/, 'where a cluster lives, or could, is a fact of the cluster'],
  [/^networkAttachment\.(subnet\.id|securityGroups\.\*\.id|hub)$/, 'a reference, and where that is'],
  [/^externalIps?\.(pool\.id|hub)$/, 'where addresses will come from; each names its owner itself'],
  [/^(formerId|deploymentId)$/, 'a deployment is no object'],
  [/^cluster$/, 'how Kubernetes calls the cluster behind a hub'],
  [/^(problems|lacking)\.\*\.subject$/, 'what on a hub is not right'],
  [/^subjectId$/, 'who did it, as the metadata say'],
  [/^clientId$/, 'what a client of a console calls itself'],
  [/^vendorVolumeId$/, 'what its storage system calls a volume'],
  [/^resourceId$/, 'of a refusal: the event is about this object alone'],
  [/^asked\.subject$/, 'of a look: `query` says it, too; of a notice there is a row'],
  [/^(message|named)\.keyId$/, 'whose key conceals the text: who did it'],
];

const sampleOf = (type: string): JsonObject =>
  eventSamples.findLast((sample) => sample.type === type)?.data ?? {};

/** Paths that a row of the table reads. */
const covered = (type: string): readonly string[] =>
  (MENTIONS[type] ?? []).flatMap((mention) => Object.values(mention) as string[]);

describe('what events name beside the object of their stream', () => {
  // What lies in sys- streams is no leaf.
  const types = eventTypes.filter(({ context }) => context !== 'system');

  it('is in the table, or is no action on what is named: every field like an id of every type', () => {
    const open = types.flatMap((entry) => {
      const { type } = entry;
      return pathsOf(eventDataSchema(entry))
        .filter((path) => LIKE_AN_ID.test(path) && !covered(type).includes(path))
        .filter((path) => !NO_ACTION.some(([known]) => known.test(path)))
        .map((path) => `${type}: ${path}`);
    });
    expect(open, 'add a row to MENTIONS, or say here why it names no object').to.deep.equal([]);
  });

  it('would be asked for in a new type', () => {
    for (const path of ['clusterId', 'hub', 'nodes.*.nodeId', 'machine', 'leaseId', 'targets.*.id'])
      expect(LIKE_AN_ID.test(path), path).to.equal(true);
    for (const path of ['clusterId', 'leaseId', 'nodes.*.nodeId', 'machine'])
      expect(
        NO_ACTION.some(([known]) => known.test(path)),
        path,
      ).to.equal(false);
  });

  it('has a row for types only that there are, and every reason is needed', () => {
    const known = new Set(types.map(({ type }) => type));
    expect(Object.keys(MENTIONS).filter((type) => !known.has(type))).to.deep.equal([]);
    const all = types.flatMap((entry) => pathsOf(eventDataSchema(entry)));
    for (const [path, why] of NO_ACTION)
      expect(
        all.some((each) => path.test(each)),
        why,
      ).to.equal(true);
    for (const kind of Object.values({ ...STREAMS_OF, ...RUNS_OF }))
      expect(kindOf(kind)?.kind).to.equal(kind);
    expect(Object.keys(RUNS_OF)).to.include(clusterOrderWorkflow.name);
    expect(isLeafStream('sys-clock')).to.equal(false);
  });

  it('is found in the stored sample of each type that has a row', () => {
    for (const type of Object.keys(MENTIONS)) {
      // Their samples are older than the field, or ask for no object: see below.
      if (['AuditRead', 'AuditExportRequested', 'LegalHoldReleased'].includes(type)) continue;
      expect(namedIn(type, sampleOf(type)), type).not.to.deep.equal([]);
    }
    expect(namedIn('HubCapacityReserved', sampleOf('HubCapacityReserved'))).to.deep.equal([
      { kind: 'cluster', id: '01a1fdbf-853f-7699-b03b-202e1bbb7ff3' },
    ]);
    const filter = { kind: 'cluster', resource_id: 'c1', subject: 'alice' };
    expect(namedIn('AuditExportRequested', { request: { filter } })).to.deep.equal([
      { kind: 'cluster', id: 'c1' },
      { kind: 'user', id: 'alice' },
    ]);
    expect(namedIn('LegalHoldReleased', { scope: { kind: 'tenant', id: 'acme' } })).to.deep.equal([
      { kind: 'tenant', id: 'acme' },
    ]);
    expect(namedIn('LegalHoldPlaced', { scope: { kind: 'subject', id: 'alice' } })).to.deep.equal([
      { kind: 'user', id: 'alice' },
    ]);
    expect(namedIn('AuditRead', { query: { kind: 'cluster', id: 'c1' } })).to.deep.equal([
      { kind: 'cluster', id: 'c1' },
    ]);
    expect(namedIn('AuditRead', { query: { id: 'cluster-c1@0' } })).to.deep.equal([
      { event: 'cluster-c1@0' },
    ]);
  });

  it('is nothing where an event is not as its row says', () => {
    const odd: JsonObject[] = [
      {},
      {
        kind: ['cluster'],
        holder: { kind: 'cluster', id: 7 },
        stream: null,
        scope: 'all',
        query: 'x',
        left: 'y',
      },
      { holder: '', query: { kind: 'cluster' }, scope: { kind: 'tenant' }, tenants: 'all' },
      { query: [], request: { filter: 7 }, tenants: [1, {}, null] },
    ];
    for (const type of [...Object.keys(MENTIONS), 'constructor', '__proto__', 'FromTheFuture'])
      for (const data of odd)
        expect(
          namedIn(type, data).filter((named) => !('as' in named)),
          type,
        ).to.deep.equal([]);
    const many = { tenants: Array.from({ length: 5_000 }, (_, n) => `t${n}`) };
    expect(namedIn('AuditGrantGiven', many)).to.have.length(100);
  });

  it('is for the provider alone where it was asked of histories beside the own one', () => {
    const asked = (tenants: JsonValue): boolean => isHidden('AuditRead', 'acme', { tenants });
    expect(asked(['acme'])).to.equal(false);
    expect(asked(['acme', 'globex'])).to.equal(true);
    expect(asked(['globex'])).to.equal(true);
    expect(isHidden('AuditRead', 'acme', {}), 'everybody').to.equal(true);
    expect(isHidden('AuditRead', '', { tenants: [''] })).to.equal(true);
    expect(isHidden('AuditReadNoticed', 'acme', {})).to.equal(false);
  });
});
