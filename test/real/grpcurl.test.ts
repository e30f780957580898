import { expect } from 'chai';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { grpcurl } from '../support/docs/client-examples.ts';
import { runProgram, startSecureStack, type SecureStack } from '../support/service/tls.ts';
import { notRunHere } from '../support/not-run-here.ts';

/** The tool that people look at a gRPC service with. */
describe('grpcurl', function () {
  this.timeout(600_000);
  let secure: SecureStack;
  let program: string;
  let token: string;
  before(async function () {
    const built = grpcurl((line) => console.log(`      ${line}`));
    if ('missing' in built) return notRunHere(this, 'grpc-go', built.missing);
    program = built.path;
    secure = await startSecureStack();
    token = await secure.stack.token({ tenant: 'acme', user: 'alice' });
  });
  after(() => secure?.stack.dispose());

  const asked = async (options: readonly string[], ...words: readonly string[]) =>
    runProgram([program, '-cacert', secure.authority, ...options, secure.grpc, ...words], {});
  const bearer = (): string[] => ['-H', `authorization: Bearer ${token}`];

  it('lists and describes services by reflection', async () => {
    const services = await asked([], 'list');
    expect(services.code, services.err).to.equal(0);
    expect(services.out.split('\n')).to.include.members([
      'grpc.health.v1.Health',
      'osac.private.v1.Hubs',
      'osac.public.v1.Clusters',
      'osac.public.v1.Events',
    ]);
    const described = await asked([], 'describe', 'osac.public.v1.Clusters.Create');
    expect(described.out).to.include('.osac.public.v1.ClustersCreateRequest');
  });

  it('calls with a token, by reflection and by files', async () => {
    const order = JSON.stringify({
      object: { metadata: { name: 'by-grpcurl' }, spec: { template: { name: 'ocp-small' } } },
    });
    const made = await asked([...bearer(), '-d', order], 'osac.public.v1.Clusters/Create');
    expect(made.code, made.err).to.equal(0);
    const files = ['-import-path', 'proto', '-proto', 'osac/public/v1/clusters.proto'];
    const listed = await asked([...bearer(), ...files], 'osac.public.v1.Clusters/List');
    expect(listed.code, listed.err).to.equal(0);
    expect(JSON.parse(listed.out)).to.have.nested.property('items[0].metadata.name', 'by-grpcurl');
  });

  it('shows code, message and details of a refusal', async () => {
    const refused = await asked([], 'osac.public.v1.Clusters/List');
    expect(refused.code).not.to.equal(0);
    expect(refused.err).to.include('Code: Unauthenticated').and.include('Message: ');
    const unknown = JSON.stringify({
      object: { metadata: { name: 'x' }, spec: { template: { name: 'nope' } } },
    });
    const wrong = await asked([...bearer(), '-d', unknown], 'osac.public.v1.Clusters/Create');
    expect(wrong.err).to.include('Code: InvalidArgument').and.include('google.rpc.BadRequest');
  });

  it('calls as docs/clients.md shows it, as it stands', async () => {
    const page = readFileSync('docs/clients.md', 'utf8');
    const shown = /\n## grpcurl\n[^]*?```sh\n([^]*?)```/.exec(page)?.[1] ?? '';
    const typed = shown
      .replaceAll('127.0.0.1:8000', secure.grpc)
      .replaceAll('dev-cert/ca.crt', secure.authority)
      .replaceAll('by-grpcurl', 'by-the-page');
    expect(typed.split('$GRPCURL')).to.have.length(5);
    const run = await runProgram(['bash', '-euc', typed], {
      OSAC_TOKEN: token,
      PATH: `${dirname(program)}:${process.env['PATH']}`,
    });
    expect(run.code, run.err).to.equal(0);
    expect(run.out)
      .to.include('osac.public.v1.Clusters')
      .and.include('message ClustersCreateRequest')
      .and.include('"name": "by-the-page"');
  });

  it('does not connect to a service whose authority it does not know', async () => {
    const run = await runProgram([program, '-connect-timeout', '5', secure.grpc, 'list'], {});
    expect(run.code).not.to.equal(0);
    expect(run.err).to.include('certificate signed by unknown authority');
  });
});
