import { readFile } from 'node:fs/promises';
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import {
  connect as connectSecure,
  createSecureContext,
  getCACertificates,
  type SecureContext,
} from 'node:tls';
import type { ISocketFactory, KafkaConfig, SASLOptions } from 'kafkajs';
import type { Clock, Logger } from '../../app/ports.ts';
import { KafkaFault, type OnTrouble } from '../../app/publisher/ports.ts';
import { faultOf } from './faults.ts';
import { Kafka, logLevel } from './kafkajs-library.ts';
import { createKafkaLogging } from './kafkajs-logging.ts';

export type SaslMechanism = 'plain' | 'scram-sha-256' | 'scram-sha-512';

/** How the brokers are reached. */
export type KafkaSettings = {
  /** `host:port`, at least one. */
  readonly brokers: readonly string[];
  readonly clientId: string;
  /**
   * File with the certificates (PEM) of the authority that signed the brokers', or `system` for those of the operating
   * system; absent: no TLS.
   */
  readonly tlsCa?: string;
  readonly sasl?: {
    readonly mechanism: SaslMechanism;
    readonly username: string;
    /** Read anew for each connection, so that a changed password needs no restart. */
    readonly passwordFile: string;
  };
  /** Tries of what fails in passing, and milliseconds between two at most. Default: 30 and 1,000. */
  readonly retry?: { readonly retries: number; readonly maxRetryTime: number };
  /** Milliseconds after which a request that nobody answers has failed. Default: 30,000. */
  readonly requestMs?: number;
};

/** One kafkajs client of its own, which can be cut off. */
export type Client = {
  readonly kafka: Kafka;
  readonly faultOf: (error: unknown) => KafkaFault;
  /** Ends every connection and every retry at once, and lets none begin. */
  readonly cut: () => void;
};

/**
 * Given to the client, not to the producer: only so do they cover reconnecting. With the default a broker that is away
 * for 12 s makes a send fail.
 */
const RETRY = { retries: 30, maxRetryTime: 1_000, initialRetryTime: 100 } as const;
const CONNECT_MS = 3_000;
const REQUEST_MS = 30_000;
const KEEP_ALIVE_MS = 60_000;

/** Who is asked and told by one client, see `KafkaProducers.open`. */
export type Listeners = {
  readonly mayWrite?: (() => boolean) | undefined;
  readonly onTrouble?: OnTrouble | undefined;
};

/** Makes clients; each one reads the files of the settings anew. Throws KafkaFault when one cannot be read. */
export const createClients = (
  settings: KafkaSettings,
  { logger, clock }: { readonly logger: Logger; readonly clock: Clock },
): ((listeners?: Listeners) => Promise<Client>) => {
  const logging = createKafkaLogging(logger, clock);
  const ofSystem = settings.tlsCa === 'system' ? systemContext() : undefined;
  let made = 0;
  return async ({ mayWrite, onTrouble } = {}) => {
    const sasl = await saslOf(settings);
    const ssl = await tlsOf(settings, ofSystem);
    const sockets = createSockets(mayWrite, onTrouble);
    // kafkajs asks the first one first: one that takes connections and answers nobody would be asked by every client.
    const first = made % settings.brokers.length;
    made += 1;
    const brokers = [...settings.brokers.slice(first), ...settings.brokers.slice(0, first)];
    const config: KafkaConfig = {
      clientId: settings.clientId,
      brokers,
      ...(sasl === undefined ? {} : { sasl }),
      ...(ssl === undefined ? {} : { ssl }),
      retry: { ...RETRY, ...settings.retry },
      connectionTimeout: CONNECT_MS,
      requestTimeout: settings.requestMs ?? REQUEST_MS,
      socketFactory: sockets.factory,
      logLevel: logLevel.INFO,
      logCreator: logging({ secret: passwordOf(sasl), isCut: sockets.isCut, onTrouble }),
    };
    return {
      kafka: new Kafka(config),
      faultOf: (error) => (sockets.isCut() ? closed() : faultOf(error, passwordOf(sasl))),
      cut: () => {
        // An empty list is the one thing that kafkajs does not try again.
        brokers.length = 0;
        sockets.cut();
      },
    };
  };
};

export const closed = (): KafkaFault => new KafkaFault('closed', 'the connection to the brokers was closed');

const passwordOf = (sasl: SASLOptions | undefined): string | undefined =>
  sasl !== undefined && 'password' in sasl ? sasl.password : undefined;

const saslOf = async ({ sasl }: KafkaSettings): Promise<SASLOptions | undefined> => {
  if (sasl === undefined) return undefined;
  const { mechanism, username, passwordFile } = sasl;
  // The line end that an editor leaves is no part of a password.
  const password = (await readSetting('LEDGER_KAFKA_SASL_PASSWORD_FILE', passwordFile)).replace(/\r?\n$/, '');
  return { mechanism, username, password } as SASLOptions;
};

/** What a client trusts, made once for all of its connections: for a whole system that takes a while. */
type Trust = { readonly secureContext: SecureContext };

const tlsOf = async ({ tlsCa }: KafkaSettings, ofSystem: Trust | undefined): Promise<Trust | undefined> => {
  if (tlsCa === undefined) return undefined;
  if (tlsCa !== 'system')
    return { secureContext: createSecureContext({ ca: await readSetting('LEDGER_KAFKA_TLS_CA', tlsCa) }) };
  if (ofSystem === undefined)
    throw new KafkaFault(
      'unauthorized',
      'LEDGER_KAFKA_TLS_CA: this system has no certificates of its own: install them, or name a file',
    );
  return ofSystem;
};

/** Undefined where the operating system has none, as in small container images. Read once in the life of a process. */
const systemContext = (): Trust | undefined => {
  const ca = [...new Set(getCACertificates('system'))];
  return ca.length === 0 ? undefined : { secureContext: createSecureContext({ ca }) };
};

const readSetting = async (variable: string, file: string): Promise<string> => {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? 'it cannot be read';
    throw new KafkaFault('unauthorized', `${variable}: ${file} cannot be read: ${why}`, { cause: error });
  }
};

/** kafkajs connects again after `disconnect()` when a send is still being tried, so that its sockets must be ours. */
const createSockets = (
  mayWrite: () => boolean = () => true,
  onTrouble: OnTrouble = () => undefined,
): { factory: ISocketFactory; cut: () => void; isCut: () => boolean } => {
  const open = new Set<Socket>();
  let isCut = false;
  const cut = (): void => {
    isCut = true;
    for (const socket of open) socket.destroy(closed());
  };
  /** Asked where bytes leave, since kafkajs tries again by itself. */
  const guard = (socket: Socket): Socket => {
    const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
    const guarded = (...args: unknown[]): boolean => {
      if (mayWrite()) return write(...args);
      cut();
      return false;
    };
    return Object.assign(socket, { write: guarded });
  };
  return {
    factory: ({ host, port, ssl, onConnect }) => {
      if (isCut) throw closed();
      const socket: Socket =
        ssl === undefined || ssl === null
          ? connectPlain({ host, port }, onConnect)
          : connectSecure(
              { host, port, ...(isIP(host) === 0 ? { servername: host } : {}), ...ssl },
              onConnect,
            );
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
      open.add(socket);
      socket.once('close', () => open.delete(socket));
      // Ours to know at once, also while nothing is sent: kafkajs does not tell.
      socket.once('end', () => {
        if (!isCut && !socket.writableEnded)
          onTrouble(`${host}:${port} ended the connection`, { broker: `${host}:${port}` });
      });
      return guard(socket);
    },
    cut,
    isCut: () => isCut,
  };
};
