import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { ApiError, createApiClient, Unreachable, type ApiClient } from '../../../src/cli/api-client.ts';

type Step = (request: IncomingMessage, response: ServerResponse) => void;

describe('client of the command line', () => {
  let server: Server;
  let url: string;
  let steps: Step[];
  let seen: { method: string; key: string | undefined; minimum: string | undefined }[];
  let waited: number[];
  let client: ApiClient;
  beforeEach(async () => {
    [steps, seen, waited] = [[], [], []];
    server = createServer((request, response) => {
      const { 'idempotency-key': key, 'x-ledger-min-position': minimum } = request.headers;
      seen.push({
        method: request.method ?? '',
        key: key as string | undefined,
        minimum: minimum as string | undefined,
      });
      (steps.shift() ?? answer(200, { done: true }))(request, response);
    }).listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const pause = async (ms: number) => void waited.push(ms);
    client = createApiClient(url, 'token', { attempts: 3, timeoutMs: 5000, pause });
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  const answer =
    (status: number, body: object, headers: Record<string, string> = {}): Step =>
    (_, response) =>
      void response.writeHead(status, headers).end(JSON.stringify(body));
  const cut: Step = (request) => void request.socket.destroy();
  const cutInTheMiddle: Step = (request, response) => {
    response.writeHead(200, { 'content-length': '100' });
    response.write('{"half":', () => request.socket.destroy());
  };
  const failed = async (call: Promise<unknown>): Promise<Error> => {
    const outcome = await call.catch((error: unknown) => error);
    if (outcome instanceof Error) return outcome;
    throw new Error('it succeeded');
  };
  const keyed = { 'idempotency-key': '"k"' };

  it('repeats a read and a write with a key, the key unchanged', async () => {
    steps = [answer(503, {}, { 'retry-after': '2' }), cut];
    expect(await client.send('POST', '/x', {}, keyed)).to.deep.equal({ done: true });
    expect(seen.map(({ method, key }) => `${method} ${key}`)).to.deep.equal([
      'POST "k"',
      'POST "k"',
      'POST "k"',
    ]);
    expect(waited, 'as long as the service asks, else a little').to.deep.equal([2000, 400]);
    steps = [cutInTheMiddle];
    expect(await client.get('/x')).to.deep.equal({ done: true });
  });

  it('repeats what ended with an unknown outcome, and what was too often', async () => {
    steps = [answer(504, {}), answer(429, {}, { 'retry-after': '1' })];
    expect(await client.send('DELETE', '/x', undefined, keyed)).to.deep.equal({ done: true });
    expect(seen).to.have.length(3);
  });

  it('never repeats a write without a key, nor what was refused', async () => {
    steps = [answer(503, { message: 'later' })];
    expect(await failed(client.send('POST', '/x', {})))
      .to.be.instanceOf(ApiError)
      .with.property('status', 503);
    steps = [cut];
    expect(await failed(client.send('POST', '/x', {}))).to.be.instanceOf(Unreachable);
    steps = [answer(409, { message: 'taken' })];
    expect(await failed(client.send('POST', '/x', {}, keyed)))
      .to.be.instanceOf(ApiError)
      .with.property('status', 409);
    expect(seen).to.have.length(3);
  });

  it('gives up after so many tries, and before its time is over', async () => {
    steps = [cut, cut, cut, cut];
    expect(await failed(client.get('/x'))).to.be.instanceOf(Unreachable);
    expect(seen).to.have.length(3);
    steps = [answer(503, { message: 'in an hour' }, { 'retry-after': '3600' })];
    const { message } = await failed(client.get('/x'));
    expect(message).to.include('answered 503: in an hour');
    expect(seen).to.have.length(4);
  });

  it('ends a call that is not answered in time', async () => {
    const hurried = createApiClient(url, 'token', { attempts: 3, timeoutMs: 500 });
    steps = [() => undefined];
    const error = await failed(hurried.get('/x'));
    expect(error).to.be.instanceOf(Unreachable);
    expect(error.message).to.equal(`no answer from ${url} within 0.5 s`);
    expect(seen).to.have.length(1);
  });

  it('knows whether a write may have arrived', async () => {
    steps = [cut, cut, cut];
    expect(await failed(client.send('POST', '/x', {}, keyed))).to.have.property('sent', true);
    const port = (server.address() as AddressInfo).port;
    await new Promise((resolve) => server.close(resolve));
    expect(await failed(client.send('POST', '/x', {}, keyed)), `nobody at ${port}`).to.have.property(
      'sent',
      false,
    );
  });

  it('without options it tries once', async () => {
    steps = [answer(503, {})];
    expect(await failed(createApiClient(url, 't').get('/x'))).to.be.instanceOf(ApiError);
    expect(seen).to.have.length(1);
  });

  it('names every field that is wrong, and the request', async () => {
    const details = [
      {
        '@type': 'x',
        field_violations: [
          { field: 'a.b', description: 'no' },
          { field: 'c', description: 'wrong' },
        ],
      },
      null,
    ];
    steps = [answer(400, { code: 3, message: 'wrong', details }, { 'x-request-id': 'r-9' })];
    const { message } = await failed(client.get('/things'));
    expect(message).to.equal('GET /things answered 400: wrong (request r-9)\n  field a.b: no\n  field c');
    steps = [answer(400, { detail: 'bad', errors: [{ field: 'from', description: 'no position' }, 7] })];
    expect((await failed(client.get('/y'))).message).to.match(
      /answered 400: bad\n {2}field from: no position$/,
    );
  });

  it('reads after its own writes, on whichever instance', async () => {
    steps = [answer(200, {}, { 'x-ledger-position': 's.7' })];
    await client.send('POST', '/x', {});
    await client.get('/x');
    expect(seen.map(({ minimum }) => minimum)).to.deep.equal([undefined, 's.7']);
  });

  it('tells the tag of what it read', async () => {
    steps = [answer(200, { id: '1' }, { etag: '"hub-3"' })];
    expect(await client.tagged('/x')).to.deep.equal({ value: { id: '1' }, etag: '"hub-3"' });
    expect(await client.tagged('/x')).to.deep.equal({ value: { done: true } });
  });
});
