import { expect } from 'chai';
import { gzipSync } from 'node:zlib';
import { Code, encodeRequest, methodAt } from '../../support/grpc/caller.ts';
import { framed, rawGrpc } from '../../support/grpc/raw-client.ts';
import { callerOf, PRIVATE, startTestService, type TestService } from '../../support/http/service.ts';

const CREATE = '/osac.private.v1.HostTypes/Create';
const MOST = 5_000;
const REFUSAL = 'the request body holds more than 5000 values';

describe('requests of many values', () => {
  let service: TestService;
  let token: string;
  let raw: ReturnType<typeof rawGrpc>;
  before(async () => {
    service = await startTestService();
    token = await service.token({ user: 'root', admin: true });
    raw = rawGrpc(service.grpcAddress);
  });
  after(async () => {
    raw.close();
    await service.close();
  });

  type Told = { readonly status: string; readonly message: string };
  const authorization = (): object => ({ authorization: `Bearer ${token}` });
  const overGrpc = async (message: Uint8Array, path = CREATE): Promise<Told> => {
    const { headers } = await raw.call({
      path,
      headers: { ...authorization(), 'grpc-encoding': 'gzip' },
      body: framed(gzipSync(message), { flags: 1 }),
    });
    return {
      status: headers['grpc-status'] ?? '',
      message: decodeURIComponent(headers['grpc-message'] ?? ''),
    };
  };
  const overConnect = async (type: string, body: Uint8Array): Promise<Told> => {
    const reply = await raw.call({
      path: CREATE,
      headers: { ...authorization(), 'content-type': type },
      body,
    });
    const told = JSON.parse(
      type.endsWith('json') ? reply.body.toString() : reply.body.toString('latin1'),
    ) as {
      readonly code?: string;
      readonly message?: string;
    };
    return { status: told.code ?? '', message: told.message ?? '' };
  };

  /** As many values as REST counts: all but the list's are the only ones of their objects. */
  const withItems = (items: number): object => ({
    metadata: { finalizers: Array.from({ length: items }, () => '') },
  });

  it('are refused as REST refuses them, in every protocol', async () => {
    const large = { object: withItems(MOST + 1) };
    const rest = await callerOf(service, token)(
      'POST',
      `${PRIVATE}/host_types`,
      withItems(MOST + 1) as never,
    );
    expect([rest.status, rest.json['message']]).to.deep.equal([400, REFUSAL]);
    expect(await overGrpc(encodeRequest(CREATE, large))).to.deep.equal({
      status: String(Code.INVALID_ARGUMENT),
      message: REFUSAL,
    });
    const refused = { status: 'invalid_argument', message: REFUSAL };
    const json = Buffer.from(JSON.stringify(large));
    expect(await overConnect('application/json', json)).to.deep.equal(refused);
    expect(await overConnect('application/proto', encodeRequest(CREATE, large))).to.deep.equal(refused);
  });

  it('are refused as JSON where a field is not known, as over REST', async () => {
    const json = Buffer.from(JSON.stringify({ object: { metadata: { naem: 'x' } } }));
    const told = await overConnect('application/json', json);
    expect(told.status).to.equal('invalid_argument');
    expect(told.message).to.include('naem');
  });

  it('are taken to the same number', async () => {
    const message = encodeRequest(CREATE, { object: withItems(MOST) });
    expect((await overGrpc(message)).message).to.contain('validation failed');
  });

  it('are counted wherever they are', async () => {
    const many = (one: readonly number[]): Buffer =>
      Buffer.concat(Array.from({ length: MOST + 1 }, () => Buffer.from(one)));
    const text = (number: number, content: Uint8Array): Buffer => {
      const head = encodeLength(content.byteLength);
      return Buffer.concat([Buffer.from([(number << 3) | 2]), head, content]);
    };
    const unknown = many([0x78, 0]);
    const any = Buffer.concat([
      text(1, Buffer.from('type.googleapis.com/google.protobuf.StringValue')),
      text(2, unknown),
    ]);
    const cases: Readonly<Record<string, Buffer>> = {
      'fields that nobody knows': unknown,
      'one object again and again': many([0x0a, 0]),
      'what an Any holds': inParameter(text, any),
    };
    for (const [name, message] of Object.entries(cases))
      expect(await overGrpc(message, CLUSTER), name).to.deep.equal({
        status: String(Code.INVALID_ARGUMENT),
        message: REFUSAL,
      });
  });

  it('fields of another type hide nothing', async () => {
    // The object comes as a number by its tag, and as a message by its field.
    const hidden = Buffer.concat([Buffer.from([0x08]), encodeLength(6_000), Buffer.alloc(6_000, 0x0a)]);
    const told = await overGrpc(hidden);
    expect(told.status).to.equal(String(Code.INVALID_ARGUMENT));
    expect(told.message).to.contain('a field of another type');
  });
});

const CLUSTER = '/osac.public.v1.Clusters/Create';

const encodeLength = (bytes: number): Buffer =>
  Buffer.from(bytes < 0x80 ? [bytes] : [(bytes & 0x7f) | 0x80, ...encodeLength(bytes >>> 7)]);

/** A cluster with one parameter of its template. */
const inParameter = (text: (number: number, content: Uint8Array) => Buffer, any: Buffer): Buffer => {
  const object = methodAt(CLUSTER).input.fields.find(({ name }) => name === 'object');
  const spec = object?.message?.fields.find(({ name }) => name === 'spec');
  const parameters = spec?.message?.fields.find(({ name }) => name === 'template_parameters');
  if (object === undefined || spec === undefined || parameters === undefined)
    throw new Error('other messages');
  const entry = Buffer.concat([text(1, Buffer.from('x')), text(2, any)]);
  return text(object.number, text(spec.number, text(parameters.number, entry)));
};
