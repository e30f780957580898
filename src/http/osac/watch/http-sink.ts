import type { ServerResponse } from 'node:http';
import type { Timers } from '../../../app/ports.ts';
import type { Sink } from './watcher.ts';

/** Milliseconds that the far side gets to take the last bytes of an answer that was ended. */
const LINGER_MS = 5_000;

export const httpSink = (response: ServerResponse, timers: Timers): Sink => ({
  backlog: () => response.writableLength,
  write: (chunk) => {
    if (response.destroyed || response.writableEnded) return true;
    const { socket } = response;
    // Handed over at once: Node would keep it until this turn is over, and then write to all watchers in one go.
    socket?.cork();
    const taken = response.write(chunk);
    socket?.uncork();
    return taken || response.writableLength === 0;
  },
  onDrain: (listener) => void response.once('drain', listener),
  end: (chunk) => {
    if (response.destroyed || response.writableEnded) return;
    const cancel = timers.after(LINGER_MS, () => response.destroy());
    response.once('close', cancel);
    response.end(chunk);
  },
});
