import type { Client } from '@grpc/grpc-js';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.ts';
import { Code, grpcCaller, type GrpcReply } from '../../support/grpc/caller.ts';
import { grpcClient, watchGrpc } from '../../support/grpc/watch-client.ts';
import { textAt } from '../../support/http/caller.ts';
import { idOf } from '../../support/http/watch-client.ts';
import { createStack, E2E_STORE, type Stack } from '../../support/service/stack.ts';

const CREATE = '/osac.public.v1.Clusters/Create';
const CALLS = 1_000;
/** Calls that have to be answered before the service is killed. */
const ANSWERED = 200;

/** Watches that are open then, on as many connections as below. */
const WATCHES = 100;
const CONNECTIONS = 10;
/** Milliseconds in which all of them have told everything. */
const TOLD_MS = 240_000;

describe('kill -9 in the middle of calls and watches over gRPC', function () {
  this.timeout(600_000);
  let stack: Stack;
  let token: string;
  before(async () => {
    stack = await createStack(E2E_STORE, {
      LEDGER_ROLES: 'api',
      LEDGER_RATE_LIMIT_TENANT: '0',
      LEDGER_WATCHES_PER_SUBJECT: String(2 * WATCHES),
      LEDGER_WATCHES_PER_TENANT: String(2 * WATCHES),
    });
    await stack.start();
    token = await stack.token({ tenant: 'acme', user: 'alice' });
  });
  after(() => stack.dispose());

  const address = (): string => stack.service().grpc ?? '';
  const createAll = async (enough: (answered: number) => void): Promise<readonly GrpcReply[]> => {
    const caller = grpcCaller(address(), token);
    let answered = 0;
    const replies = await Promise.all(
      Array.from({ length: CALLS }, async (_, i) => {
        const spec = { template: { id: 'osac.templates.ocp_small' } };
        const request = { object: { metadata: { name: `killed-${i}` }, spec } };
        const reply = await caller.call(CREATE, request, { headers: { 'idempotency-key': `killed-${i}` } });
        if (reply.code === Code.OK) enough((answered += 1));
        return reply;
      }),
    );
    caller.close();
    return replies;
  };
  const objectIn = (reply: GrpcReply | undefined): string => textAt(reply?.json, 'object', 'id');

  /** Watches of all clusters, from these ids on or from now on; each has begun. */
  const watchAll = async (from: readonly string[] = []) => {
    const clients = Array.from({ length: CONNECTIONS }, () => grpcClient(address()));
    const watches = Array.from({ length: WATCHES }, (_, i) =>
      watchGrpc(clients[i % CONNECTIONS] as Client, token, {
        filter: 'has(event.cluster)',
        metadata: from[i] === undefined ? {} : { 'x-ledger-from': from[i] },
      }),
    );
    const begins = await Promise.all(
      watches.map(async (watch) => String((await watch.headers())?.get('x-ledger-watch-id')[0])),
    );
    return { watches, begins, close: () => clients.forEach((client) => client.close()) };
  };

  it('loses nothing acknowledged and makes nothing twice; a watch that goes on misses and doubles nothing', async () => {
    const before = await watchAll();
    const first = await createAll((answered) => {
      if (answered === ANSWERED) void stack.stop('SIGKILL');
    });
    const acknowledged = first.filter(({ code }) => code === Code.OK);
    expect(acknowledged.length).to.be.within(ANSWERED, CALLS - 1);
    await stack.stop('SIGKILL');
    await Promise.all(before.watches.map((watch) => watch.ended()));
    before.close();
    const told = before.watches.map((watch) => watch.events().map(idOf));
    expect(
      told.some((ids) => ids.length > 0),
      'watches were told something',
    ).to.equal(true);

    await stack.start();
    const after = await watchAll(told.map((ids, i) => ids.at(-1) ?? before.begins[i] ?? ''));
    const second = await createAll(() => undefined);
    expect(second.filter(({ code }) => code !== Code.OK).map(({ message }) => message)).to.deep.equal([]);
    for (const [i, reply] of first.entries())
      if (reply.code === Code.OK) expect(objectIn(second[i])).to.equal(objectIn(reply));
    const caller = grpcCaller(address(), token);
    const list = await caller.call('/osac.public.v1.Clusters/List', { limit: 1 });
    caller.close();
    expect(list.json['total']).to.equal(CALLS);

    const left = (): number[] =>
      after.watches.map((watch, i) => CALLS - watch.events().length - (told[i] ?? []).length);
    await eventually(
      () => `all is told, ${left().join()} are missing`,
      () => left().every((events) => events <= 0),
      TOLD_MS,
    );
    after.close();
    const whole = after.watches.map((watch, i) => [
      ...(before.watches[i]?.events() ?? []),
      ...watch.events(),
    ]);
    const [one = []] = whole;
    const clusters = one.map((event) => textAt(event, 'cluster', 'id'));
    expect(new Set(clusters)).to.deep.equal(new Set(second.map(objectIn)));
    expect(clusters).to.have.lengthOf(CALLS);
    for (const events of whole) expect(events.map(idOf)).to.deep.equal(one.map(idOf));
  });
});
