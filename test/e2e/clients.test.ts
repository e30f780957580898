import { expect } from 'chai';
import { order } from '../../fixtures/clients/browser.ts';
import { runProgram, startSecureStack, type SecureStack } from '../support/service/tls.ts';
import { http2Fetch } from '../support/http/fetch-http2.ts';

/** What docs/clients.md shows, as it stands in `fixtures/clients/`. Go and Python: test/real/clients.test.ts. */
describe('examples of clients', function () {
  this.timeout(120_000);
  let secure: SecureStack;
  let token: string;
  before(async () => {
    secure = await startSecureStack();
    token = await secure.stack.token({ tenant: 'acme', user: 'alice' });
  });
  after(() => secure?.stack.dispose());

  it('in Node order a cluster and follow it until it is READY', async () => {
    const { authority, grpc } = secure;
    const run = await runProgram(
      [process.execPath, 'fixtures/clients/node.js', grpc, authority, 'from-node'],
      { OSAC_TOKEN: token },
    );
    expect(run.code, run.err).to.equal(0);
    expect(run.out)
      .to.match(/^from-node/)
      .and.match(/from-node CLUSTER_STATE_READY\n$/);
  });

  it('for a page do so over gRPC-Web', async () => {
    const baseUrl = `https://${secure.grpc}`;
    const told: string[] = [];
    const { fetch, close } = http2Fetch(baseUrl, secure.ca);
    await order('from-a-page', token, (line) => told.push(line), { baseUrl, fetch }).finally(close);
    expect(told.at(-1)).to.equal('from-a-page CLUSTER_STATE_READY');
  });

  it('for a page end with the reason where the token is refused', async () => {
    const baseUrl = `https://${secure.grpc}`;
    const { fetch, close } = http2Fetch(baseUrl, secure.ca);
    const refused = await order('x', 'garbage', () => undefined, { baseUrl, fetch })
      .catch((error: unknown) => String(error))
      .finally(close);
    expect(refused).to.match(/^ConnectError: \[unauthenticated\] /);
  });

  it('say in Node why an order is refused', async () => {
    const { authority, grpc } = secure;
    const run = await runProgram(
      [process.execPath, 'fixtures/clients/node.js', grpc, authority, 'Not a name'],
      { OSAC_TOKEN: token },
    );
    expect(run.code).to.equal(1);
    expect(run.err).to.include('INVALID_ARGUMENT');
  });
});
