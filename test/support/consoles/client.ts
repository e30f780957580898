import { WebSocket, type ClientOptions } from 'ws';
import { CONNECT_PATH } from '../../../src/http/console-socket.ts';
import { eventually } from '../eventually.ts';

/** A console's client, as a command line or a page would be one. */
export type ConsoleClient = {
  readonly said: () => string;
  readonly bytes: () => Buffer;
  readonly type: (text: string | Uint8Array) => void;
  /** Waits until the machine has said this. */
  readonly hears: (text: string) => Promise<void>;
  readonly close: () => void;
  readonly ended: Promise<{ readonly code: number; readonly reason: string }>;
  readonly socket: WebSocket;
};

export const openConsole = (
  url: string,
  ticket: string | undefined,
  { cookie = false, ...more }: ClientOptions & { readonly cookie?: boolean } = {},
): ConsoleClient => {
  const headers =
    ticket === undefined
      ? {}
      : cookie
        ? { cookie: `other=1; console-ticket=${ticket}` }
        : { authorization: `Bearer ${ticket}` };
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}${CONNECT_PATH}`, {
    ...more,
    headers: { ...headers, ...more.headers },
  });
  const pieces: Buffer[] = [];
  socket.on('message', (data) => pieces.push(data as Buffer));
  const waiting: (string | Uint8Array)[] = [];
  socket.on('open', () => {
    for (const text of waiting.splice(0)) socket.send(text);
  });
  const bytes = (): Buffer => Buffer.concat(pieces);
  const said = (): string => bytes().toString('utf8');
  return {
    socket,
    bytes,
    said,
    type: (text) => {
      if (socket.readyState === WebSocket.OPEN) socket.send(text);
      else waiting.push(text);
    },
    hears: (text) =>
      eventually(
        () => `console says '${text}': ${said()}`,
        () => said().includes(text),
      ),
    close: () => socket.close(),
    ended: new Promise((resolve, reject) => {
      socket.once('close', (code, reason) => resolve({ code, reason: reason.toString() }));
      socket.once('error', reject);
    }),
  };
};
