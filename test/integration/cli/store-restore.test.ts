import { expect } from 'chai';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { openDeploymentKeys } from '../../../src/adapters/keys/deployment-keys.ts';
import { createBookkeeping } from '../../../src/app/log/bookkeeping.ts';
import { assertDeployment, readDeployment, type Deployment } from '../../../src/app/deployment/deployment.ts';
import type { EventStore, RecordedEvent } from '../../../src/app/log/event-store.ts';
import { leaseStream } from '../../../src/app/deployment/ownership.ts';
import type { LeaseData } from '../../../src/domain/bookkeeping/events.ts';
import { surveyLog } from '../../../src/app/deployment/restore.ts';
import type { CliActions, CliIo, RestoreDialogue } from '../../../src/cli/connection.ts';
import { EXIT } from '../../../src/cli/exit.ts';
import { createCli, runCli } from '../../../src/cli/ledgerctl.ts';
import { restoreStore } from '../../../src/composition/restore.ts';
import { createBench, event } from '../../support/eventstoredb-peer/fixture.ts';
import { createFakeClock } from '../../support/commands/fake-context.ts';
import { createFakeIds } from '../../support/commands/fake-incarnation.ts';
import { callerOf, PRIVATE, PUBLIC, seedCatalogue, startTestService } from '../../support/http/service.ts';

const unused = () => Promise.reject(new Error('not in this test'));
const actions: CliActions = {
  serve: unused,
  demo: unused,
  mintToken: unused,
  checkStore: unused,
  verifyStore: unused,
  showEvent: unused,
  restoreStore,
  defaultDataDir: 'data',
  eventStore: 'sqlite',
  version: '1',
};

const NAME = 'prod-east';
const writer = { clock: createFakeClock(), ids: createFakeIds('restore'), instance: 'first' };

const restore = async (
  argv: readonly string[],
  { typed, more = {} }: { readonly typed?: string; readonly more?: Partial<CliActions> } = {},
) => {
  let [out, err] = ['', ''];
  const io: CliIo = {
    out: (text) => (out += text),
    err: (text) => (err += text),
    ...(typed === undefined ? {} : { line: async () => typed }),
  };
  const cli = await createCli({ ...actions, ...more }, io);
  const code = await runCli(cli, ['store', 'restore', ...argv], io);
  return { code, out, err };
};

const all = async (store: EventStore): Promise<RecordedEvent[]> =>
  Array.fromAsync(store.readAll({ limit: 1000 }));

/** What a service leaves in its log when it starts, and some history. */
const begin = async (store: EventStore, fingerprint: string): Promise<Deployment> => {
  const deployment = await assertDeployment({ store, fingerprint, name: NAME, ...writer });
  await store.append('retention-acme', 'no_stream', [event('LegalHoldReleased'), event('LegalHoldReleased')]);
  return deployment;
};

describe('ledgerctl store restore', function () {
  this.timeout(60_000);
  let folder: string;
  let secretsDir: string;
  let backup: string;
  let former: Deployment;
  const target = () => join(folder, 'restored');
  const argvOf = (...more: string[]) => ['--file', backup, '--data-dir', target(), ...more];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'store-restore-'));
    secretsDir = join(folder, 'secrets');
    backup = join(folder, 'backup.sqlite');
    const store = await openSqliteEventStore({ dataDir: join(folder, 'data') });
    former = await begin(store, (await openDeploymentKeys(secretsDir)).fingerprint);
    await store.backup(backup);
    await store.close();
  });
  afterEach(() => rmSync(target(), { recursive: true, force: true }));
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** What lies in the restored directory. */
  const restored = async () => {
    const store = await openSqliteEventStore({ dataDir: target() });
    try {
      return { deployment: await readDeployment(store), events: await all(store) };
    } finally {
      await store.close();
    }
  };

  it('shows what the backup holds, and puts it under a new id once the name is typed', async () => {
    const before = readFileSync(backup);
    const { code, out, err } = await restore(argvOf('--secrets-dir', secretsDir), { typed: ` ${NAME} ` });
    expect([code, err.startsWith('next: ')], err).to.deep.equal([EXIT.done, true]);
    expect(out)
      .to.match(new RegExp(`^deployment  ${NAME}, id ${former.deploymentId}$`, 'm'))
      .and.match(/^events {6}3, the last at \d{4}-\S+ \(position 0*3\)$/m)
      .and.match(/^age {9}\d+ (second|minute)s? since the last event$/m)
      .and.include('0 registered hubs')
      .and.include('keys fit this log')
      .and.include(`Type the name of the deployment ('${NAME}')`);
    const { deployment, events } = await restored();
    expect(deployment).to.include({ name: NAME, fingerprint: former.fingerprint });
    expect(deployment?.formerIds).to.deep.equal([former.deploymentId]);
    expect(deployment?.deploymentId).not.to.equal(former.deploymentId);
    expect(out).to.include(`has id ${deployment?.deploymentId} from now on`);
    expect(readFileSync(backup).equals(before), 'the backup is as it was').to.equal(true);
    // All that was in it, what auditors see of the restore, and the new id.
    expect(events.slice(3).map(({ stream, type }) => [stream.split('.')[0], type])).to.deep.equal([
      ['operatorAct-_', 'LogRestored'],
      ['sys-deployment', 'DeploymentBound'],
    ]);
    const { at: _at, ...told } = events[3]?.data ?? {};
    expect(told).to.deep.equal({
      formerId: former.deploymentId,
      deploymentId: deployment?.deploymentId,
      lastPosition: events[2]?.position,
      lastEventAt: events[2]?.recordedAt,
    });
  });

  it('takes the name from a script, and goes on after one that was interrupted', async () => {
    mkdirSync(join(target(), 'restoring'), { recursive: true });
    writeFileSync(join(target(), 'restoring', 'events.db'), 'half of it');
    expect((await restore(argvOf('--confirm', NAME))).code).to.equal(EXIT.done);
    expect((await restored()).deployment?.formerIds).to.deep.equal([former.deploymentId]);
  });

  it('changes nothing for another name, nor where nobody types one', async () => {
    for (const typed of ['prod-west', '', undefined]) {
      const { code, err } = await restore(argvOf(), typed === undefined ? {} : { typed });
      expect([code, existsSync(target())]).to.deep.equal([EXIT.failed, false]);
      expect(err).to.include('nothing was changed');
    }
    expect((await restore(argvOf('--confirm', 'prod-west'))).code).to.equal(EXIT.failed);
    expect(existsSync(target())).to.equal(false);
  });

  it('refuses a directory that holds something, and names it', async () => {
    mkdirSync(target());
    writeFileSync(join(target(), 'events.db'), '');
    const { code, err } = await restore(argvOf('--confirm', NAME));
    expect(code).to.equal(EXIT.usage);
    expect(err).to.include('is not empty, it holds events.db: ');
    expect(readFileSync(join(target(), 'events.db'), 'utf8')).to.equal('');
  });

  it('refuses the directory of a service that runs', async () => {
    const store = await openSqliteEventStore({ dataDir: target() });
    try {
      const { code, err } = await restore(argvOf('--confirm', NAME));
      expect(code).to.equal(EXIT.usage);
      expect(err).to.include(`is in use by process ${process.pid}`);
    } finally {
      await store.close();
    }
  });

  it('refuses a backup that is damaged, or of a newer release, with the reason', async () => {
    const bad = join(folder, 'bad.sqlite');
    const refuses = async (reason: string | RegExp): Promise<void> => {
      const { code, err } = await restore(['--file', bad, '--data-dir', target(), '--confirm', NAME]);
      expect([code, existsSync(target())]).to.deep.equal([EXIT.failed, false]);
      expect(err).to.match(new RegExp(reason));
    };
    const bytes = readFileSync(backup);
    const at = bytes.indexOf('LegalHoldReleased');
    writeFileSync(bad, bytes.fill('X', at, at + 1));
    await refuses(String.raw`retention-acme@\d at position \d does not match its checksum`);
    copyFileSync(backup, bad);
    const db = new DatabaseSync(bad);
    db.exec('PRAGMA user_version = 99');
    db.close();
    await refuses('newer version of this service .schema 99');
  });

  it('refuses secrets of another deployment, and a directory without keys, which stays without', async () => {
    const [other, none] = [join(folder, 'other'), join(folder, 'none')];
    await openDeploymentKeys(other);
    const refused = await restore(argvOf('--secrets-dir', other, '--confirm', NAME));
    expect([refused.code, existsSync(target())]).to.deep.equal([EXIT.failed, false]);
    expect(refused.err).to.include('are not those of this log');
    mkdirSync(none);
    expect((await restore(argvOf('--secrets-dir', none, '--confirm', NAME))).code).to.equal(EXIT.usage);
    expect(existsSync(join(none, 'deployment.key'))).to.equal(false);
  });

  it('says what it takes', async () => {
    for (const argv of [
      [],
      ['--file', backup],
      ['--data-dir', target()],
      ['--store', 'esdb://h', '--file', backup],
      ['--store', 'sqlite'],
      ['--file', join(folder, 'nothing'), '--data-dir', target()],
      ['--file', folder, '--data-dir', target()],
      ['--file', backup, '--data-dir', backup],
    ])
      expect((await restore(argv)).code, argv.join(' ')).to.equal(EXIT.usage);
  });

  it('counts the hubs that are registered, and the orders that are neither settled nor gone', async () => {
    const store = createMemoryEventStore();
    await begin(store, 'f1');
    const service = await startTestService({ store });
    try {
      const admin = callerOf(service, await service.token({ admin: true, user: 'root' }));
      const alice = callerOf(service, await service.token({ tenants: ['t1'], user: 'alice' }));
      await seedCatalogue(admin);
      const { hubs } = await surveyLog(store);
      for (const id of ['sim-8', 'sim-9'])
        expect((await admin('POST', `${PRIVATE}/hubs`, { id, spec: { namespace: 'osac' } })).status).to.equal(
          200,
        );
      expect((await admin('DELETE', `${PRIVATE}/hubs/sim-9`)).status).to.equal(200);
      const spec = { template: { id: 'osac.templates.small' } };
      for (const name of ['one', 'dropped', 'other'])
        await alice('POST', `${PUBLIC}/clusters`, { id: name, metadata: { name }, spec });
      await alice('DELETE', `${PUBLIC}/clusters/dropped`);
      expect(await surveyLog(store)).to.include({ hubs: hubs + 1, ordersUnderWay: 2 });
    } finally {
      await service.close();
    }
  });

  it('has nothing to restore in a log on which no service has started', async () => {
    const refused: unknown = await surveyLog(createMemoryEventStore()).catch((error: unknown) => error);
    expect(String(refused)).to.include('no service has ever started');
  });

  describe('of an EventStoreDB', () => {
    const bench = createBench();
    afterEach(bench.clean);

    /** A restored log: what took it along had leases when it was copied. */
    const log = async () => {
      const { connectionString } = await bench.peer();
      const store = await bench.store(connectionString);
      const bound = await begin(store, 'f1');
      const held = { at: writer.clock.now(), holder: 'host-1', directory: 'd1', epoch: 1, ttlMs: 15_000 };
      const process = { stream: 'sys-process-1', epoch: 1 };
      const lease = (stream: string, revision: 'no_stream' | number, data: LeaseData) => {
        const type = revision === 'no_stream' ? 'LeaseTaken' : 'LeaseRenewed';
        const event = createBookkeeping('h')(stream, { type, data }, 'TakeLease', `lease-${revision}`);
        return store.append(stream, revision, [event]);
      };
      await lease(process.stream, 'no_stream', held);
      await lease(leaseStream('processes'), 'no_stream', { ...held, process });
      return { connectionString, store, bound, renew: () => lease(process.stream, 0, held) };
    };
    /** The command with a wait that passes at once, in which somebody may do something. */
    const waiting = (meanwhile: () => Promise<unknown>) => {
      const waits: number[] = [];
      const pausing = (dialogue: RestoreDialogue): RestoreDialogue => ({
        ...dialogue,
        pause: async (ms) => {
          waits.push(ms);
          await meanwhile();
        },
      });
      const more: Partial<CliActions> = {
        restoreStore: (request, dialogue) => restoreStore(request, pausing(dialogue)),
      };
      return { waits, more };
    };

    it('goes under a new id when no lease is renewed for as long as one lasts', async () => {
      const { connectionString, store, bound } = await log();
      const { waits, more } = waiting(async () => undefined);
      const { code, err, out } = await restore(['--store', connectionString, '--confirm', NAME], { more });
      expect([code, waits], err).to.deep.equal([EXIT.done, [18_000]]);
      expect(err).to.include('waiting 18 s to see whether a service is at work');
      expect(out).to.include('the same EventStoreDB');
      expect((await readDeployment(store))?.formerIds).to.deep.equal([bound.deploymentId]);
      expect((await all(store)).map(({ type }) => type)).to.include('LogRestored');
    });

    it('is the one of LEDGER_EVENT_STORE where nothing is named', async () => {
      const { connectionString, store, bound } = await log();
      const { more } = waiting(async () => undefined);
      const { code } = await restore(['--confirm', NAME], {
        more: { ...more, eventStore: connectionString },
      });
      expect(code).to.equal(EXIT.done);
      expect((await readDeployment(store))?.formerIds).to.deep.equal([bound.deploymentId]);
    });

    it('is refused while a lease is renewed, before and after the name was typed', async () => {
      const { connectionString, store, bound, renew } = await log();
      const { more } = waiting(renew);
      const refused = await restore(['--store', connectionString, '--confirm', NAME], { more });
      expect(refused.code).to.equal(EXIT.failed);
      expect(refused.err).to.include("host-1 holds the lease 'processes'. Stop every instance first");
      const other = await restore(['--store', connectionString, '--confirm', 'prod-west'], {
        more: waiting(async () => undefined).more,
      });
      expect(other.code).to.equal(EXIT.failed);
      expect(await readDeployment(store)).to.deep.equal(bound);
      expect((await all(store)).map(({ type }) => type)).not.to.include('LogRestored');
    });
  });
});
