import { createServer, type Server } from 'node:net';

/**
 * The system gives none of these by itself, neither to an outgoing connection nor to a server on port 0 (Linux: from
 * 32768, others: from 49152). A port of those was taken by somebody else now and then, before the server for which it
 * was looked up had started.
 */
const FIRST = 20_000;
const COUNT = 12_000;

/** So many TCP ports of loopback on which nobody listens now; held together until all are known, so that they differ. */
export const freePorts = async (count: number): Promise<readonly number[]> => {
  const held: Server[] = [];
  const ports: number[] = [];
  while (ports.length < count) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    const server = await listening(port);
    if (server === undefined) continue;
    held.push(server);
    ports.push(port);
  }
  await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
};

/** Undefined: somebody has the port. */
const listening = (port: number): Promise<Server | undefined> =>
  new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
      else reject(error);
    });
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
