import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { createWebSocketStream, WebSocketServer, type WebSocket } from 'ws';
import { serialPrompt } from '../../../../src/adapters/management-cluster/simulated/consoles/serial.ts';
import { vncServer } from '../../../../src/adapters/management-cluster/simulated/consoles/vnc.ts';
import type { Access } from '../access/rbac.ts';
import type { Identities } from '../access/identities.ts';
import { notFound, StatusError, unauthorized } from '../errors.ts';
import type { Store } from '../store.ts';

const GROUP = 'console.osac.openshift.io';
const PATH =
  /^\/apis\/console\.osac\.openshift\.io\/v1alpha1\/namespaces\/([^/]+)\/([^/]+)\/([^/]+)\/(console|vnc)$/;

/**
 * The aggregated API of OSAC's operator: consoles of machines behind the server's own authentication and rights. One whose
 * machine does not run is not found.
 */
export const consoleUpgrades = ({
  store,
  identities,
  access,
}: {
  readonly store: Store;
  readonly identities: Identities;
  readonly access: Access;
}) => {
  const sockets = new WebSocketServer({ noServer: true });
  const open = new Set<Duplex>();
  const webSockets = new Set<WebSocket>();

  const machineAt = (request: IncomingMessage) => {
    const user = identities.identify(request.headers.authorization, request.socket as TLSSocket);
    if (user === undefined) throw unauthorized();
    const [, namespace = '', plural = '', name = '', subresource = ''] = PATH.exec(request.url ?? '') ?? [];
    const resource = `${plural}/${subresource}`;
    access.require(user, { verb: 'get', group: GROUP, resource, namespace, name });
    const kind = store.kinds().find((one) => one.plural === plural);
    const object = kind === undefined ? undefined : store.get(kind, namespace, name);
    const { phase } = (object?.['status'] ?? {}) as { readonly phase?: string };
    if (phase !== 'Running') throw notFound({ plural, group: GROUP }, name);
    return { name, subresource };
  };

  return {
    upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
      socket.on('error', () => socket.destroy());
      try {
        const { name, subresource } = machineAt(request);
        sockets.handleUpgrade(request, socket, head, (webSocket) => {
          const machine =
            subresource === 'vnc' ? vncServer({ name }) : serialPrompt({ name, now: () => Date.now() });
          const client = createWebSocketStream(webSocket);
          client.on('error', () => machine.destroy());
          client.on('close', () => machine.destroy());
          open.add(client);
          webSockets.add(webSocket);
          webSocket.once('close', () => {
            open.delete(client);
            webSockets.delete(webSocket);
          });
          client.pipe(machine).pipe(client);
        });
      } catch (error) {
        if (!(error instanceof StatusError)) throw error;
        const { code } = error.body;
        const body = JSON.stringify(error.body);
        const fields = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
        socket.end(`HTTP/1.1 ${code} Refused\r\nconnection: close\r\n${fields}\r\n${body}`);
      }
    },
    /** The machines close their consoles. */
    closeAll: (): void => {
      for (const client of open) client.end();
    },
    cut: (): void => {
      for (const client of open) client.destroy();
    },
    /** Whatever stands between ends the lines with this code. */
    closeWith: (code: number): void => {
      for (const webSocket of webSockets) webSocket.close(code);
    },
    /** Nothing is read any more, and nothing answered. */
    freeze: (): void => {
      for (const webSocket of webSockets) webSocket.pause();
    },
  };
};
