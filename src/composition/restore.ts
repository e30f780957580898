import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { lockDataDirectory, writerOf } from '../adapters/data-directory/lock.ts';
import { backupLog, sync } from '../adapters/event-store/sqlite/backup.ts';
import { checkSqliteLog } from '../adapters/event-store/sqlite/check-store.ts';
import { logFile } from '../adapters/event-store/sqlite/files.ts';
import { createLogReader } from '../adapters/event-store/sqlite/log-reader.ts';
import { openLogForReading } from '../adapters/event-store/sqlite/schema.ts';
import { openSqliteEventStore } from '../adapters/event-store/sqlite/sqlite-event-store.ts';
import { createGrowth } from '../adapters/event-store/shared/paged-subscription.ts';
import { MASTER_KEY_FILE, openDeploymentKeys } from '../adapters/keys/deployment-keys.ts';
import { systemClock, systemIds } from '../adapters/system/system-ports.ts';
import { type Deployment } from '../app/deployment/deployment.ts';
import { StoreUnavailable, type EventStore } from '../app/log/event-store.ts';
import { makeDirectory } from '../app/deployment/make-directory.ts';
import { OWN_CATEGORIES } from '../app/log/own-categories.ts';
import { PUBLISHER_LEASE } from '../app/publisher/ports.ts';
import {
  NotRestored,
  openLeases,
  putUnderNewId,
  surveyLog,
  type LogSurvey,
} from '../app/deployment/restore.ts';
import type { RestoreDialogue, RestoreRequest } from '../cli/connection.ts';
import { CliFailure, EXIT } from '../cli/exit.ts';

/**
 * `ledgerctl store restore`: puts a backup into a new data directory, or takes a log that an EventStoreDB was restored with,
 * and gives it a new deployment id. Undefined: the person did not go on, and nothing was changed.
 *
 * @throws CliFailure when it must not be restored; nothing was changed then.
 */
export const restoreStore = async (
  request: RestoreRequest,
  dialogue: RestoreDialogue,
): Promise<Deployment | undefined> => {
  try {
    return 'store' in request ? await restoreRemote(request, dialogue) : await restoreFile(request, dialogue);
  } catch (error) {
    if (error instanceof NotRestored) throw new CliFailure(EXIT.failed, error.message, { cause: error });
    if (error instanceof StoreUnavailable)
      throw new CliFailure(EXIT.unavailable, error.message, { cause: error });
    throw error;
  }
};

/** Names this run on the events that it writes. */
const writer = () => ({
  clock: systemClock(),
  ids: systemIds(),
  instance: `restore-${randomBytes(6).toString('hex')}`,
});

type FileRequest = Extract<RestoreRequest, { file: string }>;
type RemoteRequest = Extract<RestoreRequest, { store: string }>;

const restoreFile = async (
  { file, dataDir, secretsDir }: FileRequest,
  { confirm }: RestoreDialogue,
): Promise<Deployment | undefined> => {
  assertEmpty(dataDir);
  await assertSound(file);
  const survey = await surveyFile(file);
  await assertKeys(secretsDir, survey.deployment);
  if (!(await confirm(survey))) return undefined;
  await makeDirectory(dataDir);
  const unlock = lockDataDirectory(dataDir);
  const staging = join(dataDir, STAGING);
  try {
    // A service may have started there while the person read.
    assertEmpty(dataDir);
    rmSync(staging, { recursive: true, force: true });
    await makeDirectory(staging);
    const { position } = await backupLog(file, logFile(staging));
    if (position !== survey.last.position)
      throw new NotRestored(`${file} was written to during the restore: stop its writer, or take a backup`);
    const deployment = await rebindFile(staging, survey);
    if (existsSync(`${logFile(staging)}-wal`))
      throw new NotRestored(`another process has ${logFile(staging)} open`);
    sync(logFile(staging));
    renameSync(logFile(staging), logFile(dataDir));
    sync(dataDir);
    return deployment;
  } finally {
    rmSync(staging, { recursive: true, force: true });
    unlock();
  }
};

/** Where a log lies until it is whole and bound: a crash leaves a directory without a log. */
const STAGING = 'restoring';
/** What an empty directory may hold: that of a file system, and what an interrupted restore left behind. */
const EMPTY_HOLDS = new RegExp(String.raw`^(lost\+found|${STAGING}|events\.(lock|holder).*)$`);
const NAMED = 5;

const assertEmpty = (dataDir: string): void => {
  if (!existsSync(dataDir)) return;
  const refuse = (why: string): never => {
    throw new CliFailure(EXIT.usage, `--data-dir: ${why}`);
  };
  if (!statSync(dataDir).isDirectory()) refuse(`${dataDir} is not a directory`);
  const found = readdirSync(dataDir)
    .filter((name) => !EMPTY_HOLDS.test(name))
    .toSorted();
  const holder = found.length === 0 ? undefined : writerOf(dataDir);
  if (holder !== undefined)
    refuse(`${dataDir} is in use by process ${holder.pid ?? '(unknown)'}: restore into another directory`);
  const more = found.length > NAMED ? ` and ${found.length - NAMED} more` : '';
  if (found.length > 0)
    refuse(
      `${dataDir} is not empty, it holds ${found.slice(0, NAMED).join(', ')}${more}: ` +
        'restore into a directory that is empty or absent',
    );
};

const assertSound = async (file: string): Promise<void> => {
  if (statSync(file).isDirectory())
    throw new CliFailure(EXIT.usage, `--file: ${file} is a directory: name the backup in it`);
  const { findings, count } = await checkSqliteLog(file);
  const [first] = findings;
  if (first !== undefined)
    throw new NotRestored(
      `${file} cannot be restored: ${first.finding}` +
        `${count > 1 ? `, and ${count - 1} more findings` : ''} (ledgerctl store check --file ${file})`,
    );
};

const surveyFile = async (file: string): Promise<LogSurvey> => {
  const log = createLogReader(openLogForReading(file), file, createGrowth());
  try {
    return await surveyLog(log);
  } finally {
    await log.close();
  }
};

/** A service would refuse to start with other keys; here that is said before anything is done. */
const assertKeys = async (secretsDir: string | undefined, { fingerprint }: Deployment): Promise<void> => {
  if (secretsDir === undefined) return;
  const key = join(secretsDir, MASTER_KEY_FILE);
  if (!existsSync(key)) throw new CliFailure(EXIT.usage, `--secrets-dir: ${key} not found`);
  if ((await openDeploymentKeys(secretsDir)).fingerprint !== fingerprint)
    throw new NotRestored(
      `the keys in ${secretsDir} are not those of this log: take the copy of LEDGER_SECRETS_DIR that was made with the backup`,
    );
};

const rebindFile = async (dataDir: string, survey: LogSurvey): Promise<Deployment> => {
  const store = await openSqliteEventStore({ dataDir });
  try {
    return await putUnderNewId(store, survey, writer());
  } finally {
    await store.close();
  }
};

const LEASES = ['processes', 'auditor', PUBLISHER_LEASE] as const;
/** As long as others wait for a lease that is not renewed. */
const PATIENCE = 1.2;

const restoreRemote = async (
  { store: connectionString, secretsDir }: RemoteRequest,
  dialogue: RestoreDialogue,
): Promise<Deployment | undefined> => {
  const by = writer();
  const { createEventStoreDbStore } = await import(
    '../adapters/event-store/eventstoredb/eventstoredb-event-store.ts'
  );
  const store = await createEventStoreDbStore({
    connectionString,
    instance: by.instance,
    writes: true,
    categories: OWN_CATEGORIES,
  });
  try {
    const left = await assertNobodyWorks(store, dialogue);
    const survey = await surveyLog(store);
    await assertKeys(secretsDir, survey.deployment);
    if (!(await dialogue.confirm(survey))) return undefined;
    await assertUnmoved(store, left);
    return await putUnderNewId(store, survey, by);
  } finally {
    await store.close();
  }
};

type Leases = Awaited<ReturnType<typeof openLeases>>;

/** A lease that is renewed belongs to a service that works on this log. One that a backup took along is not. */
const assertNobodyWorks = async (store: EventStore, { tell, pause }: RestoreDialogue): Promise<Leases> => {
  const open = await openLeases(store, LEASES);
  if (open.length === 0) return open;
  const waitMs = Math.max(...open.map(({ ttlMs }) => ttlMs)) * PATIENCE;
  tell(`waiting ${Math.ceil(waitMs / 1000)} s to see whether a service is at work on this log`);
  await pause(waitMs);
  await assertUnmoved(store, open);
  return open;
};

const assertUnmoved = async (store: EventStore, before: Leases): Promise<void> => {
  for (const { name, holder, at } of await openLeases(store, LEASES))
    if (before.find((lease) => lease.name === name)?.at !== at)
      throw new NotRestored(
        `a service is at work on this log: ${holder} holds the lease '${name}'. Stop every instance first`,
      );
};
