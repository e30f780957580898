import {
  create,
  createRegistry,
  toBinary,
  type DescFile,
  type MessageInitShape,
  type Registry,
} from '@bufbuild/protobuf';
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
    known ??= knownOf([...descriptors, ServerReflection].map(({ file }) => file));
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

type Known = { readonly files: ReadonlySet<DescFile>; readonly types: Registry };

/** Files with all that they need, so that nobody has to ask again. */
const withNeeded = (files: Iterable<DescFile>, all = new Set<DescFile>()): ReadonlySet<DescFile> => {
  for (const file of files)
    if (!all.has(file)) {
      all.add(file);
      withNeeded(file.dependencies, all);
    }
  return all;
};

const knownOf = (roots: Iterable<DescFile>): Known => {
  const files = withNeeded(roots);
  return { files, types: createRegistry(...files) };
};

/** The file of a message, an enum or a service, or of a field or method of these. */
const fileOf = (symbol: string, types: Registry): DescFile | undefined => {
  const dot = symbol.lastIndexOf('.');
  const [type, member] = [types.get(symbol.slice(0, dot)), symbol.slice(dot + 1)];
  const members = type?.kind === 'message' ? type.fields : type?.kind === 'service' ? type.methods : [];
  return (types.get(symbol) ?? members.find(({ name }) => name === member)?.parent)?.file;
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
      return fileAnswer(
        [...known.files].find(({ proto }) => proto.name === messageRequest.value),
        messageRequest.value,
      );
    case 'fileContainingSymbol':
      return fileAnswer(fileOf(messageRequest.value, known.types), messageRequest.value);
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

const fileAnswer = (file: DescFile | undefined, asked: string): Answer =>
  file === undefined
    ? refusal(NOT_FOUND, `'${asked.slice(0, 200)}' is not known here`)
    : {
        case: 'fileDescriptorResponse',
        value: {
          fileDescriptorProto: [...withNeeded([file])].map(({ proto }) =>
            toBinary(FileDescriptorProtoSchema, proto),
          ),
        },
      };
