import { expect } from 'chai';
import {
  documentView,
  type DocumentCommand,
  type DocumentState,
} from '../../../../src/domain/catalog/document.ts';
import { clusterTemplate } from '../../../../src/domain/catalog/cluster-template.resource.ts';
import { isOrderableTemplateId } from '../../../../src/domain/catalog/templates.ts';
import { fabricInterfaceOf, hostType } from '../../../../src/domain/catalog/host-type.resource.ts';
import { nameFromId, nameFromVersion } from '../../../../src/domain/catalog/derived-names.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import { specify, type EventOf } from '../../../support/domain/decider-spec.ts';

type ClusterTemplateEvent = EventOf<typeof clusterTemplate>;
type HostTypeEvent = EventOf<typeof hostType>;

const at = '2026-11-21T12:00:00.000Z';
const later = '2026-11-21T13:00:00.000Z';
const { given } = specify(hostType.decider);
const facts = { id: 'fc430', at, tenant: 'shared', project: '', name: 'fc430', creator: 'system' };
const document: JsonObject = { title: 'Dell FC430' };
const create: DocumentCommand = { type: 'CreateDocument', ...facts, document };
const defined: HostTypeEvent = { type: 'HostTypeDefined', data: { ...facts, document } };
const held: HostTypeEvent = {
  type: 'HostTypeRevised',
  data: { at, document: { ...document, metadata: { finalizers: ['b', 'a', 'a'] } } },
};
const requested: HostTypeEvent = { type: 'HostTypeRetirementRequested', data: { at: later } };
const retired: HostTypeEvent = { type: 'HostTypeRetired', data: { at: later } };
const abandoned: HostTypeEvent = { type: 'CreationAbandoned', data: { at, commandId: 'k' } };
const revise = (changed: JsonObject, more: object = {}): DocumentCommand => ({
  type: 'ReviseDocument',
  at: later,
  document: changed,
  ...more,
});
const remove: DocumentCommand = { type: 'DeleteDocument', at: later };
const secret = { id: 's', version: '1', kind: 'pull-secret', fingerprint: 'f' } as const;

describe('catalogue documents', () => {
  it('are created once, with a valid name and valid metadata', () => {
    given().when(create).thenEvents(defined);
    given(defined).when(create).thenRejected('ALREADY_EXISTS');
    given(defined, held, requested).when(create).thenRejected('ALREADY_EXISTS');
    given()
      .when({ ...create, name: 'No' })
      .thenRejected('VALIDATION_FAILED');
    given()
      .when({ ...create, document: { metadata: { labels: { 'Bad Key': '' } } } })
      .thenRejected('INVALID_KEY');
  });
  it('are created again under the id of one that is gone, with nothing of it', () => {
    const again: DocumentCommand = {
      ...create,
      at: later,
      tenant: 't2',
      project: 'house',
      name: 'other',
      creator: 'bob',
      document: { description: 'new' },
    };
    const { type: _type, ...facts2 } = again as Extract<DocumentCommand, { type: 'CreateDocument' }>;
    const second: HostTypeEvent = { type: 'HostTypeDefined', data: facts2 };
    const withSecret: HostTypeEvent = {
      type: 'HostTypeRevised',
      data: {
        at,
        document: { ...document, metadata: { labels: { a: 'b' } } },
        secrets: { 'spec.x': secret },
      },
    };
    for (const first of [
      [defined, retired],
      [defined, withSecret, retired],
      [defined, held, requested, retired],
      [abandoned, abandoned, defined, retired, abandoned],
    ]) {
      given(...first)
        .when(again)
        .thenEvents(second);
      expect(given(...first, second).state()).to.deep.equal(given(second).state());
      given(...first)
        .when({ ...again, abandonedBefore: 2 } as DocumentCommand)
        .thenEvents(second);
    }
    given(defined, retired, second).when(create).thenRejected('ALREADY_EXISTS');
    given(defined, retired, second).when(remove).thenEvents(retired);
    given(defined, retired, second, retired).when(create).thenEvents(defined);
    given(defined, retired)
      .when({ ...create, name: 'No' })
      .thenRejected('VALIDATION_FAILED');
  });
  it('are revised as a whole or by paths, and only when something changes', () => {
    const changed = { title: 'FC430', description: 'x' };
    given(defined)
      .when(revise(changed))
      .thenEvents({ type: 'HostTypeRevised', data: { at: later, document: changed } });
    given(defined).when(revise(document)).thenNothing();
    given(defined)
      .when(revise({ title: 'FC430', description: 'x' }, { paths: ['description'] }))
      .thenEvents({
        type: 'HostTypeRevised',
        data: { at: later, document: { ...document, description: 'x' } },
      });
    given(defined)
      .when(revise({ metadata: { labels: { 'Bad Key': '' } } }))
      .thenRejected('INVALID_KEY');
    given().when(revise(document)).thenRejected('NOT_FOUND', { message: 'object not found' });
    given(defined, retired)
      .when(revise(document))
      .thenRejected('NOT_FOUND', { message: "object with identifier 'fc430' not found" });
  });
  it('are retired at once, or wait for their finalizers', () => {
    given(defined).when(remove).thenEvents(retired);
    given(defined, held).when(remove).thenEvents(requested);
    given(defined, held, requested).when(remove).thenNothing();
    given(defined, held, requested)
      .when(revise(document))
      .thenEvents({ type: 'HostTypeRevised', data: { at: later, document } }, retired);
    given(defined, retired).when(remove).thenRejected('NOT_FOUND');
    given().when(remove).thenRejected('NOT_FOUND');
  });
  it('can be abandoned before they exist, and created by who knows of it', () => {
    const abandon: DocumentCommand = { type: 'AbandonCreation', at, commandId: 'k' };
    given().when(abandon).thenEvents(abandoned);
    given(abandoned).when(abandon).thenEvents(abandoned);
    given(defined).when(abandon).thenRejected('ALREADY_CREATED');
    given(defined, retired).when(abandon).thenEvents(abandoned);
    expect(given(defined, retired, abandoned).state()).to.deep.equal(given(defined, retired).state());
    given(abandoned).when(create).thenRejected('CREATION_ABANDONED');
    given(abandoned, abandoned)
      .when({ ...create, abandonedBefore: 2 })
      .thenEvents(defined);
  });
  it('let misplaced and unknown events pass', () => {
    const state = given(defined).state();
    expect(hostType.decider.evolve(state, abandoned)).to.equal(state);
    const unknown = { type: 'SomethingNew', data: { at } } as unknown as HostTypeEvent;
    expect(hostType.decider.evolve(state, unknown)).to.equal(state);
    expect(given(requested).state()).to.deep.equal({ status: 'absent' });
  });
  it('show their metadata without what is empty', () => {
    const view = hostType.view(given(defined, held, requested).state());
    expect(view).to.deep.equal({
      exists: true,
      archived: false,
      id: 'fc430',
      tenant: 'shared',
      project: '',
      name: 'fc430',
      creationTimestamp: at,
      deletionTimestamp: later,
      document: {
        id: 'fc430',
        title: 'Dell FC430',
        metadata: {
          creation_timestamp: at,
          deletion_timestamp: later,
          finalizers: ['a', 'b'],
          creator: 'system',
          tenant: 'shared',
          name: 'fc430',
        },
      },
    });
    expect(hostType.view(given(defined, held, requested, retired).state())).to.deep.include({
      archived: true,
      deletionTimestamp: later,
    });
    expect(hostType.view(given(defined, retired).state())).to.deep.include({ deletionTimestamp: later });
    expect(hostType.view(given().state())).to.deep.equal({ exists: false });
  });
});

describe('cluster templates', () => {
  const { given: template } = specify(clusterTemplate.decider);
  const GOOGLE = 'type.googleapis.com/google.protobuf.StringValue';
  const order = (changed: JsonObject, more: object = {}): DocumentCommand => ({
    ...create,
    type: 'CreateDocument',
    document: changed,
    ...facts,
    ...more,
  });
  const published = (data: object): ClusterTemplateEvent => ({
    type: 'ClusterTemplatePublished',
    data: { ...facts, document: {}, ...data },
  });

  it('need sets with hosts and sizes, and parameters with names and types', () => {
    const refused: [JsonObject, string][] = [
      [{ node_sets: { w: {} } }, 'REFERENCE_EMPTY'],
      [{ node_sets: { w: 1 } }, 'REFERENCE_EMPTY'],
      [{ node_sets: { w: { host_type: { id: 'h' }, size: 0 } } }, 'INVALID_SIZE'],
      [{ node_sets: { w: { host_type: { id: 'h' }, size: 2 ** 31 } } }, 'INVALID_SIZE'],
      [{ parameters: [{}] }, 'INVALID_PARAMETER'],
      [{ parameters: [{ name: 'p' }] }, 'INVALID_PARAMETER'],
      [
        {
          parameters: [
            { name: 'p', type: 't' },
            { name: 'p', type: 't' },
          ],
        },
        'INVALID_PARAMETER',
      ],
      [{ parameters: [{ name: 'p', type: GOOGLE, default: { '@type': 'other' } }] }, 'INVALID_PARAMETER'],
    ];
    for (const [changed, code] of refused) template().when(order(changed)).thenRejected(code);
    template()
      .when(order({}, { id: 'x'.repeat(254) }))
      .thenRejected('INVALID_ID');
    const good = {
      node_sets: { w: { host_type: { name: 'h' }, size: 1 } },
      parameters: [{ name: 'p', type: GOOGLE, default: { '@type': GOOGLE, value: 'x' } }],
    };
    template()
      .when(order(good))
      .thenEvents(published({ document: good }));
  });
  it('name no node set as metering names a control plane', () => {
    const set = { host_type: { id: 'h' }, size: 1 };
    for (const name of ['_control_plane', '_x', 'a/b']) {
      const bad = { node_sets: { [name]: set } };
      for (const [history, command] of [
        [[], order(bad)],
        [[published({})], revise(bad)],
      ] as const)
        template(...history)
          .when(command)
          .thenRejected('INVALID_NODE_SET_NAME', { field: `node_sets.${name}` });
    }
  });
  it('keep secrets apart and show them as stars', () => {
    const path = 'spec_defaults.pull_secret';
    template()
      .when(order({}, { secrets: { [path]: secret } }))
      .thenEvents(published({ secrets: { [path]: secret } }));
    const state: DocumentState = template(published({ secrets: { [path]: secret } })).state();
    const view = clusterTemplate.view(state);
    if (!view.exists) throw new Error('nothing is shown');
    expect(view.document['spec_defaults']).to.deep.equal({ pull_secret: '***' });
    expect(documentView(state)).to.not.have.nested.property('document.spec_defaults');
  });
  it('replace, keep and remove secrets', () => {
    const history = published({ secrets: { a: secret, b: secret } });
    const other = { ...secret, version: '2' };
    template(history)
      .when(revise({}, { secrets: { a: other } }))
      .thenEvents({
        type: 'ClusterTemplateRevised',
        data: { at: later, document: {}, secrets: { a: other, b: secret } },
      });
    template(history)
      .when(revise({}, { secrets: { a: null, b: null } }))
      .thenEvents({ type: 'ClusterTemplateRevised', data: { at: later, document: {} } });
    template(history).when(revise({})).thenNothing();
  });
  it('have one pull secret, as a value or as an object', () => {
    const named = { spec_defaults: { pull_secret_secret: { id: 's1', name: 's1' } } };
    template()
      .when(order(named))
      .thenEvents(published({ document: named }));
    template()
      .when(order(named, { secrets: { 'spec_defaults.pull_secret': secret } }))
      .thenRejected('PULL_SECRET_TWICE');
    template(published({ document: named }))
      .when(revise(named, { secrets: { 'spec_defaults.pull_secret': secret } }))
      .thenRejected('PULL_SECRET_TWICE');
  });
  it('point at what they are made of', () => {
    const pointing = {
      node_sets: { w: { host_type: { id: 'fc430' } }, x: { host_type: { name: 'g5' } } },
      spec_defaults: { version: { id: 'v1' }, pull_secret_secret: { id: 's1' } },
    };
    expect(clusterTemplate.pointsAt(pointing)).to.deep.equal([
      { kind: 'hostType', id: 'fc430' },
      { kind: 'clusterVersion', id: 'v1' },
      { kind: 'secret', id: 's1' },
    ]);
  });
  it('have an id that hubs accept: a generated one, and any that a client chooses', () => {
    const id = clusterTemplate.idFrom?.('01a1fdbf-853f-7699-b03b-202e1bbb7ff3') ?? '';
    expect(isOrderableTemplateId(id)).to.equal(true);
    template().when(order({}, { id })).thenEvents(published({ id }));
    for (const bad of ['with-hyphen', '4_20', 'a b', 'x'.repeat(254)])
      template()
        .when(order({}, { id: bad }))
        .thenRejected('INVALID_ID');
  });
  it('get their name from the last part of the id', () => {
    expect(clusterTemplate.deriveName?.({ id: 'osac.templates.ocp_4_20' })).to.equal('ocp-4-20');
    expect(hostType.deriveName?.({ id: 'acme_1tib' })).to.equal('acme-1tib');
    expect(nameFromId('')).to.equal(undefined);
    expect(nameFromVersion('4.17.0')).to.equal('4-17-0-e769');
    expect(nameFromVersion(`1.0.0-${'x'.repeat(80)}`)).to.have.lengthOf(63);
    expect(isOrderableTemplateId('osac.templates.small')).to.equal(true);
    expect(isOrderableTemplateId('with-hyphen')).to.equal(false);
  });
});

describe('host types', () => {
  it('know their first fabric interface', () => {
    const interfaces = [
      { name: 'bmc', role: 'lifecycle' },
      { name: 'e0', role: 'fabric' },
    ];
    expect(fabricInterfaceOf({ interfaces })).to.equal('e0');
    expect(fabricInterfaceOf({ interfaces: [] })).to.equal(undefined);
    expect(fabricInterfaceOf({})).to.equal(undefined);
    expect(hostType.pointsAt({})).to.deep.equal([]);
  });
});
