import { fromBinary } from '@bufbuild/protobuf';
import {
  Client,
  Metadata,
  type CallOptions,
  type ClientDuplexStream,
  type StatusObject,
} from '@grpc/grpc-js';
import {
  ConsoleConnectionState as State,
  ConsoleProxyConnectResponseSchema,
  type ConsoleProxyConnectResponse,
} from '../../../src/gen/osac/public/v1/console_proxy_pb.ts';
import { eventually } from '../eventually.ts';
import { encodeRequest } from './caller.ts';

const NAMES = new Map<number, string>(Object.entries(State).map(([name, value]) => [Number(value), name]));
const PATH = '/osac.public.v1.ConsoleProxy/Connect';

/** A console as a client of gRPC sees it. */
export const openGrpcConsole = (client: Client, ticket: string | undefined, options: CallOptions = {}) => {
  const metadata = new Metadata();
  if (ticket !== undefined) metadata.set('authorization', `Bearer ${ticket}`);
  const call: ClientDuplexStream<Uint8Array, ConsoleProxyConnectResponse> = client.makeBidiStreamRequest(
    PATH,
    (data: Uint8Array) => encodeRequest(PATH, { input: { data: Buffer.from(data).toString('base64') } }),
    (bytes) => fromBinary(ConsoleProxyConnectResponseSchema, bytes),
    metadata,
    options,
  );
  const shown: Uint8Array[] = [];
  const states: string[] = [];
  let end: StatusObject | undefined;
  call
    .on('data', ({ payload }: ConsoleProxyConnectResponse) => {
      if (payload.case === 'output') shown.push(payload.value.data);
      if (payload.case === 'status')
        states.push(`${NAMES.get(payload.value.state)} ${payload.value.message}`.trim());
    })
    .on('status', (status: StatusObject) => (end = status))
    .on('error', () => undefined);
  return {
    call,
    states,
    shown: (): string => Buffer.concat(shown).toString('latin1'),
    received: (): number => shown.reduce((sum, { byteLength }) => sum + byteLength, 0),
    connected: () =>
      eventually(
        () => `connected: ${JSON.stringify(end)}`,
        () => states.includes('CONNECTED'),
      ),
    /** Waits, bounded, until the far side ended the call. */
    ended: async (): Promise<StatusObject> => {
      await eventually('the end of the call', () => end !== undefined);
      return end as StatusObject;
    },
  };
};
