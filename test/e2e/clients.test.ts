import { expect } from 'chai';
import { credentials } from '@grpc/grpc-js';
import { openSqliteLogReader } from '../../src/adapters/event-store/sqlite/open-log-reader.ts';
import { eventually } from '../support/eventually.ts';
import { Code, grpcCaller, type GrpcCaller } from '../support/grpc/caller.ts';
import { textAt } from '../support/http/caller.ts';
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

  describe('of a cluster that is READY', () => {
    const CLUSTERS = 'osac.public.v1.Clusters';
    let alice: GrpcCaller;
    let root: GrpcCaller;
    let id: string;
    before(async () => {
      const { stack, grpc, ca } = secure;
      const calling = (bearer: string): GrpcCaller =>
        grpcCaller(grpc, bearer, {}, credentials.createSsl(Buffer.from(ca)));
      alice = calling(token);
      root = calling(await stack.token({ admin: true, user: 'root' }));
      const { json } = await alice.call(`/${CLUSTERS}/List`, { filter: 'this.metadata.name == "from-node"' });
      id = textAt(json, 'items', '0', 'id');
    });
    after(() => {
      for (const caller of [alice, root]) caller.close();
    });

    it('get its kubeconfig and its password; each look is recorded before the answer', async () => {
      const kubeconfig = await alice.call(`/${CLUSTERS}/GetKubeconfig`, { id });
      expect(kubeconfig.code, kubeconfig.message).to.equal(Code.OK);
      expect(kubeconfig.json['kubeconfig']).to.match(/^apiVersion: v1\n/);
      const password = await alice.call(`/${CLUSTERS}/GetPassword`, { id });
      expect(password.code, password.message).to.equal(Code.OK);
      expect(password.json['password']).to.match(/\S{8}/);
      const own = openSqliteLogReader({ dataDir: secure.stack.dataDir });
      const events = [];
      for await (const event of own.readStream(`cluster-${id}`)) events.push(event);
      await own.close();
      const revealed = events.filter(({ type }) => type === 'ClusterCredentialsRevealed');
      expect(revealed.map(({ data }) => data['what'])).to.deep.equal(['kubeconfig', 'password']);
      expect(JSON.stringify(events)).not.to.include(password.json['password']);
    });

    it('say that something has changed: its hub is looked at at once', async () => {
      const looks = async (): Promise<number> => {
        const text = await (await fetch(`${secure.stack.service().metrics}/metrics`)).text();
        const counts = text.matchAll(
          /^ledger_effects_total\{.*operation="observe.*outcome="done".*\} (\d+)$/gm,
        );
        return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
      };
      // By themselves they are a minute apart.
      for (let signals = 0; signals < 3; signals += 1) {
        const before = await looks();
        const signalled = await root.call('/osac.private.v1.Clusters/Signal', { id });
        expect(signalled.code, signalled.message).to.equal(Code.OK);
        await eventually('it is looked at', async () => (await looks()) > before);
      }
    });
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

  it('say in Node in one line what is missing: a word, the file, TLS of the service', async () => {
    const { authority, grpc, stack } = secure;
    const inClear = new URL(stack.service().metrics).host;
    for (const [words, said] of [
      [[], /^usage: .*<CA file>.*\n$/],
      [[grpc, '/nowhere/ca.crt', 'x'], /^there is no file '\/nowhere\/ca.crt'.*dev-cert.*\n$/],
      [
        [inClear.replace('127.0.0.1', 'localhost'), authority, 'x'],
        /^localhost:\d+ does not speak TLS: .*\n$/,
      ],
    ] as const) {
      const command = [process.execPath, 'fixtures/clients/node.js', ...words];
      const run = await runProgram(command, { OSAC_TOKEN: token });
      expect(run.code, run.err).to.equal(1);
      expect(run.err).to.match(said);
    }
  });
});
