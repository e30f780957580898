import { connect, type Socket } from 'node:net';

/** A watcher that costs its own process little, so that thousands fit beside the service: a bare socket. */
export type BenchWatcher = {
  /** Whole events so far. */
  readonly events: () => number;
  readonly ended: () => boolean;
  readonly pause: () => void;
  readonly close: () => void;
};

export type WatcherOptions = {
  readonly url: string;
  readonly token: string;
  readonly path: string;
  /** Called when an event has come, with milliseconds of `performance.now()`. */
  readonly onEvent: (at: number) => void;
};

const MARK = Buffer.from('{"result":{"event":');

/** Resolves when the head of the answer has come; rejects when it is not 200. */
export const openWatcher = ({ url, token, path, onEvent }: WatcherOptions): Promise<BenchWatcher> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    let events = 0;
    let ended = false;
    let head = '';
    /** The end of the last chunk, in which a mark may have begun. */
    let rest: Buffer = Buffer.alloc(0);
    const socket: Socket = connect(Number(port), hostname, () =>
      socket.write(`GET ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${token}\r\n\r\n`),
    );
    const count = (chunk: Buffer): void => {
      const at = performance.now();
      const text = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let from = 0;
      for (let found = text.indexOf(MARK); found >= 0; found = text.indexOf(MARK, from)) {
        from = found + MARK.length;
        events += 1;
        onEvent(at);
      }
      rest = Buffer.from(text.subarray(Math.max(from, text.length - MARK.length + 1)));
    };
    const readHead = (chunk: Buffer): void => {
      head += chunk.toString('latin1');
      if (!head.includes('\r\n\r\n')) return;
      socket.off('data', readHead).on('data', count);
      if (!head.startsWith('HTTP/1.1 200')) return reject(new Error(head.split('\r\n')[0]));
      resolve({
        events: () => events,
        ended: () => ended,
        pause: () => void socket.pause(),
        close: () => socket.destroy(),
      });
    };
    socket.on('data', readHead).on('error', reject);
    socket.once('close', () => {
      ended = true;
    });
  });
