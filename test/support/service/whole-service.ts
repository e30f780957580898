import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { importJWK, SignJWT, type JWK } from 'jose';
import { DEVELOPMENT_ISSUER } from '../../../src/adapters/identity/development-issuer.ts';
import { openSqliteLogReader } from '../../../src/adapters/event-store/sqlite/open-log-reader.ts';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { createLogger } from '../../../src/composition/logger.ts';
import { startService, type Service } from '../../../src/composition/service.ts';
import { readConfig } from '../../../src/config.ts';
import { CATALOG } from './stack.ts';
import { callerOf, type Caller } from '../http/service.ts';

/** The whole service on its files in this process, with the catalogue and its simulated hubs. */
export type WholeService = {
  readonly dataDir: string;
  /** Starts it, again after a stop. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Calls with a token of these claims; each call carries these headers. */
  caller(claims: object, headers?: Readonly<Record<string, string>>): Promise<Caller>;
  /** What a client of its own needs to call it, with a token of these claims. */
  access(claims: object): Promise<{ readonly url: string; readonly grpc: string; readonly token: string }>;
  /** Without a token. */
  stranger(headers?: Readonly<Record<string, string>>): Caller;
  /** Everything that is stored, also while it runs. */
  log(): Promise<readonly RecordedEvent[]>;
  dispose(): Promise<void>;
};

/** `log`: where it writes what it logs. Default: nowhere. */
export const createWholeService = async (
  settings: Readonly<Record<string, string>> = {},
  log?: { readonly write: (line: string) => void },
): Promise<WholeService> => {
  const directory = await mkdtemp(join(tmpdir(), 'ledger-whole-'));
  const dataDir = join(directory, 'data');
  let service: Service | undefined;
  const running = (): Service => {
    if (service === undefined) throw new Error('the service is not started');
    return service;
  };
  const tokenOf = async (claims: object): Promise<string> => {
    const file = join(dataDir, 'secrets', 'development-issuer.jwk.json');
    const jwk = JSON.parse(await readFile(file, 'utf8')) as JWK;
    return new SignJWT({ typ: 'Bearer', jti: randomUUID(), groups: [], ...claims })
      .setProtectedHeader({ alg: 'RS256', kid: jwk.kid ?? '' })
      .setIssuer(DEVELOPMENT_ISSUER)
      .setIssuedAt()
      .setExpirationTime('exp' in claims ? (claims.exp as number) : '1h')
      .sign(await importJWK(jwk, 'RS256'));
  };
  const withHeaders = (
    headers: Readonly<Record<string, string>>,
    call: (at: { url: string }) => Caller,
  ): Caller => {
    return (verb, path, body, more) =>
      call({ url: running().http })(verb, path, body, { ...headers, ...more });
  };
  const stop = async (): Promise<void> => {
    await service?.stop();
    service = undefined;
  };
  return {
    dataDir,
    start: async () => {
      const config = readConfig({
        LEDGER_DATA_DIR: dataDir,
        LEDGER_CATALOG: CATALOG,
        LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
        LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
        LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
        ...settings,
      });
      const logger =
        log === undefined ? createLogger('fatal', { write: () => undefined }) : createLogger('debug', log);
      service = await startService(config, { logger, nodeEnv: 'test', announce: () => undefined });
    },
    stop,
    caller: async (claims, headers = {}) => {
      const token = await tokenOf(claims);
      return withHeaders(headers, (at) => callerOf(at, token));
    },
    access: async (claims) => {
      const { http: url, grpc = '' } = running();
      return { url, grpc, token: await tokenOf(claims) };
    },
    stranger: (headers = {}) => withHeaders(headers, (at) => callerOf(at)),
    log: async () => {
      const reader = openSqliteLogReader({ dataDir });
      try {
        const events: RecordedEvent[] = [];
        for await (const event of reader.readAll({ limit: Infinity })) events.push(event);
        return events;
      } finally {
        await reader.close();
      }
    },
    dispose: async () => {
      await stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
};
