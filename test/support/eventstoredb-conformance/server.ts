import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { EventStoreDBClient, StreamNotFoundError } from '@eventstore/db-client';
import type { ServerVersion } from '../eventstoredb-peer/context.ts';
import { startPeer } from '../eventstoredb-peer/peer.ts';

/** What a behaviour is checked on: the peer, or the real server that LEDGER_TEST_EVENTSTOREDB names. */
export type ServerUnderTest = {
  readonly connectionString: string;
  readonly version: ServerVersion;
  /** A name that no other test or run uses. */
  readonly unique: (name: string) => string;
  /** Removes the events that metadata, `$maxCount` or a deletion freed, and waits until that is done. */
  readonly scavenge?: () => Promise<void>;
  /** Stops the server and starts it again on the same log. Every connection goes down. */
  readonly restart?: () => Promise<void>;
  /** Cuts every connection. The server goes on. */
  readonly cutConnections?: () => Promise<void>;
  /** Another server of this version whose log holds nothing but what the server itself wrote. It goes at the end. */
  readonly empty?: () => Promise<ServerUnderTest>;
  /** Ends what this run started. */
  readonly close: () => Promise<void>;
};

export const SERVER_VERSIONS: readonly ServerVersion[] = ['23.10', '24.10', '25.0'];
/** Those that the peer plays here: one in `npm test`, every one in `npm run test:faults`. */
export const PLAYED_VERSIONS: readonly ServerVersion[] =
  process.env['LEDGER_TEST_SERVER_VERSIONS'] === 'all' ? SERVER_VERSIONS : ['24.10'];

/** The controls that a server may lack. */
export type Control = 'scavenge' | 'restart' | 'cutConnections' | 'empty';

/**
 * One thing that an EventStoreDB does and that our adapter relies on, checked with the library's own client and never
 * through our adapter.
 */
export type Behaviour = {
  readonly name: string;
  /** Controls without which it cannot be checked: it is skipped, and says so, on a server that lacks one. */
  readonly needs?: readonly Control[];
  /** The versions that behave so. Default: all of them. */
  readonly versions?: readonly ServerVersion[];
  check(server: ServerUnderTest): Promise<void>;
};

/** Why this behaviour cannot be checked on this server; undefined when it can. */
export const reasonNotToRun = (behaviour: Behaviour, server: ServerUnderTest): string | undefined => {
  const missing = (behaviour.needs ?? []).filter((control) => server[control] === undefined);
  if (missing.length > 0) return `this server has no ${missing.join(', ')}`;
  if (behaviour.versions !== undefined && !behaviour.versions.includes(server.version))
    return `version ${server.version} behaves in another way`;
  return undefined;
};

/** What the library keeps protected. */
type Internals = {
  readonly capabilities: Promise<{ readonly serverVersion: string }>;
  readonly getChannel: () => Promise<{ close(): void }>;
};

let clients = 0;

/** Runs `work` with a client of the library on a connection of its own, which goes when the work ends. */
export const withClient = async <T>(
  { connectionString }: Pick<ServerUnderTest, 'connectionString'>,
  work: (client: EventStoreDBClient) => Promise<T>,
): Promise<T> => {
  // Clients with equal options would share one connection.
  const own = `keepAliveTimeout=${20_000 + (clients += 1)}`;
  const separator = connectionString.includes('?') ? '&' : '?';
  const client = EventStoreDBClient.connectionString(`${connectionString}${separator}${own}`);
  try {
    return await work(client);
  } finally {
    await client.dispose();
    const channel = await (client as unknown as Internals).getChannel().catch(() => undefined);
    channel?.close();
  }
};

/** What the server calls itself: `24.10.4`. */
export const releaseOf = (client: EventStoreDBClient): Promise<string> =>
  (client as unknown as Internals).capabilities.then(({ serverVersion }) => serverVersion);

const uniqueNames = () => {
  const run = randomUUID().slice(0, 8);
  let count = 0;
  return (name: string): string => `${name}-${run}${(count += 1)}`;
};

/** A peer that plays one version. */
export const peerUnderTest = async (version: ServerVersion): Promise<ServerUnderTest> => {
  const peer = await startPeer({ version });
  const others: ServerUnderTest[] = [];
  return {
    connectionString: peer.connectionString,
    version,
    unique: uniqueNames(),
    scavenge: async () => peer.log.scavenge(),
    restart: () => peer.restart(),
    cutConnections: async () => peer.cutConnections(),
    empty: async () => {
      const other = await peerUnderTest(version);
      others.push(other);
      return other;
    },
    close: async () => {
      for (const other of others) await other.close();
      await peer.stop();
    },
  };
};

/** The server behind this connection string; its version is asked. Fails when it is none that the peer plays. */
export const realServerUnderTest = async (connectionString: string): Promise<ServerUnderTest> => {
  const release = await withClient({ connectionString }, releaseOf);
  const version = SERVER_VERSIONS.find((one) => release.startsWith(`${one}.`));
  if (version === undefined)
    throw new Error(
      `the server at LEDGER_TEST_EVENTSTOREDB is ${release}: the list knows ${SERVER_VERSIONS.join(', ')}`,
    );
  const insecure = /[?&]tls=false\b/i.test(connectionString);
  const [, host] = /^esdb(?:\+discover)?:\/\/(?:[^@/]+@)?([^,/?]+)/.exec(connectionString) ?? [];
  return {
    connectionString,
    version,
    unique: uniqueNames(),
    ...(insecure &&
      host !== undefined && { scavenge: () => scavengeOverHttp(`http://${host}`, connectionString) }),
    close: async () => {},
  };
};

/** HTTP is on the port that gRPC is on. A scavenge writes its course to a stream of its own. */
const scavengeOverHttp = async (url: string, connectionString: string): Promise<void> => {
  const answer = await fetch(`${url}/admin/scavenge`, { method: 'POST', body: '' });
  const text = await answer.text();
  const id = answer.ok ? (JSON.parse(text) as { scavengeId?: string }).scavengeId : undefined;
  if (id === undefined) throw new Error(`POST /admin/scavenge: ${answer.status} ${text}`);
  await withClient({ connectionString }, async (client) => {
    for (let waited = 0; waited < 60_000; waited += 100) {
      if (await scavengeIsDone(client, id)) return;
      await sleep(100);
    }
    throw new Error(`scavenge ${id} did not end within 60 s`);
  });
};

const scavengeIsDone = async (client: EventStoreDBClient, id: string): Promise<boolean> => {
  try {
    for await (const { event } of client.readStream(`$scavenges-${id}`))
      if (event?.type === '$scavengeCompleted') return true;
  } catch (error) {
    if (!(error instanceof StreamNotFoundError)) throw error;
  }
  return false;
};
