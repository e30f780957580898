import { createServer, type Server } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createWebSocketStream, WebSocketServer } from 'ws';
import { serialPrompt } from '../../../src/adapters/management-cluster/simulated/consoles/serial.ts';
import { vncServer } from '../../../src/adapters/management-cluster/simulated/consoles/vnc.ts';
import type { HubServer } from '../hubs/served-hub.ts';
import { eventually } from '../eventually.ts';
import { loopbackTls } from '../http/loopback-tls.ts';

const GROUP = 'console.osac.openshift.io';
export const CONSOLE_API = `/apis/${GROUP}/v1alpha1`;
const PATH = /\/computeinstances\/([^/]+)\/(console|vnc)$/;

export type ConsoleServer = Awaited<ReturnType<typeof startConsoleServer>>;

/** What OSAC's operator serves behind the API server: discovery, and a machine's prompt or screen at its subresources. */
export const startConsoleServer = async () => {
  const asked: { readonly path: string; readonly user: string }[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const resources = ['computeinstances/console', 'computeinstances/vnc'].map((name) => ({
    name,
    namespaced: true,
    kind: 'ComputeInstance',
    verbs: ['get'],
  }));
  const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: `${GROUP}/v1alpha1`, resources };
  const server: Server = createServer(await loopbackTls(), (request, response) => {
    response.writeHead(request.url?.startsWith(CONSOLE_API) === true ? 200 : 404, {
      'content-type': 'application/json',
    });
    response.end(JSON.stringify(list));
  });
  server.on('upgrade', (request: IncomingMessage, socket, head) => {
    asked.push({ path: request.url ?? '', user: String(request.headers['x-remote-user']) });
    const [, name = '', subresource] = PATH.exec(request.url ?? '') ?? [];
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const machine =
        subresource === 'vnc' ? vncServer({ name }) : serialPrompt({ name, now: () => Date.now() });
      const client = createWebSocketStream(webSocket);
      client.on('error', () => machine.destroy()).on('close', () => machine.destroy());
      client.pipe(machine).pipe(client);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    close: () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
    },
  };
};

/** Has a real API server pass the group of consoles on to what listens at this port; resolves when it does. */
export const aggregateConsoles = async (
  call: HubServer['call'],
  namespace: string,
  port: number,
): Promise<void> => {
  const post = async (path: string, body: object): Promise<void> => {
    const { code, text } = await call('POST', path, { body: body as never });
    if (code !== 201) throw new Error(`POST ${path}: ${code} ${text}`);
  };
  await post(`/api/v1/namespaces/${namespace}/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'console', namespace },
    spec: { type: 'ExternalName', externalName: 'localhost' },
  });
  await post('/apis/apiregistration.k8s.io/v1/apiservices', {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `v1alpha1.${GROUP}` },
    spec: {
      group: GROUP,
      version: 'v1alpha1',
      groupPriorityMinimum: 1_000,
      versionPriority: 15,
      insecureSkipTLSVerify: true,
      service: { name: 'console', namespace, port },
    },
  });
  let last = '';
  await eventually(
    () => `the API is available: ${last}`,
    async () => {
      const { code, text } = await call('GET', CONSOLE_API);
      last = text;
      return code === 200;
    },
    60_000,
    100,
  );
};
