import type { Transform } from 'node:stream';
import { EventStoreDBClient } from '@eventstore/db-client';
import type * as Grpc from '@grpc/grpc-js';
import { nameNoAddresses } from './server-name.ts';
import { timed } from './waiting.ts';

nameNoAddresses();

/** Milliseconds that streams may take to end when their client does. */
const DISPOSE_MS = 1_000;

/**
 * One client is one channel is one TCP connection: the library would let clients with equal options share a
 * connection, and with it HTTP/2's 100 concurrent streams and every drop.
 * `serial` makes the options differ: it is added to the keep-alive timeout in milliseconds. `name` is what the server
 * logs, unless the connection string has a name.
 */
export const connect = (connectionString: string, name: string, serial: number): LedgerClient => {
  const client = EventStoreDBClient.connectionString(ownConnection(connectionString, name, serial));
  const internals = client as unknown as Internals;

  // The library calls these without awaiting them; a rejection would end the process.
  const handleError = internals.handleError;
  internals.handleError = async (...args) => {
    await handleError(...args).catch(() => {});
  };
  // `dispose` ends streams but leaves the channel open: remember every channel, to close it.
  const channels = new Set<Grpc.Channel>();
  let disposed = false;
  const getChannel = internals.getChannel;
  internals.getChannel = async () => {
    const channel = await getChannel();
    widen(channel);
    if (disposed) channel.close();
    else channels.add(channel);
    return channel;
  };

  return {
    api: client,
    supports: (method) => internals.supports(method),
    openStream: (service, name, open) =>
      internals.GRPCStreamCreator(service, name, (grpc) =>
        open(grpc, ...internals.callArguments({ requiresLeader: true }, { deadline: Infinity })),
      )(),
    dispose: async () => {
      disposed = true;
      // It waits for the end of each stream that it cancels; one whose consumer went away does not tell it.
      await timed('ending streams', client.dispose(), DISPOSE_MS).catch(() => {});
      for (const channel of channels) channel.close();
      channels.clear();
    },
  };
};

export type LedgerClient = {
  readonly api: EventStoreDBClient;
  /** Whether the server lists this method. The first call asks it; fails with whatever gRPC says. */
  supports(method: Method): Promise<boolean>;
  /**
   * Opens a call on the client's channel, with its headers and credentials and without a deadline. It asks for the
   * leader: a follower would hand appends on to a leader that may be dead.
   */
  openStream<Service, Call>(
    service: Service,
    name: string,
    open: (grpc: InstanceOf<Service>, metadata: Grpc.Metadata, options: Grpc.CallOptions) => Call,
  ): Promise<Call>;
  /** Cancels what runs and closes the connection. */
  dispose(): Promise<void>;
};

type Method = { readonly path: string };
type InstanceOf<Service> = Service extends new (...args: never[]) => infer Instance ? Instance : never;

/** What the library keeps protected (checked in test/unit/eventstoredb against the installed version). */
type Internals = {
  handleError: (client: Grpc.Client, error: Error) => Promise<void>;
  getChannel: () => Promise<Grpc.Channel>;
  readonly supports: (method: Method) => Promise<boolean>;
  readonly callArguments: (
    base: { requiresLeader: boolean },
    options: Grpc.CallOptions,
  ) => [Grpc.Metadata, Grpc.CallOptions];
  readonly GRPCStreamCreator: <Service, Call>(
    service: Service,
    name: string,
    open: (grpc: InstanceOf<Service>) => Call,
  ) => () => Promise<Call>;
};

const DEFAULT_KEEP_ALIVE_TIMEOUT_MS = 10_000;
/** Seconds that a node gets to say who leads; the library's 5 are as long as an election, for each node that is gone. */
const GOSSIP_TIMEOUT_S = 1;

const ownConnection = (connectionString: string, name: string, serial: number): string => {
  const set = /[?&]keep[-_]?alive[-_]?timeout=(-?\d+)/i.exec(connectionString)?.[1];
  const timeout = set === undefined ? DEFAULT_KEEP_ALIVE_TIMEOUT_MS : Number(set);
  const added = [
    ...(/[?&]connection[-_]?name=/i.test(connectionString)
      ? []
      : [`connectionName=${encodeURIComponent(name)}`]),
    ...(/[?&]gossip[-_]?timeout=/i.test(connectionString) ? [] : [`gossipTimeout=${GOSSIP_TIMEOUT_S}`]),
    ...(timeout < 0 ? [] : [`keepAliveTimeout=${timeout + serial}`]),
  ];
  const base = connectionString.trim().replace(/\/+$/, '');
  return added.length === 0 ? base : `${base}${base.includes('?') ? '&' : '?'}${added.join('&')}`;
};

/**
 * Bytes that a server may send before we have read any of them. HTTP/2's own 64 KiB are some fifty events: while a
 * thread
 * writes a transaction or waits for a core, EventStoreDB 23.10 would drop it as a consumer that is too slow.
 */
const WINDOW_BYTES = 4 * 1024 * 1024;

/** The library takes no options of the channel; they are read when it connects, which is later. */
const widen = (channel: Grpc.Channel): void => {
  const { internalChannel } = channel as unknown as {
    readonly internalChannel: { readonly options: { [name: string]: unknown } };
  };
  internalChannel.options['grpc-node.flow_control_window'] = WINDOW_BYTES;
};

/**
 * A message that the library cannot convert (no id, no stream) throws inside the asynchronous transform of its
 * subscriptions: an unhandled rejection, and a stream that waits for ever. Here it becomes the stream's error.
 */
export const guarded = <Stream>(subscription: Stream): Stream => {
  const stream = subscription as unknown as Transform;
  const convert = stream._transform.bind(stream) as (...args: TransformArguments) => Promise<void>;
  stream._transform = (...args: TransformArguments) => {
    convert(...args).catch((error: unknown) => args[2](new Error(String(error), { cause: error })));
  };
  return subscription;
};
type TransformArguments = Parameters<Transform['_transform']>;

const OPTIONS = [
  'tls',
  'tlsCAFile',
  'userCertFile',
  'userKeyFile',
  'connectionName',
  'maxDiscoverAttempts',
  'discoveryInterval',
  'gossipTimeout',
  'nodePreference',
  'keepAliveInterval',
  'keepAliveTimeout',
  'defaultDeadline',
  'throwOnAppendFailure',
];
const flat = (name: string): string => name.trim().toLowerCase().replaceAll(/[_-]/g, '');

/**
 * Refuses what the library would warn about on the console with the whole string, password included, and what it
 * refuses itself. The errors never quote the string. Returns what is safe to log.
 */
export const checkConnectionString = (connectionString: string): { endpoints: string; warning?: string } => {
  const [, scheme, credentials, hosts, , query = ''] =
    /^(esdb(?:\+discover)?):\/\/(?:([^@/]+)@)?([^/?@]+)(\/?)(?:\?(.*))?$/.exec(connectionString.trim()) ?? [];
  if (scheme === undefined || hosts === undefined)
    throw new TypeError(
      'the event store connection string must look like esdb://user:password@host:2113 ' +
        '(of a cluster esdb://…@a:2113,b:2113,c:2113, or esdb+discover://… with one DNS name; ' +
        'special characters in user and password percent-encoded)',
    );
  if (scheme === 'esdb+discover' && hosts.includes(','))
    throw new TypeError(
      'esdb+discover:// takes one DNS name, and of several hosts it would use the first only: ' +
        `write esdb://${hosts}, or one DNS name that resolves to every node`,
    );
  const values = new Map<string, string>();
  for (const pair of query === '' ? [] : query.split('&')) {
    const [name = '', value = ''] = pair.split('=');
    if (flat(name) === 'tlsverifycert') {
      if (value !== 'true')
        throw new TypeError('tlsVerifyCert=false is not supported: name the CA with tlsCAFile instead');
      continue;
    }
    if (!OPTIONS.some((option) => flat(option) === flat(name)) || value === '')
      throw new TypeError(
        `the event store connection string has an option it cannot have; known are ${OPTIONS.join(', ')}`,
      );
    values.set(flat(name), value);
  }
  try {
    void EventStoreDBClient.connectionString(connectionString);
  } catch {
    throw new TypeError(
      'the event store connection string cannot be read: check hosts, ports, options and files',
    );
  }
  // A follower may be behind: a command would be refused for a state that is over.
  if ((values.get('nodepreference') ?? 'leader').toLowerCase() !== 'leader')
    throw new TypeError(
      'LEDGER_EVENT_STORE: nodePreference must be leader (or be left out): decisions are taken from what is read, ' +
        'and other nodes may be behind',
    );
  const unsent = credentials !== undefined && values.get('tls') === 'false';
  return {
    endpoints: hosts,
    ...(unsent && { warning: 'user and password are not sent without TLS (tls=false)' }),
  };
};
