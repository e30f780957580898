import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { createServer, type Server } from 'node:https';
import { connect as connectTcp, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type ConnectionOptions } from 'node:tls';
import { expect } from 'chai';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';
import type { Clock } from '../../../src/app/ports.ts';
import { openServerTls, type ServerTls } from '../../../src/composition/server-tls.ts';
import { BadSetting, readConfig } from '../../../src/config.ts';
import { createGrpcServer } from '../../../src/grpc/listener.ts';
import { eventually } from '../../support/eventually.ts';
import { createAuthority } from '../../support/kube-apiserver/access/certificates.ts';
import { recordingLogger } from '../../support/loggers.ts';
import { loopbackTls } from '../../support/http/loopback-tls.ts';

describe('TLS of the listeners', () => {
  let dir: string;
  let logger: ReturnType<typeof recordingLogger>;
  let clock: Clock;
  const open: { readonly tls: ServerTls[]; readonly servers: Server[] } = { tls: [], servers: [] };
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ledger-tls-'));
    logger = recordingLogger();
    clock = systemClock();
  });
  afterEach(() => {
    for (const tls of open.tls.splice(0)) tls.stop();
    for (const server of open.servers.splice(0)) {
      server.closeAllConnections();
      server.close();
    }
    rmSync(dir, { recursive: true });
  });

  const file = (name: string, text: string): string => {
    const path = join(dir, name);
    writeFileSync(path, text);
    return path;
  };
  const opened = async (
    environment: Readonly<Record<string, string>>,
    nodeEnv?: string,
  ): Promise<ServerTls | undefined> => {
    const ports = { nodeEnv, clock, timers: systemTimers(), logger };
    const tls = await openServerTls(readConfig(environment), ports, 1);
    if (tls !== undefined) open.tls.push(tls);
    return tls;
  };
  const refusal = async (
    environment: Readonly<Record<string, string>>,
    nodeEnv?: string,
  ): Promise<string> => {
    const outcome = await opened(environment, nodeEnv).catch((error: unknown) => error);
    if (outcome instanceof BadSetting) return outcome.message.replaceAll(`${dir}/`, '');
    throw new Error('it was taken', { cause: outcome });
  };
  const pair = ({ cert, key }: { readonly cert: string; readonly key: string }) => ({
    LEDGER_TLS_CERT_FILE: file('tls.crt', cert),
    LEDGER_TLS_KEY_FILE: file('tls.key', key),
  });
  const served = async (tls: ServerTls | undefined): Promise<number> => {
    const server = createServer({ ...tls?.options }, (_, response) => void response.end('served'));
    tls?.follow(server);
    open.servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  };
  /** PEM of the certificate that a client is shown; undefined: no connection. */
  const shown = (port: number, options: ConnectionOptions = {}): Promise<string | undefined> =>
    new Promise((resolve) => {
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
      const certificate = (): string | undefined => socket.getPeerX509Certificate()?.toString().trim();
      // A server that refuses a client of TLS 1.3 says so only after the handshake.
      socket.once('secureConnect', () => socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'));
      socket.once('data', () => {
        resolve(certificate());
        socket.destroy();
      });
      socket.once('error', () => resolve(undefined));
      socket.once('close', () => resolve(undefined));
    });

  it('is off without a certificate', async () => {
    expect(await opened({})).to.equal(undefined);
  });

  it('serves with the pair of the settings', async () => {
    const first = await loopbackTls();
    expect(await shown(await served(await opened(pair(first))))).to.equal(first.cert.trim());
  });

  it('refuses half a pair, each half by name', () => {
    for (const [environment, variable] of [
      [{ LEDGER_TLS_KEY_FILE: '/k' }, 'LEDGER_TLS_CERT_FILE'],
      [{ LEDGER_TLS_CLIENT_CA_FILE: '/c' }, 'LEDGER_TLS_CERT_FILE'],
      [{ LEDGER_TLS_CERT_FILE: '/c' }, 'LEDGER_TLS_KEY_FILE'],
    ] as const)
      expect(() => readConfig(environment))
        .to.throw(`${variable}: is needed with`)
        .and.satisfies(({ message }: Error) => message.includes(`Example: ${variable}=/etc/ledger/`));
    expect(() =>
      readConfig({ LEDGER_TLS: 'off', LEDGER_TLS_CERT_FILE: '/c', LEDGER_TLS_KEY_FILE: '/k' }),
    ).to.throw('LEDGER_TLS: off contradicts LEDGER_TLS_CERT_FILE');
  });

  it('refuses files that cannot be used, and shows nothing of a key', async () => {
    const [first, second] = [await loopbackTls(), await loopbackTls()];
    const good = pair(first);
    expect(await refusal({ ...good, LEDGER_TLS_CERT_FILE: join(dir, 'absent') })).to.equal(
      'LEDGER_TLS_CERT_FILE: absent cannot be read (ENOENT). Example: LEDGER_TLS_CERT_FILE=/etc/ledger/tls.crt',
    );
    expect(await refusal({ ...good, LEDGER_TLS_CERT_FILE: good.LEDGER_TLS_KEY_FILE })).to.include(
      'LEDGER_TLS_CERT_FILE: tls.key holds no certificate (PEM)',
    );
    for (const key of [second.key, '', 'x', first.key.slice(0, 60)])
      expect(await refusal({ ...good, LEDGER_TLS_KEY_FILE: file('other.key', key) }))
        .to.include('LEDGER_TLS_KEY_FILE: other.key is not the key of tls.crt, or has a passphrase (')
        .and.not.include(first.key.slice(30, 50));
    expect(await refusal({ ...good, LEDGER_TLS_CLIENT_CA_FILE: file('ca', 'x') })).to.include(
      'LEDGER_TLS_CLIENT_CA_FILE: ca holds no certificate (PEM)',
    );
  });

  it('serves a renewed pair without a restart', async () => {
    const [first, second] = [await loopbackTls(), await loopbackTls()];
    const port = await served(await opened(pair(first)));
    pair(second);
    await eventually('the renewed certificate', async () => (await shown(port)) === second.cert.trim());
  });

  it('serves the former pair on while the new one is broken, and says so once', async () => {
    const [first, second] = [await loopbackTls(), await loopbackTls()];
    const port = await served(await opened(pair(first)));
    const errors = () => logger.lines.filter(({ level }) => level === 'error');
    file('tls.key', second.key);
    await eventually('the error', () => errors().length > 0);
    expect(await shown(port)).to.equal(first.cert.trim());
    expect(JSON.stringify(errors())).to.include('is not the key of').and.not.include('PRIVATE KEY');
    file('tls.crt', second.cert);
    await eventually('the renewed certificate', async () => (await shown(port)) === second.cert.trim());
    expect(errors()).to.have.length(1);
  });

  it('warns once before its certificate ends, and once when it has ended', async () => {
    const real = systemClock();
    let ahead = 0;
    clock = { ...real, now: () => new Date(Date.parse(real.now()) + ahead).toISOString() };
    const warnings = () => logger.lines.filter(({ level }) => level === 'warn');
    const first = await loopbackTls();
    const end = Date.parse(new X509Certificate(first.cert).validTo);
    await opened(pair(first));
    ahead = end - Date.parse(real.now()) - 86_400_000;
    await eventually('the first warning', () => warnings().length === 1);
    ahead += 2 * 86_400_000;
    await eventually('the second warning', () => warnings().length === 2);
    expect(warnings().map(({ fields }) => fields)).to.deep.equal(
      [1, 2].map(() => ({ expires: new Date(end).toISOString(), file: join(dir, 'tls.crt') })),
    );
  });

  it('asks for certificates of clients where an authority of theirs is set', async () => {
    const [authority, stranger] = [await createAuthority('127.0.0.1'), await createAuthority('127.0.0.1')];
    const tls = await opened({
      ...pair(authority.server),
      LEDGER_TLS_CLIENT_CA_FILE: file('clients.crt', authority.ca),
    });
    const port = await served(tls);
    expect(await shown(port, await authority.issue('client', []))).to.equal(authority.server.cert.trim());
    for (const refused of [
      {},
      await stranger.issue('client', []),
      await authority.issue('client', [], -1_000),
    ])
      expect(await shown(port, refused)).to.equal(undefined);
  });

  it('ends handshakes under way, and no others, when it is told to', async () => {
    const tls = await opened(pair(await loopbackTls()));
    if (tls === undefined) throw new Error('no TLS');
    const port = await served(tls);
    const mute = connectTcp(port, '127.0.0.1');
    mute.on('error', () => undefined);
    const known = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    await new Promise((resolve) => known.once('secureConnect', resolve));
    await new Promise((resolve) => {
      known.once('data', resolve).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    });
    const closed = new Promise((resolve) => mute.once('close', resolve));
    tls.endHandshakes();
    await closed;
    await new Promise((resolve) => {
      known.once('data', resolve).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    });
    known.destroy();
  });

  describe('for gRPC', () => {
    /** Status of a call over HTTP/2 by a client that offers these protocols; undefined: there was no connection. */
    const called = async (tls: ServerTls, ca: string, offered: readonly string[]): Promise<unknown> => {
      const { server, close } = createGrpcServer(
        (stream) => stream.respond({ ':status': 204 }, { endStream: true }),
        {
          timers: systemTimers(),
          clock: systemClock(),
          accept: tls.accept,
        },
      );
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      const { port } = server.address() as AddressInfo;
      const session = connectHttp2(`https://127.0.0.1:${port}`, {
        createConnection: () => connect({ port, host: '127.0.0.1', ca, ALPNProtocols: [...offered] }),
      });
      const status = await new Promise((resolve) => {
        session.once('error', () => resolve(undefined));
        const stream = session.request({ ':method': 'POST', ':path': '/x' });
        stream.once('response', (headers) => resolve(headers[':status']));
        stream.once('error', () => resolve(undefined));
      });
      session.destroy();
      await close(0);
      return status;
    };

    it('serves HTTP/2 to clients that ask for it, and to those that name no protocol', async () => {
      const first = await loopbackTls();
      const tls = (await opened(pair(first))) as ServerTls;
      expect(await called(tls, first.cert, ['h2'])).to.equal(204);
      expect(await called(tls, first.cert, [])).to.equal(204);
      expect(await called(tls, first.cert, ['http/1.1'])).to.equal(undefined);
      expect(await called(tls, (await loopbackTls()).cert, ['h2'])).to.equal(undefined);
    });
  });

  it('is demanded in production where other machines can reach the service', async () => {
    const everywhere = { LEDGER_HTTP_ADDRESS: '0.0.0.0:8001' };
    expect(await refusal(everywhere, 'production')).to.equal(
      'LEDGER_HTTP_ADDRESS: plaintext on 0.0.0.0 is refused when NODE_ENV=production; set LEDGER_TLS_CERT_FILE and ' +
        'LEDGER_TLS_KEY_FILE, or LEDGER_TLS=off where a proxy in front ends TLS',
    );
    expect(await opened({ ...everywhere, LEDGER_TLS: 'off' }, 'production')).to.equal(undefined);
    expect(await opened(everywhere)).to.equal(undefined);
    for (const host of ['127.0.0.1', 'localhost', '[::1]'])
      expect(await opened({ LEDGER_HTTP_ADDRESS: `${host}:8001` }, 'production')).to.equal(undefined);
    expect(await opened({ ...everywhere, ...pair(await loopbackTls()) }, 'production')).not.to.equal(
      undefined,
    );
  });
});
