import type { Duplex } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { createWebSocketStream, WebSocket } from 'ws';
import { ApiError, parse, Unreachable, whyUnreachable } from './api-client.ts';
import type { ClientCertificate } from './client-certificate.ts';

/** How a WebSocket was closed (RFC 6455 §7.4). */
export type SocketEnd = { readonly code: number; readonly reason: string };

export type OpenSocket = {
  /** The bytes of its messages, with backpressure both ways. */
  readonly stream: Duplex;
  readonly ended: Promise<SocketEnd>;
  /** Closes it, whether or not the service agrees. */
  readonly leave: () => Promise<void>;
};

export type SocketOptions = {
  /** Milliseconds until it must be open. */
  readonly timeoutMs: number;
  readonly certificate?: ClientCertificate;
};

/** Bytes of one message: far more than a console sends. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Milliseconds that the service has to agree to an end. */
const CLOSING_MS = 1_000;

/** Opens a WebSocket at an address of HTTP. Throws ApiError for a refusal, Unreachable without an answer. */
export const openSocket = (
  url: URL,
  bearer: string,
  { timeoutMs, certificate }: SocketOptions,
): Promise<OpenSocket> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(
      Object.assign(new URL(url), { protocol: url.protocol.replace('http', 'ws') }),
      {
        headers: { authorization: `Bearer ${bearer}` },
        handshakeTimeout: timeoutMs,
        perMessageDeflate: false,
        maxPayload: MAX_MESSAGE_BYTES,
        ...certificate,
      },
    );
    const stream = createWebSocketStream(socket);
    const unreachable = (error: Error & { code?: string }): void =>
      reject(new Unreachable(whyUnreachable(url, error.code ?? ''), { cause: error, sent: false }));
    stream.on('error', unreachable);
    const ended = new Promise<SocketEnd>((closed) => {
      socket.once('close', (code, reason) => closed({ code, reason: reason.toString() }));
    });
    socket.once('unexpected-response', (request, response) => {
      textOf(response).then((body) => {
        const { statusCode: status = 0, headers } = response;
        const id = headers['x-request-id'];
        reject(new ApiError('GET', url.pathname, status, parse(body), id === undefined ? null : String(id)));
        request.destroy();
      }, unreachable);
    });
    const leave = async (): Promise<void> => {
      socket.close(1000);
      const late = setTimeout(() => socket.terminate(), CLOSING_MS);
      await ended;
      clearTimeout(late);
    };
    socket.once('open', () => resolve({ stream, ended, leave }));
  });
