import { create, toBinary, type MessageInitShape } from '@bufbuild/protobuf';
import { ConsoleRefused, type ConnectConsole, type ConsoleTransport } from '../app/consoles/console-line.ts';
import { CONSOLE_ENDS, type ConsoleEnd } from '../domain/consoles.ts';
import { HttpBodySchema } from '../gen/google/api/httpbody_pb.ts';
import {
  ConsoleConnectionState as State,
  ConsoleProxy,
  ConsoleProxyConnectResponseSchema,
  type ConsoleProxyConnectRequest,
} from '../gen/osac/public/v1/console_proxy_pb.ts';
import { JsonWebKeySet } from '../gen/osac/public/v1/json_web_key_set_pb.ts';
import { unauthenticated, unavailable } from '../http/errors.ts';
import type { Exchange } from '../http/exchange.ts';
import { consoleRefusal } from '../http/osac/console-sessions.ts';
import { readMetadata, type CallServices } from '../http/osac/served.ts';
import type { MessageSink } from '../http/osac/service-table.ts';
import { gone } from './intake.ts';
import { pathOf, type GrpcMethod, type ReadRequest } from './method.ts';

/** `osac.public.v1.JsonWebKeySet`, for anybody (OSAC): `/.well-known/jwks.json` as bytes of its type. */
export const keySetMethods = (
  keySet: () => Promise<string>,
  { admission }: Pick<CallServices, 'admission'>,
): readonly GrpcMethod[] => {
  const desc = JsonWebKeySet.method.get;
  return [
    {
      desc,
      verb: 'GET',
      serve: async (exchange, read) => {
        exchange.method = pathOf(desc);
        admission?.stranger(exchange);
        await read();
        const body = { contentType: 'application/json', data: Buffer.from(await keySet()) };
        return { message: toBinary(HttpBodySchema, create(HttpBodySchema, body)), headers: {} };
      },
    },
  ];
};

/** `osac.public.v1.ConsoleProxy`: a machine's console as two streams of bytes. The ticket is the only credential. */
export const consoleMethods = (
  connect: ConnectConsole,
  { admission }: Pick<CallServices, 'admission'>,
): readonly GrpcMethod[] => {
  const desc = ConsoleProxy.method.connect;
  return [
    {
      desc,
      verb: 'GET',
      talks: true,
      open: async (exchange, read, sink) => {
        exchange.method = pathOf(desc);
        admission?.stranger(exchange);
        const ticket = ticketOf(exchange);
        try {
          const end = await connect(ticket, transportOf(exchange, read, sink), {
            ...readMetadata(exchange, exchange.method),
            via: 'grpc',
            signal: exchange.signal(),
          });
          tellEnd(end, sink);
        } catch (error) {
          throw error instanceof ConsoleRefused ? consoleRefusal(error) : error;
        }
      },
    },
  ];
};

/** OSAC's words. Throws ApiError. */
const ticketOf = ({ request }: Exchange): string => {
  const { authorization } = request.headers;
  if (authorization === undefined) throw unauthenticated('missing authorization metadata', false);
  const [, ticket] = /^bearer +(\S+)$/i.exec(authorization) ?? [];
  if (ticket === undefined)
    throw unauthenticated("invalid ticket: 'authorization' must be 'Bearer <ticket>'", true);
  return ticket;
};

const response = (
  payload: NonNullable<MessageInitShape<typeof ConsoleProxyConnectResponseSchema>['payload']>,
): Uint8Array =>
  toBinary(ConsoleProxyConnectResponseSchema, create(ConsoleProxyConnectResponseSchema, { payload }));

const status = (state: State, message = ''): Uint8Array =>
  response({ case: 'status', value: { state, message } });

const transportOf = (exchange: Exchange, read: ReadRequest, sink: MessageSink): ConsoleTransport => {
  const written = writer(exchange, sink);
  return {
    incoming: inputs(read),
    send: (data) => written(response({ case: 'output', value: { data } })),
    connected: () => void sink.write([status(State.CONNECTED)]),
  };
};

const inputs = async function* (read: ReadRequest): AsyncGenerator<Uint8Array> {
  for (;;) {
    const message = (await read()) as ConsoleProxyConnectRequest | undefined;
    if (message === undefined) return;
    if (message.input !== undefined && message.input.data.byteLength > 0) yield message.input.data;
  }
};

/** One message after the other: the next once all has left. */
const writer = ({ response: answer }: Exchange, sink: MessageSink) => {
  let fail: ((error: Error) => void) | undefined;
  answer.once('close', () => fail?.(gone()));
  return (message: Uint8Array): Promise<void> =>
    new Promise((resolve, reject) => {
      if (answer.destroyed) return reject(gone());
      if (sink.write([message])) return resolve();
      fail = reject;
      sink.onDrain(resolve);
    });
};

/** Ends after which a client need not come back: OSAC's tries again after an error, and only then. */
const OVER: readonly ConsoleEnd[] = ['left', 'closed', 'replaced', 'limit', 'stopped', 'deleted'];

const tellEnd = (end: ConsoleEnd, sink: MessageSink): void => {
  const why = CONSOLE_ENDS[end];
  const isOver = OVER.includes(end);
  sink.write([status(isOver ? State.DISCONNECTED : State.ERROR, why)]);
  if (isOver) sink.end();
  else sink.end(end === 'unauthorized' ? unauthenticated(why, true) : unavailable(why, 'CONSOLE_LOST', 1));
};
