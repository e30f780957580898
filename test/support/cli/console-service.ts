import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { WebSocketServer, type WebSocket } from 'ws';
import type { Answer } from './stub-service.ts';

type Session = { readonly resource_id: string; readonly type: string; readonly client_id: string };

export type ConsoleService = Awaited<ReturnType<typeof startConsoleService>>;

/** A service with one machine, whose consoles a test plays: tickets are counted, and each opens one WebSocket. */
export const startConsoleService = async () => {
  const sessions: Session[] = [];
  const tickets: string[] = [];
  let refusal: Answer | undefined;
  let play: (socket: WebSocket, request: IncomingMessage) => void = () => undefined;
  const machine = { id: 'vm-1', metadata: { name: 'web', tenant: 'acme' }, spec: {}, status: {} };
  const server = createServer((request, response) => {
    void textOf(request).then((body) => {
      const { pathname } = new URL(request.url ?? '', 'http://x');
      const answer = (status: number, reply: unknown): void => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply));
      };
      if (pathname.endsWith('/compute_instances')) answer(200, { size: 1, total: 1, items: [machine] });
      else if (request.method !== 'POST') answer(404, { code: 5, message: 'absent' });
      else if (refusal !== undefined) answer(refusal.status ?? 200, refusal.body);
      else if (request.headers['x-dry-run'] === 'true') answer(200, {});
      else {
        sessions.push(JSON.parse(body) as Session);
        answer(200, { ticket: `ticket-${sessions.length}` });
      }
    });
  });
  const sockets = new WebSocketServer({ noServer: true });
  server.on('upgrade', (request, socket, head) => {
    tickets.push(request.headers.authorization ?? '');
    sockets.handleUpgrade(request, socket, head, (open) => play(open, request));
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Sessions that were asked for, and what came with each WebSocket as its credential. */
    sessions,
    tickets,
    plays: (how: typeof play): void => {
      play = how;
    },
    refuses: (answer: Answer): void => {
      refusal = answer;
    },
    close: (): void => {
      for (const open of sockets.clients) open.terminate();
      server.closeAllConnections();
      server.close();
    },
  };
};
