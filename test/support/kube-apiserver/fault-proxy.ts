import { Agent, createServer, request as httpsRequest } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createAuthority } from './access/certificates.ts';
import type { KubeAccess } from './client.ts';

/** A call on its way to the API server, or its answer on the way back. */
export type CallOnItsWay = {
  readonly method: string;
  readonly path: string;
  readonly moment: 'arrived' | 'answered';
};

/** What happens to calls on their way: a real API server does not misbehave when told to. */
export type KubeFaultProxy = Awaited<ReturnType<typeof startKubeFaultProxy>>;

/**
 * Stands between a client and an API server, on loopback with a certificate of its own. Passes everything on as it is,
 * watches too, until it is told otherwise.
 */
export const startKubeFaultProxy = async (target: Pick<KubeAccess, 'url' | 'ca'>) => {
  const authority = await createAuthority('127.0.0.1');
  const agent = new Agent({ keepAlive: true, ca: target.ca });
  const sockets = new Set<Socket>();
  const seen: { readonly method: string; readonly path: string; readonly code: number }[] = [];
  const faults = { loseNextCreate: false, hang: false };
  let meet: (call: CallOnItsWay) => 'pass' | 'cut' = () => 'pass';

  const pass = (request: IncomingMessage, response: ServerResponse): void => {
    if (faults.hang) return;
    const { method = 'GET', url = '/' } = request;
    const lost = faults.loseNextCreate && method === 'POST';
    if (lost) faults.loseNextCreate = false;
    if (meet({ method, path: url, moment: 'arrived' }) === 'cut') {
      request.socket.destroy();
      return;
    }
    const onward = httpsRequest(
      new URL(url, target.url),
      { method, agent, headers: { ...request.headers, host: new URL(target.url).host } },
      (answer) => {
        seen.push({ method, path: url, code: answer.statusCode ?? 0 });
        if (lost || meet({ method, path: url, moment: 'answered' }) === 'cut') {
          answer.resume();
          answer.once('end', () => request.socket.destroy());
          return;
        }
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(response);
        answer.once('error', () => response.destroy());
      },
    );
    onward.once('error', () => response.destroy());
    response.once('close', () => onward.destroy());
    request.pipe(onward);
  };

  const server = createServer({ ...authority.server }, pass);
  // From the first byte on: one that is still shaking hands would keep the port from closing.
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, '127.0.0.1', () => {
        server.removeListener('error', reject);
        resolve();
      });
    });
  const pause = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });

  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${port}`,
    /** PEM of the authority of the proxy's own certificate. */
    ca: authority.ca,
    /** Calls that the API server answered. */
    seen: () => seen,
    /** Asked for every call when it arrives and when its answer does: whether it goes on. Undefined: all do. */
    onCall: (hook: typeof meet | undefined): void => void (meet = hook ?? (() => 'pass')),
    /** The next creation is carried out and its answer never comes. */
    loseNextCreate: (): void => void (faults.loseNextCreate = true),
    /** Nothing is passed on or answered until `clear`. */
    hang: (): void => void (faults.hang = true),
    clear: (): void => {
      faults.loseNextCreate = false;
      faults.hang = false;
    },
    /** Closes the port and every connection; `resume` opens the same port again. */
    pause,
    resume: (): Promise<void> => listen(port),
    close: async (): Promise<void> => {
      agent.destroy();
      await pause();
    },
  };
};
