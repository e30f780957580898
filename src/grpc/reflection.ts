import { create, toBinary, type DescFile, type DescMessage, type MessageInitShape } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import {
  ServerReflection,
  ServerReflectionResponseSchema,
  type ServerReflectionRequest,
} from '../gen/grpc/reflection/v1/reflection_pb.ts';
import { denied } from '../http/errors.ts';
import { admitted } from '../http/limits/admission.ts';
import type { MessageSink } from '../http/osac/service-table.ts';
import type { CallServices } from '../http/osac/served.ts';
import { pathOf, type GrpcMethod, type StreamMethod } from './method.ts';

export type ReflectionServices = {
  /** The methods beside reflection itself. */
  readonly methods: readonly GrpcMethod[];
  /** True: anybody may ask; else admins alone. */
  readonly anonymous: boolean;
  readonly calls: CallServices;
};

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse']>;

const NOT_FOUND = 5;
const UNIMPLEMENTED = 12;
/** The same messages under the name that older tools ask for. */
const ALPHA = 'grpc.reflection.v1alpha.ServerReflection';

/** Server reflection, from the descriptors of what is offered. */
export const reflectionMethods = ({
  methods,
  anonymous,
  calls,
}: ReflectionServices): readonly StreamMethod[] => {
  const desc = ServerReflection.method.serverReflectionInfo;
  const descriptors = methods.map((method) => method.desc.parent);
  const services = [
    ...new Set([...descriptors, ServerReflection].map(({ typeName }) => typeName)),
  ].toSorted();
  let known: Known | undefined;

  const open: StreamMethod['open'] = async (exchange, read, sink) => {
    exchange.method = pathOf(desc);
    if (!anonymous) {
      const principal = await admitted(exchange, calls, { listens: true });
      if (!principal.admin) throw denied();
    } else calls.admission?.stranger(exchange);
    known ??= filesOf(new Set([...descriptors, ServerReflection].map(({ file }) => file)));
    let asked = (await read()) as ServerReflectionRequest | undefined;
    sink.head();
    while (asked !== undefined) {
      const response = create(ServerReflectionResponseSchema, {
        validHost: asked.host,
        originalRequest: asked,
        messageResponse: answerTo(asked, services, known),
      });
      await written(sink, toBinary(ServerReflectionResponseSchema, response));
      asked = (await read()) as ServerReflectionRequest | undefined;
    }
    sink.end();
  };
  const alpha = { ...desc, parent: { ...desc.parent, typeName: ALPHA } } as typeof desc;
  return [desc, alpha].map((each) => ({ desc: each, verb: 'GET', open }));
};

const written = (sink: MessageSink, message: Uint8Array): Promise<void> =>
  sink.write([message]) ? Promise.resolve() : new Promise((resolve) => sink.onDrain(resolve));

type Known = {
  readonly byName: ReadonlyMap<string, DescFile>;
  readonly bySymbol: ReadonlyMap<string, DescFile>;
};

const filesOf = (roots: ReadonlySet<DescFile>): Known => {
  const byName = new Map<string, DescFile>();
  const bySymbol = new Map<string, DescFile>();
  const addMessage = (message: DescMessage): void => {
    bySymbol.set(message.typeName, message.file);
    for (const field of message.fields) bySymbol.set(`${message.typeName}.${field.name}`, message.file);
    for (const inner of message.nestedEnums) bySymbol.set(inner.typeName, message.file);
    for (const inner of message.nestedMessages) addMessage(inner);
  };
  const add = (file: DescFile): void => {
    if (byName.has(file.proto.name)) return;
    byName.set(file.proto.name, file);
    for (const service of file.services) {
      bySymbol.set(service.typeName, file);
      for (const method of service.methods) bySymbol.set(`${service.typeName}.${method.name}`, file);
    }
    for (const message of file.messages) addMessage(message);
    for (const each of file.enums) bySymbol.set(each.typeName, file);
    for (const needed of file.dependencies) add(needed);
  };
  for (const file of roots) add(file);
  return { byName, bySymbol };
};

const answerTo = (
  { messageRequest }: ServerReflectionRequest,
  services: readonly string[],
  known: Known,
): Answer => {
  switch (messageRequest.case) {
    case 'listServices':
      return { case: 'listServicesResponse', value: { service: services.map((name) => ({ name })) } };
    case 'fileByFilename':
      return fileAnswer(known.byName.get(messageRequest.value), messageRequest.value);
    case 'fileContainingSymbol':
      return fileAnswer(known.bySymbol.get(messageRequest.value), messageRequest.value);
    case 'fileContainingExtension':
      return refusal(NOT_FOUND, 'nothing here is extended');
    case 'allExtensionNumbersOfType':
      return {
        case: 'allExtensionNumbersResponse',
        value: { baseTypeName: messageRequest.value, extensionNumber: [] },
      };
    default:
      return refusal(UNIMPLEMENTED, 'this is no question that reflection answers');
  }
};

const refusal = (errorCode: number, errorMessage: string): Answer => ({
  case: 'errorResponse',
  value: { errorCode, errorMessage },
});

/** A file with all that it needs, so that nobody has to ask again. */
const fileAnswer = (file: DescFile | undefined, asked: string): Answer => {
  if (file === undefined) return refusal(NOT_FOUND, `'${asked.slice(0, 200)}' is not known here`);
  const needed = new Set<DescFile>();
  const add = (one: DescFile): void => {
    if (needed.has(one)) return;
    needed.add(one);
    for (const other of one.dependencies) add(other);
  };
  add(file);
  return {
    case: 'fileDescriptorResponse',
    value: {
      fileDescriptorProto: [...needed].map(({ proto }) => toBinary(FileDescriptorProtoSchema, proto)),
    },
  };
};
