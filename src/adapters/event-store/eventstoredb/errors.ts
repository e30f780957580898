import { StoreUnavailable } from '../../../app/log/event-store.ts';
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
const PERMISSION_DENIED = 7;
const UNAUTHENTICATED = 16;

const fieldOf = (error: unknown, name: 'type' | 'code'): unknown =>
  typeof error === 'object' && error !== null && name in error
    ? (error as Record<string, unknown>)[name]
    : undefined;

/**
 * Errors come as the library's CommandError (`type`) or raw from gRPC (`code`), for example from the features call:
 * both are looked at.
 */
export const isTransient = (error: unknown): boolean => {
  if (isRefusal(error) || isTlsFault(error)) return false;
  return (
    error instanceof Silence ||
    TRANSIENT_TYPES.has(String(fieldOf(error, 'type'))) ||
    TRANSIENT_CODES.has(Number(fieldOf(error, 'code'))) ||
    // Discovery gives up with a plain Error.
    (error instanceof Error && error.message.startsWith('Failed to discover'))
  );
};

/** User or password are not accepted. The library calls this `access-denied` too. */
export const isUnauthenticated = (error: unknown): boolean => fieldOf(error, 'code') === UNAUTHENTICATED;

/** The server knows who asks, or that nobody says who asks, and says no. Nothing was carried out. */
export const isRefusal = (error: unknown): boolean =>
  isUnauthenticated(error) ||
  fieldOf(error, 'code') === PERMISSION_DENIED ||
  fieldOf(error, 'type') === 'access-denied';

/** The same, said inside a call that goes on. */
export const deniedAnswer = (): Error =>
  Object.assign(new Error('access denied'), { code: PERMISSION_DENIED });

/** What Node and OpenSSL say of certificates, and of a server that answers a TLS greeting with something else. */
const UNTRUSTED =
  /unable to verify|unable to get (?:local )?issuer|self[- ]signed certificate|certificate (?:has expired|is not yet valid)|altnames/i;
const NO_TLS = /wrong version number|packet length too long|EPROTO/;

/** The certificate is not trusted, or the other side speaks no TLS. */
export const isTlsFault = (error: unknown): boolean => {
  const text = messageOf(error);
  return UNTRUSTED.test(text) || NO_TLS.test(text);
};

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
export const messageOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).replace(/[.\s]*Resolution note:\s*$/, '');

/**
 * The more telling one of two causes: what an earlier attempt was told says more than that the last one, with hardly
 * any time left, was told nothing.
 */
export const betterCause = (before: unknown, now: unknown): unknown =>
  before !== undefined &&
  now instanceof Silence &&
  (before instanceof Silence ? before.ms > now.ms : now.ms < 1000)
    ? before
    : now;

/** The right that a call needed, and the stream that it needed it on. */
export type Needed = { readonly right: '$r' | '$w' | '$mw'; readonly on: string };
const VERBS = { $r: 'read', $w: 'write to', $mw: 'write the metadata of' } as const;

/** `user`: of the connection string; undefined: it names none. */
export const createFaults = (user: string | undefined) => {
  const denied = ({ right, on }: Needed): string =>
    user === undefined
      ? `the event store lets nobody ${VERBS[right]} ${on} without a user: put user and password into the connection ` +
        'string, esdb://user:password@host:2113'
      : `user '${user}' may not ${VERBS[right]} ${on} in the event store: grant ${right} on ${on}`;

  const untrusted = (text: string): string =>
    NO_TLS.test(text)
      ? `the event store does not speak TLS (${text}): set tls=false in the connection string, or TLS on the server`
      : `the certificate of the event store is not accepted (${text}): set tlsCAFile in the connection string to the ` +
        'file with the certificate authority that signed it';

  return {
    /** Of a call that certainly changed nothing. `what`: names the call. */
    unavailable: (what: string, error: unknown, needed: Needed): StoreUnavailable => {
      const options = { cause: error };
      if (isUnauthenticated(error))
        return new StoreUnavailable(
          `the event store does not accept ${user === undefined ? 'a call without a user' : `user '${user}' with this password`}: ` +
            'correct user and password in the connection string',
          'credentials',
          options,
        );
      if (isRefusal(error)) return new StoreUnavailable(denied(needed), 'denied', options);
      const text = messageOf(error);
      if (isTlsFault(error)) return new StoreUnavailable(untrusted(text), 'untrusted', options);
      // Said once: some causes name the call themselves.
      return new StoreUnavailable(text.startsWith(what) ? text : `${what}: ${text}`, 'down', options);
    },
  };
};

export type StoreFaults = ReturnType<typeof createFaults>;

export const closedStore = (): StoreUnavailable =>
  new StoreUnavailable('the event store is closed', 'closed');
