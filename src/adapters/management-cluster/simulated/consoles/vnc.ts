import type { Duplex } from 'node:stream';
import { answeringStream } from './answering-stream.ts';

/**
 * A VNC server as RFC 6143 has it, with security None and a small black screen: what a viewer needs to connect and to
 * draw something. Keys, pointer and clipboard are taken and do nothing.
 */
const VERSION = 'RFB 003.008\n';
const [WIDTH, HEIGHT] = [64, 48];
const NONE = 1;
const RAW = 0;

/** 32 bits, true colour, little-endian. */
const PIXELS = Buffer.from([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]);

const serverInit = (name: string): Buffer => {
  const text = Buffer.from(name, 'utf8');
  const head = Buffer.alloc(4);
  head.writeUInt16BE(WIDTH, 0);
  head.writeUInt16BE(HEIGHT, 2);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length);
  return Buffer.concat([head, PIXELS, length, text]);
};

const screen = (bytesPerPixel: number): Buffer => {
  const head = Buffer.alloc(16);
  head.writeUInt16BE(1, 2);
  head.writeUInt16BE(WIDTH, 8);
  head.writeUInt16BE(HEIGHT, 10);
  head.writeInt32BE(RAW, 12);
  return Buffer.concat([head, Buffer.alloc(WIDTH * HEIGHT * bytesPerPixel)]);
};

const refusal = (why: string): Buffer => {
  const text = Buffer.from(why);
  const head = Buffer.alloc(8);
  head.writeUInt32BE(1, 0);
  head.writeUInt32BE(text.length, 4);
  return Buffer.concat([head, text]);
};

/** Bytes of a message of the client by its type; those with a tail say its length at an offset. */
const MESSAGES: { readonly [type: number]: { readonly bytes: number } } = {
  0: { bytes: 20 },
  2: { bytes: 4 },
  3: { bytes: 10 },
  4: { bytes: 8 },
  5: { bytes: 6 },
  6: { bytes: 8 },
};

export const vncServer = ({ name }: { readonly name: string }): Duplex => {
  let stage: 'version' | 'security' | 'init' | 'messages' | 'broken' = 'version';
  let waiting = Buffer.alloc(0);
  /** Bytes of a tail that nobody needs. */
  let skipped = 0;
  let bytesPerPixel = 4;

  const need = (): number => {
    if (stage === 'version') return VERSION.length;
    return stage === 'messages' ? (MESSAGES[waiting[0] ?? -1]?.bytes ?? 1) : 1;
  };

  const take = (message: Buffer): Buffer => {
    switch (stage) {
      case 'version':
        stage = 'security';
        return Buffer.from([1, NONE]);
      case 'security': {
        const chosen = message[0] === NONE;
        stage = chosen ? 'init' : 'broken';
        return chosen ? Buffer.alloc(4) : refusal('only security type None is offered');
      }
      case 'init':
        stage = 'messages';
        return serverInit(name);
      case 'messages':
        return answer(message);
      case 'broken':
        return NOTHING;
    }
  };

  const answer = (message: Buffer): Buffer => {
    switch (message[0]) {
      case 0:
        bytesPerPixel = Math.min(4, Math.max(1, (message[4] ?? 32) >> 3));
        return NOTHING;
      case 2:
        skipped = 4 * message.readUInt16BE(2);
        return NOTHING;
      case 3:
        return screen(bytesPerPixel);
      case 6:
        skipped = message.readUInt32BE(4);
        return NOTHING;
      case 4:
      case 5:
        return NOTHING;
      default:
        // What follows an unknown message cannot be told apart.
        stage = 'broken';
        return NOTHING;
    }
  };

  return answeringStream(VERSION, (chunk) => {
    waiting = Buffer.concat([waiting, chunk]);
    const said: Buffer[] = [];
    for (;;) {
      const passed = Math.min(skipped, waiting.length);
      skipped -= passed;
      waiting = waiting.subarray(passed);
      if (stage === 'broken') waiting = NOTHING;
      const bytes = need();
      if (skipped > 0 || waiting.length < bytes || waiting.length === 0) return Buffer.concat(said);
      const message = waiting.subarray(0, bytes);
      waiting = waiting.subarray(bytes);
      said.push(take(message));
    }
  });
};

const NOTHING = Buffer.alloc(0);
