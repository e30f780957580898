import { hash } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, errors, jwtVerify, type JWTPayload } from 'jose';
import { LRUCache } from 'lru-cache';
import { z } from 'zod';
import {
  TokenRejected,
  type ActingParty,
  IssuerUnreachable,
  LEEWAY_S,
  type TokenVerifier,
  type VerifiedToken,
} from '../../app/tenancy/identity.ts';
import { defined } from '../../domain/json-tools.ts';
import { ownAccountName } from '../../domain/tenancy/provider-clients.ts';
import type { IssuerKeys } from './issuer-keys.ts';

const MAX_TEXT = 255;
/** Actors in one chain. The issuer adds one each time that a token is exchanged. */
const MAX_CHAIN = 5;

const claimText = z.string().min(1).max(MAX_TEXT);
/** Other claims about the actor (RFC 8693 §4.1 names none that an actor must not have) are passed over. */
const actor = z.looseObject({
  sub: claimText,
  iss: claimText.optional(),
  preferred_username: claimText.optional(),
  username: claimText.optional(),
  email: claimText.optional(),
  act: z.unknown().optional(),
});

/**
 * Who acts on behalf of the token's subject, from the claim `act` (RFC 8693 §4.1): the outermost one acts now; those
 * within it acted before, and count for nothing. Undefined: the subject acts itself. Throws TokenRejected for a claim that
 * is malformed: the history would name the wrong one.
 */
const readAct = (
  claim: unknown,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
): ActingParty | undefined => {
  if (claim === undefined) return undefined;
  const current = parsed(claim);
  let inner = current.act;
  for (let depth = 2; inner !== undefined; depth += 1) {
    if (depth > MAX_CHAIN)
      throw new TokenRejected(`claim 'act' names more than ${MAX_CHAIN} actors within one another`);
    inner = parsed(inner).act;
  }
  const { sub, iss = issuer, email } = current;
  if (sub === subject && iss === issuer) return undefined;
  return {
    issuer: iss,
    subject: sub,
    userName: current.preferred_username ?? current.username ?? sub,
    ...(email === undefined ? {} : { email }),
  };
};

const parsed = (claim: unknown): z.infer<typeof actor> => {
  const read = actor.safeParse(claim);
  if (read.success) return read.data;
  const field = ['act', ...(read.error.issues[0]?.path ?? [])].join('.');
  throw new TokenRejected(
    `claim '${field}' is not acceptable: an actor is an object with 'sub', of texts of 1 to ${MAX_TEXT} characters`,
  );
};

type TokenVerifierOptions = {
  /** Trusted issuers and where their keys come from. */
  readonly issuers: ReadonlyMap<string, IssuerKeys>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Issuers that clients may sign in with, as capabilities shows them. Default: all. */
  readonly advertised?: readonly string[];
  /** What every token must name in `aud`. Default: the claim is not looked at. */
  readonly audience?: string;
  /** How many verified tokens are remembered. Default 10,000; their texts together at most 32 million characters. */
  readonly cacheSize?: number;
};

const ALGORITHMS = ['RS256', 'RS384', 'RS512'];
const MAX_TOKEN_CHARACTERS = 16_384;
/** What is kept of a token is smaller than its text, whatever it claims. */
const MAX_REMEMBERED_CHARACTERS = 32_000_000;

/**
 * Verifies bearer tokens as OSAC does: RS256/384/512, a key id, a trusted issuer, `exp`, `iat` and
 * `nbf` with five seconds of leeway, `typ` claim Bearer, a subject. A verified token is remembered by its hash until
 * it expires or its issuer withdraws the key; refused ones are not remembered, since a caller could make any number
 * of them.
 */
export const createTokenVerifier = (options: TokenVerifierOptions): TokenVerifier => {
  const remembered = new LRUCache<string, Remembered>({ maxSize: MAX_REMEMBERED_CHARACTERS });
  // No more of the smallest than that: `max` would take the room for all of them at once.
  const smallest = Math.ceil(MAX_REMEMBERED_CHARACTERS / (options.cacheSize ?? 10_000));
  const nowSeconds = (): number => options.now() / 1000;

  const known = (textHash: string): VerifiedToken | undefined => {
    const found = remembered.get(textHash);
    if (found === undefined) return undefined;
    const { verified, kid, fingerprint } = found;
    const isSigned = options.issuers.get(verified.issuer)?.fingerprint?.(kid) === fingerprint;
    if (isSigned && verified.expiresAt + LEEWAY_S > nowSeconds()) return verified;
    remembered.delete(textHash);
    return undefined;
  };

  const verify = async (token: string): Promise<VerifiedToken> => {
    if (token.length > MAX_TOKEN_CHARACTERS) throw new TokenRejected('it is longer than 16,384 characters');
    const textHash = hashOf(token);
    const before = known(textHash);
    if (before !== undefined) return before;
    const { keys, kid } = keysFor(token, options.issuers);
    try {
      const { payload } = await jwtVerify(token, keys, {
        algorithms: ALGORITHMS,
        requiredClaims: ['exp', 'sub', 'iss'],
        ...(options.audience === undefined ? {} : { audience: options.audience }),
        clockTolerance: LEEWAY_S,
        currentDate: new Date(options.now()),
      });
      const verified = readClaims(payload, tokenIdOf(payload, token), nowSeconds());
      const fingerprint = keys.fingerprint?.(kid);
      // Withdrawn while the signature was checked: the next call finds no key.
      const isWithdrawn = keys.fingerprint !== undefined && fingerprint === undefined;
      const size = Math.max(smallest, token.length);
      if (!isWithdrawn) remembered.set(textHash, { verified, kid, fingerprint }, { size });
      return verified;
    } catch (error) {
      throw asRejection(error);
    }
  };

  return {
    issuers: options.advertised ?? [...options.issuers.keys()],
    verify,
    recall: (token) => known(hashOf(token)),
  };
};

type Remembered = {
  readonly verified: VerifiedToken;
  /** What the token was signed with. */
  readonly kid: string;
  readonly fingerprint: string | undefined;
};

const hashOf = (text: string | Uint8Array): string => hash('sha256', text, 'base64url');

/**
 * The id by which the history names a token: the one that its issuer gave it, or its signature. Of its text there are
 * several spellings, since the last character of base64url holds bits that nobody reads.
 */
const tokenIdOf = ({ iss, jti }: JWTPayload, token: string): string =>
  typeof jti === 'string' && jti !== ''
    ? hashOf(JSON.stringify([iss, jti]))
    : hashOf(Buffer.from(token.slice(token.lastIndexOf('.') + 1), 'base64url'));

/** RFC 7515 §2: base64url without padding. Some decoders take more, and one token would have any number of texts. */
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/** Looks at header and issuer before any signature is checked, so that the answer can say which of them is wrong. */
const keysFor = (
  token: string,
  issuers: TokenVerifierOptions['issuers'],
): { readonly keys: IssuerKeys; readonly kid: string } => {
  if (!COMPACT.test(token)) throw new TokenRejected('it is not a JSON Web Token');
  let algorithm: string | undefined;
  let kid: unknown;
  let issuer: unknown;
  try {
    ({ alg: algorithm, kid } = decodeProtectedHeader(token));
    issuer = decodeJwt(token).iss;
  } catch (error) {
    throw new TokenRejected('it is not a JSON Web Token', { cause: error });
  }
  if (algorithm === undefined || !ALGORITHMS.includes(algorithm))
    throw new TokenRejected(`it must be signed with ${ALGORITHMS.join(', ')}`);
  if (typeof kid !== 'string' || kid === '') throw new TokenRejected('its header has no key id (kid)');
  const keys = typeof issuer === 'string' ? issuers.get(issuer) : undefined;
  if (keys === undefined) throw new TokenRejected('its issuer is not trusted here');
  return { keys, kid };
};

const asRejection = (error: unknown): Error => {
  if (error instanceof TokenRejected || error instanceof IssuerUnreachable) return error;
  if (error instanceof errors.JWTExpired)
    return new TokenRejected('it has expired', { cause: error, expired: true });
  if (error instanceof errors.JWTClaimValidationFailed) {
    const problem = error.reason === 'missing' ? 'is missing' : 'is not acceptable';
    return new TokenRejected(`claim '${error.claim}' ${problem}`, { cause: error });
  }
  if (error instanceof errors.JWSSignatureVerificationFailed)
    return new TokenRejected("its signature does not match the issuer's key", { cause: error });
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return new TokenRejected('its key id is not one of its issuer', { cause: error });
  if (error instanceof errors.JOSEError)
    return new TokenRejected('it is not a signed JSON Web Token', { cause: error });
  return error instanceof Error ? error : new Error('token verification failed', { cause: error });
};

/** The end of the year 9999 in seconds, with the leeway. */
const MAX_EXP = 253_402_300_799 - LEEWAY_S;

const readClaims = (payload: JWTPayload, tokenIdHash: string, now: number): VerifiedToken => {
  const { iss, sub, exp, iat } = payload;
  if (iss === undefined || exp === undefined) throw new TokenRejected("claims 'iss' and 'exp' are mandatory");
  if (exp > MAX_EXP) throw new TokenRejected("claim 'exp' is not a time");
  if (typeof sub !== 'string' || sub === '') throw new TokenRejected("claim 'sub' is missing");
  if (iat !== undefined && iat > now + LEEWAY_S) throw new TokenRejected("claim 'iat' lies in the future");
  const typ = payload['typ'];
  if (typ !== undefined && typ !== 'Bearer') throw new TokenRejected("claim 'typ' is not Bearer");
  const serviceAccount = payload['kubernetes.io'] !== undefined;
  const name = serviceAccount
    ? sub
    : (text(payload['preferred_username']) ?? text(payload['username']) ?? sub);
  const email = text(payload['email']);
  const organization = payload['organization'];
  const ownAccountOf = serviceAccount ? undefined : clientOf(payload);
  const actingParty = readAct(payload['act'], { issuer: iss, subject: sub });
  return {
    issuer: iss,
    subject: sub,
    userName: name,
    ...defined({ email, actingParty, ownAccountOf }),
    serviceAccount,
    organizations: serviceAccount ? [] : organizationsOf(organization),
    groups: texts(payload['groups']),
    ...(isMap(organization) ? { tenantGroups: groupsOf(organization) } : {}),
    realmRoles: texts((payload['realm_access'] as { roles?: unknown } | null | undefined)?.roles),
    expiresAt: exp,
    tokenIdHash,
  };
};

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string' && item !== '') : [];

/** Users choose `username`, and directories `sub`: only what the issuer itself wrote for a client counts. */
const clientOf = ({ azp, client_id, preferred_username, organization }: JWTPayload): string | undefined => {
  const client = text(azp ?? client_id);
  const isOwn = client !== undefined && preferred_username === ownAccountName(client);
  return isOwn && isEmpty(organization) ? client : undefined;
};

/** A claim of another form may be a tenant's that is read wrong: it is one. */
const isEmpty = (claim: unknown): boolean =>
  claim === undefined || claim === null || (typeof claim === 'object' && Object.keys(claim).length === 0);

/** `organization` is a list of names, or an object from name to `{groups: […]}`. */
const organizationsOf = (claim: unknown): string[] =>
  isMap(claim) ? Object.keys(claim).filter((name) => name !== '') : texts(claim);

const isMap = (claim: unknown): claim is Readonly<Record<string, unknown>> =>
  typeof claim === 'object' && claim !== null && !Array.isArray(claim);

/** Kept apart from the token's own groups, so that a tenant's group `admins` never makes a provider admin. */
const groupsOf = (claim: Readonly<Record<string, unknown>>): ReadonlyMap<string, readonly string[]> =>
  new Map(
    Object.entries(claim).map(([name, value]) => [
      name,
      texts((value as { groups?: unknown } | null)?.groups),
    ]),
  );
