import type { Exchange } from '../http/exchange.ts';
import type { MessageSink } from '../http/osac/service-table.ts';
import type { GrpcAnswer } from './answer.ts';
import { FINE, statusOf } from './status.ts';

/** Milliseconds that the caller gets to take the last bytes of an answer that has ended. */
const LINGER_MS = 5_000;

/** The messages of an answer that goes on, on its stream of HTTP/2. */
export const sinkOf = (exchange: Exchange & { readonly response: GrpcAnswer }): MessageSink => {
  const { response } = exchange;
  const { stream } = response;
  return {
    head: response.head,
    backlog: () => stream.writableLength,
    write: response.write,
    onDrain: (listener) => void stream.once('drain', listener),
    end: (error) => {
      if (error !== undefined) response.statusCode = error.status;
      response.end(error === undefined ? FINE : statusOf(error, exchange));
      if (!stream.destroyed) stream.setTimeout(LINGER_MS, () => stream.close());
    },
  };
};
