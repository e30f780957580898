import { expect } from 'chai';
import { createMemoryKeyStore } from '../../../src/adapters/keys/memory-key-store.ts';
import { isMadeHere } from '../../../src/app/audit/known-ids.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { withTypedConcealed } from '../../../src/http/audit/typed-values.ts';
import { fieldNames, MESSAGES } from '../../../src/http/osac/messages.ts';

const UUID = '0193a1b2-0000-7000-8000-0000000000ee';

describe('what a look asked for, as it is recorded', () => {
  const keys = createMemoryKeyStore();
  const there = new Map([
    ['cluster-mine@0', 'acme'],
    ['cluster-mine@3', 'acme'],
    ['auditExport-old@0', 'acme'],
    ['cluster-theirs@0', 'globex'],
    ['hub-h1@0', ''],
    ['auditExport-theirs@0', 'globex'],
  ]);
  const reader = { tenantAt: (stream: string, revision: number) => there.get(`${stream}@${revision}`) };
  const recorded = (
    what: string,
    query: JsonObject,
    tenants: 'all' | readonly string[] = ['acme'],
  ): Promise<JsonObject> =>
    withTypedConcealed({ what, query, tenants }, 'alice', { reader, conceal: keys.encrypt } as never);

  for (const [what, query] of [
    ['resource', { kind: 'cluster', id: 'mine', as_of: '2026-01-01T00:00:00Z' }],
    ['resource', { kind: 'cluster', id: UUID }],
    ['events', { kind: 'cluster', resource_id: 'mine', limit: 10 }],
    ['event', { id: 'cluster-mine@3' }],
    ['proof', { id: UUID }],
    ['export', { id: 'old' }],
    ['tile', { tile: 'tile/0/000.p/1' }],
    ['checkpoints', {}],
  ] as const)
    it(`stays as it is where it names what is there: ${what} ${JSON.stringify(query)}`, async () => {
      expect(await recorded(what, query)).to.deep.equal(query);
    });

  for (const [what, query, name] of [
    ['resource', { kind: 'cluster', id: 'bob@acme.example' }, 'id'],
    ['events', { kind: 'user', resource_id: 'mine' }, 'resource_id'],
    ['event', { id: 'cluster-mine@4' }, 'id'],
    ['event', { id: 'bob@acme.example@0' }, 'id'],
    ['erasure', { id: 'bob' }, 'id'],
    ['tile', { tile: 'tile/bob@acme.example' }, 'tile'],
    // What others have is as absent as what nobody has.
    ['resource', { kind: 'cluster', id: 'theirs' }, 'id'],
    ['resource events', { kind: 'hub', resource_id: 'h1' }, 'resource_id'],
    ['event', { id: 'cluster-theirs@0' }, 'id'],
    ['export', { id: 'theirs' }, 'id'],
  ] as const)
    it(`is under the key of who asked where it names nothing: ${what} ${JSON.stringify(query)}`, async () => {
      const kept = await recorded(what, query);
      const { [name]: sealed, ...others } = kept;
      const { [name]: clear, ...same } = query as JsonObject;
      expect(others).to.deep.equal(same);
      expect(sealed)
        .to.have.property('keyId')
        .that.matches(/^alice\./);
      expect(await keys.decrypt(sealed as never)).to.equal(clear);
    });

  it('stays as it is where who asked may read the history that has it', async () => {
    const query = { kind: 'cluster', id: 'theirs' };
    for (const tenants of ['all', ['acme', 'globex'], ['globex']] as const)
      expect(await recorded('resource', query, tenants), String(tenants)).to.deep.equal(query);
    expect(await recorded('resource', { kind: 'hub', id: 'h1' }, 'all')).to.have.property('id', 'h1');
    expect(await recorded('resource', query, [])).not.to.deep.equal(query);
  });

  it('has the forms of ids that the service makes: nobody is called so', () => {
    for (const id of [UUID, 'a'.repeat(64), 'deployment']) expect(isMadeHere(id), id).to.equal(true);
    for (const id of ['', 'bob', `${UUID}x`, `x${UUID}`, UUID.toUpperCase(), 'a'.repeat(63)])
      expect(isMadeHere(id), id).to.equal(false);
  });
});

describe('names of the fields that a body sets', () => {
  const { Secret, Cluster, ClusterTemplate } = MESSAGES;

  it('are those of the message, two levels deep; no keys of maps, no values, nothing that it does not know', () => {
    const of = (message: typeof Secret, body: JsonObject) =>
      fieldNames(message?.private ?? (undefined as never), body);
    expect(
      of(Secret, { data: { hush: 'x' }, coordinates: { hush: 'x' }, metadata: { name: 'hush' } }),
    ).to.deep.equal(['data', 'coordinates', 'metadata.name']);
    expect(of(Cluster, { spec: { nodeSets: { hush: {} }, hush: 1 }, hush: {}, metadata: {} })).to.deep.equal([
      'spec.node_sets',
      'metadata',
    ]);
    expect(of(ClusterTemplate, { node_sets: { size: {}, hush: {} }, title: null })).to.deep.equal([
      'node_sets',
      'title',
    ]);
    expect(of(Cluster, {})).to.deep.equal([]);
  });
});
