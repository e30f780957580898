import type { ServerResponse } from 'node:http';
import type { Timers } from '../../../app/ports.ts';
import { osacErrorBody, type ApiError } from '../../errors.ts';
import type { Framing } from './rendered-change.ts';
import type { Sink } from './watcher.ts';

export type HttpFraming = Exclude<Framing, 'grpc'>;

/** Milliseconds that the far side gets to take the last bytes of an answer that was ended. */
const LINGER_MS = 5_000;

export const httpSink = (response: ServerResponse, timers: Timers, framing: HttpFraming): Sink => ({
  backlog: () => response.writableLength,
  write: (chunks) => {
    if (response.destroyed || response.writableEnded) return true;
    const { socket } = response;
    // Handed over at once: Node would keep it until this turn is over, and then write to all watchers in one go.
    socket?.cork();
    let taken = true;
    for (const chunk of chunks) taken = response.write(chunk);
    socket?.uncork();
    return taken || response.writableLength === 0;
  },
  onDrain: (listener) => void response.once('drain', listener),
  end: (error) => {
    if (response.destroyed || response.writableEnded) return;
    const cancel = timers.after(LINGER_MS, () => response.destroy());
    response.once('close', cancel);
    response.end(endFrame(error, framing));
  },
});

/** The last line of an answer. It has no id: whoever reconnects goes on after the last event. */
export const endFrame = (error: ApiError, framing: HttpFraming): string => {
  const line = JSON.stringify({ error: osacErrorBody(error) });
  return framing === 'ndjson' ? `${line}\n` : `data: ${line}\n\n`;
};
