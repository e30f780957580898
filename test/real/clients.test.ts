import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect } from 'chai';
import { buildGoExample, makePythonExample } from '../support/docs/client-examples.ts';
import { runProgram, startSecureStack, type SecureStack } from '../support/service/tls.ts';
import { obtained } from '../support/not-run-here.ts';

/** The examples of docs/clients.md whose libraries come from other registries than npm's. */
describe('examples of clients in other languages', function () {
  this.timeout(900_000);
  let secure: SecureStack;
  let token: string;
  before(async () => {
    secure = await startSecureStack();
    token = await secure.stack.token({ tenant: 'acme', user: 'alice' });
  });
  after(() => secure?.stack.dispose());

  it('in Go order a cluster and follow it until it is READY', async function () {
    const program = obtained(this, 'grpc-go', buildGoExample);
    const run = await runProgram([program, secure.grpc, secure.authority, 'from-go'], { OSAC_TOKEN: token });
    rmSync(dirname(program), { recursive: true });
    expect(run.code, run.err).to.equal(0);
    expect(run.out).to.match(/from-go CLUSTER_STATE_READY\n$/);
  });

  it('in Python do so, too', async function () {
    const { words, stubs } = obtained(this, 'grpcio', makePythonExample);
    const environment = { OSAC_TOKEN: token, PYTHONPATH: stubs };
    const run = await runProgram([...words, secure.grpc, secure.authority, 'from-python'], environment);
    rmSync(stubs, { recursive: true });
    expect(run.code, run.err).to.equal(0);
    expect(run.out).to.match(/from-python CLUSTER_STATE_READY\n$/);
  });
});
