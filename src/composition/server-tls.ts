import { createPrivateKey } from 'node:crypto';
import type { Socket } from 'node:net';
import { createSecureContext, createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import type { Runtime } from '../app/ports.ts';
import { isProduction } from '../app/deployment/production.ts';
import { BadSetting, type Address, type Config } from '../config.ts';
import { isLoopback } from '../domain/hubs/loopback.ts';
import { badFile, certificateOf, settingFile } from './setting-files.ts';

/** What the listeners serve TLS with, for `node:https` and `node:http2` alike. */
export type ServerTls = {
  /** The files as they were last read. */
  readonly options: TlsOptions;
  /** Gives a server what the files hold from now on; connections that are open stay as they are. */
  readonly follow: (server: Server) => void;
  /** A server that follows them, for connections of HTTP/2. */
  readonly accept: (taken: (socket: TLSSocket) => void) => Server;
  /** Ends connections that have not agreed on anything yet: a server that closes would wait for them. */
  readonly endHandshakes: () => void;
  readonly stop: () => void;
};

type TlsSettings = Pick<
  Config,
  'tls' | 'tlsCertFile' | 'tlsKeyFile' | 'tlsClientCaFile' | 'httpAddress' | 'grpcAddress'
>;
type Context = { readonly cert: string; readonly key: string; readonly ca?: string };

const CERT = { variable: 'LEDGER_TLS_CERT_FILE', example: '/etc/ledger/tls.crt' };
const KEY = { variable: 'LEDGER_TLS_KEY_FILE', example: '/etc/ledger/tls.key' };
const CLIENT_CA = { variable: 'LEDGER_TLS_CLIENT_CA_FILE', example: '/etc/ledger/clients.crt' };

type Ports = Pick<Runtime, 'clock' | 'timers' | 'logger'>;

/** Milliseconds between two looks at the files. Looked at, not watched: mounted secrets are swapped by symbolic links. */
const LOOK_MS = 10_000;
/** Milliseconds before the end of a certificate from which on the log warns. */
const SOON_MS = 14 * 86_400_000;
/** Milliseconds that a client gets to agree on a connection. */
const HANDSHAKE_MS = 10_000;

/**
 * TLS as the settings say, and its files followed from then on; undefined: plaintext. Throws BadSetting where a file
 * cannot be used, and where production would serve plaintext to other machines.
 */
export const openServerTls = async (
  config: TlsSettings,
  ports: Ports & { readonly nodeEnv: string | undefined },
  lookMs = LOOK_MS,
): Promise<ServerTls | undefined> => {
  const { tlsCertFile: cert, tlsKeyFile: key, tlsClientCaFile: ca } = config;
  if (cert === undefined || key === undefined) {
    if (isProduction(ports.nodeEnv) && config.tls !== 'off') refusePlaintext(config);
    return undefined;
  }
  const files = { cert, key, ...(ca === undefined ? {} : { ca }) };
  return followFiles(files, await read(files), ports, lookMs);
};

const refusePlaintext = ({ httpAddress, grpcAddress }: TlsSettings): void => {
  const addresses: Readonly<Record<string, Address | undefined>> = {
    LEDGER_HTTP_ADDRESS: httpAddress,
    LEDGER_GRPC_ADDRESS: grpcAddress,
  };
  for (const [variable, address] of Object.entries(addresses))
    if (address !== undefined && !isLoopback(address.host))
      throw new BadSetting(
        `${variable}: plaintext on ${address.host} is refused when NODE_ENV=production; set ${CERT.variable} and ` +
          `${KEY.variable}, or LEDGER_TLS=off where a proxy in front ends TLS`,
      );
};

const read = async ({ cert, key, ca }: Context): Promise<Context> => ({
  cert: await settingFile(CERT, cert),
  key: await settingFile(KEY, key),
  ...(ca === undefined ? {} : { ca: await settingFile(CLIENT_CA, ca) }),
});

/** Throws BadSetting unless a server can serve with these texts. Returns the end of the certificate. */
const checked = (texts: Context, files: Context): string => {
  const { validTo } = certificateOf(CERT, files.cert, texts.cert);
  if (files.ca !== undefined) certificateOf(CLIENT_CA, files.ca, texts.ca ?? '');
  try {
    // A context takes an empty key for none.
    createPrivateKey(texts.key);
    createSecureContext(texts);
  } catch (error) {
    // The text of the error may come from within the key; its code does not.
    const { code = 'unreadable' } = error as NodeJS.ErrnoException;
    throw badFile(KEY, `${files.key} is not the key of ${files.cert}, or has a passphrase (${code})`);
  }
  return new Date(validTo).toISOString();
};

/** One for the connection and for the TLS on it. */
const peerOf = ({ remoteAddress, remotePort, localPort }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localPort}`;

const followFiles = (
  files: Context,
  first: Context,
  { clock, timers, logger }: Ports,
  lookMs: number,
): ServerTls => {
  let served = first;
  let problem: string | undefined;
  let expires = checked(first, files);
  let warning: string | undefined;
  const servers: Server[] = [];
  const shaking = new Map<string, Socket>();
  const follow = (server: Server): void => {
    servers.push(server);
    server.on('connection', (socket: Socket) => {
      const peer = peerOf(socket);
      shaking.set(peer, socket);
      socket.once('close', () => {
        if (shaking.get(peer) === socket) shaking.delete(peer);
      });
    });
    server.on('secureConnection', (socket: TLSSocket) => shaking.delete(peerOf(socket)));
  };
  logger.info({ expires }, 'serving TLS');
  const warnOfEnd = (): void => {
    const leftMs = Date.parse(expires) - Date.parse(clock.now());
    const due =
      leftMs > SOON_MS ? undefined : leftMs > 0 ? 'certificate expires soon' : 'certificate has expired';
    if (due !== undefined && due !== warning) logger.warn({ expires, file: files.cert }, due);
    warning = due;
  };
  warnOfEnd();

  const look = async (): Promise<void> => {
    try {
      const found = await read(files);
      if (JSON.stringify(found) !== JSON.stringify(served)) {
        expires = checked(found, files);
        for (const server of servers) server.setSecureContext(found);
        served = found;
        logger.info({ expires }, 'certificate renewed');
      }
      problem = undefined;
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (why !== problem) logger.error({ why }, 'certificate not renewed, serving the former one');
      problem = why;
    }
    warnOfEnd();
  };

  let stopped = false;
  let cancel = (): void => undefined;
  const next = (): void => {
    if (!stopped) cancel = timers.after(lookMs, () => void look().then(next));
  };
  next();
  const options = (): TlsOptions => ({
    ...served,
    requestCert: files.ca !== undefined,
    handshakeTimeout: HANDSHAKE_MS,
  });
  return {
    get options() {
      return options();
    },
    follow,
    endHandshakes: () => {
      for (const socket of shaking.values()) socket.destroy();
    },
    accept: (taken) => {
      const server = createServer({ ...options(), ALPNProtocols: ['h2'], noDelay: true }, (socket) => {
        // A client that names no protocol, as behind some routers, means HTTP/2 here; Node would take it for HTTP/1.1.
        if (socket.alpnProtocol === false) socket.alpnProtocol = 'h2';
        taken(socket);
      });
      follow(server);
      return server;
    },
    stop: () => {
      stopped = true;
      cancel();
    },
  };
};
