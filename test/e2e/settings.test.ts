import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { BadSetting, readConfig } from '../../src/config.ts';
import { runMain, startMain } from '../support/e2e-process.ts';
import { eventually } from '../support/eventually.ts';

/** An address that is taken: start.test.ts. */
describe('settings that cannot be used', function () {
  this.timeout(180_000);
  let dir: string;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'ledger-e2e-settings-'));
  });
  afterEach(() => rmSync(dir, { recursive: true }));

  const free = {
    LEDGER_HTTP_ADDRESS: '127.0.0.1:0',
    LEDGER_GRPC_ADDRESS: '127.0.0.1:0',
    LEDGER_METRICS_ADDRESS: '127.0.0.1:0',
  };
  type Bad = readonly [environment: Record<string, string>, ...says: readonly string[]];
  /** What their text alone shows. */
  const unreadable: readonly Bad[] = [
    [
      { LEDGER_HTTP_ADDRESS: 'nonsense' },
      'LEDGER_HTTP_ADDRESS: must be host:port',
      'LEDGER_HTTP_ADDRESS=127.0.0.1:8001',
    ],
    [{ LEDGER_HTTP_ADDRESS: '127.0.0.1:70000' }, 'LEDGER_HTTP_ADDRESS: the port must be at most 65535'],
    [
      { LEDGER_EVENT_STORE: 'postgres://x' },
      'LEDGER_EVENT_STORE: must be `sqlite` or an esdb://',
      'Example: LEDGER_EVENT_STORE=esdb://',
    ],
    [
      { LEDGER_ROLES: 'api,everything' },
      'LEDGER_ROLES:',
      '(got "api,everything")',
      'Example: LEDGER_ROLES=api,processes',
    ],
    [{ LEDGER_LOG_LEVEL: 'loud' }, 'LEDGER_LOG_LEVEL:', 'Example: LEDGER_LOG_LEVEL=info'],
    [{ LEDGER_STORE_DEADLINE_MS: '1s' }, 'LEDGER_STORE_DEADLINE_MS: must be a whole number of milliseconds'],
    [{ LEDGER_TRUSTED_ISSUERS: 'http://sso' }, 'LEDGER_TRUSTED_ISSUERS: must be https URLs'],
    [
      { LEDGER_TRUSTED_ISSUERS: 'https://me:hunter2@sso.example' },
      'LEDGER_TRUSTED_ISSUERS: must hold no user name or password (got a value with credentials)',
    ],
    [
      { LEDGER_TRUSTED_ISSUERS: 'https://sso.example=acme;Globex' },
      'LEDGER_TRUSTED_ISSUERS: "Globex" is no tenant, nor one of *, admins, services',
      'Example: LEDGER_TRUSTED_ISSUERS=https://sso.example.com/realms/osac=acme;admins',
    ],
  ];
  /** What only a start finds out, and how it says the others. */
  const unusable: readonly Bad[] = [
    [
      { LEDGER_HTTP_ADRESS: '127.0.0.1:1', LEDGER_SOMETHING_ELSE: 'x' },
      'LEDGER_HTTP_ADRESS: there is no such setting; did you mean LEDGER_HTTP_ADDRESS',
      'LEDGER_SOMETHING_ELSE: there is no such setting. Known: LEDGER_HTTP_ADDRESS, LEDGER_GRPC_ADDRESS, LEDGER_METRICS_ADDRESS, ',
    ],
    [
      { LEDGER_KAFKA_BROKERS: '127.0.0.1:1', LEDGER_KAFKA_TLS_CA: '/nowhere/ca.pem' },
      'LEDGER_KAFKA_TLS_CA: /nowhere/ca.pem cannot be read (ENOENT). Example: LEDGER_KAFKA_TLS_CA=/etc/kafka/ca.pem',
    ],
    [
      { LEDGER_KAFKA_BROKERS: '127.0.0.1:1', LEDGER_KAFKA_TLS_CA: 'package.json' },
      'package.json holds no certificate (PEM)',
    ],
    [
      {
        LEDGER_KAFKA_BROKERS: '127.0.0.1:1',
        LEDGER_KAFKA_SASL_MECHANISM: 'scram-sha-256',
        LEDGER_KAFKA_SASL_USERNAME: 'u',
        LEDGER_KAFKA_SASL_PASSWORD_FILE: '/nowhere/password',
      },
      'LEDGER_KAFKA_SASL_PASSWORD_FILE: /nowhere/password cannot be read (ENOENT)',
    ],
    [{ LEDGER_CATALOG: '/nowhere/at/all' }, 'LEDGER_CATALOG: there is no folder /nowhere/at/all'],
    [
      { LEDGER_DATA_DIR: '/dev/null/data' },
      'LEDGER_DATA_DIR: /dev/null/data is no directory that can be written to (ENOTDIR)',
      'Example: LEDGER_DATA_DIR=./data',
    ],
    [
      { LEDGER_DATA_DIR: '/proc/ledger-x' },
      'LEDGER_DATA_DIR: /proc/ledger-x is no directory that can be written to (ENOENT)',
    ],
    [{ LEDGER_ROLES: '', LEDGER_LOG_LEVEL: 'x' }, 'LEDGER_ROLES:', 'LEDGER_LOG_LEVEL:'],
    [
      { NODE_ENV: 'Production' },
      'refused when NODE_ENV=production; set LEDGER_TRUSTED_ISSUERS, for example https://',
    ],
    [
      { LEDGER_HTTP_ADDRESS: '0.0.0.0:0' },
      'refused on 0.0.0.0, which other machines can reach; set LEDGER_TRUSTED_ISSUERS',
    ],
  ];

  it('are refused as they are read: which variable, what is wrong, an example', () => {
    for (const [environment, ...says] of unreadable) {
      let refusal: unknown;
      try {
        readConfig(environment);
      } catch (error) {
        refusal = error;
      }
      expect(refusal, JSON.stringify(environment)).to.be.instanceOf(BadSetting);
      for (const text of says)
        expect((refusal as Error).message)
          .to.include(text)
          .and.not.include('hunter2');
    }
  });

  it('are refused at the start: which variable, what is wrong, an example; exit status 1', async () => {
    // Two at a time: each start has a bound of its own, which all at once would use up on a busy machine.
    for (let at = 0; at < unusable.length; at += 2)
      await Promise.all(
        unusable.slice(at, at + 2).map((one, n) => isRefused(one, join(dir, String(at + n)))),
      );
  });

  it('a data directory that every user can write to is refused', async () => {
    chmodSync(dir, 0o777);
    const run = await runMain(['serve'], { LEDGER_DATA_DIR: dir, ...free });
    expect(run.code).to.equal(1);
    expect(run.err).to.include(
      `LEDGER_DATA_DIR: every user of this machine can write to ${dir} (mode 0777); run: chmod o-w`,
    );
  });

  it('a catalogue with simulated hubs ends a start in production', async () => {
    const run = await runMain(['serve'], {
      LEDGER_DATA_DIR: dir,
      ...free,
      NODE_ENV: ' Production',
      LEDGER_TRUSTED_ISSUERS: 'https://sso.example/realms/osac',
      LEDGER_CATALOG: 'fixtures/catalog',
    });
    expect(run.code, run.err).to.equal(1);
    expect(run.err).to.include(
      'simulated hubs are refused when NODE_ENV=production; register a hub with a kubeconfig, or set LEDGER_SIMULATED_HUBS=allowed',
    );
  });

  it('simulated hubs that are there already are named by a warning in production', async () => {
    const settings = { LEDGER_DATA_DIR: dir, ...free };
    const before = startMain(['serve'], { ...settings, LEDGER_CATALOG: 'fixtures/catalog' });
    await eventually('the catalogue', () => before.out().includes('catalogue loaded'), 30_000);
    before.child.kill('SIGTERM');
    expect((await before.ended).code).to.equal(0);
    const production = startMain(['serve'], {
      ...settings,
      NODE_ENV: 'production',
      LEDGER_TRUSTED_ISSUERS: 'https://sso.example/realms/osac',
    });
    const warning = () => production.out().match(/.*simulated hubs take no orders.*/)?.[0] ?? '';
    await eventually('the warning', () => warning() !== '', 30_000);
    expect(warning())
      .to.include('LEDGER_SIMULATED_HUBS=allowed')
      .and.match(/"hubs":\["sim-[^\]]*\]/);
    production.child.kill('SIGTERM');
    await production.ended;
  });

  const isRefused = async ([settings, ...says]: Bad, dataDir: string): Promise<void> => {
    const environment = JSON.stringify(settings);
    const run = await runMain(['serve'], { LEDGER_DATA_DIR: dataDir, ...free, ...settings });
    expect(run.code, environment).to.equal(1);
    for (const text of says) expect(run.err, environment).to.include(text);
    expect(run.err, environment).not.to.match(/\n\s+at /);
    expect(run.out, environment).not.to.include('"listening"');
  };
});
