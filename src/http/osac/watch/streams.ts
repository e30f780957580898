import type { Exchange } from '../../exchange.ts';
import type { Surface } from '../messages.ts';
import type { Asked, Watches } from './opening.ts';
import type { Sink } from './watcher.ts';

/** `Events/Watch` as a method of gRPC: what answers it, wherever it is listened to. */
export type WatchStream = {
  readonly surface: Surface;
  readonly method: string;
  /** Resolves once the answer has begun. Throws ApiError, see `Watches`. */
  readonly open: (
    exchange: Exchange,
    request: { readonly filter?: string },
    sink: Sink & {
      /** Sends the headers at once: the first event may be far away. */ readonly head: () => void;
    },
  ) => Promise<void>;
};

/** Metadata that names the event which the watch resumes after, as `from` does over HTTP. */
const FROM = 'x-ledger-from';

export const watchStreams = ({ open }: Watches): readonly WatchStream[] =>
  (['public', 'private'] as const).map((surface) => ({
    surface,
    method: 'Events.Watch',
    open: async (exchange, { filter = '' }, sink) => {
      const { request, response } = exchange;
      const read = (): Asked => {
        const text = request.headers[FROM];
        const from = typeof text === 'string' && text !== '' ? { text, name: FROM } : undefined;
        return { filterText: filter.trim(), from };
      };
      const opened = await open(exchange, surface, read);
      if (opened === undefined) return;
      if (opened.startId !== undefined) response.setHeader('x-ledger-watch-id', opened.startId);
      sink.head();
      opened.start('grpc', sink);
    },
  }));
