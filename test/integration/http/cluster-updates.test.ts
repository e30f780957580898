import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  itemsOf,
  textAt,
  type Caller,
  type Json,
  type TestService,
} from '../../support/http/service.ts';
import { CLUSTERS, SMALL, startOrdering, type Ordering } from './ordering.ts';

/** What changes a cluster, and under which conditions. */
describe('clusters over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let order: Ordering['order'];

  before(async () => {
    ({ service, admin, user, order } = await startOrdering());
  });
  after(() => service.close());

  describe('update', () => {
    const patch = (id: string, body: object, query = '', headers: Record<string, string> = {}) =>
      user('PATCH', `${CLUSTERS}/${id}${query}`, body, headers);

    it('replaces labels and counts versions', async () => {
      const { id } = await order({ labels: { env: 'dev' } });
      const reply = await patch(id, { metadata: { labels: { env: 'prod', team: 'a' } } });
      expect(reply.status, reply.text).to.equal(200);
      expect(reply.json['metadata']).to.deep.include({ labels: { env: 'prod', team: 'a' }, version: 1 });
      expect(reply.headers.get('etag')).to.equal('"cluster-1"');
      expect((await user('GET', `${CLUSTERS}/${id}`)).json).to.deep.equal(reply.json);
    });

    it('scales by body and by mask and keeps the host type', async () => {
      const { id } = await order();
      const byBody = await patch(id, { spec: { node_sets: { workers: { size: 5 } } } });
      expect(byBody.json['spec']?.['node_sets'], byBody.text).to.deep.equal({
        workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 5 },
      });
      const byMask = await patch(
        id,
        { spec: { nodeSets: { workers: { size: 7 } } } },
        '?update_mask=spec.nodeSets.workers.size',
      );
      expect(byMask.json['spec']?.['node_sets']).to.deep.equal({
        workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 7 },
      });
      const withHost = await patch(id, {
        spec: { node_sets: { workers: { host_type: { name: 'fc430' }, size: 8 } } },
      });
      expect(withHost.json['spec']?.['node_sets']?.['workers']?.['size'], withHost.text).to.equal(8);
      const toNothing = await patch(
        id,
        { spec: { node_sets: { workers: { size: 0 } } } },
        '?update_mask=spec.node_sets.workers.size',
      );
      expect(toNothing.json['spec']?.['node_sets']).to.deep.equal({
        workers: { host_type: { id: 'fc430', name: 'fc430' } },
      });
      expect(toNothing.json['metadata']?.['version']).to.equal(4);
    });

    it('changes nothing and writes nothing when nothing changes', async () => {
      const created = await order({ labels: { env: 'dev' } });
      const position = await service.store.lastPosition();
      for (const body of [
        {},
        { metadata: { labels: { env: 'dev' } } },
        { spec: { pull_secret: '***' } },
        { id: 'other', metadata: { creator: 'x', version: 9 }, status: { state: 'CLUSTER_STATE_READY' } },
        created.json,
      ]) {
        const reply = await patch(created.id, body);
        expect(reply.status, reply.text).to.equal(200);
        expect(reply.json).to.deep.equal(created.json);
      }
      expect(await service.store.lastPosition()).to.equal(position);
    });

    it('keeps a pull secret that comes back hidden, replaces and removes one', async () => {
      const { id } = await order({}, { ...SMALL, pull_secret: 'FIRST' });
      const before = service.secrets.values.size;
      const kept = await patch(id, { spec: { pull_secret: '***', ssh_public_key: 'k' } });
      expect(kept.json['spec']).to.include({ pull_secret: '***', ssh_public_key: 'k' });
      expect(service.secrets.values.size).to.equal(before);
      const replaced = await patch(id, { spec: { pull_secret: 'SECOND' } });
      expect(replaced.json['metadata']?.['version']).to.equal(2);
      expect(service.secrets.values.size).to.equal(before + 1);
      const removed = await patch(id, { spec: { pull_secret: null } });
      expect(removed.json['spec']?.['pull_secret']).to.equal(undefined);
    });

    it('clears by null and {}', async () => {
      const { id } = await order({ labels: { a: 'b' }, annotations: { c: 'd' } });
      const reply = await patch(id, { metadata: { labels: null, annotations: {} } });
      expect(reply.json['metadata']).not.to.have.any.keys('labels', 'annotations');
    });

    it('moves to another version by name', async () => {
      const { id } = await order();
      const versions = itemsOf(await user('GET', `${PUBLIC}/cluster_versions`));
      const next = versions.find((version) => textAt(version, 'spec', 'version') === '4.18.1') as Json;
      const reply = await patch(id, { spec: { version: { name: next['metadata']?.['name'] } } });
      expect(reply.json['spec']?.['version']).to.deep.equal({
        id: next['id'],
        name: next['metadata']?.['name'],
      });
    });

    for (const [what, body, message] of [
      ['the name', { metadata: { name: 'other' } }, /^field 'metadata\.name' is immutable$/],
      [
        'name and tenant',
        { metadata: { name: 'other', tenant: 't9' } },
        /^fields 'metadata\.name' and 'metadata\.tenant' are immutable$/,
      ],
      ['a cleared name', { metadata: { name: null } }, /^field 'metadata\.name' is immutable$/],
      [
        'the template',
        { spec: { template: { id: 'osac.templates.big' } } },
        /^field 'spec\.template' is immutable$/,
      ],
      ['an unknown template', { spec: { template: { id: 'x' } } }, /ClusterTemplate "x" not found/],
      [
        'parameters',
        { spec: { template_parameters: null } },
        /^field 'spec\.template_parameters' is immutable$/,
      ],
      [
        'a host type',
        { spec: { node_sets: { workers: { host_type: { id: 'gpu' }, size: 3 } } } },
        /host_type is immutable/,
      ],
      ['all node sets', { spec: { node_sets: {} } }, /last node set/],
      [
        'a negative size',
        { spec: { node_sets: { workers: { size: -1 } } } },
        /should not be negative, but it is -1/,
      ],
      ['a bad range', { spec: { network: { pod_cidr: 'x' } } }, /spec\.network\.pod_cidr/],
      [
        'a bad label value',
        { metadata: { labels: { a: 'Bad Value' } } },
        /^field 'metadata\.labels' key 'a' value/,
      ],
    ] as const)
      it(`refuses to change ${what}`, async () => {
        const { id } = await order();
        const reply = await patch(id, body);
        expect(reply.status, reply.text).to.equal(400);
        expect(reply.json['message']).to.match(message);
      });

    it('refuses an unknown mask path with 400', async () => {
      const { id } = await order();
      const reply = await patch(id, {}, '?update_mask=spec.nope');
      expect(reply.status).to.equal(400);
      expect(reply.json['message']).to.match(/'spec\.nope'/);
    });

    it('lock=true compares the version of the body', async () => {
      const { id } = await order();
      expect((await patch(id, { metadata: { labels: { a: 'b' } } }, '?lock=true')).status).to.equal(200);
      const stale = await patch(id, { metadata: { labels: { a: 'c' } } }, '?lock=true');
      expect(stale.status).to.equal(409);
      expect(stale.json).to.deep.equal({
        code: 10,
        message: `object with identifier '${id}' has been modified: requested version is 0 but current version is 1`,
      });
      const right = await patch(id, { metadata: { version: 1, labels: { a: 'c' } } }, '?lock=true');
      expect(right.status).to.equal(200);
      expect((await patch(id, {}, '?lock=maybe')).status).to.equal(400);
    });

    it('If-Match lets only the state pass that the caller has seen', async () => {
      const { id } = await order();
      const change = (value: string) => ({ metadata: { labels: { a: value } } });
      const ok = await patch(id, change('1'), '', { 'if-match': '"cluster-0"' });
      expect(ok.status).to.equal(200);
      const stale = await patch(id, change('2'), '', { 'if-match': '"cluster-0"' });
      expect(stale.status).to.equal(412);
      expect(stale.headers.get('etag')).to.equal('"cluster-1"');
      expect(stale.json['message']).to.match(/has changed since it was read: read it again/);
      expect((await patch(id, change('2'), '', { 'if-match': '"hub-1"' })).status).to.equal(412);
      expect((await patch(id, change('2'), '', { 'if-match': 'nonsense' })).status).to.equal(400);
      expect((await patch(id, change('2'), '', { 'if-match': '*' })).status).to.equal(200);
      const gone = await user('DELETE', `${CLUSTERS}/${id}`, undefined, { 'if-match': '"cluster-0"' });
      expect(gone.status).to.equal(412);
      expect(gone.headers.get('etag')).to.equal('"cluster-2"');
    });

    it('merges concurrent changes of different fields without losing one', async () => {
      const { id } = await order();
      const replies = await Promise.all([
        patch(id, { metadata: { labels: { a: 'b' } } }),
        patch(id, { metadata: { annotations: { c: 'd' } } }),
        patch(id, { spec: { node_sets: { workers: { size: 9 } } } }),
        patch(id, { spec: { ssh_public_key: 'k' } }),
      ]);
      for (const reply of replies) expect(reply.status, reply.text).to.equal(200);
      const read = await user('GET', `${CLUSTERS}/${id}`);
      expect(read.json['metadata']).to.deep.include({
        labels: { a: 'b' },
        annotations: { c: 'd' },
        version: 4,
      });
      expect(read.json['spec']?.['ssh_public_key']).to.equal('k');
      expect(read.json['spec']?.['node_sets']?.['workers']?.['size']).to.equal(9);
    });

    it('private callers write status and finalizers; a spec in state FAILED is locked', async () => {
      const { id } = await order();
      const failed = await admin('PATCH', `${PRIVATE}/clusters/${id}`, {
        metadata: { finalizers: ['bench'] },
        status: { state: 'CLUSTER_STATE_FAILED' },
      });
      expect(failed.status, failed.text).to.equal(200);
      expect(failed.json['metadata']?.['finalizers']).to.deep.equal(['bench']);
      expect(failed.json['status']).to.deep.equal({ state: 'CLUSTER_STATE_FAILED' });
      const locked = await patch(id, { spec: { ssh_public_key: 'x' } });
      expect(locked.status).to.equal(400);
      expect(locked.json['message']).to.equal(
        'cannot update cluster spec when cluster state is CLUSTER_STATE_FAILED',
      );
      expect((await patch(id, { metadata: { labels: { a: 'b' } } })).status).to.equal(200);
    });
  });
});
