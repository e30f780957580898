import type { ServerHttp2Stream } from 'node:http2';
import type { MessageSink } from '../http/osac/service-table.ts';
import { boundReader, dropRest, type StreamExchange } from './answer.ts';
import type { LibraryCall } from './protocol.ts';
import { DEADLINE_EXCEEDED, FINE, metadataOf, statusOf, type GrpcStatus } from './status.ts';

/** One call of gRPC, in messages. */
export type Call = {
  /** Calls back with the next message of the request; undefined: none comes. */
  readonly next: (arrived: (message: Buffer | undefined) => void) => void;
  /** Ends the call, at most once, with the last message where there is one. */
  readonly end: (status: GrpcStatus, message?: Uint8Array) => void;
  readonly sink: MessageSink;
};

export type CallOptions = {
  readonly exchange: StreamExchange;
  /** Told whenever something is sent, when it has left, and when the stream is closed. */
  readonly touched: (stream: ServerHttp2Stream) => void;
  /** Called once the library has ended the call: its deadline has passed, or a message is too large. */
  readonly cancelled: () => void;
};

export const openCall = (library: LibraryCall, { exchange, touched, cancelled }: CallOptions): Call => {
  const { response } = exchange;
  const { stream } = response;
  const tell = (): void => touched(stream);
  stream.on('drain', tell).once('finish', tell).once('close', tell);
  let arrived: ((message: Buffer | undefined) => void) | undefined;
  let ended = false;
  const isOver = (): boolean => ended || stream.destroyed || stream.closed;

  library.start({
    onReceiveMetadata: () => undefined,
    onReceiveMessage: (message: Buffer) => arrived?.(message),
    onReceiveHalfClose: () => arrived?.(undefined),
    onCancel: () => {
      if (isOver()) return;
      ended = true;
      const { 'grpc-status': code } = stream.sentTrailers ?? stream.sentHeaders;
      response.statusCode = code === DEADLINE_EXCEEDED ? 504 : 429;
      dropRest(stream);
      cancelled();
    },
  });
  const head = (): void => {
    if (!isOver() && !stream.headersSent) library.sendMetadata(metadataOf(response.headers));
  };
  const send = (message: Uint8Array): void => {
    head();
    library.sendMessage(message, () => undefined);
  };
  const end = (status: GrpcStatus, message?: Uint8Array): void => {
    if (isOver()) return;
    if (message !== undefined) send(message);
    ended = true;
    const hasTrailers = stream.headersSent;
    if (status === FINE) library.sendStatus({ code: 0, details: '' });
    else {
      const { connection: _hopByHop, ...headers } = status.headers;
      const fields = hasTrailers ? headers : { ...response.headers, ...headers };
      const { code, message: details } = status;
      library.sendStatus({ code, details: details.toWellFormed(), metadata: metadataOf(fields, status) });
    }
    tell();
    boundReader(exchange);
    // A stream that is closed before its trailers have left ends without a status: they leave in this turn.
    if (hasTrailers) stream.once('wantTrailers', () => setImmediate(dropRest, stream));
    else dropRest(stream);
  };
  return {
    next: (taken) => {
      arrived = taken;
      library.startRead();
    },
    end,
    sink: {
      head,
      backlog: () => stream.writableLength,
      write: (messages) => {
        if (isOver()) return true;
        for (const message of messages) send(message);
        tell();
        return !stream.writableNeedDrain || stream.writableLength === 0;
      },
      onDrain: (listener) => void stream.once('drain', listener),
      end: (error) => {
        if (error !== undefined) response.statusCode = error.status;
        end(error === undefined ? FINE : statusOf(error, exchange));
      },
    },
  };
};
