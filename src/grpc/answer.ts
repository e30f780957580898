import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';
import { constants } from 'node:http2';
import type { AnswerSide } from '../http/exchange.ts';
import { frameOf } from './frames.ts';
import { statusFields, type GrpcStatus } from './status.ts';

/** gRPC says how a call ended in trailers, gRPC-Web in a last frame, since browsers do not show trailers. */
export type Protocol = 'grpc' | 'grpc-web';

/** The protocol of a content type, with its sub-type in protobuf; undefined: another one. */
export const protocolOf = (contentType: string | undefined): Protocol | undefined => {
  const type = contentType?.split(';')[0]?.trim().toLowerCase();
  if (type === 'application/grpc' || type === 'application/grpc+proto') return 'grpc';
  if (type === 'application/grpc-web' || type === 'application/grpc-web+proto') return 'grpc-web';
  return undefined;
};

const CONNECT = /^application\/(connect\+)?(proto|json)\s*(;|$)/i;

/** True for the content types of Connect's own protocol. */
export const isConnect = (contentType: string | undefined): boolean => CONNECT.test(contentType ?? '');

/** The answer of one call on its stream of HTTP/2. */
export type GrpcAnswer = AnswerSide & {
  readonly stream: ServerHttp2Stream;
  readonly protocol: Protocol;
  /** What was set with `setHeader`. */
  readonly headers: Readonly<OutgoingHttpHeaders>;
  /** The same as HTTP would answer, for log and metrics. */
  statusCode: number;
  /** Sends the headers; messages follow. */
  readonly head: () => void;
  /** False: the caller takes no more now; the stream's `drain` tells when it has taken all. */
  readonly write: (frames: Uint8Array) => boolean;
  /** Ends the call, at most once, with the last frames where there are some. */
  readonly end: (status: GrpcStatus, frames?: Uint8Array) => void;
  /** Answers what is no call at all: by HTTP's own status. */
  readonly plain: (status: number) => void;
};

const WEB_TRAILERS = 0x80;

/** `touched` is told whenever something is sent, when it has left, and when the stream is closed. */
export const openAnswer = (
  stream: ServerHttp2Stream,
  protocol: Protocol,
  touched: (stream: ServerHttp2Stream) => void,
): GrpcAnswer => {
  const tell = (): void => touched(stream);
  stream.on('drain', tell).once('finish', tell).once('close', tell);
  const headers: OutgoingHttpHeaders = {};
  let trailers: Record<string, string> = {};
  let ended = false;
  /** Nothing can be sent any more: a stream that was reset is closed before it is destroyed. */
  const isOver = (): boolean => ended || stream.destroyed || stream.closed;

  const head = (): void => {
    if (stream.headersSent || stream.destroyed || stream.closed) return;
    stream.respond(
      { ':status': 200, 'content-type': `application/${protocol}`, ...headers },
      { waitForTrailers: protocol === 'grpc' },
    );
    if (protocol === 'grpc') stream.once('wantTrailers', () => stream.sendTrailers(trailers));
  };
  const withoutMessage = (fields: OutgoingHttpHeaders): void => {
    stream.respond({ ...headers, ...fields }, { endStream: true });
    dropRest(stream);
  };
  return {
    stream,
    protocol,
    headers,
    statusCode: 200,
    get closed() {
      return isOver();
    },
    get destroyed() {
      return isOver() || stream.aborted;
    },
    get headersSent() {
      return stream.headersSent;
    },
    setHeader: (name, value) => {
      headers[name] = value;
    },
    once: (event, listener) => stream.once(event, listener),
    head,
    write: (frames) => {
      if (isOver()) return true;
      const goesOn = stream.write(frames);
      tell();
      return goesOn || stream.writableLength === 0;
    },
    end: (status, frames) => {
      if (isOver()) return;
      ended = true;
      for (const [name, value] of Object.entries(status.headers))
        if (name !== 'connection') headers[name] = value;
      const fields = statusFields(status);
      if (!stream.headersSent && frames === undefined) {
        withoutMessage({ ':status': 200, 'content-type': `application/${protocol}`, ...fields });
        tell();
        return;
      }
      head();
      trailers = fields;
      if (protocol === 'grpc') {
        if (frames === undefined) stream.end();
        else stream.end(frames);
      } else {
        const last = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
        const ending = frameOf(Buffer.from(last.join('')), WEB_TRAILERS);
        stream.end(frames === undefined ? ending : Buffer.concat([frames, ending]));
      }
      tell();
      dropRest(stream);
    },
    plain: (status) => {
      if (isOver()) return;
      ended = true;
      if (stream.headersSent) stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      else withoutMessage({ ':status': status });
    },
  };
};

/** What the caller still sends is not waited for; it is told so once the answer has left. */
export const dropRest = (stream: ServerHttp2Stream): void => {
  if (stream.readableEnded) return;
  stream.resume();
  const stop = (): void => {
    if (!stream.readableEnded && !stream.closed) stream.close(constants.NGHTTP2_NO_ERROR);
  };
  if (stream.writableFinished) stop();
  else stream.once('finish', stop);
};
