import { expect } from 'chai';
import { documentKind } from '../../../../src/domain/catalog/document-kind.ts';
import { documentTypes } from '../../../../src/domain/catalog/document-types.ts';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { lifecycle } from '../../../../src/domain/kinds.ts';
import { eventTypes } from '../../../../src/domain/registry.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const events = {
  created: 'PowerShelfAdded',
  revised: 'PowerShelfRevised',
  deletionRequested: 'PowerShelfRemovalRequested',
  retired: 'PowerShelfRemoved',
} as const;
const at = '2026-11-21T12:00:00.000Z';

describe('the declaration of a document kind', () => {
  const shelf = documentKind({
    kind: 'powerShelf',
    context: 'catalog',
    events,
    ids: 'equals-name',
    state: 'spec.state',
    publicList: [
      { path: 'spec.state', is: ['ON', 'STANDBY'] },
      { path: 'shown', is: [true], always: true },
    ],
    privateOnly: ['spec.cost'],
    unshown: ['spec.key'],
    references: [
      { path: 'spec.site', kind: 'site', scope: 'full' },
      { path: 'spec.feeds.*.line', kind: 'line', scope: 'full' },
    ],
    alsoPointsAt: () => [{ kind: 'rack', id: 'r1' }],
  });
  const create = (document: JsonObject): DocumentCommand => ({
    type: 'CreateDocument',
    at,
    id: 'a',
    tenant: 'shared',
    project: '',
    name: 'a',
    creator: 'system',
    document,
  });
  const { given } = specify(shelf.decider);
  const shown = (document: JsonObject) => {
    const decided = given().when(create(document)).decision;
    return shelf.view(given(...(decided as never[])).state());
  };

  it('gives the names that are not said', () => {
    expect(shelf).to.deep.include({
      words: 'power shelf',
      collection: 'power_shelfs',
      message: 'PowerShelf',
      service: 'PowerShelfs',
      event: { field: 'power_shelf', public: true },
      nameScope: 'project',
      defaultTenant: 'shared',
    });
    expect(shelf.methods.public).to.include.members(['List', 'Delete']);
  });
  it('leaves irregular names to the kind', () => {
    const names = { words: 'external IP', collection: 'ips', message: 'ExternalIP', service: 'ExternalIPs' };
    const ip = documentKind({ kind: 'externalIp', context: 'networks', events, ...names });
    expect(ip).to.deep.include({ ...names, event: { field: 'external_ip', public: true } });
  });
  it('names its events, and says what tenants see of them', () => {
    const [created, revised, ...others] = documentTypes(shelf);
    const providerOnly = [
      'secrets',
      'document.metadata.finalizers',
      'document.spec.cost',
      'document.spec.key',
    ];
    const tenants = { audience: 'tenant', context: 'catalog', resource: 'powerShelf', version: 1 };
    expect(created).to.deep.include({ ...tenants, type: events.created, begins: true, providerOnly });
    expect(revised).to.deep.include({ ...tenants, type: events.revised, providerOnly });
    expect(others.map(({ type }) => type)).to.deep.equal([events.deletionRequested, events.retired]);
    const methods = { public: [], private: shelf.methods.private };
    const [ofAdmins] = documentTypes(documentKind({ kind: 'shelf', context: 'x', events, methods }));
    expect(ofAdmins).to.deep.include({ audience: 'provider', providerOnly: ['secrets'] });
  });
  it('points at what it refers to, through lists and maps, and at what it says besides', () => {
    const feeds = [{ line: { id: 'l1' } }, { line: { name: 'unresolved' } }, {}];
    expect(shelf.pointsAt({ spec: { site: { id: 's1' }, feeds } })).to.deep.equal([
      { kind: 'site', id: 's1' },
      { kind: 'line', id: 'l1' },
      { kind: 'rack', id: 'r1' },
    ]);
  });
  it('says the same choice as a filter and as a predicate', () => {
    expect(shelf.publicList).to.deep.equal([
      {
        filter: 'this.spec.state == ON || this.spec.state == STANDBY',
        when: { unlessMentioned: 'spec.state' },
      },
      { filter: 'this.shown == true', when: 'always' },
    ]);
    expect(shelf.listed?.({ shown: true, spec: { state: 'ON' } })).to.equal(true);
    expect(shelf.listed?.({ shown: true, spec: { state: 'OFF' } })).to.equal(false);
    expect(shelf.listed?.({ spec: { state: 'ON' } })).to.equal(false);
  });
  it('shows the state that the document says, and nothing that is not shown', () => {
    expect(shown({ spec: { state: 'ON', key: 'k' } })).to.deep.include({ state: 'ON' });
    expect(shown({ spec: { state: 'ON', key: 'k' } }))
      .to.have.nested.property('document.spec')
      .that.deep.equals({ state: 'ON' });
    expect(shown({ spec: {} })).to.not.have.property('state');
  });
  it('tells a taken id as a name where it is the name', () => {
    const [made] = given().when(create({})).decision as never[];
    given(made as never)
      .when(create({}))
      .thenRejected('ALREADY_EXISTS', { message: "power shelf 'a' already exists" });
  });
});

describe('the first and the last event of every kind', () => {
  it('are event types of this kind, and the first one begins', () => {
    const ofResources = eventTypes.filter(({ resource }) => resource !== undefined);
    const begin = ofResources.filter(({ begins }) => begins === true).map(({ type }) => type);
    expect(lifecycle.starts).to.include.members(begin);
    const types = ofResources.map(({ type }) => type);
    expect(types).to.include.members([...lifecycle.starts, ...lifecycle.ends]);
  });
});
