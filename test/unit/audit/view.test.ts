import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { rootAt, rootOf } from '../../../src/app/audit/merkle/compact-range.ts';
import { leafHashOf, leafOf } from '../../../src/app/audit/merkle/leaf.ts';
import type { EventStore, RecordedEvent } from '../../../src/app/log/event-store.ts';
import type { AuditReader } from '../../../src/projections/audit/audit-reader.ts';
import type { AuditQuery } from '../../../src/projections/audit/find.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { leavesOf } from '../../support/audit/random-history.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';

describe('audit view', () => {
  let store: EventStore;
  let time: number;
  let models: ReadModels;
  let reader: AuditReader;
  let revisions: Map<string, number>;

  beforeEach(async () => {
    time = Date.parse('2026-01-01T00:00:00.000Z');
    store = createMemoryEventStore({ now: () => new Date(time).toISOString() });
    models = await openAuditView(store);
    reader = audit(models);
    revisions = new Map();
  });
  afterEach(async () => {
    await models.close();
    await store.close();
  });

  const append = async (
    stream: string,
    type: string,
    { data = {}, ...metadata }: { [key: string]: unknown } = {},
  ): Promise<void> => {
    const event = {
      id: `${stream}@${(revisions.get(stream) ?? -1) + 1}`,
      type,
      data: JSON.stringify(data),
      metadata: JSON.stringify({ tenant: 'acme', actor: { subjectId: 'alice' }, ...metadata }),
    };
    const { revision } = await store.append(stream, revisions.get(stream) ?? 'no_stream', [event]);
    revisions.set(stream, revision);
  };
  const find = (query: Partial<AuditQuery>): string[] =>
    reader.find({ tenants: 'all', limit: 100, ...query }).leaves.map(({ record }) => record.id);

  it('holds every event but those of sys- streams, in log order', async () => {
    await append('cluster-c1', 'ClusterOrdered', { occurredAt: '2026-01-01T00:00:00.000Z' });
    await append('sys-lease-x', 'LeaseTaken');
    await append('cluster-c2', 'ClusterOrdered', { tenant: 'globex' });
    await followed(models, store);
    const [first, second] = await leavesOf(store);
    expect(reader.size()).to.equal(2);
    expect(reader.leaf(0)).to.deep.equal({
      index: 0,
      position: first?.position,
      recordedAt: '2026-01-01T00:00:00.000Z',
      tenant: 'acme',
      tenantIndex: 0,
      subject: 'alice',
      kind: 'cluster',
      resourceId: 'c1',
      outcome: 'accepted',
      record: leafOf(first as RecordedEvent),
    });
    expect(reader.leaf(1)).to.deep.include({ tenant: 'globex', tenantIndex: 0, position: second?.position });
    expect(reader.leaf(2)).to.equal(undefined);
    expect(reader.indexOf('cluster-c2', 0)).to.equal(1);
    expect(reader.indexOf('cluster-c2', 1)).to.equal(undefined);
    expect([0, 1].map((revision) => reader.tenantAt('cluster-c2', revision))).to.deep.equal([
      'globex',
      undefined,
    ]);
    expect(reader.tenantAt('sys-lease-x', 0)).to.equal(undefined);
    expect(reader.indexOf('sys-lease-x', 0)).to.equal(undefined);
  });

  it('keeps of an event that hides something the leaf of two parts, also where its names are no UTF-8', async () => {
    const hiding = {
      data: { a: 1, hub: 'h' },
      hidden: { paths: ['/data/hub'], salt: '00112233445566778899aabbccddeeff' },
    };
    await append('cluster-c1', 'HubSelected', hiding);
    await append('cluster-c1', 'HubSelected', { ...hiding, occurredAt: '\ud800' });
    await followed(models, store);
    const events = await leavesOf(store);
    expect(reader.leaf(0)?.record.hidden).to.be.a('string');
    expect([0, 1].map((index) => reader.leaf(index)?.record)).to.deep.equal(events.map(leafOf));
    expect(reader.hashAt(0, 0).equals(leafHashOf(leafOf(events[0] as RecordedEvent)))).to.equal(true);
  });

  it('finds what happened to a document: its own events, its workflow run, refused calls that named it', async () => {
    await append('cluster-c1', 'ClusterOrdered');
    await append('clusterOrder-c1', 'EffectStarted');
    await append('cluster-c2', 'ClusterOrdered');
    await append('refusal-acme.2026-01-01', 'RequestRefused', {
      data: { kind: 'cluster', resourceId: 'c1', outcome: 'denied' },
    });
    await append('refusal-acme.2026-01-01', 'RequestRefused', { data: { outcome: 'rejected' } });
    await followed(models, store);
    expect(find({ kind: 'cluster', resourceId: 'c1' })).to.deep.equal([
      'cluster-c1@0',
      'clusterOrder-c1@0',
      'refusal-acme.2026-01-01@0',
    ]);
    expect(find({ outcome: 'denied' })).to.deep.equal(['refusal-acme.2026-01-01@0']);
    expect(find({ outcome: 'rejected' })).to.deep.equal(['refusal-acme.2026-01-01@1']);
    expect(find({ outcome: 'accepted', kind: 'cluster', resourceId: 'c1' })).to.deep.equal([
      'cluster-c1@0',
      'clusterOrder-c1@0',
    ]);
    expect(find({ kind: 'cluster' })).to.have.length(4);
  });

  it('finds what names a document, each event once, beside what happened to it', async () => {
    const cluster = { kind: 'cluster', resourceId: 'c1' } as const;
    await append('name-n1', 'NameReserved', {
      data: { kind: 'cluster', holder: 'c1', stream: 'cluster-c1', commandId: 'x' },
    });
    await append('cluster-c1', 'ClusterOrdered');
    await append('hubCapacity-h1', 'HubCapacityReserved', {
      data: { holder: { kind: 'cluster', id: 'c1' } },
    });
    await append('hubCapacity-h1', 'HubCapacityReserved', {
      data: { holder: { kind: 'cluster', id: 'c2' } },
    });
    await append('auditExport-e1', 'AuditExportRequested', {
      data: { request: { filter: { kind: 'cluster', resource_id: 'c1' } } },
    });
    await append('auditExport-e1', 'AuditExportDownloaded');
    await append('auditExport-e2', 'AuditExportRequested', { data: { request: { filter: {} } } });
    await append('auditExport-e2', 'AuditExportDownloaded');
    await append('name-n1', 'NameReleased', { data: { holder: 'c1', why: 'deleted' } });
    await append('name-n1', 'NameReleased', { data: { holder: 'c9', why: 'deleted' } });
    await append('unheardOf-x', 'FromTheFuture', { data: { holder: { kind: 'cluster', id: 'c1' } } });
    await followed(models, store);
    const all = [
      'name-n1@0',
      'cluster-c1@0',
      'hubCapacity-h1@0',
      'auditExport-e1@0',
      'auditExport-e1@1',
      'name-n1@1',
    ];
    expect(find(cluster)).to.deep.equal(all);
    expect(find({ kind: 'hub', resourceId: 'h1' })).to.deep.equal(['hubCapacity-h1@0', 'hubCapacity-h1@1']);
    expect(find({ kind: 'hubCapacity' })).to.deep.equal(['hubCapacity-h1@0', 'hubCapacity-h1@1']);
    expect(find({ kind: 'cluster' })).to.deep.equal([
      ...all.slice(0, 3),
      'hubCapacity-h1@1',
      ...all.slice(3),
    ]);
    expect(find({ ...cluster, types: ['HubCapacityReserved'] })).to.deep.equal(['hubCapacity-h1@0']);
    const pages: string[] = [];
    for (let after: number | undefined = -1; after !== undefined; ) {
      const page = reader.find({ tenants: 'all', limit: 2, after, ...cluster });
      pages.push(...page.leaves.map(({ record }) => record.id));
      after = page.next;
    }
    expect(pages).to.deep.equal(all);
    expect(reader.leaf(2)?.also).to.have.deep.members([
      { kind: 'hub', resourceId: 'h1', hidden: false },
      { kind: 'cluster', resourceId: 'c1', hidden: false },
    ]);
    expect(reader.leaf(1)).not.to.have.property('also');
    const each = Array.from({ length: reader.size() }, (_, index) => reader.leaf(index));
    expect(reader.leaves(0, 100)).to.deep.equal(each);
    expect(reader.leaves(2, 1)).to.deep.equal(each.slice(2, 3));
    expect((await models.rebuild('audit')).outcome).to.equal('switched');
  });

  it('finds looks by what they asked for: those beyond the own tenant for the provider alone', async () => {
    const look = (query: object, tenants?: readonly string[]): Promise<void> =>
      append('auditAccess-acme.2026-01-01', 'AuditRead', {
        data: { query, ...(tenants === undefined ? {} : { tenants }) },
      });
    await append('cluster-c1', 'ClusterOrdered');
    await append('hubCapacity-h1', 'HubCapacityReserved', {
      data: { holder: { kind: 'cluster', id: 'c1' } },
    });
    await look({ kind: 'cluster', resource_id: 'c1' }, ['acme']);
    await look({ kind: 'cluster', id: 'c1' }, ['acme', 'globex']);
    await look({ id: 'cluster-c1@0' }, ['acme']);
    await look({ id: 'hubCapacity-h1@0' }, ['acme']);
    await look({ id: 'nothing' }, ['acme']);
    await followed(models, store);
    const names = (provider: boolean): string[] =>
      find({ kind: 'cluster', resourceId: 'c1', types: ['AuditRead'], provider }).map((id) => id.slice(-2));
    // Who asked for an event that is not theirs to see would learn what it is about.
    expect(names(false)).to.deep.equal(['@0']);
    expect(names(true)).to.deep.equal(['@0', '@1', '@2', '@3']);
    const id = '0193a1b2-0000-7000-8000-0000000000aa';
    const { revision } = await store.append('hubCapacity-h1', 0, [
      { id, type: 'HubCapacityReleased', data: '{"holder":{"kind":"cluster","id":"c1"}}', metadata: '{}' },
    ]);
    expect(revision).to.equal(1);
    await look({ id }, ['acme']);
    await followed(models, store);
    expect(names(false)).to.deep.equal(['@0']);
    expect(names(true)).to.deep.equal(['@0', '@1', '@2', '@3', '@5']);
    const ofHub = { kind: 'hub', resourceId: 'h1', types: ['AuditRead'] };
    expect([find(ofHub).length, find({ ...ofHub, provider: true }).length]).to.deep.equal([0, 2]);
  });

  it('finds what was asked for by what was the tenant’s own by then, by the rest for the provider alone', async () => {
    const look = (query: object): Promise<void> =>
      append('auditAccess-acme.2026-01-01', 'AuditRead', { data: { query, tenants: ['acme'] } });
    await append('cluster-mine', 'ClusterOrdered');
    await append('cluster-theirs', 'ClusterOrdered', { tenant: 'globex', actor: { subjectId: 'bob' } });
    await append('user-bob', 'UserCreated', { tenant: 'globex', actor: { subjectId: 'bob' } });
    await append('hub-h1', 'HubRegistered', { tenant: '', actor: { subjectId: 'root' } });
    // By somebody who may read more than this tenant.
    const asked = ['mine', 'theirs', 'nothing', 'later'].map((id) => ({ kind: 'cluster', id }));
    const others = [
      { kind: 'hub', resource_id: 'h1' },
      { kind: 'user', id: 'bob' },
      { kind: 'user', id: 'alice' },
      { subject: 'bob' },
      { subject: 'alice' },
    ];
    for (const query of [...asked, ...others]) await look(query);
    await append('cluster-later', 'ClusterOrdered');
    for (const id of ['mine', 'theirs']) {
      const filter = { kind: 'cluster', resource_id: id, subject: 'alice' };
      await append(`auditExport-${id}`, 'AuditExportRequested', { data: { request: { filter } } });
      await append(`auditExport-${id}`, 'AuditExportCompleted');
    }
    // For whom somebody calls is nothing that was asked for.
    await append('auditAccess-acme.2026-01-01', 'AuditRead', {
      data: { query: {}, tenants: ['acme'] },
      actor: { subjectId: 'proxy', onBehalfOf: 'carol' },
    });
    await followed(models, store);
    const found = (kind: string, resourceId: string, provider: boolean): string[] =>
      find({ kind, resourceId, provider, tenants: ['acme'] }).map((id) => id.replace('-acme.2026-01-01', ''));
    const exported = (id: string): string[] => [`auditExport-${id}@0`, `auditExport-${id}@1`];
    for (const [kind, id, own, more] of [
      ['cluster', 'mine', ['cluster-mine@0', 'auditAccess@0', ...exported('mine')], []],
      ['cluster', 'theirs', [], ['auditAccess@1', ...exported('theirs')]],
      ['cluster', 'nothing', [], ['auditAccess@2']],
      ['cluster', 'later', ['cluster-later@0'], ['auditAccess@3']],
      ['hub', 'h1', [], ['auditAccess@4']],
      ['user', 'bob', [], ['auditAccess@5', 'auditAccess@7']],
      ['user', 'alice', ['auditAccess@6', 'auditAccess@8', ...exported('mine'), ...exported('theirs')], []],
      ['user', 'carol', ['auditAccess@9'], []],
    ] as const) {
      expect(found(kind, id, false), `${kind} ${id}`).to.deep.equal(own);
      expect(found(kind, id, true), `${kind} ${id}`).to.have.members([...own, ...more]);
    }
    expect((await models.rebuild('audit')).outcome).to.equal('switched');
  });

  it('tells what others have from what never was by nothing, however much has happened to it', async () => {
    for (let n = 0; n < 800; n += 1) {
      await append('hub-h1', 'HubObserved', { tenant: '' });
      await append('project-p1', 'ProjectChanged');
    }
    await followed(models, store);
    const asked = (id: string, more: Partial<AuditQuery> = {}) =>
      reader.find({ tenants: ['acme'], kind: 'hub', resourceId: id, limit: 100, ...more });
    for (const id of ['h1', 'h2'])
      for (const order of ['asc', 'desc'] as const)
        expect(asked(id, { order })).to.deep.equal({ leaves: [], next: undefined });
    // Work for one page is bounded where the provider asks, who may know of it.
    expect(asked('h1', { provider: true }).next).to.be.greaterThan(0);
    await append('refusal-acme.2026-01-01', 'RequestRefused', { data: { kind: 'hub', resourceId: 'h1' } });
    await followed(models, store);
    expect(find({ tenants: ['acme'], kind: 'hub', resourceId: 'h1', after: 1_500 })).to.have.length(1);
  });

  it('finds documents whose ids are no plain text', async () => {
    const id = 'a b/ü';
    await append(`secret-~${Buffer.from(id).toString('base64url')}`, 'SecretDeposited');
    await followed(models, store);
    expect(find({ kind: 'secret', resourceId: id })).to.have.length(1);
    expect(reader.leaf(0)?.resourceId).to.equal(id);
  });

  it('finds by tenant, subject, type and id together, page by page', async () => {
    for (let n = 0; n < 30; n += 1)
      await append(`cluster-c${n}`, n % 3 === 0 ? 'ClusterOrdered' : 'ClusterLabelled', {
        tenant: n % 2 === 0 ? 'acme' : 'globex',
        actor: { subjectId: n % 5 === 0 ? 'bob' : 'alice' },
      });
    await followed(models, store);
    expect(find({ tenants: ['acme'], subject: 'bob', types: ['ClusterOrdered'] })).to.deep.equal([
      'cluster-c0@0',
    ]);
    expect(find({ tenants: ['acme', 'globex'], subject: 'bob' })).to.have.length(6);
    expect(find({ tenants: [] })).to.deep.equal([]);
    expect(find({ subject: 'nobody' })).to.deep.equal([]);
    expect(find({ eventId: 'cluster-c7@0' })).to.deep.equal(['cluster-c7@0']);
    const pages: number[][] = [];
    let after: number | undefined = -1;
    while (after !== undefined) {
      const page = reader.find({ tenants: ['globex'], limit: 4, after });
      pages.push(page.leaves.map(({ index }) => index));
      after = page.next;
    }
    expect(pages.flat()).to.deep.equal(Array.from({ length: 15 }, (_, n) => 2 * n + 1));
    expect(pages.every((page) => page.length <= 4)).to.equal(true);
    expect(reader.find({ tenants: 'all', limit: 100, below: 3 }).leaves).to.have.length(3);
  });

  it('bounds the work for one page: it may be empty and go on', async () => {
    for (let n = 0; n < 6000; n += 1)
      await append(`cluster-c${n % 7}`, n % 2 === 0 ? 'Even' : 'Odd', {
        actor: { subjectId: n % 2 === 0 ? 'odd' : 'even' },
      });
    await followed(models, store);
    const query = { tenants: 'all', limit: 10, types: ['Odd'], subject: 'odd' } as const;
    const first = reader.find(query);
    expect(first.leaves).to.deep.equal([]);
    expect(first.next).to.be.greaterThan(0);
    let pages = 1;
    for (let { next } = first; next !== undefined; pages += 1)
      ({ next } = reader.find({ ...query, after: next }));
    expect(pages).to.be.within(2, 10);
  });

  it('tells times by the running maximum of recorded time, for a clock may go back', async () => {
    const times = ['10:00', '10:05', '10:02', '10:06'].map((hour) => `2026-01-01T${hour}:00.000Z`);
    for (const [n, at] of times.entries()) {
      time = Date.parse(at);
      await append('cluster-c1', `T${n}`);
    }
    await followed(models, store);
    const positions = (await leavesOf(store)).map(({ position }) => position);
    expect(reader.positionAt('2026-01-01T09:59:59.999Z')).to.equal(undefined);
    expect(reader.positionAt(times[0] as string)).to.equal(positions[0]);
    expect(reader.positionAt('2026-01-01T10:03:00.000Z')).to.equal(positions[0]);
    expect(reader.positionAt(times[1] as string)).to.equal(positions[2]);
    expect(reader.positionAt('2027-01-01T00:00:00.000Z')).to.equal(positions[3]);
    const [first = '', second = '', , last = ''] = times;
    expect(find({ from: times[2] as string, to: last })).to.deep.equal(['cluster-c1@1', 'cluster-c1@2']);
    // What was recorded at the end of a range is in the next one; between the two nothing is lost or shown twice.
    expect(find({ from: first, to: second })).to.deep.equal(['cluster-c1@0']);
    expect(find({ from: second, to: last })).to.deep.equal(['cluster-c1@1', 'cluster-c1@2']);
    expect(find({ from: last })).to.deep.equal(['cluster-c1@3']);
    expect(find({ from: last, to: last })).to.deep.equal([]);
  });

  it('is stopped by no event, however odd', async () => {
    const odd: { [key: string]: unknown }[] = [
      { tenant: 7, actor: 'alice', occurredAt: null },
      { tenant: { a: 1 }, actor: [], $extra: 1 },
      { tenant: 'toString', actor: { subjectId: { toString: 1 } }, occurredAt: 'zero\u0000byte' },
      { actor: { subjectId: 'x'.repeat(5000) }, occurredAt: 'yesterday' },
      { data: { kind: ['cluster'], resourceId: 5, outcome: 'maybe', subjectId: {} } },
      { data: { kind: 'no kind!', resourceId: '/', outcome: '__proto__' } },
    ];
    const naming: object[] = [
      { kind: '\ud800', holder: { kind: { a: 1 }, id: '\udc00' }, stream: '-', takenFrom: 'x', left: 3 },
      { kind: '__proto__', holder: { kind: 'cluster', id: 'x'.repeat(5000) }, stream: 'no hyphen' },
      { query: { kind: 'cluster', id: '\u0000' }, tenants: 'acme', scope: { kind: 'all' } },
      { query: { id: '@0' }, tenants: [1], scope: [] },
      { query: { id: `${'y'.repeat(3000)}@12` }, request: { filter: { kind: 1, resource_id: [] } } },
    ];
    for (const [n, data] of naming.entries())
      for (const type of [
        'NameReserved',
        'NameReleased',
        'HubCapacityReserved',
        'AuditRead',
        'LegalHoldPlaced',
      ])
        await append(`name-odd${n}`, type, { data });
    await append('hubCapacity-', 'HubCapacityReserved', { data: { holder: { kind: 'cluster', id: 'c' } } });
    await append('auditExport-late', 'AuditExportDownloaded');
    for (const metadata of odd) await append('refusal-x', 'RequestRefused', metadata);
    const half = '\ud800';
    await append('cluster-x', 'Odd', { tenant: half, actor: { subjectId: half }, occurredAt: half });
    await append('cluster-x', `Odd${half}`, { data: { [half]: half } });
    await store.append('cluster-y', 'no_stream', [
      { id: 'y', type: 'Odd', data: '{"n":1e999,"m":-0}', metadata: '{"tenant":"\\udc00"}' },
    ]);
    await append('nohyphen', 'Odd');
    await append('-', 'Odd');
    await append('clusterOrder-', 'Odd');
    await append('constructor-x', 'Odd', { tenant: '__proto__' });
    await followed(models, store);
    const leaves = await leavesOf(store);
    expect(reader.size()).to.equal(leaves.length);
    expect(reader.leaves(0, 100).map(({ record }) => record)).to.deep.equal(leaves.map(leafOf));
    expect(rootAt(leaves.length, reader.hashAt)).to.deep.equal(
      rootOf(leaves.map((event) => leafHashOf(leafOf(event)))),
    );
    expect((await models.rebuild('audit')).outcome).to.equal('switched');
  });
});
