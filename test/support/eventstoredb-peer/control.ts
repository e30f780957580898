import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { FaultRule } from './faults.ts';
import type { Peer } from './peer.ts';

/**
 * HTTP control of a peer that runs as its own process:
 * POST /faults {on, do, times?, stream?, event?} · DELETE /faults · POST /cut · POST /down · POST /restart · POST /black-hole ·
 * DELETE /black-hole · GET /stats · GET /events?stream=S (type, revision, id) · POST /stop.
 */
export const startControl = async (peer: Peer, port: number, stop: () => Promise<void>) => {
  let leaveBlackHole = (): void => {};
  const routes: Record<string, (url: URL, body: string) => unknown> = {
    'POST /faults': (_url, body) => void peer.faults.add(JSON.parse(body) as FaultRule),
    'DELETE /faults': () => peer.faults.clear(),
    'POST /cut': () => peer.cutConnections(),
    'POST /down': () => peer.goDown(),
    'POST /restart': () => peer.restart(),
    'POST /black-hole': () => {
      leaveBlackHole = peer.blackHole();
    },
    'DELETE /black-hole': () => leaveBlackHole(),
    'GET /stats': () => ({ ...peer.stats, events: peer.log.all.length, faultsHit: peer.faults.hits() }),
    'GET /events': (url) => {
      const stream = url.searchParams.get('stream');
      return peer.log.all
        .filter((event) => stream === null || event.stream === stream)
        .map(({ stream: name, revision, type, id }) => ({ stream: name, revision, type, id }));
    },
    'POST /stop': () => void setImmediate(() => void stop()),
  };
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url ?? '/', 'http://control');
    const route = routes[`${request.method} ${url.pathname}`];
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (route === undefined) return void response.writeHead(404).end();
    const result = await route(url, Buffer.concat(chunks).toString('utf8'));
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result ?? {}));
  };
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => response.writeHead(400).end(String(error)));
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${address.port}`,
    close: async (): Promise<void> => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
