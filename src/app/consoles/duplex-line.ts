import type { Duplex } from 'node:stream';
import type { ConsoleLine } from './console-line.ts';

/** Bytes of a stream both ways: what is sent waits until the stream has taken it. */
export const duplexLine = (stream: Duplex): ConsoleLine => ({
  incoming: stream as AsyncIterable<Uint8Array>,
  send: (data) =>
    new Promise((resolve, reject) => {
      if (stream.destroyed || !stream.writable) return reject(new Error('the line is closed'));
      stream.write(data, (error) => (error ? reject(error) : resolve()));
    }),
});
