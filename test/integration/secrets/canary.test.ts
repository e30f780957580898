import { systemTimers } from '../../../src/adapters/system/system-ports.ts';
import { expect } from 'chai';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { inspect } from 'node:util';
import { pino } from 'pino';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { openDeploymentKeys } from '../../../src/adapters/keys/deployment-keys.ts';
import { openFileKeyStore } from '../../../src/adapters/keys/file-key-store.ts';
import { openFileSecretStore } from '../../../src/adapters/secrets/file-secret-store.ts';
import { openSqliteSnapshots } from '../../../src/adapters/snapshots/sqlite-snapshots.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { secretVersionOf, subjectIdOf } from '../../../src/app/log/identifiers.ts';
import { createNames } from '../../../src/app/names/names.ts';
import type { RejectionRecord } from '../../../src/app/ports.ts';
import { LOG_REDACT_PATHS } from '../../../src/app/log/redaction.ts';
import { createRequestHash } from '../../../src/app/commands/command.ts';
import { createResourceCommands } from '../../../src/app/commands/resource-commands.ts';
import { createPersonalMetadata } from '../../../src/app/tenancy/subjects.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { hub } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { collect, createFakeClock, fakeContext } from '../../support/commands/fake-context.ts';
import { createFakeIds } from '../../support/commands/fake-incarnation.ts';
import { failure } from './secret-store.contract.ts';

/** Found nowhere but where it was put, in any of the encodings that a careless writer would use. */
const canary = (name: string): string => `canary-${name}-7f3a91c2`;
const spellings = (text: string): string[] => [
  text,
  Buffer.from(text).toString('base64').replace(/=+$/, ''),
  Buffer.from(text).toString('hex'),
  encodeURIComponent(text),
];

const KINDS = [
  'kubeconfig',
  'pull-secret',
  'break-glass-password',
  'admin-password',
  'user-password',
  'client-secret',
  'secret-data',
] as const;

/** A value of every kind goes through the service and is found nowhere. */
describe('secret and personal canaries', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'ledger-canary-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  it('are in no event, metadata, log line, rejection, error or file', async () => {
    const clock = createFakeClock();
    let logged = '';
    const sink = new Writable({
      write: (chunk: Buffer, _encoding, done) => {
        logged += chunk.toString();
        done();
      },
    });
    const logger = pino(
      { level: 'trace', redact: { paths: [...LOG_REDACT_PATHS], censor: '[redacted]' } },
      sink,
    );
    const keys = await openDeploymentKeys(join(directory, 'secrets'));
    const secrets = await openFileSecretStore({
      directory: join(directory, 'secrets', 'values'),
      keys,
      now: () => clock.now(),
    });
    const subjectKeys = await openFileKeyStore({
      directory: join(directory, 'secrets', 'subjects'),
      kek: keys.subjectKek,
    });
    const personal = createPersonalMetadata({ keys: subjectKeys });
    const requestHash = createRequestHash(keys.requestHashKey);
    const store = await openSqliteEventStore({ dataDir: join(directory, 'log') });
    const snapshots = openSqliteSnapshots({
      file: join(directory, 'snapshots.db'),
      storeId: store.storeId,
      logger,
    });
    const rejections: RejectionRecord[] = [];
    const recordRejection = (record: RejectionRecord): void => void rejections.push(record);
    const runner = createCommandRunner({
      store,
      codec: createEventCodec(eventTypes),
      clock,
      instance: 'canary',
      recordRejection,
      snapshots,
      snapshotEvery: 2,
    });
    const names = createNames({ runner, clock, ids: createFakeIds('step') });
    const resources = createResourceCommands({
      runner,
      names,
      clock,
      timers: systemTimers(),
      recordRejection,
    });
    const shown: unknown[] = [];

    const subject = subjectIdOf('acme', 'https://issuer', canary('sub'));
    const actorPersonal = await personal.personal(subject, {
      userName: canary('user'),
      email: `${canary('mail')}@example.com`,
    });
    const source = await personal.source(subject, { ip: canary('ip'), userAgent: canary('agent') });
    if (actorPersonal === undefined || source === undefined) throw new Error('expected ciphertexts');

    for (const [index, kind] of KINDS.entries()) {
      const commandId = `command-${index}`;
      const body = { spec: { kubeconfig: canary(kind) } };
      const hash = requestHash({ method: 'POST', route: '/hubs', body });
      logger.info({ commandId, body: { spec: body.spec }, ...body }, 'request');
      const ref = await secrets.put({
        id: `hub-${index}`,
        version: secretVersionOf(commandId, hash, 'spec.kubeconfig'),
        kind,
        tenant: 'acme',
        value: Buffer.from(canary(kind)),
      });
      const create = (abandonedBefore: number): DocumentCommand => ({
        type: 'CreateDocument',
        at: clock.now(),
        id: `hub-${index}`,
        tenant: 'acme',
        project: '',
        name: `hub-${index}`,
        creator: subject,
        document: { metadata: {}, spec: { namespace: 'osac' } },
        secrets: { 'spec.kubeconfig': ref },
        abandonedBefore,
      });
      const context = fakeContext(commandId, {
        requestHash: hash,
        actor: { subjectId: subject, roles: [], authMethod: 'jwt', personal: actorPersonal },
        source,
      });
      const outcome = await resources.execute(hub, `hub-${index}`, create, context);
      expect(outcome.outcome).to.equal('accepted');
      const refused = await resources.execute(hub, `hub-${index}`, create, {
        ...context,
        commandId: 'other',
      });
      expect(refused.outcome).to.equal('rejected');
      const mismatch = await failure(
        resources.execute(hub, `hub-${index}`, create, { ...context, requestHash: 'other' }),
      );
      const foreign = await failure(secrets.reveal(ref, 'globex'));
      logger.error({ err: mismatch, outcome, refused, ref }, 'what may be logged');
      logger.error({ err: foreign }, 'reveal failed');
      shown.push(outcome, refused, mismatch, foreign);
      const revealed = await secrets.reveal(ref, 'acme');
      expect(Buffer.from(revealed ?? []).toString()).to.equal(canary(kind));
    }

    const events = await collect(store.readAll({ limit: 1000 }));
    expect(events.filter(({ type }) => type === 'HubRegistered')).to.have.length(KINDS.length);
    expect(rejections).to.have.length(KINDS.length);
    await snapshots.close();
    await store.close();

    const places = new Map<string, string>([
      ['events and metadata', JSON.stringify(events)],
      ['log lines', logged],
      ['rejections', JSON.stringify(rejections)],
      ['outcomes and errors', inspect(shown, { depth: 20 }) + JSON.stringify(shown)],
    ]);
    for (const entry of await readdir(directory, { withFileTypes: true, recursive: true })) {
      if (!entry.isFile()) continue;
      const path = join(entry.parentPath, entry.name);
      places.set(path, (await readFile(path)).toString('latin1'));
    }
    expect(places.size).to.be.greaterThan(4 + KINDS.length);
    const canaries = [...KINDS, 'sub', 'user', 'mail', 'ip', 'agent'].map(canary);
    for (const [place, text] of places)
      for (const spelling of canaries.flatMap(spellings))
        expect(text.includes(spelling), `${spelling} in ${place}`).to.equal(false);

    // The request's body was logged on purpose: its paths are redacted.
    expect(logged).to.include('[redacted]');
    expect(await personal.read(actorPersonal)).to.deep.equal({
      userName: canary('user'),
      email: `${canary('mail')}@example.com`,
    });
    await personal.erase(subject);
    expect(await personal.read(actorPersonal)).to.deep.equal({ erased: true });
  });
});
