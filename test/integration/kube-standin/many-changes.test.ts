import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { kubeClient, type KubeClient, type KubeWatch } from '../../support/kube-apiserver/client.ts';
import { metaOf, versionOf } from '../../support/kube-conformance/context.ts';
import { SPEC, order, ordersOf } from '../../support/kube-conformance/requests.ts';

const NAMESPACE = 'osac-hub';
const ORDERS = ordersOf(NAMESPACE);
const WRITERS = 4;
const EACH = 50;

describe('watches of the stand-in under many changes', () => {
  let server: KubeApiServer;
  let client: KubeClient;
  before(async () => {
    // Bookmarks in between must not hide a change.
    server = await startKubeApiServer({ namespaces: [NAMESPACE], bookmarkMs: 2 });
    client = kubeClient({ url: server.url, ca: server.ca, token: server.adminToken });
  });
  after(async () => {
    client.close();
    await server.close();
  });

  /** Versions of one object's changes in the order in which a watch tells them, until it has told the last. */
  const followed = async (watch: KubeWatch, last: Promise<string>): Promise<number[]> => {
    const seen: number[] = [];
    for (;;) {
      const event = await watch.next(10_000);
      if (event === undefined) throw new Error(`the watch said nothing after ${seen.length} changes`);
      if (event.type === 'BOOKMARK') continue;
      seen.push(Number(versionOf(event.object)));
      if (seen.length === WRITERS * EACH + 1) {
        expect(String(seen.at(-1))).to.equal(await last);
        return seen;
      }
    }
  };

  it('tell every change once, in order, to each watcher', async () => {
    const query = { resourceVersion: String(server.version()), allowWatchBookmarks: true };
    const watches = await Promise.all([1, 2, 3].map(() => client.watch(ORDERS, query)));
    const end = Promise.withResolvers<string>();
    const following = Promise.all(watches.map((watch) => followed(watch, end.promise)));
    const writers = Array.from({ length: WRITERS }, async (_, writer) => {
      for (let index = 0; index < EACH; index += 1) {
        const { code } = await client.post(ORDERS, order(`w${writer}-${index}`));
        expect(code).to.equal(201);
      }
    });
    await Promise.all(writers);
    end.resolve(versionOf((await client.post(ORDERS, order('last'))).body));
    const [first = [], ...others] = await following;
    expect(first).to.deep.equal(first.toSorted((a, b) => a - b));
    expect(new Set(first).size).to.equal(first.length);
    for (const other of others) expect(other).to.deep.equal(first);
    for (const watch of watches) watch.close();
  });

  it('go on where another ended, as a list and a watch would', async () => {
    const list = await client.get(ORDERS, { limit: 20 });
    const token = stringAt(metaOf(list.body), 'continue');
    const known = new Set<string>();
    let page: JsonObject = list.body;
    for (let next = token; ; next = stringAt(metaOf(page), 'continue')) {
      for (const item of page['items'] as JsonObject[]) known.add(stringAt(metaOf(item), 'name'));
      if (next === '') break;
      page = (await client.get(ORDERS, { limit: 20, continue: next })).body;
    }
    expect(known.size).to.equal(WRITERS * EACH + 1);
    await client.post(ORDERS, order('later', SPEC));
    const watch = await client.watch(ORDERS, { resourceVersion: versionOf(list.body) });
    const event = await watch.next();
    expect(stringAt(metaOf(event?.object ?? {}), 'name')).to.equal('later');
    watch.close();
  });
});
