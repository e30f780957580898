import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import { Code, grpcCaller } from '../support/grpc/caller.ts';
import {
  createAuthority,
  type Authority,
  type KeyPair,
} from '../support/kube-apiserver/access/certificates.ts';
import { runMain, startMain, type Run } from '../support/service/run-main.ts';
import { createStack, type Stack } from '../support/service/stack.ts';

describe('a service that asks clients for certificates', function () {
  this.timeout(120_000);
  let stack: Stack;
  let authority: Authority;
  let stranger: Authority;
  let pairs: Readonly<Record<'good' | 'foreign' | 'expired', KeyPair>>;
  const file = (name: string): string => join(stack.dataDir, '..', name);

  before(async () => {
    stack = await createStack('sqlite');
    [authority, stranger] = [await createAuthority('127.0.0.1'), await createAuthority('127.0.0.1')];
    pairs = {
      good: await authority.issue('cli', []),
      foreign: await stranger.issue('cli', []),
      expired: await authority.issue('cli', [], -1_000),
    };
    for (const [name, { cert, key }] of Object.entries({ server: authority.server, ...pairs })) {
      writeFileSync(file(`${name}.crt`), cert);
      writeFileSync(file(`${name}.key`), key);
    }
    writeFileSync(file('ca.crt'), authority.ca);
    const settings = {
      LEDGER_TLS_CERT_FILE: file('server.crt'),
      LEDGER_TLS_KEY_FILE: file('server.key'),
      LEDGER_TLS_CLIENT_CA_FILE: file('ca.crt'),
    };
    const { metrics } = await stack.start(settings, { until: 'listening' });
    await eventually('the service is ready', async () => (await fetch(`${metrics}/readyz`)).ok);
  });
  after(() => stack?.dispose());

  const options = (...argv: string[]): string[] => [
    '--url',
    stack.http(),
    '--service-ca',
    file('ca.crt'),
    '--timeout',
    '10s',
    ...argv,
  ];
  const showing = (who: string): string[] => [
    '--client-cert',
    file(`${who}.crt`),
    '--client-key',
    file(`${who}.key`),
  ];
  const ledgerctl = (...argv: string[]): Promise<Run> =>
    runMain(options(...argv), { LEDGER_DATA_DIR: stack.dataDir });

  it('is used by ledgerctl with one, which follows events and writes, too', async () => {
    const listed = await ledgerctl(...showing('good'), 'get', 'tenants', '--private', '-o', 'name');
    expect(listed.code, listed.err).to.equal(0);
    expect(listed.out).to.include('acme');
    const watching = startMain(options('get', 'tenants', '--private', '--watch', '-o', 'name'), {
      LEDGER_DATA_DIR: stack.dataDir,
      LEDGERCTL_CLIENT_CERT: file('good.crt'),
      LEDGERCTL_CLIENT_KEY: file('good.key'),
    });
    await eventually('what is there', () => watching.out().includes('acme'));
    const labelled = await ledgerctl(...showing('good'), 'label', 'tenant', 'acme', 'seen=yes', '--private');
    expect(labelled.code, labelled.err).to.equal(0);
    const lines = (): number => watching.out().split('acme').length;
    await eventually('the change', () => lines() > 2);
    watching.child.kill('SIGINT');
    await watching.ended;
  });

  it('refuses ledgerctl with another one or none, which says what to do', async () => {
    for (const who of ['foreign', 'expired'])
      expect(await ledgerctl(...showing(who), 'get', 'tenants', '--private')).to.deep.include({ code: 4 });
    const without = await ledgerctl('get', 'tenants', '--private');
    expect(without.code).to.equal(4);
    expect(without.err).to.include('--client-cert');
  });

  it('is not called with files that are none', async () => {
    const half = await ledgerctl('--client-cert', file('good.crt'), 'get', 'tenants');
    const other = await ledgerctl(
      ...showing('good').slice(0, 2),
      ...showing('foreign').slice(2),
      'get',
      'tenants',
    );
    const absent = await ledgerctl(...showing('nobody'), 'get', 'tenants');
    for (const [run, words] of [
      [half, '--client-cert and --client-key belong together'],
      [other, 'foreign.key is not the key of'],
      [absent, 'nobody.crt: no such file'],
    ] as const) {
      expect(run.code, run.err).to.equal(2);
      expect(run.err).to.include(words).and.not.include('PRIVATE KEY');
    }
  });

  it('answers gRPC with one, and nobody else; who does not trust its authority sends no token', async () => {
    const token = await stack.token({ admin: true, user: 'root' });
    const call = async (ca: string, pair?: KeyPair): Promise<number> => {
      const parts = pair === undefined ? [] : [Buffer.from(pair.key), Buffer.from(pair.cert)];
      const security = credentials.createSsl(Buffer.from(ca), ...parts);
      const caller = grpcCaller(stack.service().grpc ?? '', token, {}, security);
      const reply = await caller.call('/osac.private.v1.Tenants/List', { limit: 1 });
      caller.close();
      return reply.code;
    };
    const { good, foreign, expired } = pairs;
    expect(await call(authority.ca, good)).to.equal(Code.OK);
    for (const pair of [undefined, foreign, expired])
      expect(await call(authority.ca, pair)).to.equal(Code.UNAVAILABLE);
    expect(await call(stranger.ca, good)).to.equal(Code.UNAVAILABLE);
    expect(await call(authority.ca, good)).to.equal(Code.OK);
  });
});
