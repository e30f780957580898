import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { startAap, type AapStandIn } from '../support/aap/aap-server.ts';
import { ledgerctlOn } from '../support/service/ledgerctl.ts';
import {
  AS_DEPLOYED,
  CLUSTERS,
  createStack,
  registerNowhere,
  SERVE,
  type Stack,
} from '../support/service/stack.ts';
import { loadDefinitions, startKubeApiServer, type KubeApiServer } from '../support/kube-apiserver/start.ts';
import { startRulebook, type RulebookStandIn } from '../support/rulebook/rulebook-server.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const [MAIN = ''] = SERVE;

/** What people are told to type, with what this machine may not have: kubectl (kubectl.ts), npx, openssl. */
const SHELL = `set -euo pipefail
npx() { shift; node '${MAIN}' "$@"; }
kubectl() { node '${join(ROOT, 'test/support/kube-apiserver/kubectl.ts')}' "$@"; }
openssl() { node -p 'crypto.randomBytes(32).toString("hex")'; }
`;

const blocksOf = (text: string): readonly string[] =>
  [...text.matchAll(/^```\w*\n([\s\S]*?)^```/gm)].map(([, block]) => block ?? '');

describe('the page "Connect a management cluster"', function () {
  this.timeout(120_000);
  const chapter = readFileSync('docs/connect-a-hub.md', 'utf8');
  const [prepare = '', automation = '', register = '', check = '', , later = ''] = blocksOf(chapter);
  const [credentials = ''] = blocksOf(readFileSync('ops/rbac/README.md', 'utf8'));
  const [operator = '', eda = '', aap = ''] = register.split('\n\n');
  let stack: Stack;
  let server: KubeApiServer;
  let rulebook: RulebookStandIn;
  let platform: AapStandIn;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-readme-hub-'));
    symlinkSync(join(ROOT, 'ops'), join(folder, 'ops'));
    // HyperShift's and the agents' kinds are there; OSAC's are what is applied.
    const foreign = loadDefinitions().filter(
      (definition) => !JSON.stringify(definition['metadata']).includes('osac.openshift.io'),
    );
    server = await startKubeApiServer({ crds: foreign });
    writeFileSync(join(folder, 'kube-ca.pem'), server.ca);
    stack = await createStack('sqlite', AS_DEPLOYED);
    await stack.start();
  });
  after(async () => {
    await stack?.dispose();
    await rulebook?.close();
    await platform?.close();
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const type = async (lines: string): Promise<string> => {
    const env = {
      ...process.env,
      KUBE_URL: server.url,
      KUBE_TOKEN: server.adminToken,
      KUBE_CA: join(folder, 'kube-ca.pem'),
      LEDGER_DATA_DIR: stack.dataDir,
      LEDGERCTL_URL: stack.http(),
    };
    const { stdout } = await run('bash', ['-c', SHELL + lines], { cwd: folder, env });
    return stdout;
  };
  const secret = (name: string): string => readFileSync(join(folder, name), 'utf8').trim();
  /** Registers as the lines of a mode say, and takes the hub away again. */
  const registers = async (lines: string, mode: string, controller: string): Promise<void> => {
    const here = lines
      .replace('https://rulebook.example:5000', rulebook.url)
      .replace('https://aap.example/api/controller', platform.url);
    const more = controller === 'ledger' ? ' --controller ledger --tenant-namespaces' : '';
    expect(await type(`${here.trimEnd()}${more}\n`)).to.include('hub hub-1: registered');
    const ledgerctl = ledgerctlOn(stack);
    const shown = await ledgerctl('hubs', 'show', 'hub-1');
    expect(shown.out, shown.err).to.include(`${mode}, orders are reconciled by ${controller}`);
    const removed = await ledgerctl('hubs', 'remove', 'hub-1');
    expect(removed.code, removed.err).to.equal(0);
  };

  it('prepares the cluster and the automation', async () => {
    await type(prepare);
    await type(credentials);
    expect(secret('hub.kubeconfig')).to.include(server.url);
    await type(automation);
    const token = secret('automation.token');
    rulebook = await startRulebook({ token, hmacSecret: secret('webhook.hmac') });
    platform = await startAap({ token });
  });

  it('registers hubs of every mode with the lines that it shows', async () => {
    await registers(eda, 'eda', 'operator');
    await registers(aap, 'aap', 'operator');
    const [, first = '', second = '', third = ''] =
      /#   (--controller ledger)[\s\S]*#   (--tenant-namespaces)[\s\S]*#   (--ca-file) /.exec(register) ?? [];
    expect([first, second, third]).to.deep.equal(['--controller ledger', '--tenant-namespaces', '--ca-file']);
    await registers(eda, 'eda', 'ledger');
    await registers(aap, 'aap', 'ledger');
    expect(await type(operator)).to.include('hub hub-1: registered');
  });

  it('says which file is missing where a step was left out', async () => {
    await server.call(
      'DELETE',
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/osac-hub-controller-ledger',
    );
    const lines = `${eda.replace('https://rulebook.example:5000', rulebook.url).trimEnd()} --controller ledger`;
    const failed = await type(lines.replace('hub-1', 'hub-2')).catch(
      (error: unknown) => error as { stderr: string },
    );
    expect(failed)
      .to.have.property('stderr')
      .that.matches(/RightMissing.*controller-ledger\.yaml/);
  });

  it('checks, shows, closes, drains, renews and removes', async () => {
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await registerNowhere(stack);
    await alice.send('POST', CLUSTERS, {
      metadata: { name: 'my-cluster', annotations: { 'fulfillment-ledger/zone': 'nowhere' } },
      spec: { template: { id: 'osac.templates.ocp_small' } },
    });
    const shown = await type(check);
    expect(shown).to.match(/^hub-1 +kubernetes +operator/m);
    expect(shown).to.include('hub hub-1: ready for orders');
    expect(shown).to.match(/Waits for a hub: [\s\S]*hub-1 +no +/);
    cpSync(join(folder, 'hub.kubeconfig'), join(folder, 'new.kubeconfig'));
    const done = await type(later);
    for (const line of [
      'hub hub-1: cordoned',
      'hub hub-1: draining; no order is on it',
      'has new credentials',
      'removed',
    ])
      expect(done).to.include(line);
  });
});
