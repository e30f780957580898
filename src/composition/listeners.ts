import type { Server } from 'node:http';
import type { AddressInfo, Server as SocketServer } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import { BadSetting, type Address } from '../config.ts';

/** Binds the address that the named setting gives. Throws BadSetting when that cannot be done. */
export const listen = (server: SocketServer, variable: string, address: Address): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', (error) => reject(cannotListen(variable, address, error)));
    server.listen(address.port, address.host, resolve);
  });

/** The sentence for whoever set it: which setting, what is wrong, what would do. */
export const cannotListen = (variable: string, { host, port }: Address, error: unknown): BadSetting => {
  const { code, message } = error as NodeJS.ErrnoException;
  const why = code === 'EADDRINUSE' ? 'is used by another process' : message;
  return new BadSetting(`${variable}: ${host}:${port} ${why}. Example: ${variable}=127.0.0.1:0`, {
    cause: error,
  });
};

/** Milliseconds between two looks for connections that have become idle. */
const SWEEP_MS = 25;

/** Waits for running requests up to the bound, then cuts what is left. */
export const closeServer = (server: Server, graceMs: number): Promise<void> =>
  new Promise((resolve) => {
    const cut = setTimeout(() => server.closeAllConnections(), graceMs);
    // Connections that are kept alive are idle only once their last answer is out.
    const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
    server.close(() => {
      clearTimeout(cut);
      clearInterval(sweep);
      resolve();
    });
    server.closeIdleConnections();
  });

/** `host:port` of a server that listens. */
export const addressOf = (server: SocketServer): string => {
  const { address, family, port } = server.address() as AddressInfo;
  return `${family === 'IPv6' ? `[${address}]` : address}:${port}`;
};

/** `http://host:port`, or `https://`. */
export const urlOf = (server: SocketServer): string =>
  `${server instanceof TlsServer ? 'https' : 'http'}://${addressOf(server)}`;
