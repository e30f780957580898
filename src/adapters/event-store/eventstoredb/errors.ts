import { StoreUnavailable } from '../../../app/event-store.ts';
import { Silence } from './waiting.ts';

/** gRPC status codes that a second try may cure. */
const TRANSIENT_CODES = new Set([1, 2, 4, 8, 10, 13, 14]);
const TRANSIENT_TYPES = new Set([
  'unavailable',
  'cancelled',
  'timeout',
  'deadline-exceeded',
  'unknown',
  'not-leader',
]);

const fieldOf = (error: unknown, name: 'type' | 'code'): unknown =>
  typeof error === 'object' && error !== null && name in error
    ? (error as Record<string, unknown>)[name]
    : undefined;

/**
 * Errors come as the library's CommandError (`type`) or raw from gRPC (`code`), for example from the features call
 * (eventstore-client.md §3.3 G): both are looked at.
 */
export const isTransient = (error: unknown): boolean =>
  error instanceof Silence ||
  TRANSIENT_TYPES.has(String(fieldOf(error, 'type'))) ||
  TRANSIENT_CODES.has(Number(fieldOf(error, 'code'))) ||
  // Discovery gives up with a plain Error.
  (error instanceof Error && error.message.startsWith('Failed to discover'));

/** The library follows the leader by itself; the connection must not be thrown away then. */
export const isNotLeader = (error: unknown): boolean =>
  fieldOf(error, 'type') === 'not-leader' || trailerOf(error) === 'not-leader';

const trailerOf = (error: unknown): string | undefined => {
  const metadata = (error as { metadata?: { get?: (name: string) => (string | Buffer)[] } } | undefined)
    ?.metadata;
  const [value] = metadata?.get?.('exception') ?? [];
  return value?.toString();
};

/** A handler of the server failed on what it was asked, as it does for a position inside a record. */
export const isUnknown = (error: unknown): boolean =>
  fieldOf(error, 'type') === 'unknown' || fieldOf(error, 'code') === 2;

/** Servers of 23.10 end a live subscription whose client is behind, and expect it again at once. */
export const isTooSlow = (error: unknown): boolean => /consumer too slow/i.test(messageOf(error));

export const isMissingStream = (error: unknown): boolean => fieldOf(error, 'type') === 'stream-not-found';
export const isDeletedStream = (error: unknown): boolean => fieldOf(error, 'type') === 'stream-deleted';

/** What happened, in words that hold no credentials: gRPC's own message, which names at most host and port. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export const asUnavailable = (what: string, error: unknown): StoreUnavailable =>
  new StoreUnavailable(`${what}: ${messageOf(error)}`, 'down', { cause: error });

export const closedStore = (): StoreUnavailable =>
  new StoreUnavailable('the event store is closed', 'closed');
