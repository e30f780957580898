import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { startKubeApiServer, type KubeApiServer } from '../../support/kube-apiserver/start.ts';
import { kubeClient, type KubeAnswer, type KubeClient } from '../../support/kube-apiserver/client.ts';
import { expectCode, expectRefusal, nextEvent, versionOf } from '../../support/kube-conformance/context.ts';
import { order, ordersOf } from '../../support/kube-conformance/requests.ts';
import { eventually } from '../../support/eventually.ts';

const NAMESPACE = 'osac-hub';
const ORDERS = ordersOf(NAMESPACE);
const STREAMING = {
  sendInitialEvents: true,
  resourceVersionMatch: 'NotOlderThan',
  allowWatchBookmarks: true,
};

const failed = async (call: Promise<KubeAnswer>): Promise<string> => {
  try {
    return `answered ${(await call).code}`;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  }
};

describe('the stand-in fails on command', () => {
  let server: KubeApiServer;
  let client: KubeClient;
  before(async () => {
    server = await startKubeApiServer({ namespaces: [NAMESPACE], bookmarkMs: 30 });
    client = kubeClient({ url: server.url, ca: server.ca, token: server.adminToken });
  });
  after(async () => {
    client.close();
    await server.close();
  });
  afterEach(() => {
    server.faults.clear();
    server.forgetAudit();
    server.setClockSkew(0);
  });

  it('answers what it is told to, as often as it is told to', async () => {
    const busy = server.faults.next(
      { verb: 'create', resource: 'clusterorders' },
      { kind: 'answer', code: 429, retryAfterSeconds: 2 },
      2,
    );
    const first = await client.post(ORDERS, order('busy'));
    expectRefusal(first, 429, 'TooManyRequests');
    expect(first.headers['retry-after']).to.equal('2');
    expectCode(await client.get(ORDERS), 200);
    expectCode(await client.post(ORDERS, order('busy')), 429);
    expectCode(await client.post(ORDERS, order('busy')), 201);
    expect(busy.hits()).to.equal(2);
    server.faults.next({ path: '/version' }, { kind: 'answer', code: 502, text: '<html>Bad Gateway</html>' });
    expect((await client.get('/version')).text).to.equal('<html>Bad Gateway</html>');
    for (const code of [401, 403, 409, 410, 500, 503, 504]) {
      server.faults.next({ verb: 'list' }, { kind: 'answer', code });
      const answer = await client.get(ORDERS);
      expectCode(answer, code);
      expect(answer.body['kind']).to.equal('Status');
    }
  });

  it('cuts the connection before the work, or after it', async () => {
    server.faults.next({ name: 'x', verb: 'delete' }, { kind: 'cut' });
    server.faults.next({ verb: 'create' }, { kind: 'lost-answer' });
    expect(await failed(client.post(ORDERS, order('x')))).to.equal('ECONNRESET');
    expectCode(await client.get(`${ORDERS}/x`), 200);
    expect(await failed(client.delete(`${ORDERS}/x`))).to.equal('ECONNRESET');
    expectCode(await client.get(`${ORDERS}/x`), 200);
    expectCode(await client.delete(`${ORDERS}/x`), 200);
  });

  it('hangs before the work or with the answer in hand, and goes on when it is released', async () => {
    const before = server.faults.next({ verb: 'create' }, { kind: 'hang' });
    const creating = client.post(ORDERS, order('h1'));
    await eventually('the call hangs', async () => before.held() === 1);
    expectCode(await client.get(`${ORDERS}/h1`), 404);
    before.release();
    expectCode(await creating, 201);

    const after = server.faults.next({ verb: 'create' }, { kind: 'held-answer' });
    const answering = client.post(ORDERS, order('h2'));
    await eventually('the answer is held', async () => after.held() === 1);
    expectCode(await client.get(`${ORDERS}/h2`), 200);
    after.release();
    expectCode(await answering, 201);
  });

  it('does nothing for a caller who left while it hung', async () => {
    const fault = server.faults.next({ verb: 'create' }, { kind: 'hang' });
    const call = client.call('POST', ORDERS, { body: order('left'), deadlineMs: 40 });
    expect(await failed(call)).to.include('no answer');
    await eventually('the server has noticed', async () => fault.held() === 0);
    fault.release();
    expectCode(await client.get(`${ORDERS}/left`), 404);
  });

  it('is slow', async () => {
    server.faults.next({ verb: 'get', name: 'slow' }, { kind: 'slow', ms: 60 });
    const before = performance.now();
    expectCode(await client.get(`${ORDERS}/slow`), 404);
    expect(performance.now() - before).to.be.greaterThan(55);
  });

  it('ends watches: 410 at connect, in a new stream, in a running one; cuts them; says nothing', async () => {
    const from = { resourceVersion: String(server.version()) };
    server.faults.next({ verb: 'watch' }, { kind: 'answer', code: 410 });
    expectRefusal(await client.get(ORDERS, { ...from, watch: true }), 410, 'Expired');
    server.faults.next({ verb: 'watch' }, { kind: 'stream-error', code: 500 });
    const broken = await client.watch(ORDERS, from);
    expect(await nextEvent(broken, 'ERROR')).to.include({ code: 500, reason: 'InternalError' });

    const running = await client.watch(ORDERS, from);
    await eventually('the watch runs', async () => server.watching({ resource: 'clusterorders' }) === 1);
    expect(server.failWatches({ resource: 'clusterorders' })).to.equal(1);
    expect(await nextEvent(running, 'ERROR')).to.include({ code: 410 });

    const silent = await client.watch(ORDERS, { ...from, allowWatchBookmarks: true });
    await eventually('the watch runs', async () => server.watching() === 1);
    server.silenceWatches();
    expectCode(await client.post(ORDERS, order('unheard')), 201);
    expect(await silent.next(100)).to.equal(undefined);
    expect(silent.ended()).to.equal(false);
    server.cutConnections();
    expect(await silent.next(2000)).to.equal(undefined);
    expect(silent.ended()).to.equal(true);

    server.faults.next({ verb: 'watch' }, { kind: 'torn-line' });
    const torn = await client.watch(ORDERS, from);
    expect(await torn.next(2000)).to.equal(undefined);
    expect(torn.ended()).to.equal(true);

    server.faults.next({ verb: 'watch' }, { kind: 'silent' });
    const deaf = await client.watch(ORDERS, STREAMING);
    expect(await deaf.next(60)).to.equal(undefined);
    deaf.close();
  });

  it('sends bookmarks that a watch can go on from', async () => {
    const list = await client.get(ORDERS);
    const watch = await client.watch(ORDERS, {
      resourceVersion: versionOf(list.body),
      allowWatchBookmarks: true,
    });
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'elsewhere' } };
    const made = await client.post(`/api/v1/namespaces/${NAMESPACE}/secrets`, secret);
    const version = Number(versionOf(made.body));
    let bookmark: JsonObject;
    do bookmark = await nextEvent(watch, 'BOOKMARK');
    while (Number(versionOf(bookmark)) < version);
    expectCode(await client.post(ORDERS, order('after-bookmark')), 201);
    const next = await client.watch(ORDERS, { resourceVersion: versionOf(bookmark) });
    expect((await nextEvent(next, 'ADDED'))['metadata']).to.include({ name: 'after-bookmark' });
    for (const one of [watch, next]) one.close();
  });

  it('forgets its history and its pages', async () => {
    for (const name of ['p1', 'p2', 'p3']) expectCode(await client.post(ORDERS, order(name)), 201);
    const page = await client.get(ORDERS, { limit: 1 });
    const token = (page.body['metadata'] as JsonObject)['continue'] as string;
    server.expirePages();
    expectRefusal(await client.get(ORDERS, { limit: 1, continue: token }), 410, 'Expired');
    server.compact();
    const watch = await client.watch(ORDERS, { resourceVersion: versionOf(page.body) });
    expect(await nextEvent(watch, 'ERROR')).to.include({ code: 410, reason: 'Expired' });
    expectRefusal(await client.get(ORDERS, { resourceVersion: '999999999' }), 504, 'Timeout');
  });

  it('a watch that is slower than the history is ended, not waited for', async () => {
    const small = await startKubeApiServer({ namespaces: [NAMESPACE], historyLimit: 10 });
    const one = kubeClient({ url: small.url, ca: small.ca, token: small.adminToken });
    const start = String(small.version());
    for (let index = 0; index < 40; index += 1) {
      await one.merge(`/api/v1/namespaces/${NAMESPACE}`, { metadata: { labels: { n: String(index) } } });
    }
    const watch = await one.watch('/api/v1/namespaces', { resourceVersion: start });
    expect(await nextEvent(watch, 'ERROR')).to.include({ code: 410 });
    one.close();
    await small.close();
  });

  it('has a clock of its own', async () => {
    server.setClockSkew(3_600_000);
    const { headers, body } = await client.post(ORDERS, order('later'));
    const ahead = Date.parse(headers.date ?? '') - Date.now();
    expect(ahead).to.be.within(3_500_000, 3_700_000);
    const created = (body['metadata'] as JsonObject)['creationTimestamp'] as string;
    expect(Date.parse(created) - Date.now()).to.be.within(3_500_000, 3_700_000);
  });

  it('refuses connections while it is paused, and keeps what it has', async () => {
    await server.pause();
    expect(await failed(client.get(ORDERS))).to.match(/ECONNREFUSED|ECONNRESET/);
    await server.resume();
    expectCode(await client.get(`${ORDERS}/later`), 200);
  });

  it('knows users by token and by certificate, and writes down what each asked', async () => {
    const user = { name: 'bob', groups: ['system:masters'] };
    const { cert, key } = await server.certificateFor(user);
    const byCertificate = kubeClient({ url: server.url, ca: server.ca, cert, key });
    expectCode(await byCertificate.get(ORDERS), 200);
    const brief = server.tokenFor({ name: 'eve', groups: ['system:masters'] }, 1000);
    const byToken = kubeClient({ url: server.url, ca: server.ca, token: brief });
    expectCode(await byToken.get(ORDERS), 200);
    server.setClockSkew(2000);
    expectCode(await byToken.get(ORDERS), 401);
    const nobody = kubeClient({ url: server.url, ca: server.ca });
    expect((await nobody.get(ORDERS)).body['message']).to.include('"system:anonymous"');
    const seen = server.audit().map(({ user: who, verb, code }) => `${who} ${verb} ${code}`);
    expect(seen).to.deep.equal(['bob list 200', 'eve list 200', ' list 401', 'system:anonymous list 403']);
    for (const one of [byCertificate, byToken, nobody]) one.close();
  });

  it('serves a kind only as long as it is defined', async () => {
    const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
    const one = `${definitions}/volumes.osac.openshift.io`;
    const volumes = `/apis/osac.openshift.io/v1alpha1/namespaces/${NAMESPACE}/volumes`;
    const { body } = await client.get(one);
    const volume = {
      apiVersion: 'osac.openshift.io/v1alpha1',
      kind: 'Volume',
      metadata: { name: 'v' },
      spec: { storageTier: 'gold', sizeGiB: 1, accessMode: 'ReadWriteOnce' },
    };
    expectCode(await client.post(volumes, volume), 201);
    expectCode(await client.delete(one), 200);
    await server.settled();
    expectCode(await client.get(volumes), 404);
    expectCode(await client.get(one), 404);
    const { name } = body['metadata'] as { name: string };
    const again = { ...body, metadata: { name } };
    expectCode(await client.post(definitions, again), 201);
    const empty = await client.get(volumes);
    expect(empty.body['items']).to.deep.equal([]);
  });
});
