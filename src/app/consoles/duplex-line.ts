import type { Duplex } from 'node:stream';
import type { ConsoleLine } from './console-line.ts';

const CLOSED = 'the line is closed';

/** Bytes of a stream both ways: what is sent waits until the stream has taken it, or is closed. */
export const duplexLine = (stream: Duplex): ConsoleLine => ({
  // Who stops reading has more to say: only its owner destroys the stream.
  incoming: stream.iterator({ destroyOnReturn: false }),
  send: (data) =>
    new Promise((resolve, reject) => {
      if (stream.destroyed || !stream.writable) return reject(new Error(CLOSED));
      // A write that is under way when the stream is destroyed is never answered.
      const onClose = (): void => reject(new Error(CLOSED));
      stream.once('close', onClose);
      stream.write(data, (error) => {
        stream.off('close', onClose);
        if (error) reject(error);
        else resolve();
      });
    }),
});
