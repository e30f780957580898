import { constants, type OutgoingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { AnswerSide, Exchange } from '../http/exchange.ts';

/** The answer of one call on its stream of HTTP/2, in whichever protocol. */
export type StreamAnswer = AnswerSide & {
  readonly stream: ServerHttp2Stream;
  /** What was set with `setHeader`. */
  readonly headers: Readonly<Record<string, string>>;
  /** The same as HTTP would answer, for log and metrics. */
  statusCode: number;
  /** Answers what is no call at all: by HTTP's own status. */
  readonly plain: (status: number) => void;
};

export type StreamExchange = Exchange & { readonly response: StreamAnswer };

export const openAnswer = (stream: ServerHttp2Stream): StreamAnswer => {
  const headers: Record<string, string> = {};
  return {
    stream,
    headers,
    statusCode: 200,
    get closed() {
      return stream.destroyed || stream.closed;
    },
    get destroyed() {
      return stream.destroyed || stream.closed || stream.aborted;
    },
    get headersSent() {
      return stream.headersSent;
    },
    setHeader: (name, value) => {
      headers[name] = value;
    },
    once: (event, listener) => stream.once(event, listener),
    plain(status) {
      if (stream.destroyed || stream.closed) return;
      this.statusCode = status;
      if (stream.headersSent) return stream.close(constants.NGHTTP2_INTERNAL_ERROR);
      stream.respond({ ...headers, ':status': status } satisfies OutgoingHttpHeaders, { endStream: true });
      dropRest(stream);
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

/**
 * Counts what waits to be read, and cuts off a caller who takes none of it. `read` is called once all has left, or the
 * caller is gone.
 */
export const boundReader = (
  { response, slowReaderMs, holdUnread }: StreamExchange,
  read?: () => void,
): void => {
  const { stream } = response;
  if (stream.writableLength === 0 || stream.destroyed || stream.closed) return read?.();
  const release = holdUnread?.(stream.writableLength);
  // Without a fault it would be closed only once everything has been read.
  const cut = (): void => stream.close(constants.NGHTTP2_CANCEL);
  const done = (): void => {
    stream.off('drain', done).off('close', done);
    stream.setTimeout(0, cut);
    release?.();
    read?.();
  };
  stream.once('drain', done).once('close', done);
  stream.setTimeout(slowReaderMs, cut);
};
