import { Code, ConnectError, createClient } from '@connectrpc/connect';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { status, type Client } from '@grpc/grpc-js';
import { expect } from 'chai';
import { Events } from '../../../src/gen/osac/public/v1/events_pb.ts';
import { unauthenticated } from '../../../src/http/errors.ts';
import { READ } from '../../../src/http/osac/messages.ts';
import { eventually } from '../../support/eventually.ts';
import { framed, rawGrpc } from '../../support/grpc/raw-client.ts';
import {
  grpcClient,
  watchGrpc,
  type GrpcWatching,
  type GrpcWatchOptions,
} from '../../support/grpc/watch-client.ts';
import {
  callerOf,
  PRIVATE,
  PUBLIC,
  seedCatalogue,
  startTestService,
  textAt,
  type Caller,
  type TestService,
  type TestServiceOptions,
} from '../../support/http/service.ts';
import { idOf, PRIVATE_WATCH, PUBLIC_WATCH, summaryOf, watch } from '../../support/http/watch-client.ts';

describe('Events/Watch over gRPC', () => {
  let service: TestService;
  let adminToken: string;
  let userToken: string;
  let admin: Caller;
  let user: Caller;
  let client: Client;
  const open: { close(): void }[] = [];

  const start = async (options: TestServiceOptions = {}): Promise<void> => {
    service = await startTestService(options);
    adminToken = await service.token({ user: 'root', admin: true });
    userToken = await service.token({ user: 'alice', tenants: ['t1'] });
    admin = callerOf(service, adminToken);
    user = callerOf(service, userToken);
    await seedCatalogue(admin);
    client = grpcClient(service.grpcAddress);
  };
  const stop = async (): Promise<void> => {
    client.close();
    await service.close();
  };
  const closing = <One extends { close(): void }>(one: One): One => {
    open.push(one);
    return one;
  };
  const watching = (token: string | undefined = userToken, options: GrpcWatchOptions = {}): GrpcWatching =>
    closing(watchGrpc(client, token, options));
  /** One that has begun. */
  const begun = async (token?: string, options?: GrpcWatchOptions): Promise<GrpcWatching> => {
    const one = watching(token, options);
    expect(await one.headers(), 'headers').not.to.equal(undefined);
    return one;
  };
  afterEach(() => {
    for (const one of open.splice(0)) one.close();
  });

  let names = 0;
  const order = async (by = user): Promise<{ readonly id: string; readonly name: string }> => {
    const name = `w${(names += 1)}`;
    const body = { metadata: { name }, spec: { template: { id: 'osac.templates.small' } } };
    const reply = await by('POST', `${PUBLIC}/clusters`, body);
    expect(reply.status, reply.text).to.equal(200);
    return { id: textAt(reply.json, 'id'), name };
  };
  let descriptions = 0;
  /** One event of an object that everybody sees, as long as asked for. */
  const change = async (characters = 0): Promise<void> => {
    const description = `${(descriptions += 1)} `.padEnd(characters, 'x');
    const reply = await admin('PATCH', `${PRIVATE}/host_types/gpu`, { description });
    expect(reply.status, reply.text).to.equal(200);
  };

  describe('of a service that goes on', () => {
    before(() => start());
    after(() => stop());

    it('sends its headers at once, and says where it begins', async () => {
      const seen = await begun();
      expect(seen.events()).to.deep.equal([]);
      expect(String((await seen.headers())?.get('x-ledger-watch-id')[0])).to.match(/\.\d+$/);
    });

    it('tells the same events as HTTP does, on either surface', async () => {
      const pairs = [
        [await begun(userToken), closing(await watch(service, userToken, PUBLIC_WATCH))],
        [
          await begun(adminToken, { surface: 'private' }),
          closing(await watch(service, adminToken, PRIVATE_WATCH)),
        ],
      ] as const;
      await order();
      await admin('PATCH', `${PRIVATE}/host_types/gpu`, { description: 'told twice' });
      const stranger = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
      await order(stranger);
      const last = await order();
      for (const [grpc, http] of pairs) {
        await eventually('the last one is told', () =>
          [grpc, http].every((one) => one.events().some((event) => summaryOf(event).endsWith(last.name))),
        );
        expect(grpc.events()).to.deep.equal(http.events());
      }
    });

    it('tells what the filter of the command line chooses', async () => {
      const [one, other] = [await order(), await order()];
      const named = `event.cluster.id == "${one.name}" || event.cluster.metadata.name == "${one.name}"`;
      const all = await begun(userToken, { filter: 'has(event.cluster)' });
      const chosen = await begun(userToken, { filter: `has(event.cluster) && (${named})` });
      await change();
      for (const { id } of [other, one])
        await user('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { seen: 'yes' } } });
      expect((await all.count(2)).map(summaryOf)).to.deep.equal([
        `UPDATED cluster ${other.name}`,
        `UPDATED cluster ${one.name}`,
      ]);
      expect((await chosen.count(1)).map(summaryOf)).to.deep.equal([`UPDATED cluster ${one.name}`]);
    });

    it('goes on after any event that it told, without loss or repetition', async () => {
      const whole = await begun(userToken, { filter: 'has(event.cluster)' });
      const begin = String((await whole.headers())?.get('x-ledger-watch-id')[0]);
      for (let i = 0; i < 4; i += 1) await order();
      const ids = (await whole.count(4)).map(idOf);
      for (const [cut, from] of [begin, ...ids].entries()) {
        const rest = watching(userToken, {
          filter: 'has(event.cluster)',
          metadata: { 'x-ledger-from': from },
        });
        const { name } = await order();
        const told = await rest.count(ids.length - cut + 1);
        expect(told.map(idOf)).to.deep.equal([...ids.slice(cut), idOf(told.at(-1))]);
        expect(summaryOf(told.at(-1) as never)).to.equal(`CREATED cluster ${name}`);
        ids.push(idOf(told.at(-1)));
      }
    });

    for (const [what, code, ask] of [
      ['no token', status.UNAUTHENTICATED, () => watchGrpc(client, undefined)],
      ['a token that is none', status.UNAUTHENTICATED, () => watching('nonsense')],
      [
        'a tenant on the private surface',
        status.PERMISSION_DENIED,
        () => watching(userToken, { surface: 'private' }),
      ],
      ['a filter that does not compile', status.INVALID_ARGUMENT, () => watching(userToken, { filter: '(' })],
      [
        'a filter on what is unknown',
        status.INVALID_ARGUMENT,
        () => watching(userToken, { filter: 'event.nope == 1' }),
      ],
      [
        'a filter that is not true or false',
        status.INVALID_ARGUMENT,
        () => watching(userToken, { filter: 'event.id' }),
      ],
      [
        'an id that is none',
        status.INVALID_ARGUMENT,
        () => watching(userToken, { metadata: { 'x-ledger-from': 'yesterday' } }),
      ],
    ] as const)
      it(`refuses ${what}`, async () => {
        const end = await ask().ended();
        expect(status[end.code], end.message).to.equal(status[code]);
        if (what.startsWith('an id')) expect(end.message).to.contain("'x-ledger-from'");
      });

    for (const [protocol, createTransport, useBinaryFormat] of [
      ['gRPC-Web', createGrpcWebTransport, true],
      ['Connect in protobuf', createConnectTransport, true],
      ['Connect in JSON', createConnectTransport, false],
    ] as const)
      it(`tells pages of a browser the same, over ${protocol}`, async () => {
        await eventually('nobody is left', () => service.watch.status().watchers === 0);
        const begin = String((await (await begun()).headers())?.get('x-ledger-watch-id')[0]);
        const orders = [await order(), await order(), await order()].map(({ name }) => name);
        const baseUrl = `http://${service.grpcAddress}`;
        const events = createClient(
          Events,
          createTransport({ baseUrl, httpVersion: '2', useBinaryFormat, jsonOptions: READ }),
        );
        const headers = { authorization: `Bearer ${userToken}`, 'x-ledger-from': begin };
        const told: string[] = [];
        const page = new AbortController();
        const watched = events.watch({ filter: 'has(event.cluster)' }, { headers, signal: page.signal });
        for await (const { event } of watched) {
          if (event?.payload.case === 'cluster') told.push(event.payload.value.metadata?.name ?? '');
          if (told.length === 3) break;
        }
        page.abort();
        expect(told).to.deep.equal(orders);
        await eventually('the page is gone', () => service.watch.status().watchers === 1);
        const refused = events.watch({ filter: '(' }, { headers })[Symbol.asyncIterator]().next();
        const error = await refused.then(
          () => undefined,
          (cause: unknown) => ConnectError.from(cause),
        );
        expect(error?.code).to.equal(Code.InvalidArgument);
      });

    for (const type of ['grpc-web+proto', 'connect+proto', 'connect+json'])
      it(`sends the headers of ${type} at once, too`, async () => {
        const raw = closing(rawGrpc(service.grpcAddress));
        const stream = raw.session.request({
          ':method': 'POST',
          ':path': '/osac.public.v1.Events/Watch',
          'content-type': `application/${type}`,
          authorization: `Bearer ${userToken}`,
        });
        stream.on('error', () => undefined).end(framed(Buffer.from(type.endsWith('json') ? '{}' : '')));
        const headers = await new Promise((resolve) => stream.once('response', resolve));
        expect(headers).to.include({ ':status': 200, 'content-type': `application/${type}` });
        expect(headers).to.have.property('x-ledger-watch-id');
      });

    it('gives a hundred watchers everything, and nothing is left of those who went', async () => {
      await eventually('nobody is left', () => service.watch.status().watchers === 0);
      const watchers = await Promise.all(Array.from({ length: 100 }, () => begun(adminToken)));
      expect(service.watch.status()).to.deep.include({ watchers: 100, groups: 1 });
      for (let i = 0; i < 20; i += 1) await change();
      const [first] = watchers;
      const ids = (await first?.count(20))?.map(idOf);
      expect(new Set(ids).size).to.equal(20);
      for (const watcher of watchers) expect((await watcher.count(20)).map(idOf)).to.deep.equal(ids);
      for (const watcher of watchers) watcher.close();
      await eventually('all have gone', () => service.watch.status().watchers === 0);
    });
  });

  describe('of one who stops reading', () => {
    before(() => start({ watch: { stallMs: 300, sweepMs: 50 } }));
    after(() => stop());

    it('is closed with its last id, and all others get everything', async () => {
      const another = closing(grpcClient(service.grpcAddress));
      const stopped = closing(watchGrpc(another, adminToken));
      await stopped.headers();
      const reader = await begun(adminToken);
      stopped.pause();
      let writes = 0;
      while (service.watch.status().watchers === 2 && writes < 500) {
        await change(60_000);
        writes += 1;
      }
      expect(service.watch.status().watchers, `after ${writes} writes`).to.equal(1);
      expect(await reader.count(writes)).to.have.length(writes);
      stopped.resume();
      const end = await stopped.ended();
      expect([status[end.code], end.reason]).to.deep.equal(['RESOURCE_EXHAUSTED', 'WATCH_TOO_SLOW']);
      const told = stopped.events();
      expect(end.facts['last_id']).to.equal(idOf(told.at(-1)));
      const rest = watching(adminToken, { metadata: { 'x-ledger-from': end.facts['last_id'] ?? '' } });
      await rest.count(writes - told.length);
      expect([...told, ...rest.events()].map(idOf)).to.deep.equal(reader.events().map(idOf));
    });
  });

  describe('ends', () => {
    let expired = false;
    const ending = new AbortController();
    before(() =>
      start({
        ending: ending.signal,
        watch: { recheckMs: 50 },
        guard: (_models, authenticate) => (authorization, method, how) => {
          if (expired) throw unauthenticated('token expired 3 seconds ago', true);
          return authenticate(authorization, method, how);
        },
      }),
    );
    after(() => stop());

    it('with UNAUTHENTICATED once its token is over', async () => {
      const seen = await begun();
      await order();
      const [event] = await seen.count(1);
      expired = true;
      const end = await seen.ended().finally(() => (expired = false));
      expect([status[end.code], end.message]).to.deep.equal([
        'UNAUTHENTICATED',
        'token expired 3 seconds ago',
      ]);
      expect(end.facts['last_id']).to.equal(idOf(event));
    });

    it('with UNAVAILABLE once the instance stops, and with what may be resumed after', async () => {
      const seen = await begun();
      await order();
      const [event] = await seen.count(1);
      ending.abort();
      const end = await seen.ended();
      expect([status[end.code], end.reason]).to.deep.equal(['UNAVAILABLE', 'SHUTTING_DOWN']);
      expect(end.facts['last_id']).to.equal(idOf(event));
      const late = await watching().ended();
      expect(status[late.code]).to.equal('UNAVAILABLE');
    });
  });
});
