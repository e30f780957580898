import { fromBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { expect } from 'chai';
import { connect } from 'node:net';
import { ServerReflectionResponseSchema } from '../../../src/gen/grpc/reflection/v1/reflection_pb.ts';
import { IdentityProvidersCreateResponseSchema } from '../../../src/gen/osac/private/v1/identity_providers_pb.ts';
import { eventually } from '../../support/eventually.ts';
import { Code, encodeRequest, methodAt } from '../../support/grpc/caller.ts';
import { framed, rawGrpc, rawRequest } from '../../support/grpc/raw-client.ts';
import { callerOf, seedCatalogue, startTestService, type TestService } from '../../support/http/service.ts';

const IMAGES = '/osac.private.v1.DiskImages/Create';
const PROVIDERS = '/osac.private.v1.IdentityProviders/Create';
const HOST_TYPES = '/osac.private.v1.HostTypes/Create';
const GET = '/osac.private.v1.HostTypes/Get';
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';

type Told = { readonly status: string; readonly message: string; readonly body: Buffer };

/** Bytes that are protobuf, and that no client library would make of these messages. */
describe('messages that no client of ours makes', () => {
  let service: TestService;
  let token: string;
  let raw: ReturnType<typeof rawGrpc>;
  before(async () => {
    service = await startTestService();
    token = await service.token({ user: 'root', admin: true });
    await seedCatalogue(callerOf(service, token));
    raw = rawGrpc(service.grpcAddress);
  });
  after(async () => {
    raw.close();
    await service.close();
  });

  const call = async (path: string, message: Uint8Array, headers: object = {}): Promise<Told> => {
    const reply = await raw.call({
      path,
      body: framed(message),
      headers: { authorization: `Bearer ${token}`, ...headers },
    });
    return {
      status: reply.headers['grpc-status'] ?? '',
      message: decodeURIComponent(reply.headers['grpc-message'] ?? ''),
      body: reply.body.subarray(5),
    };
  };
  /** Field numbers on the way to a field of the request. */
  const numbersOf = (path: string, names: readonly string[]): readonly number[] => {
    let fields = methodAt(path).input.fields;
    return names.map((name) => {
      const field = fields.find((one) => one.name === name);
      if (field === undefined) throw new Error(`no field ${name}`);
      fields = field.message?.fields ?? [];
      return field.number;
    });
  };
  /** A request, and behind it what these fields hold besides: a message that comes in parts is one message. */
  const behind = (path: string, request: object, names: readonly string[], content: Uint8Array): Buffer =>
    Buffer.concat([
      encodeRequest(path, request),
      numbersOf(path, names).reduceRight<Uint8Array>(
        (inner, number) => new BinaryWriter().tag(number, WireType.LengthDelimited).bytes(inner).finish(),
        content,
      ),
    ]);
  const numbered = (number: number, value: number): Uint8Array =>
    new BinaryWriter().tag(number, WireType.Varint).int32(value).finish();

  it('a number that an enum does not have is refused by its field', async () => {
    const spec = { source_ref: 'quay.example/i', architecture: ['ARCHITECTURE_AMD64'] };
    const request = { object: { metadata: { name: 'odd' }, spec } };
    const [, , sourceType = 0] = numbersOf(IMAGES, ['object', 'spec', 'source_type']);
    const send = (value: number): Promise<Told> =>
      call(IMAGES, behind(IMAGES, request, ['object', 'spec'], numbered(sourceType, value)));
    for (const value of [77, -1, 2 ** 31 - 1]) {
      const told = await send(value);
      expect(told.status, told.message).to.equal(String(Code.INVALID_ARGUMENT));
      expect(told.message).to.include('source_type');
    }
    const good = await send(1);
    expect(good.status, good.message).to.equal(String(Code.OK));
  });

  it('of a oneof that comes twice the last member counts; two parts of one member are one', async () => {
    const text = (number: number, value: string): BinaryWriter =>
      new BinaryWriter().tag(number, WireType.LengthDelimited).string(value);
    const [symbol = 0] = numbersOf(REFLECTION, ['file_containing_symbol']);
    const [list = 0] = numbersOf(REFLECTION, ['list_services']);
    for (const [first, last, answer] of [
      [symbol, list, 'listServicesResponse'],
      [list, symbol, 'errorResponse'],
    ] as const) {
      const asked = Buffer.concat([text(first, 'no.Such').finish(), text(last, 'no.Such').finish()]);
      const told = await call(REFLECTION, asked);
      expect(told.status, told.message).to.equal(String(Code.OK));
      const { messageResponse } = fromBinary(ServerReflectionResponseSchema, told.body);
      expect(messageResponse.case).to.equal(answer);
    }
    const spec = { title: 'T', oidc: { issuer: 'https://idp.example' } };
    const request = { object: { metadata: { name: 'twice', tenant: 't1' }, spec } };
    const path = ['object', 'spec', 'oidc'];
    const [, , , id = 0] = numbersOf(PROVIDERS, [...path, 'client_id']);
    const [, , , secret = 0] = numbersOf(PROVIDERS, [...path, 'client_secret']);
    const more = Buffer.concat([text(id, 'later').finish(), text(secret, 's').finish()]);
    const made = await call(PROVIDERS, behind(PROVIDERS, request, path, more));
    expect(made.status, made.message).to.equal(String(Code.OK));
    const { config } = fromBinary(IdentityProvidersCreateResponseSchema, made.body).object?.spec ?? {};
    expect(config?.value).to.include({ issuer: 'https://idp.example', clientId: 'later' });
  });

  it('fields that nobody knows are dropped, at every depth', async () => {
    const unknown = new BinaryWriter()
      .tag(29_999, WireType.LengthDelimited)
      .string('kept by nobody')
      .finish();
    const request = { object: { id: 'unknown-fields', title: 'T' } };
    const made = await call(HOST_TYPES, behind(HOST_TYPES, request, ['object'], unknown));
    expect(made.status, made.message).to.equal(String(Code.OK));
    const read = await call(GET, encodeRequest(GET, { id: 'unknown-fields' }));
    expect(read.status, read.message).to.equal(String(Code.OK));
    for (const { body } of [made, read]) expect(body.includes('kept by nobody')).to.equal(false);
  });

  it('metadata that is no UTF-8, or no base64 where it should be, harms nobody', async () => {
    const [host = '', port = ''] = service.grpcAddress.split(':');
    const refused = (): number =>
      service.logger.lines.filter(({ fields }) => 'status' in fields && fields['status'] === 401).length;
    for (const [name, value] of [
      ['x-request-id', Buffer.from([0xff, 0xfe, 0xc3, 0x28])],
      ['authorization', Buffer.from([0x42, 0xe9, 0xff])],
      ['x-own-bin', Buffer.from('not base64 at all!?')],
    ] as const) {
      const before = refused();
      const socket = connect(Number(port), host).on('error', () => undefined);
      socket.write(rawRequest(GET, [[name, value]], framed(encodeRequest(GET, { id: 'nope' }))));
      await eventually(`UNAUTHENTICATED with ${name}`, () => refused() > before);
      socket.destroy();
    }
    const good = await call(GET, encodeRequest(GET, { id: 'nope' }));
    expect(good.status, good.message).to.equal(String(Code.NOT_FOUND));
    expect(service.logger.lines.filter(({ level }) => level === 'error')).to.deep.equal([]);
  });
});
