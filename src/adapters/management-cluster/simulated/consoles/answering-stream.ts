import { Duplex } from 'node:stream';

const HIGH_WATER_BYTES = 16_384;

/** Says something first, then answers each piece; takes no more before what it said is read. */
export const answeringStream = (
  greeting: string | Uint8Array,
  answer: (chunk: Buffer) => string | Uint8Array,
): Duplex => {
  let taken: (() => void) | undefined;
  const stream = new Duplex({
    readableHighWaterMark: HIGH_WATER_BYTES,
    writableHighWaterMark: HIGH_WATER_BYTES,
    read: () => {
      const go = taken;
      taken = undefined;
      go?.();
    },
    write: (chunk: Buffer, _encoding, done) => {
      const said = answer(chunk);
      if (said.length === 0 || stream.push(said)) done();
      else taken = done;
    },
    final: (done) => {
      stream.push(null);
      done();
    },
  });
  stream.push(greeting);
  return stream;
};
