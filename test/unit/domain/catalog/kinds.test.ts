import { expect } from 'chai';
import type { DocumentCommand } from '../../../../src/domain/catalog/document.ts';
import { clusterVersion, unusableReason } from '../../../../src/domain/catalog/cluster-version.resource.ts';
import { hubFacts } from '../../../../src/domain/hubs/hub-facts.ts';
import { hub } from '../../../../src/domain/hubs/hub.resource.ts';
import { aggregateOf, aggregates, documentKinds, kindOf, kinds } from '../../../../src/domain/kinds.ts';
import { tenant } from '../../../../src/domain/tenancy/tenant.resource.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';

type ClusterVersionEvent = EventOf<typeof clusterVersion>;

const at = '2026-11-21T12:00:00.000Z';
const later = '2026-11-21T13:00:00.000Z';
const create = (document: JsonObject, more: object = {}): DocumentCommand => ({
  type: 'CreateDocument',
  at,
  id: 'x1',
  tenant: 'shared',
  project: '',
  name: 'x1',
  creator: 'system',
  document,
  ...more,
});
const revise = (document: JsonObject): DocumentCommand => ({ type: 'ReviseDocument', at: later, document });

describe('cluster versions', () => {
  const { given } = specify(clusterVersion.decider);
  const spec = { version: '4.20.3', image: 'r/r:4.20.3' };
  const stored = { ...spec, enabled: true, state: 'CLUSTER_VERSION_STATE_ACTIVE' };
  const added = (change: JsonObject = {}): ClusterVersionEvent => ({
    type: 'ClusterVersionAdded',
    data: {
      at,
      id: 'x1',
      tenant: 'shared',
      project: '',
      name: 'x1',
      creator: 'system',
      document: { spec: { ...stored, ...change } },
    },
  });
  const revisedSpec = (history: ClusterVersionEvent, change: JsonObject): unknown => {
    const decision = given(history).when(revise({ spec: { ...stored, ...change } })).decision;
    return (decision as unknown as { data: { document: { spec: unknown } } }[])[0]?.data.document.spec;
  };

  it('are active and enabled unless said otherwise', () =>
    given().when(create({ spec })).thenEvents(added()));
  it('need a strict semantic version and an image', () => {
    const refused: [JsonObject, string][] = [
      [{ image: 'r/r:1' }, 'FIELD_REQUIRED'],
      [{ version: '4.20', image: 'r' }, 'INVALID_VERSION'],
      [{ version: '04.20.1', image: 'r' }, 'INVALID_VERSION'],
      [{ version: `1.0.0-${'x'.repeat(256)}`, image: 'r' }, 'INVALID_VERSION'],
      [{ version: '4.20.3' }, 'FIELD_REQUIRED'],
      [{ version: '4.20.3', image: 'r'.repeat(513) }, 'INVALID_IMAGE'],
      [{ ...spec, enabled: false, is_default: true }, 'UNUSABLE_DEFAULT'],
      [{ ...spec, state: 'CLUSTER_VERSION_STATE_OBSOLETE', is_default: true }, 'UNUSABLE_DEFAULT'],
    ];
    for (const [wrong, code] of refused)
      given()
        .when(create({ spec: wrong }))
        .thenRejected(code);
    expect(
      given().when(create({ spec: { ...spec, version: '4.22.0-rc.1+build.5' } })).decision,
    ).to.have.lengthOf(1);
  });
  it('keep version and image', () => {
    given(added())
      .when(revise({ spec: { ...stored, image: 'r/r:other' } }))
      .thenRejected('IMMUTABLE_FIELD', { message: "field 'spec.image' is immutable" });
    given(added())
      .when(revise({}))
      .thenRejected('IMMUTABLE_FIELD', { message: "fields 'spec.version' and 'spec.image' are immutable" });
  });
  it('are stamped when their state changes, whatever the caller sends', () => {
    const deprecated = { state: 'CLUSTER_VERSION_STATE_DEPRECATED' };
    const sent = { deprecation: { deprecation_timestamp: '2020-01-01T00:00:00Z' } };
    expect(revisedSpec(added(), { ...deprecated, ...sent })).to.deep.equal({
      ...stored,
      ...deprecated,
      deprecation: { deprecation_timestamp: later },
    });
    const stamped = { ...deprecated, deprecation: { deprecation_timestamp: at } };
    expect(revisedSpec(added(stamped), { state: 'CLUSTER_VERSION_STATE_OBSOLETE' })).to.deep.equal({
      ...stored,
      state: 'CLUSTER_VERSION_STATE_OBSOLETE',
      deprecation: { deprecation_timestamp: at, obsolescence_timestamp: later },
    });
    expect(revisedSpec(added(stamped), { state: 'CLUSTER_VERSION_STATE_ACTIVE' })).to.deep.include({
      deprecation: { deprecation_timestamp: at },
    });
    given(added(stamped))
      .when(revise({ spec: { ...stored, ...deprecated, ...sent } }))
      .thenNothing();
  });
  it('lose the default mark when they become unusable', () => {
    const marked = added({ is_default: true });
    expect(revisedSpec(marked, { is_default: true, enabled: false })).to.deep.include({ is_default: false });
    given(added({ enabled: false }))
      .when(revise({ spec: { ...stored, enabled: false, is_default: true } }))
      .thenRejected('UNUSABLE_DEFAULT');
    expect(revisedSpec(added(), { is_default: true })).to.deep.include({ is_default: true });
    expect(unusableReason({})).to.equal(undefined);
  });
  it('show their state, their marks and what must be unique', () => {
    const view = clusterVersion.view(given(added({ is_default: true })).state());
    expect(view).to.deep.include({ state: 'CLUSTER_VERSION_STATE_ACTIVE' });
    if (!view.exists) throw new Error('nothing is shown');
    expect(clusterVersion.marks?.(view.document)).to.deep.equal(['default']);
    expect(clusterVersion.marks?.({ spec })).to.deep.equal([]);
    const version = { scope: 'clusterVersion.version', value: '4.20.3', field: 'spec.version' };
    const slot = {
      scope: 'clusterVersion.default',
      value: 'default',
      field: 'spec.is_default',
      slot: true,
    };
    expect(clusterVersion.uniqueValues?.(view.document)).to.deep.equal([version, slot]);
    expect(clusterVersion.uniqueValues?.({ spec })).to.deep.equal([version]);
    expect(clusterVersion.deriveName?.({ spec })).to.match(/^4-20-3-[0-9a-f]{4}$/);
    expect(clusterVersion.deriveName?.({})).to.equal(undefined);
    expect(clusterVersion.pointsAt({})).to.deep.equal([]);
    expect(clusterVersion.view({ status: 'absent' })).to.deep.equal({ exists: false });
  });
});

describe('hubs', () => {
  const { given } = specify(hub.decider);
  const refused = (spec: JsonObject, field: string): void => {
    given().when(create({ spec })).thenRejected('INVALID_HUB', { field });
  };

  it('are checked field by field', () => {
    refused({ namespace: 'Bad_Namespace' }, 'spec.namespace');
    refused({ namespaces: { t1: 'No!' } }, 'spec.namespaces.t1');
    refused({ mode: 'magic' }, 'spec.mode');
    refused({ controller: 'magic' }, 'spec.controller');
    refused({ steps: { agents: 'magic' } }, 'spec.steps.agents');
    refused({ steps: { magic: 'hub' } }, 'spec.steps.magic');
    refused({ capacity: { control_planes: -1 } }, 'spec.capacity.control_planes');
    refused({ capacity: { nodes: { fc430: 1.5 } } }, 'spec.capacity.nodes.fc430');
    refused({}, 'spec.namespace');
    refused({ namespace: '', zone: 'east' }, 'spec.namespace');
  });
  it('drop a status that somebody sends', () => {
    const [event] = given().when(create({ spec: { namespace: 'n' }, status: { adapter: 'x' } }))
      .decision as unknown as {
      data: { document: JsonObject };
    }[];
    expect(event?.data.document).to.deep.equal({ spec: { namespace: 'n' } });
  });
  it('say which adapter reaches them, and never show the kubeconfig', () => {
    const kubeconfig = { id: 'k', version: '1', kind: 'kubeconfig', fingerprint: 'f' } as const;
    const shown = (id: string, secrets: object = { 'spec.kubeconfig': kubeconfig }): JsonObject => {
      const events = given().when(create({ spec: { namespace: 'n' } }, { id, secrets })).decision;
      const state = (events as never[]).reduce(hub.decider.evolve, hub.decider.initialState());
      const view = hub.view(state);
      if (!view.exists) throw new Error('nothing is shown');
      return view.document;
    };
    expect(shown('sim-1')['status']).to.deep.equal({ adapter: 'simulated' });
    expect(shown('hub-1')).to.have.nested.property('status.adapter', 'kubernetes');
    expect(shown('hub-1')).to.have.nested.property('status.conditions[0].reason', 'NotChecked');
    expect(shown('hub-1', {})).to.have.nested.property('status.adapter', 'none');
    expect(shown('hub-1', {})).to.have.nested.property('status.conditions[0].type', 'NoAdapter');
    expect(JSON.stringify(shown('sim-1'))).to.not.contain('kubeconfig');
  });
  it('have facts with defaults', () => {
    expect(hubFacts({ id: 'hub-1', document: { spec: { namespace: 'n' } } })).to.deep.include({
      namespace: 'n',
      mode: 'operator',
      controller: 'operator',
      simulated: false,
      zone: '',
      templates: [],
    });
    expect(hubFacts({ id: 'hub-1', document: {} }).steps.agents).to.equal('hub');
    const facts = hubFacts({
      id: 'sim-1',
      document: {
        spec: {
          mode: 'eda',
          controller: 'ledger',
          zone: 'east',
          templates: ['t'],
          steps: { dns: 'none' },
          namespaces: { t1: 'n1' },
        },
      },
    });
    expect(facts).to.deep.include({ mode: 'eda', controller: 'ledger', zone: 'east', templates: ['t'] });
    expect(facts.steps).to.deep.include({ agents: 'ledger', dns: 'none' });
    expect(facts.namespaces).to.deep.equal({ t1: 'n1' });
    expect(hub.deriveName?.({ id: 'sim-east-1' })).to.equal('sim-east-1');
    expect(hub.pointsAt({})).to.deep.equal([]);
  });
});

describe('tenants', () => {
  const { given } = specify(tenant.decider);
  const onboard = (domains: string[], more: object = {}): DocumentCommand =>
    create({ spec: { domains } }, { id: 'acme', name: 'acme', tenant: 'acme', ...more });

  it('are their own id, name and tenant', () => {
    expect(given().when(onboard(['acme.example'])).decision).to.have.lengthOf(1);
    given()
      .when(onboard([], { id: 'other' }))
      .thenRejected('TENANT_IDENTITY', { field: 'id' });
    given()
      .when(onboard([], { tenant: 'other' }))
      .thenRejected('TENANT_IDENTITY', { field: 'metadata.tenant' });
    const history = given().when(onboard([])).decision as never[];
    given(...history)
      .when(onboard([]))
      .thenRejected('ALREADY_EXISTS', { message: "tenant 'acme' already exists" });
    expect(tenant.view(given(...history).state())).to.deep.include({ id: 'acme', exists: true });
  });
  it('have domains of at least two labels that are no addresses', () => {
    const refused: [string, string][] = [
      ['', 'at least 1'],
      [`${'a'.repeat(63)}.`.repeat(4).concat('example'), 'at most 253'],
      ['10.0.0.1', 'not an IP address'],
      ['fd00::1', 'not an IP address'],
      ['localhost', 'two labels'],
      ['-bad.example', 'valid DNS labels'],
    ];
    for (const [domain, problem] of refused) {
      const { decision } = given().when(onboard([domain]));
      expect((decision as { message: string }).message, domain).to.contain(problem);
    }
    given()
      .when(onboard(['acme.example', 'ACME.example']))
      .thenRejected('VALIDATION_FAILED', { field: 'object.spec.domains[1]' });
    expect(tenant.uniqueValues?.({ spec: { domains: ['Acme.Example'] } })).to.deep.equal([
      {
        scope: 'tenant.domain',
        value: 'acme.example',
        field: 'spec.domains',
        taken: "value 'Acme.Example' in field 'spec.domains' is already used by another tenant",
      },
    ]);
    expect(tenant.pointsAt({})).to.deep.equal([]);
  });
});

describe('the list of kinds', () => {
  it('names every kind and aggregate once', () => {
    const names = kinds.map(({ kind }) => kind);
    expect(new Set(names).size).to.equal(names.length);
    expect(documentKinds.map(({ kind }) => kind)).to.not.include('cluster');
    const categories = aggregates.map(({ category }) => category);
    expect(categories).to.include.members([...names, 'name', 'hubCapacity']);
    expect(new Set(categories).size).to.equal(categories.length);
    expect(kindOf('hub')?.collection).to.equal('hubs');
    expect(kindOf('nope')).to.equal(undefined);
    expect(aggregateOf(hub).category).to.equal('hub');
  });
});
