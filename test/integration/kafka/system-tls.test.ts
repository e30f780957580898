import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates, createServer, type Server, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { loopbackTls, type LoopbackTls } from '../../support/http/loopback-tls.ts';

const OPENING = join(import.meta.dirname, '../../support/kafka/opening-with-system-tls.ts');
const run = promisify(execFile);

/** What a system trusts is read by a process once: each case is a process of its own. */
describe('LEDGER_KAFKA_TLS_CA=system', function () {
  this.timeout(20_000);
  let directory: string;
  let tls: LoopbackTls;
  let server: Server;
  let encrypted = 0;
  const sockets = new Set<TLSSocket>();
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-system-tls-'));
    tls = await loopbackTls();
    server = createServer(tls, (socket) => {
      encrypted += 1;
      sockets.add(socket);
      socket.on('error', () => undefined).resume();
    });
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  beforeEach(() => {
    encrypted = 0;
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
    await rm(directory, { recursive: true });
  });

  const opening = async (certificates: readonly string[]): Promise<string> => {
    const file = join(directory, `${certificates.length}.pem`);
    await writeFile(file, certificates.join('\n'));
    const broker = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    // With what others have set to trust more, it would not be the system of this case.
    const { NODE_EXTRA_CA_CERTS: _more, NODE_OPTIONS: _options, ...others } = process.env;
    const env = { ...others, SSL_CERT_FILE: file, SSL_CERT_DIR: join(directory, 'none'), OPEN_MS: '700' };
    const { stdout } = await run(process.execPath, [OPENING, broker], { env });
    return stdout;
  };

  it('trusts whom the operating system trusts', async () => {
    await opening([...rootCertificates.slice(0, 3), tls.cert]);
    expect(encrypted).to.be.greaterThan(0);
  });

  it('trusts nobody else', async () => {
    expect(await opening(rootCertificates.slice(0, 3))).to.match(/certificate/);
    expect(encrypted).to.equal(0);
  });

  it('trusts nobody where the system has no list, and says so', async () => {
    expect(await opening([])).to.include(
      'LEDGER_KAFKA_TLS_CA: this system has no certificates of its own: install them, or name a file',
    );
  });
});
