import type { Timers } from '../ports.ts';

/** Milliseconds between two pings; a peer from which nothing came for so long is gone. */
const PING_MS = 30_000;

type Pinged = {
  /** Nothing is read of it now: an answer would not be seen. */
  readonly isPaused: boolean;
  on(event: 'pong' | 'message', listener: () => void): unknown;
  ping(): void;
  terminate(): void;
};

/** Cuts off the peer of an open WebSocket that answers no ping. Gives back what ends it. */
export const keepAlive = (webSocket: Pinged, timers: Timers): (() => void) => {
  let isAlive = true;
  let cancel = (): void => undefined;
  const onSign = (): void => {
    isAlive = true;
  };
  webSocket.on('pong', onSign);
  webSocket.on('message', onSign);
  const ask = (): void => {
    if (!webSocket.isPaused) {
      if (!isAlive) {
        webSocket.terminate();
        return;
      }
      isAlive = false;
      webSocket.ping();
    }
    cancel = timers.after(PING_MS, ask);
  };
  cancel = timers.after(PING_MS, ask);
  return () => cancel();
};
