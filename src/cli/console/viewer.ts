import { createServer, type AddressInfo, type Socket } from 'node:net';
import { detailOf, type Console } from './connect.ts';

export type ViewerOptions = {
  /** Connections for one viewer. */
  readonly console: () => Console;
  /** 0: any that is free. */
  readonly port: number;
  readonly listening: (port: number) => void;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
};

/** Lets a VNC viewer of this computer connect to the screen, one after the other, until it is interrupted. */
export const runViewer = async (options: ViewerOptions): Promise<void> => {
  const { port, listening, say, signal } = options;
  let viewer: Socket | undefined;
  const failed = Promise.withResolvers<never>();
  const server = createServer((socket) => {
    // A viewer that goes away ends its session, and nothing else.
    socket.on('error', () => undefined);
    if (viewer !== undefined) {
      say('a second viewer was refused: one at a time');
      return socket.destroy();
    }
    viewer = socket;
    serve(socket, options).then((how) => {
      socket.destroy();
      viewer = undefined;
      say(how);
    }, failed.reject);
  });
  server.once('error', failed.reject);
  server.listen(port, '127.0.0.1', () => listening((server.address() as AddressInfo).port));
  const interrupted = new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve());
  });
  try {
    await Promise.race([interrupted, failed.promise]);
  } finally {
    viewer?.destroy();
    server.close();
  }
};

/**
 * Resolves with how it ended. A lost connection ends the viewer's, too: it cannot go on in the middle of a screen, but
 * connect again.
 */
const serve = async (socket: Socket, { console: make, say }: ViewerOptions): Promise<string> => {
  const screen = make();
  const { stream, ended, leave } = await screen.connect();
  const began = performance.now();
  say('a viewer is connected');
  const left = new Promise<undefined>((resolve) => {
    socket.once('end', () => resolve(undefined)).once('close', () => resolve(undefined));
  });
  socket.pipe(stream, { end: false });
  stream.pipe(socket);
  const end = await Promise.race([ended, left]);
  if (end === undefined) {
    await leave();
    return 'the viewer has left';
  }
  return screen.assess(end, performance.now() - began) === 'over'
    ? `the screen is closed${detailOf(end)}`
    : 'the connection to the screen was lost; connect the viewer again';
};
