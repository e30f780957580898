import {
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptingCallInterface,
} from '@grpc/grpc-js';
import type { Http2Server, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';

/** Largest message in either direction, bytes: the default of gRPC's libraries. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

/** A call as the library has it: its messages, and how it ends. */
export type LibraryCall = ServerInterceptingCallInterface;

/** gRPC by `@grpc/grpc-js`: frames, headers, trailers, deadlines and pings of its own. */
export type Protocol = {
  /** Pings an idle connection and ends one that does not answer. */
  readonly follow: (session: ServerHttp2Session) => void;
  readonly accept: (stream: ServerHttp2Stream, carried: Carried) => LibraryCall;
};

/** What the library is told of the headers: it prints values that it cannot read, and a token may be one. */
export type Carried = { readonly 'grpc-timeout'?: string; readonly 'grpc-encoding'?: string };

export type ProtocolSettings = {
  /** Milliseconds after which the service pings. */
  readonly idleMs: number;
  /** Milliseconds in which a ping must be answered. */
  readonly answerMs: number;
};

/** The one method that the library knows: paths are looked up before, in OSAC's words. */
const ANY = '/';
const asIs = (bytes: Buffer): Buffer => bytes;
const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/**
 * The library's server listens to nothing. It is handed sessions and streams of this service's own HTTP/2, which bounds
 * headers, streams and pings; the library would not.
 */
export const createProtocol = ({ idleMs, answerMs }: ProtocolSettings): Protocol => {
  let accepted: LibraryCall | undefined;
  const server = new Server({
    'grpc.enable_channelz': 0,
    'grpc.max_receive_message_length': MAX_MESSAGE_BYTES,
    'grpc.keepalive_time_ms': idleMs,
    'grpc.keepalive_timeout_ms': answerMs,
    interceptors: [
      (_method, call) => {
        accepted = call;
        // Its own handler never begins: whoever accepts the stream starts the call.
        return new ServerInterceptingCall(call, { start: () => undefined });
      },
    ],
  });
  server.register(ANY, () => undefined, asBuffer, asIs, 'bidi');
  server.createConnectionInjector(ServerCredentials.createInsecure());
  // The injector takes sockets alone; the version is exact, and every test of gRPC passes here.
  const [inner] = (server['http2Servers'] as ReadonlyMap<Http2Server, unknown>).keys();
  if (inner === undefined) throw new TypeError('this version of @grpc/grpc-js holds its server elsewhere');
  return {
    follow: (session) => void inner.emit('session', session),
    accept: (stream, carried) => {
      accepted = undefined;
      inner.emit('stream', stream, { ':path': ANY, 'content-type': 'application/grpc', ...carried });
      if (accepted === undefined)
        throw new TypeError('this version of @grpc/grpc-js takes streams otherwise');
      return accepted;
    },
  };
};
