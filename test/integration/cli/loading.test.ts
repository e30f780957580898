import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { pathToFileURL } from 'node:url';
import { expect } from 'chai';
import { openDevelopmentIssuer } from '../../../src/adapters/identity/development-issuer.ts';
import { startCliStub } from '../../support/cli/stub-service.ts';
import { runMain } from '../../support/service/run-main.ts';

/** What `ledgerctl` loads is most of the time of a short call; counted, since a time says more of the machine. */
describe('what a call of ledgerctl loads', function () {
  this.timeout(60_000);
  const TOLD = pathToFileURL(join(import.meta.dirname, '../../support/cli/loaded-modules.ts')).href;
  let folder: string;
  let url: string;
  let stop: () => void;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ledger-cli-loading-'));
    await openDevelopmentIssuer(join(folder, 'secrets'));
    const stub = await startCliStub();
    stub.answers(() => ({ body: { items: [], total: 0, size: 0 } }));
    ({ url, close: stop } = stub);
  });
  after(() => {
    stop();
    rmSync(folder, { recursive: true });
  });

  const loadedBy = async (...argv: string[]) => {
    const file = join(folder, 'modules.json');
    const { code, err } = await runMain(['--url', url, ...argv], {
      LEDGER_DATA_DIR: folder,
      LEDGER_TEST_MODULES: file,
      NODE_OPTIONS: `--import=${TOLD}`,
    });
    expect(code, err).to.equal(0);
    const modules = (JSON.parse(readFileSync(file, 'utf8')) as string[]).filter((each) =>
      each.startsWith('file:'),
    );
    const packages = modules.flatMap((each) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(each)?.[1] ?? []);
    return {
      packages: [...new Set(packages)].toSorted(),
      own: modules.flatMap((each) => /\/(src\/.*)$/.exec(each)?.[1] ?? []),
      modules: modules.length,
    };
  };

  for (const argv of [['--version'], ['--help'], ['get', '--help'], ['hubs', 'add', '--help']])
    it(`is commander and little else for "${argv.join(' ')}"`, async () => {
      const { packages, modules } = await loadedBy(...argv);
      expect(packages).to.deep.equal(['commander']);
      expect(modules).to.be.lessThan(argv.length === 1 ? 25 : 50);
    });

  // Neither the schema of the settings (zod), nor messages (protobuf), a server, a client of a store or of Kubernetes.
  for (const argv of [
    ['token', '--user', 'root', '--admin'],
    ['get', 'clusters'],
    ['get', 'hubs', '-o', 'json'],
    ['orders', 'list'],
    ['hubs', 'list'],
    ['lanes', 'list'],
    ['usage'],
  ])
    it(`is what "${argv.join(' ')}" needs`, async () => {
      const { packages, modules, own } = await loadedBy(...argv);
      expect(packages).to.deep.equal(['commander', 'jose']);
      expect(modules).to.be.lessThan(75);
      expect(own).to.not.include.members(['src/config.ts', 'src/domain/kinds.ts']);
    });

  it('is the whole schema of the settings once there is no key where they say', async () => {
    const misspelt = { LEDGER_DATADIR: folder };
    const { code, err } = await runMain(['token', '--user', 'root', '--admin'], misspelt, folder);
    expect(err).to.include('LEDGER_DATADIR: unknown setting; did you mean LEDGER_DATA_DIR');
    expect(code).to.equal(1);
  });
});
