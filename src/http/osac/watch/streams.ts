import type { StreamService } from '../service-table.ts';
import type { Asked, Watches } from './opening.ts';

/** Metadata that names the event which the watch resumes after, as `from` does over HTTP. */
const FROM = 'x-ledger-from';

/** `Events/Watch` as methods of gRPC: what answers them, wherever that is listened to. */
export const watchStreams = ({ open }: Watches): readonly StreamService[] =>
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
