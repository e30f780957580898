import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { IssuerUnreachable } from '../../app/tenancy/identity.ts';
import type { JsonFetch } from './https-fetch.ts';

/** What finds the key of a token, and says which key an id names. */
export type IssuerKeys = JWTVerifyGetKey & {
  /**
   * Which key this id names now; undefined: none, or none that is known well enough. Absent: keys never change. What
   * a key
   * has signed counts for as long as this stays the same.
   */
  readonly fingerprint?: (kid: string) => string | undefined;
};

/**
 * Keys of one remote issuer: discovery document, then its JWKS, both over https (OSAC). Kept for an hour;
 * an unknown key id fetches again, at most once a minute, so that a rotation is picked up and a flood of forged key
 * ids is not passed on to the issuer. Keys that were fetched once stay usable while the issuer is down, for a day:
 * it may
 * have withdrawn them.
 */
export type IssuerKeysOptions = {
  readonly issuer: string;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly fetch?: JsonFetch;
  /** Milliseconds until one HTTP request counts as failed. Default 5,000. */
  readonly timeoutMs?: number;
  readonly onFailure?: (issuer: string, error: unknown) => void;
};

const MAX_AGE_MS = 3_600_000;
const MAX_AGE_WHILE_AWAY_MS = 24 * 3_600_000;
const REFETCH_EVERY_MS = 60_000;
const RETRY_AFTER_FAILURE_MS = 5_000;
const MAX_DOCUMENT_BYTES = 1024 * 1024;
/** A larger modulus would cost seconds of work per token. */
const RSA_BITS = { least: 2_048, most: 16_384 };
const MAX_MODULUS_CHARACTERS = 3_000;
/** More keys than any issuer has: each is looked at when the set arrives. */
const MAX_KEYS = 100;

export const createIssuerKeys = (options: IssuerKeysOptions): IssuerKeys => {
  const fetcher = options.fetch ?? globalThis.fetch;
  let keys: ReturnType<typeof createLocalJWKSet> | undefined;
  let moduli: ReadonlyMap<string | undefined, string | undefined> = new Map();
  let fetchedAt = 0;
  let failedAt: number | undefined;
  let running: Promise<void> | undefined;

  const readJson = async (url: string): Promise<unknown> => {
    if (!url.startsWith('https://')) throw new Error(`${url} is not an https URL`);
    const response = await fetcher(url, {
      redirect: 'error',
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(options.timeoutMs ?? 5_000),
    });
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    return JSON.parse(await readBounded(response, url)) as unknown;
  };

  const load = async (): Promise<void> => {
    try {
      const base = options.issuer.replace(/\/+$/, '');
      const discovery = (await readJson(`${base}/.well-known/openid-configuration`)) as {
        issuer?: unknown;
        jwks_uri?: unknown;
      } | null;
      if (discovery?.issuer !== options.issuer)
        throw new Error('the discovery document names another issuer');
      if (typeof discovery.jwks_uri !== 'string') throw new Error('the discovery document names no jwks_uri');
      const usable = usableKeys(await readJson(discovery.jwks_uri));
      keys = createLocalJWKSet({ keys: usable });
      moduli = new Map(usable.map(({ kid, n }) => [kid, n]));
      fetchedAt = options.now();
      failedAt = undefined;
    } catch (error) {
      failedAt = options.now();
      options.onFailure?.(options.issuer, error);
      if (keys === undefined)
        throw new IssuerUnreachable(options.issuer, RETRY_AFTER_FAILURE_MS, { cause: error });
    }
  };
  /** One fetch at a time; not again within five seconds after a failure. */
  const refresh = (): Promise<void> => {
    const waited = failedAt === undefined ? undefined : options.now() - failedAt;
    if (waited !== undefined && waited < RETRY_AFTER_FAILURE_MS) {
      return keys === undefined
        ? Promise.reject(new IssuerUnreachable(options.issuer, RETRY_AFTER_FAILURE_MS - waited))
        : Promise.resolve();
    }
    running ??= load().finally(() => {
      running = undefined;
    });
    return running;
  };

  const dropStale = (): void => {
    if (options.now() - fetchedAt > MAX_AGE_WHILE_AWAY_MS) keys = undefined;
  };
  /** They may have become too old while somebody waited. */
  const present = (): NonNullable<typeof keys> => {
    if (keys === undefined) throw new IssuerUnreachable(options.issuer, RETRY_AFTER_FAILURE_MS);
    return keys;
  };
  const isDue = (): boolean => options.now() - fetchedAt > MAX_AGE_MS;

  const keyOf: JWTVerifyGetKey = async (header, token) => {
    dropStale();
    if (keys === undefined) await refresh();
    else if (isDue()) {
      // An issuer that did not answer last time is asked again, but nobody waits for it: there are keys.
      const asked = refresh();
      if (failedAt === undefined) await asked;
    }
    try {
      return await present()(header, token);
    } catch (error) {
      const mayBeNew =
        error instanceof errors.JWKSNoMatchingKey && options.now() - fetchedAt > REFETCH_EVERY_MS;
      if (!mayBeNew) throw error;
      await refresh();
      // A key of after the last fetch, perhaps: what the issuer does not tell now cannot be told to be wrong.
      if (failedAt !== undefined) throw new IssuerUnreachable(options.issuer, RETRY_AFTER_FAILURE_MS);
      return present()(header, token);
    }
  };
  return Object.assign(keyOf, {
    fingerprint: (kid: string): string | undefined => {
      dropStale();
      if (keys === undefined) return undefined;
      // Tokens that are remembered ask for no key: without this nothing would be fetched for as long as they live.
      if (isDue()) void refresh().catch(() => undefined);
      return moduli.get(kid);
    },
  });
};

/** RSA signature keys with a key id and 2,048 to 16,384 bits; anything else in the set is left out. */
const usableKeys = (document: unknown): JSONWebKeySet['keys'] => {
  const listed = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(listed)) throw new Error('the key set holds no list of keys');
  if (listed.length > MAX_KEYS) throw new Error(`the key set holds more than ${MAX_KEYS} keys`);
  return (listed as JSONWebKeySet['keys']).filter(
    (key) =>
      key?.kty === 'RSA' &&
      typeof key.kid === 'string' &&
      (key.use === undefined || key.use === 'sig') &&
      typeof key.n === 'string' &&
      key.n.length <= MAX_MODULUS_CHARACTERS &&
      isPublicKey(key),
  );
};

/** A key that cannot be used would fail in the middle of a verification. What `n` looks like says little: it may begin with zeros. */
const isPublicKey = ({ kty, n, e }: JSONWebKeySet['keys'][number]): boolean => {
  try {
    const { asymmetricKeyDetails: found } = createPublicKey({
      key: { kty, n, e } as JsonWebKey,
      format: 'jwk',
    });
    const bits = found?.modulusLength ?? 0;
    return bits >= RSA_BITS.least && bits <= RSA_BITS.most && (found?.publicExponent ?? 0n) >= 3n;
  } catch {
    return false;
  }
};

const readBounded = async (response: Response, url: string): Promise<string> => {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response.body ?? []) {
    bytes += part.byteLength;
    if (bytes > MAX_DOCUMENT_BYTES) throw new Error(`${url} answered more than ${MAX_DOCUMENT_BYTES} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
};
