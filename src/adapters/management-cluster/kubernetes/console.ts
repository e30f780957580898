import type { Agent, IncomingMessage } from 'node:http';
import { createWebSocketStream, WebSocket, type ClientOptions } from 'ws';
import type { MachineConsole } from '../../../app/consoles/console-line.ts';
import { duplexLine } from '../../../app/consoles/duplex-line.ts';
import { keepAlive } from '../../../app/consoles/keep-alive.ts';
import { HubError, type CallOptions } from '../../../app/hubs/management-cluster.ts';
import type { Timers } from '../../../app/ports.ts';
import type { ConsoleType } from '../../../domain/consoles.ts';
import { defined } from '../../../domain/json-tools.ts';
import type { ObjectPlace, OwnedObject } from '../../../domain/hubs/hub-object.ts';
import { refusal, redactor } from './api-errors.ts';
import type { KubeAccess } from './kubeconfig.ts';

/** OSAC's operator serves them behind the API server, which checks the rights. */
const GROUP = '/apis/console.osac.openshift.io/v1alpha1';
const SUBRESOURCES: { readonly [T in ConsoleType]: string } = { serial: 'console', vnc: 'vnc' };

const MAX_MESSAGE_BYTES = 1_048_576;
const HIGH_WATER_BYTES = 16_384;
/** Normal closure, and a close without a code (RFC 6455, 7.4.1). Any other one tells of a line that broke. */
const CLOSED_BY_MACHINE: readonly number[] = [1000, 1005];
/** Bytes of a refusal that are read. */
const MAX_REFUSAL_BYTES = 65_536;

const pathOf = ({ plural }: OwnedObject, { namespace, name }: ObjectPlace, type: ConsoleType): string =>
  `${GROUP}/namespaces/${encodeURIComponent(namespace)}/${plural}/${encodeURIComponent(name)}/${SUBRESOURCES[type]}`;

/** Of a proxy alone: whatever else its agent needs is there already. */
const proxyAgent = async ({ server, proxyUrl, ...rest }: KubeAccess): Promise<{ readonly agent?: Agent }> => {
  if (proxyUrl === undefined) return {};
  // It takes half a second and 90 MB: only where there is a proxy.
  const { KubeConfig } = await import('@kubernetes/client-node');
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [
      { name: 'hub', server, proxyUrl, skipTLSVerify: rest.insecure, ...defined({ caData: rest.caData }) },
    ],
    users: [{ name: 'user' }],
    contexts: [{ name: 'context', cluster: 'hub', user: 'user' }],
    currentContext: 'context',
  });
  const options: { agent?: unknown } = {};
  await config.applyToHTTPSOptions(options as never);
  return { agent: options.agent as Agent };
};

const pem = (data: string | undefined): Buffer | undefined =>
  data === undefined ? undefined : Buffer.from(data, 'base64');

const clientOptions = async (
  access: KubeAccess,
  { effectId, deadlineMs }: CallOptions,
): Promise<ClientOptions> => ({
  headers: {
    'User-Agent': 'fulfillment-ledger',
    'Audit-Id': effectId.slice(0, 64),
    ...(access.token === undefined ? {} : { Authorization: `Bearer ${access.token}` }),
  },
  ...defined({
    ca: pem(access.caData),
    cert: pem(access.certData),
    key: pem(access.keyData),
    servername: access.tlsServerName,
  }),
  rejectUnauthorized: !access.insecure,
  handshakeTimeout: deadlineMs,
  followRedirects: false,
  maxPayload: MAX_MESSAGE_BYTES,
  perMessageDeflate: false,
  ...(await proxyAgent(access)),
});

/** Opens a console of the machine that the object stands for, through the hub's API server. Throws HubError. */
export const openHubConsole = async (
  access: KubeAccess,
  kind: OwnedObject,
  place: ObjectPlace,
  type: ConsoleType,
  by: CallOptions,
  timers: Timers,
): Promise<MachineConsole> => {
  const what = `open ${type} console of ${place.name}`;
  const url = `${access.server.replace(/^http/, 'ws')}${pathOf(kind, place, type)}`;
  const socket = new WebSocket(url, await clientOptions(access, by));
  let cut: HubError | undefined;
  socket.once('close', (code) => {
    if (!CLOSED_BY_MACHINE.includes(code))
      cut = new HubError('unavailable', `${what}: the line was cut (${code})`);
  });
  // Made before the first bytes come: those that nobody reads yet would be lost.
  const stream = createWebSocketStream(socket, {
    readableHighWaterMark: HIGH_WATER_BYTES,
    writableHighWaterMark: HIGH_WATER_BYTES,
  });
  stream.on('error', () => undefined);
  const close = (): void => {
    by.signal.removeEventListener('abort', close);
    socket.terminate();
  };
  by.signal.addEventListener('abort', close, { once: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('open', resolve);
    socket.once('error', (error) =>
      reject(new HubError('unavailable', `${what}: no connection`, { cause: error })),
    );
    socket.once('close', () => reject(new HubError('unavailable', `${what}: given up`)));
    socket.once('unexpected-response', (_request, response: IncomingMessage) => {
      const redact = redactor([access.token, access.keyData]);
      textOf(response).then((body) => {
        const { statusCode: status = 0, headers } = response;
        reject(refusal({ status, headers, body }, what, false, redact));
        socket.terminate();
      }, reject);
    });
    if (by.signal.aborted) close();
  }).catch((error: unknown) => {
    close();
    throw error;
  });
  socket.once('close', keepAlive(socket, timers));
  const { incoming, send } = duplexLine(stream);
  return { incoming: wholeOf(incoming, () => cut), send, close };
};

/** To the stream every close is an end, also that of a line that was cut. */
const wholeOf = async function* (
  incoming: AsyncIterable<Uint8Array>,
  cut: () => HubError | undefined,
): AsyncGenerator<Uint8Array> {
  yield* incoming;
  const error = cut();
  if (error !== undefined) throw error;
};

const textOf = async (response: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const chunk of response as AsyncIterable<Buffer>) {
    text += chunk.toString('utf8');
    if (text.length > MAX_REFUSAL_BYTES) break;
  }
  return text;
};
