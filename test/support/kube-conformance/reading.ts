import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import {
  expectCode,
  expectRefusal,
  itemsOf,
  metaOf,
  namesOf,
  nextEvent,
  versionOf,
  type Behaviour,
  type ConformanceContext,
} from './context.ts';
import { SPEC, order } from './requests.ts';
import { eventually } from '../eventually.ts';

const GROUP = 'osac.openshift.io';
const SINCE_START = {
  sendInitialEvents: true,
  resourceVersionMatch: 'NotOlderThan',
  allowWatchBookmarks: true,
};

const add = async (
  { admin, orders }: ConformanceContext,
  name: string,
  labels: JsonObject,
): Promise<JsonObject> => {
  const answer = await admin.post(orders, order(name, SPEC, { labels }));
  expectCode(answer, 201);
  return answer.body;
};

/** Lists, pages, watches, discovery. */
export const READING: readonly Behaviour[] = [
  {
    name: 'discovery names the version, the groups and the kinds with their status',
    check: async ({ admin }) => {
      expect((await admin.get('/version')).body['gitVersion']).to.match(/^v1\.\d+/);
      expect((await admin.get('/readyz')).text).to.equal('ok');
      const groups = await admin.get('/apis');
      expect(groups.text).to.include(`"${GROUP}"`);
      const { body } = await admin.get(`/apis/${GROUP}/v1alpha1`);
      const resources = body['resources'] as JsonObject[];
      const found = resources.find((one) => one['name'] === 'clusterorders');
      expect(found?.['kind']).to.equal('ClusterOrder');
      expect(found?.['verbs']).to.include.members(['create', 'get', 'list', 'patch', 'watch']);
      expect(resources.some((one) => one['name'] === 'clusterorders/status')).to.equal(true);
      expect((await admin.get('/api/v1')).text).to.include('"namespaces"');
    },
  },
  {
    name: 'unknown objects are 404 with a Status, unknown kinds 404 without one',
    check: async ({ admin, orders, namespace }) => {
      expectRefusal(await admin.get(`${orders}/nothing`), 404, 'NotFound');
      expectRefusal(await admin.delete(`${orders}/nothing`), 404, 'NotFound');
      const kind = await admin.get(`/apis/${GROUP}/v1alpha1/namespaces/${namespace}/nothings`);
      expectCode(kind, 404);
      expect(kind.text).to.equal('404 page not found\n');
    },
  },
  {
    name: 'lists carry a version; items of core kinds leave out what custom resources say',
    check: async (context) => {
      await add(context, context.name('ord'), {});
      const orders = (await context.admin.get(context.orders)).body;
      expect(orders['kind']).to.equal('ClusterOrderList');
      expect(versionOf(orders)).to.match(/^\d+$/);
      expect(itemsOf(orders)[0]).to.include({ kind: 'ClusterOrder', apiVersion: `${GROUP}/v1alpha1` });
      const namespaces = (await context.admin.get('/api/v1/namespaces')).body;
      expect(itemsOf(namespaces)[0]).not.to.have.any.keys('kind', 'apiVersion');
    },
  },
  {
    name: 'label selectors: equality, sets, presence, absence',
    check: async (context) => {
      const [a, b, c] = [context.name('sel'), context.name('sel'), context.name('sel')];
      await add(context, a, { app: 'sel', tier: 'gold' });
      await add(context, b, { app: 'sel', tier: 'silver' });
      await add(context, c, { app: 'sel' });
      const chosen = async (labelSelector: string): Promise<string[]> =>
        namesOf((await context.admin.get(context.orders, { labelSelector })).body);
      expect(await chosen('app=sel')).to.have.members([a, b, c]);
      expect(await chosen('app=sel,tier=gold')).to.deep.equal([a]);
      expect(await chosen('app=sel,tier!=gold')).to.have.members([b, c]);
      expect(await chosen('app=sel,tier in (gold,silver)')).to.have.members([a, b]);
      expect(await chosen('app=sel,tier notin (gold)')).to.have.members([b, c]);
      expect(await chosen('app=sel,!tier')).to.deep.equal([c]);
      expect(await chosen('app=sel,tier')).to.have.members([a, b]);
      const byName = await context.admin.get(context.orders, { fieldSelector: `metadata.name=${b}` });
      expect(namesOf(byName.body)).to.deep.equal([b]);
      expectCode(await context.admin.get(context.orders, { labelSelector: 'a in' }), 400);
    },
  },
  {
    name: 'pages show every object once, as of the first page',
    check: async (context) => {
      const label = context.name('page');
      const names = Array.from({ length: 7 }, () => context.name('pg'));
      for (const name of names) await add(context, name, { page: label });
      const query = { labelSelector: `page=${label}`, limit: 3 };
      const seen: string[] = [];
      let [token, version] = ['', ''];
      do {
        const answer = await context.admin.get(
          context.orders,
          token === '' ? query : { ...query, continue: token },
        );
        expectCode(answer, 200);
        seen.push(...namesOf(answer.body));
        if (version === '') {
          version = versionOf(answer.body);
          expectCode(await context.admin.delete(`${context.orders}/${names.at(-1) ?? ''}`), 200);
        }
        expect(versionOf(answer.body)).to.equal(version);
        token = stringAt(metaOf(answer.body), 'continue');
      } while (token !== '');
      expect(seen).to.deep.equal(names.toSorted());
    },
  },
  {
    name: 'a watch tells creation, change and deletion; the last carries a version of its own',
    check: async (context) => {
      const start = versionOf((await context.admin.get(context.orders)).body);
      const watch = await context.admin.watch(context.orders, { resourceVersion: start });
      const name = context.name('w');
      const object = await add(context, name, {});
      expect(versionOf(await nextEvent(watch, 'ADDED'))).to.equal(versionOf(object));
      const changed = await context.admin.merge(`${context.orders}/${name}`, {
        metadata: { labels: { a: 'b' } },
      });
      expect(versionOf(await nextEvent(watch, 'MODIFIED'))).to.equal(versionOf(changed.body));
      expectCode(await context.admin.delete(`${context.orders}/${name}`), 200);
      const last = versionOf(await nextEvent(watch, 'DELETED'));
      expect(Number(last)).to.be.greaterThan(Number(versionOf(changed.body)));
      watch.close();
    },
  },
  {
    name: 'a watch from a version tells only what came later',
    check: async (context) => {
      const first = await add(context, context.name('w'), {});
      const name = context.name('w');
      await add(context, name, {});
      const watch = await context.admin.watch(context.orders, { resourceVersion: versionOf(first) });
      expect(metaOf(await nextEvent(watch, 'ADDED'))['name']).to.equal(name);
      watch.close();
    },
  },
  {
    name: 'what leaves the selection of a watch is deleted for it, what enters it is added',
    check: async (context) => {
      const label = context.name('l');
      const name = context.name('w');
      await add(context, name, {});
      const path = `${context.orders}/${name}`;
      const start = versionOf((await context.admin.get(context.orders)).body);
      const watch = await context.admin.watch(context.orders, {
        resourceVersion: start,
        labelSelector: `watched=${label}`,
      });
      await context.admin.merge(path, { metadata: { labels: { watched: label } } });
      await nextEvent(watch, 'ADDED');
      await context.admin.merge(path, { metadata: { labels: { other: 'x' } } });
      await nextEvent(watch, 'MODIFIED');
      await context.admin.merge(path, { metadata: { labels: { watched: null } } });
      await nextEvent(watch, 'DELETED');
      watch.close();
    },
  },
  {
    name: 'a streaming list sends what there is and then says that this was all',
    check: async (context) => {
      const label = context.name('s');
      const names = [context.name('w'), context.name('w')];
      for (const name of names) await add(context, name, { streamed: label });
      const query = { ...SINCE_START, labelSelector: `streamed=${label}` };
      const watch = await context.admin.watch(context.orders, query);
      const seen = [await nextEvent(watch, 'ADDED'), await nextEvent(watch, 'ADDED')];
      expect(seen.map((one) => stringAt(metaOf(one), 'name'))).to.have.members(names);
      const end = await nextEvent(watch, 'BOOKMARK');
      expect(objectAt(metaOf(end), 'annotations')).to.include({ 'k8s.io/initial-events-end': 'true' });
      expect(versionOf(end)).to.match(/^\d+$/);
      watch.close();
      const bare = await context.admin.get(context.orders, { watch: true, sendInitialEvents: true });
      expectRefusal(bare, 422, 'Invalid');
    },
  },
  {
    name: 'a watch from a forgotten version is HTTP 200 with an ERROR event 410 inside',
    check: async (context) => {
      await add(context, context.name('w'), {});
      const watch = await context.admin.watch(context.orders, { resourceVersion: '1' });
      const error = await nextEvent(watch, 'ERROR');
      expect(error).to.include({ kind: 'Status', code: 410, reason: 'Expired' });
      expect(error['message']).to.match(/^too old resource version: 1 \(\d+\)$/);
      await eventually(
        'the stream ends',
        async () => {
          await watch.next(50);
          return watch.ended();
        },
        20_000,
      );
    },
  },
  {
    name: 'a watch ends by itself after timeoutSeconds',
    check: async (context) => {
      const watch = await context.admin.watch(context.orders, { timeoutSeconds: 1 });
      await eventually(
        'the stream ends',
        async () => {
          await watch.next(100);
          return watch.ended();
        },
        20_000,
      );
    },
  },
];
