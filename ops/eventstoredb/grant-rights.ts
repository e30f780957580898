/**
 * `EVENTSTOREDB_ADMIN=esdb://admin:…@host:2113 node ops/eventstoredb/grant-rights.ts <user> [<password file>]`: gives a user
 * exactly what the service needs and closes the streams to every other user (docs/administration.md "EventStoreDB"). With
 * a password file it makes the user first. May be repeated. Everything goes over gRPC, since AtomPub is off by default.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';
import { EventStoreDBClient, StreamNotFoundError, jsonEvent } from '@eventstore/db-client';
import type { UsersClient } from '@eventstore/db-client/generated/users_grpc_pb.js';
import type * as UsersPb from '@eventstore/db-client/generated/users_pb.js';

const require = createRequire(import.meta.url);
const users = require('@eventstore/db-client/generated/users_pb') as typeof UsersPb;
const { UsersClient: Users } = require('@eventstore/db-client/generated/users_grpc_pb') as {
  readonly UsersClient: typeof UsersClient;
};

/** What the library keeps protected, for services that it has no method for. */
type Internals = {
  readonly callArguments: (
    base: object,
    options: object,
  ) => [Parameters<UsersClient['create']>[1], NonNullable<Parameters<UsersClient['create']>[2]>];
  readonly execute: <Answer>(
    service: typeof UsersClient,
    name: string,
    call: (grpc: UsersClient) => Promise<Answer>,
  ) => Promise<Answer>;
};

const ADMINS = '$admins';

const createUser = (client: EventStoreDBClient, name: string, password: string): Promise<void> => {
  const internals = client as unknown as Internals;
  const options = new users.CreateReq.Options()
    .setLoginName(name)
    .setFullName('fulfillment-ledger')
    .setPassword(password);
  return internals.execute(
    Users,
    'create',
    (grpc) =>
      new Promise((resolve, reject) => {
        const request = new users.CreateReq().setOptions(options);
        grpc.create(request, ...internals.callArguments({}, {}), (error) =>
          error === null ? resolve() : reject(error),
        );
      }),
  );
};

/** Subscriptions and positions read `$all`. Who may read it already still may. */
const openAll = async (client: EventStoreDBClient, user: string): Promise<void> => {
  const { metadata } = await client.getStreamMetadata('$all');
  const acl = typeof metadata?.acl === 'object' ? metadata.acl : {};
  const readRoles = [...new Set([ADMINS, ...[acl.readRoles ?? []].flat(), user])];
  await client.setStreamMetadata('$all', { ...metadata, acl: { ...acl, readRoles } });
};

/** By default every user may read, write and delete every stream that has no list of its own. */
const closeStreams = async (client: EventStoreDBClient, user: string): Promise<void> => {
  const wanted = {
    $userStreamAcl: { $r: [ADMINS, user], $w: [ADMINS, user], $d: ADMINS, $mr: ADMINS, $mw: [ADMINS, user] },
    $systemStreamAcl: { $r: ADMINS, $w: ADMINS, $d: ADMINS, $mr: ADMINS, $mw: ADMINS },
  };
  const found = await settingsOf(client);
  if (isDeepStrictEqual(found, wanted)) return;
  if (found !== undefined)
    throw new Error(
      `this store has default rights already: ${JSON.stringify(found)}; other applications may need them. ` +
        `Add user '${user}' there, or write: ${JSON.stringify(wanted)}`,
    );
  await client.appendToStream('$settings', jsonEvent({ type: 'update-default-acl', data: wanted }));
};

const settingsOf = async (client: EventStoreDBClient): Promise<unknown> => {
  try {
    const newest = client.readStream('$settings', {
      direction: 'backwards',
      fromRevision: 'end',
      maxCount: 1,
    });
    for await (const { event } of newest) return event?.data;
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return undefined;
};

const [user, passwordFile] = process.argv.slice(2);
const admin = process.env['EVENTSTOREDB_ADMIN'];
if (user === undefined || admin === undefined) {
  process.stderr.write(
    'usage: EVENTSTOREDB_ADMIN=esdb://admin:password@host:2113 node ops/eventstoredb/grant-rights.ts <user> [<password file>]\n',
  );
  process.exitCode = 2;
} else {
  const client = EventStoreDBClient.connectionString(admin);
  try {
    if (passwordFile !== undefined) await createUser(client, user, readFileSync(passwordFile, 'utf8').trim());
    await openAll(client, user);
    await closeStreams(client, user);
    process.stdout.write(`user '${user}' has the rights of the service\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  } finally {
    await client.dispose();
  }
}
