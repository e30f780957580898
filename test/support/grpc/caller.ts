import { createRegistry, fromBinary, fromJson, toBinary, toJson, type DescMethod } from '@bufbuild/protobuf';
import {
  file_google_protobuf_duration,
  file_google_protobuf_timestamp,
  file_google_protobuf_wrappers,
} from '@bufbuild/protobuf/wkt';
import {
  Client,
  credentials,
  Metadata,
  status as Code,
  type CallOptions,
  type StatusObject,
} from '@grpc/grpc-js';
import { nameNoAddresses } from '../../../src/adapters/event-store/eventstoredb/server-name.ts';
import { KINDS } from '../../../src/gen/kinds.ts';
import { files } from '../../../src/gen/osac/files.ts';
import { file_google_rpc_error_details } from '../../../src/gen/google/rpc/error_details_pb.ts';
import { StatusSchema } from '../../../src/gen/google/rpc/status_pb.ts';
import { file_grpc_health_v1_health } from '../../../src/gen/grpc/health/v1/health_pb.ts';
import { file_grpc_reflection_v1_reflection } from '../../../src/gen/grpc/reflection/v1/reflection_pb.ts';
import { ERRORS } from '../../../src/http/errors.ts';
import type { Caller, Json, Reply } from '../http/caller.ts';

export { Code };

// Services of tests are called at 127.0.0.1.
nameNoAddresses();

const services = createRegistry(...files, file_grpc_health_v1_health, file_grpc_reflection_v1_reflection);
const registry = createRegistry(
  file_google_protobuf_wrappers,
  file_google_protobuf_timestamp,
  file_google_protobuf_duration,
  file_google_rpc_error_details,
);

/** Its descriptor by its path, `/osac.public.v1.Clusters/Get`. */
export const methodAt = (path: string): DescMethod => {
  const [, service = '', name = ''] = path.split('/');
  const method = services.getService(service)?.methods.find((one) => one.name === name);
  if (method === undefined) throw new Error(`no method ${path}`);
  return method;
};

export const encodeRequest = (path: string, request: object): Buffer => {
  const { input } = methodAt(path);
  return Buffer.from(toBinary(input, fromJson(input, request as never, { registry })));
};

export type GrpcReply = {
  readonly code: number;
  readonly message: string;
  readonly json: Json;
  readonly details: readonly Json[];
  /** Headers and trailers. */
  readonly metadata: (name: string) => string | undefined;
};

type GrpcOptions = Pick<CallOptions, 'deadline'> & { readonly headers?: Readonly<Record<string, string>> };

export type GrpcCaller = {
  readonly client: Client;
  readonly call: (path: string, request?: object, options?: GrpcOptions) => Promise<GrpcReply>;
  /** The answers of a stream until it ends, or `enough` says so. */
  readonly stream: (
    path: string,
    request: object,
    enough: (answers: readonly Json[]) => boolean,
    options?: GrpcOptions,
  ) => Promise<GrpcReply & { readonly answers: readonly Json[] }>;
  /** One question of server reflection, `v1` or `v1alpha`. */
  readonly reflect: (version: string, question: object) => Promise<Json>;
  readonly close: () => void;
};

/** A client of `@grpc/grpc-js`; requests and answers are documents in the JSON form of protobuf. */
export const grpcCaller = (
  address: string,
  token?: string,
  channel: object = {},
  security = credentials.createInsecure(),
): GrpcCaller => {
  const client = new Client(address, security, channel);
  const metadataOf = ({ headers = {} }: GrpcOptions): Metadata => {
    const metadata = new Metadata();
    if (token !== undefined) metadata.set('authorization', `Bearer ${token}`);
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    return metadata;
  };
  const coding = (path: string) => {
    const { output } = methodAt(path);
    return {
      encode: (request: object) => encodeRequest(path, request),
      decode: (bytes: Buffer): Json =>
        toJson(output, fromBinary(output, bytes), { registry, useProtoFieldName: true }) as unknown as Json,
    };
  };
  const reply = (json: Json, ended: StatusObject, headers: Metadata | undefined): GrpcReply => ({
    code: ended.code,
    message: ended.details,
    json,
    details: detailsOf(ended.metadata),
    metadata: (name) => [ended.metadata, headers].flatMap((each) => each?.get(name) ?? []).map(String)[0],
  });
  return {
    client,
    call: (path, request = {}, options = {}) =>
      new Promise((resolve) => {
        const { encode, decode } = coding(path);
        let [json, headers]: [Json, Metadata | undefined] = [{}, undefined];
        client
          .makeUnaryRequest(
            path,
            encode,
            decode,
            request,
            metadataOf(options),
            options.deadline === undefined ? {} : { deadline: options.deadline },
            (_error, answer) => (json = answer ?? {}),
          )
          .on('metadata', (metadata) => (headers = metadata))
          .on('status', (ended) => setImmediate(() => resolve(reply(json, ended, headers))));
      }),
    stream: (path, request, enough, options = {}) =>
      new Promise((resolve) => {
        const { encode, decode } = coding(path);
        const answers: Json[] = [];
        let headers: Metadata | undefined;
        const stream = client.makeServerStreamRequest(path, encode, decode, request, metadataOf(options));
        stream
          .on('data', (answer: Json) => {
            answers.push(answer);
            if (enough(answers)) stream.cancel();
          })
          .on('metadata', (metadata) => (headers = metadata))
          .on('error', () => undefined)
          .on('status', (ended: StatusObject) => resolve({ ...reply({}, ended, headers), answers }));
      }),
    reflect: (version, question) =>
      new Promise((resolve, reject) => {
        const name = 'ServerReflection/ServerReflectionInfo';
        const { encode, decode } = coding(`/grpc.reflection.v1.${name}`);
        const path = `/grpc.reflection.${version}.${name}`;
        const stream = client.makeBidiStreamRequest(path, encode, decode, metadataOf({}));
        stream.on('data', (answer: Json) => resolve(answer)).on('error', reject);
        stream.write(question);
        stream.end();
      }),
    close: () => client.close(),
  };
};

/** The details of the status that a call ended with. */
export const detailsOf = (metadata: Metadata): readonly Json[] => {
  const [bytes] = metadata.get('grpc-status-details-bin');
  if (!(bytes instanceof Buffer)) return [];
  const json = toJson(StatusSchema, fromBinary(StatusSchema, bytes), { registry, useProtoFieldName: true });
  return ((json as unknown as Json)['details'] ?? []) as unknown as readonly Json[];
};

/** The status that HTTP has for what gRPC answered, told apart by the reason. */
const httpStatusOf = ({ code, metadata }: GrpcReply): number => {
  if (code === Code.OK) return 200;
  const reason = metadata('x-ledger-reason') ?? '';
  const [, exact] = Object.entries(ERRORS).find(([name]) => name === reason) ?? [];
  return exact?.http ?? Object.values(ERRORS).find((error) => error.code === code)?.http ?? 0;
};

const METHODS: Readonly<Record<string, string>> = { POST: 'Create', PATCH: 'Update', DELETE: 'Delete' };

/**
 * Calls of REST made over gRPC: so that one script is played over both. Of the query it knows `update_mask`, `lock` and
 * what lists take.
 */
export const asRest =
  (grpc: Pick<GrpcCaller, 'call'>): Caller =>
  async (verb, url, body, headers): Promise<Reply> => {
    const { pathname, searchParams } = new URL(url, 'http://any');
    const [, surface = '', collection = '', id] =
      /^\/api\/(fulfillment|private)\/v1\/([a-z_]+)(?:\/([^/]+))?$/.exec(pathname) ?? [];
    const kind = KINDS.find((one) => one.collection === collection);
    if (kind === undefined) throw new Error(`no kind at ${url}`);
    const method = METHODS[verb] ?? (id === undefined ? 'List' : 'Get');
    const path = `/osac.${surface === 'private' ? 'private' : 'public'}.v1.${kind.service}/${method}`;
    const named = id === undefined ? {} : { id: decodeURIComponent(id) };
    const object = method === 'Update' ? { ...(body as object), ...named } : body;
    const mask = searchParams.get('update_mask');
    const request = {
      ...(method === 'List' ? Object.fromEntries(searchParams) : {}),
      ...(method === 'Create' || method === 'Update' ? { object } : named),
      ...(mask === null ? {} : { update_mask: mask }),
      ...(searchParams.get('lock') === 'true' ? { lock: true } : {}),
    };
    const reply = await grpc.call(path, request, headers === undefined ? {} : { headers });
    const json =
      reply.code === Code.OK
        ? method === 'List'
          ? reply.json
          : (reply.json['object'] ?? {})
        : { message: reply.message };
    const shown = new Headers();
    for (const name of [
      'etag',
      'x-ledger-reason',
      'x-ledger-position',
      'x-ledger-deleted-at',
      'x-request-id',
    ]) {
      const value = reply.metadata(name);
      if (value !== undefined) shown.set(name, value);
    }
    return { status: httpStatusOf(reply), headers: shown, text: JSON.stringify(json), json: json as Json };
  };
