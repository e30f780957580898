import { isIPv6 } from 'node:net';
import { createFairTurns } from '../../app/fairness/fair-turns.ts';
import { createRateLimit, type RateLimit, type Taken } from '../../app/fairness/token-bucket.ts';
import { createTurnstile, type Leave } from '../../app/fairness/turnstile.ts';
import type { Clock } from '../../app/ports.ts';
import { TurnedAway, type Authenticate } from '../authenticate.ts';
import { isSmallBody } from '../body.ts';
import { tooMuch, unavailable, ApiError } from '../errors.ts';
import type { Exchange, HttpExchange } from '../exchange.ts';
import { payerOf, type Principal } from '../osac/principal.ts';

/**
 * Bytes of answers that wait in this process for callers to read them. Whoever asks much and reads nothing would
 * otherwise fill the memory; here reads are refused while too much waits, of one caller first. What is small enough for
 * the socket's own buffer never counts.
 */
type Unread = {
  /** Throws ApiError 429 when too much of this payer waits, 503 when too much of all does. */
  assertRoom(payer: string): void;
  /** Counts bytes that wait; gives back what ends that. */
  hold(payer: string, bytes: number): () => void;
  readonly bytes: number;
};

type UnreadLimits = { readonly ofAll: number; readonly ofOne: number };

/** An answer is 1 MiB at most, longer ones are sent in parts; so much comes on top of these for each that is under way. */
const UNREAD_LIMITS: UnreadLimits = { ofAll: 128 * 1024 * 1024, ofOne: 32 * 1024 * 1024 };

export const createUnread = ({ ofAll, ofOne }: UnreadLimits = UNREAD_LIMITS): Unread => {
  const byPayer = new Map<string, number>();
  let all = 0;
  const add = (payer: string, bytes: number): void => {
    all += bytes;
    const left = (byPayer.get(payer) ?? 0) + bytes;
    if (left === 0) byPayer.delete(payer);
    else byPayer.set(payer, left);
  };
  return {
    assertRoom: (payer) => {
      if (all === 0) return;
      if ((byPayer.get(payer) ?? 0) >= ofOne)
        throw tooMuch(
          `answers of ${ofOne} bytes wait for this tenant's users (or this admin) to read them; read or close those first`,
          'ANSWERS_NOT_READ',
          1,
        );
      if (all >= ofAll)
        throw unavailable('too many answers wait to be read by others; try again', 'ANSWERS_NOT_READ', 1);
    },
    hold: (payer, bytes) => {
      if (bytes === 0) return () => {};
      add(payer, bytes);
      let held = true;
      return () => {
        if (held) add(payer, -bytes);
        held = false;
      };
    },
    get bytes() {
      return all;
    },
  };
};

/** What a caller may take of the service; 0 means no limit. */
export type AdmissionSettings = {
  /** Requests per minute of one tenant. */
  readonly rateLimitTenant: number;
  /** MiB of request bodies per minute of one tenant. */
  readonly byteLimitTenant: number;
  /** Requests per minute of one admin. */
  readonly rateLimitAdmin: number;
  /** Requests per minute from one address that come without a valid token. */
  readonly rateLimitAddress: number;
  /** Requests of one tenant that run at once. */
  readonly concurrentRequests: number;
  /** Milliseconds of one turn of the thread in which requests are begun. Default `TURN_SLICE_MS`. */
  readonly sliceMs?: number;
  /** Bytes of answers that may wait to be read. Default `UNREAD_LIMITS`. */
  readonly unread?: UnreadLimits;
};

/** Lets requests in, one tenant no more than is fair. Throws ApiError 429 RESOURCE_EXHAUSTED. */
export type Admission = {
  /** A caller whose token is good. A request of a tenant takes a turn that ends with its answer. */
  enter(exchange: Exchange, principal: Principal): void | Promise<void>;
  /** The same for an answer that goes on for as long as the caller listens: it takes no turn that ends with it. */
  enterStream(exchange: Exchange, principal: Principal): void | Promise<void>;
  /** Counts the bytes of a body that was read after its caller was known. */
  countBody(exchange: Exchange, principal: Principal): void;
  /** Counts a request that failed before anybody asked who calls. */
  count(exchange: Exchange, principal: Principal): void;
  /** Before work that is done for anybody: no more of it in one turn of the thread than is fair to others. */
  anybody(exchange: Exchange): void | Promise<void>;
  /** A caller who has no token, or none that is good, or is asked for none. */
  stranger(exchange: Exchange): void;
};

type Callers = { readonly authenticate: Authenticate; readonly admission?: Admission | undefined };

const WINDOW_SECONDS = 60;
const MIB = 1_048_576;
/** Tenants are few; addresses come from outside. About 150 bytes each. */
const MAX_KEYS = 50_000;
const WAITING = 1_024;
/** Leading groups of an IPv6 address that belong to one customer (/56 of a site, taken as /64 here). */
const IPV6_GROUPS = 4;

export const createAdmission = (
  settings: AdmissionSettings,
  clock: Pick<Clock, 'monotonicMs'>,
): Admission => {
  const monotonicMs = (): number => clock.monotonicMs();
  const limit = (quota: number): RateLimit | undefined =>
    quota === 0
      ? undefined
      : createRateLimit({ quota, windowSeconds: WINDOW_SECONDS, monotonicMs, maxKeys: MAX_KEYS });
  const tenants = limit(settings.rateLimitTenant);
  const bytes = limit(settings.byteLimitTenant * MIB);
  const admins = limit(settings.rateLimitAdmin);
  const addresses = limit(settings.rateLimitAddress);
  const turns =
    settings.concurrentRequests === 0
      ? undefined
      : createTurnstile({ running: settings.concurrentRequests, waiting: WAITING });

  const shares = createFairTurns({ monotonicMs, sliceMs: settings.sliceMs });
  const share = (exchange: Exchange, key: string): void | Promise<void> =>
    shares.enter(key)?.then(() => {
      if (exchange.response.closed || exchange.response.destroyed) throw callerGone(undefined);
    });

  const unread = createUnread(settings.unread);
  /** Looked at when the turn has come: those before it have left their answers by then. */
  const begin = (exchange: Exchange, key: string): void | Promise<void> => {
    exchange.holdUnread = (bytes) => unread.hold(key, bytes);
    const turn = share(exchange, key);
    if (exchange.writes) return turn;
    if (turn === undefined) return unread.assertRoom(key);
    return turn.then(() => unread.assertRoom(key));
  };

  const countBody = (
    { bodyBytes = 0 }: Exchange,
    { admin, subjectId, homeTenant }: Pick<Principal, 'admin' | 'subjectId' | 'homeTenant'>,
  ): void => {
    if (bytes === undefined || bodyBytes === 0 || admin) return;
    const taken = bytes.take(homeTenant ?? subjectId, bodyBytes);
    if (!taken.allowed) throw tooManyBytes(settings.byteLimitTenant, taken);
  };

  const count = (exchange: Exchange, { admin, subjectId, homeTenant }: Principal): void => {
    if (admin) spend(exchange, admins, subjectId, 'admin', settings.rateLimitAdmin);
    else spend(exchange, tenants, homeTenant ?? subjectId, 'tenant', settings.rateLimitTenant);
    countBody(exchange, { admin, subjectId, homeTenant });
  };

  return {
    count,
    countBody,
    anybody: (exchange) => share(exchange, `address ${addressOf(exchange)}`),
    enterStream: (exchange, principal) => {
      count(exchange, principal);
      return share(exchange, payerOf(principal));
    },
    enter: (exchange, principal) => {
      count(exchange, principal);
      const key = payerOf(principal);
      if (turns === undefined || principal.admin) return begin(exchange, key);
      const leave = turns.enter(key, exchange.signal);
      if (leave === undefined) throw tooManyAtOnce(settings.concurrentRequests);
      if (!(leave instanceof Promise)) {
        untilAnswered(exchange, leave);
        return begin(exchange, key);
      }
      return leave.then(
        (end) => {
          untilAnswered(exchange, end);
          return begin(exchange, key);
        },
        (error: unknown) => {
          throw callerGone(error);
        },
      );
    },
    stranger: (exchange) =>
      spend(exchange, addresses, addressOf(exchange), 'address', settings.rateLimitAddress),
  };
};

/** A turn ends with the answer; whoever went away before it began has none. */
const untilAnswered = ({ response }: Exchange, leave: Leave): void => {
  if (!response.closed && !response.destroyed) {
    response.once('close', leave);
    return;
  }
  leave();
  throw callerGone(undefined);
};

const callerGone = (cause: unknown): ApiError => new ApiError('CANCELLED', 'the caller went away', { cause });

/**
 * Who calls, if they may come in: authentication, and what is fair. `listens`: the answer goes on for as long
 * as the caller does. Throws ApiError 401, 400, 429 or 503.
 */
export const admitted = async (
  exchange: Exchange,
  { authenticate, admission }: Callers,
  { listens = false } = {},
): Promise<Principal> => {
  const principal = await knownCaller(exchange, authenticate, admission);
  exchange.principal = principal;
  const turn = listens ? admission?.enterStream(exchange, principal) : admission?.enter(exchange, principal);
  if (turn !== undefined) await turn;
  return principal;
};

/**
 * Runs what is checked before anybody asks who calls (OSAC). A request that fails there counts for whoever
 * sent it all the same, so that nobody sends as many as they like; and a large body is read from known callers only.
 * Throws what `check` throws, or ApiError 401 or 429.
 */
export const countingFailures = async <T>(
  exchange: HttpExchange,
  { authenticate, admission }: Callers,
  check: () => Promise<T>,
): Promise<T> => {
  if (!isSmallBody(exchange.request)) {
    // The rest of it is not waited for: the connection ends with the refusal.
    const { response } = exchange;
    const { shouldKeepAlive } = response;
    response.shouldKeepAlive = false;
    await assertKnown(exchange, { authenticate, admission });
    response.shouldKeepAlive = shouldKeepAlive;
  }
  return namingFailures(exchange, { authenticate, admission }, check);
};

/**
 * The same for what is checked before a body is read: the answer is that of the check, but it counts for who called
 * and is
 * recorded as theirs, in the history of their tenant. A refused call makes nobody a User.
 */
export const namingFailures = async <T>(
  exchange: Exchange,
  { authenticate, admission }: Callers,
  check: () => T | Promise<T>,
): Promise<T> => {
  try {
    return await check();
  } catch (error) {
    if (exchange.response.destroyed) throw error;
    const known = knownCaller(exchange, authenticate, admission, { withoutUser: true });
    const principal = await known.catch((unknown: unknown) => {
      if (unknown instanceof ApiError && unknown.error === 'RESOURCE_EXHAUSTED') throw unknown;
      return undefined;
    });
    exchange.principal = principal;
    if (principal !== undefined) admission?.count(exchange, principal);
    throw error;
  }
};

/** Before much is read or done for whoever calls. Throws ApiError 401, 400, 429 or 503. */
export const assertKnown = async (
  exchange: Exchange,
  { authenticate, admission }: Callers,
): Promise<void> => {
  await knownCaller(exchange, authenticate, admission, { withoutUser: true });
};

const knownCaller = async (
  exchange: Exchange,
  authenticate: Authenticate,
  admission: Admission | undefined,
  { withoutUser = exchange.dryRun === true } = {},
): Promise<Principal> => {
  try {
    const { authorization } = exchange.request.headers;
    return await authenticate(authorization, exchange.method, { dryRun: withoutUser });
  } catch (error) {
    if (error instanceof TurnedAway) exchange.turnedAway = error.principal;
    if (error instanceof ApiError && error.status < 500) admission?.stranger(exchange);
    throw error;
  }
};

/** Draft RateLimit fields (draft-ietf-httpapi-ratelimit-headers-08) on every answer that was counted. */
const spend = (
  { response, cost }: Exchange,
  limit: RateLimit | undefined,
  key: string,
  policy: 'tenant' | 'admin' | 'address',
  quota: number,
): void => {
  if (limit === undefined) return;
  const taken = limit.take(key, cost);
  response.setHeader('ratelimit-policy', `"${policy}";q=${quota};w=${WINDOW_SECONDS}`);
  response.setHeader('ratelimit', `"${policy}";r=${taken.remaining};t=${taken.fullAfter}`);
  if (!taken.allowed) throw tooMany(policy, quota, taken);
};

const OF_WHOM = {
  tenant: 'of this tenant',
  admin: 'of this caller',
  address: 'without a valid token from this address',
} as const;

const tooMany = (policy: keyof typeof OF_WHOM, quota: number, { retryAfter }: Taken): ApiError =>
  tooMuch(
    `too many requests ${OF_WHOM[policy]}: at most ${quota} in ${WINDOW_SECONDS} seconds are served`,
    'RATE_LIMITED',
    retryAfter,
  );

const tooManyBytes = (quota: number, { retryAfter }: Taken): ApiError =>
  tooMuch(
    `too many bytes in requests ${OF_WHOM.tenant}: at most ${quota} MiB of request bodies in ${WINDOW_SECONDS} seconds are taken`,
    'BYTES_LIMITED',
    retryAfter,
  );

const tooManyAtOnce = (running: number): ApiError =>
  tooMuch(
    `too many requests of this tenant at once: ${running} run and ${WAITING} wait already`,
    'TOO_MANY_AT_ONCE',
    1,
  );

const addressOf = ({ request }: Exchange): string => addressKey(request.socket.remoteAddress ?? '');

/** One key for all addresses that one customer has: IPv6 hands out whole subnets. */
export const addressKey = (address: string): string => {
  // Looked at for every request: the whole pattern of IPv6 is long.
  if (!address.includes(':') || !isIPv6(address)) return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const gap = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0');
  return [...left, ...gap, ...right].slice(0, IPV6_GROUPS).join(':');
};
