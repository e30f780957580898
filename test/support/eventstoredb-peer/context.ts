import { Metadata, status, type ServiceError } from '@grpc/grpc-js';
import type { Behaviour, Faults } from './faults.ts';
import type { Log } from './log.ts';

/** The release whose behaviour the peer plays (docs/administration.md "EventStoreDB"). */
export type ServerVersion = '23.10' | '24.10' | '25.0';

/** Counters of what happened; tests compare them before and after. */
export type Stats = {
  readonly calls: { append: number; read: number; subscribe: number; gossip: number; features: number };
  /** Messages received on batch append calls; a large append is several. */
  batchMessages: number;
  /** Appends that stored something. */
  commits: number;
  /** Appends that wait to be worked on (`late-work`), and the most that ever did. */
  queued: number;
  mostQueued: number;
  /** Appends that were dropped without an answer, as a real server does with some. */
  dropped: number;
  /** The most reads that were ever open at once, subscriptions not among them. */
  mostReads: number;
  /** Batch append calls open now. */
  openAppendCalls: number;
  /** Subscriptions open now. */
  openSubscriptions: number;
  /** Read and subscription calls that the client cancelled (or whose connection went). */
  cancelled: number;
  /** Event messages written to clients, and those of them on subscriptions. */
  eventsSent: number;
  eventsSubscribed: number;
  /** Of each read call that began: its stream, or `$all` and its direction. */
  readonly readFrom: string[];
  /** Commit position each subscription began behind, `start` or `end`. */
  readonly subscribedFrom: string[];
  connections: number;
  /** Connections accepted since the start. */
  connected: number;
  /** `connection-name` header and `authorization` of the last append call. */
  lastAppendHeaders: { readonly [name: string]: string };
};

export const createStats = (): Stats => ({
  calls: { append: 0, read: 0, subscribe: 0, gossip: 0, features: 0 },
  batchMessages: 0,
  commits: 0,
  queued: 0,
  mostQueued: 0,
  dropped: 0,
  mostReads: 0,
  openAppendCalls: 0,
  openSubscriptions: 0,
  cancelled: 0,
  eventsSent: 0,
  eventsSubscribed: 0,
  readFrom: [],
  subscribedFrom: [],
  connections: 0,
  connected: 0,
  lastAppendHeaders: {},
});

export type PeerContext = {
  readonly log: Log;
  readonly faults: Faults;
  readonly stats: Stats;
  readonly version: ServerVersion;
  /** Cuts the TCP connection of a call (`call.getPeer()`). */
  readonly cut: (peer: string) => void;
  /** How correlation ids are answered: the real server answers in halves. */
  readonly uuids: 'text' | 'halves';
  /** By how much this server's clock is ahead of the client's, for append deadlines. */
  readonly clockAheadMs: number;
  /** Events that a filtered subscription considers per window when the client names none. */
  readonly defaultWindow: number;
  readonly address: () => { host: string; port: number };
};

export const serviceError = (
  code: status,
  details: string,
  trailers: { readonly [name: string]: string } = {},
): ServiceError => {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata });
};

/** The error with which a refused call ends; undefined when the refusal is answered inside the stream. */
export const refusalError = (
  behaviour: Behaviour & { kind: 'refuse' },
  address: { host: string; port: number },
): ServiceError => {
  switch (behaviour.as) {
    case 'not-leader': {
      const { host, port } = behaviour.leader ?? address;
      return serviceError(status.NOT_FOUND, 'Leader info available', {
        exception: 'not-leader',
        'leader-endpoint-host': host,
        'leader-endpoint-port': String(port),
      });
    }
    case 'access-denied':
      return serviceError(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });
    case 'unauthenticated':
      return serviceError(status.UNAUTHENTICATED, 'Bad HTTP status: 401');
    case 'timeout':
      return serviceError(status.DEADLINE_EXCEEDED, 'Operation timed out');
    case 'unknown':
      return serviceError(status.UNKNOWN, 'Exception was thrown by handler.');
    case 'busy':
      return serviceError(status.UNAVAILABLE, 'Server Is Busy');
    case 'unavailable':
      return serviceError(status.UNAVAILABLE, 'Server Is Not Ready');
  }
};
