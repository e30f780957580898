import { randomUUID } from 'node:crypto';
import { link, open, readFile, unlink } from 'node:fs/promises';
import { join } from 'node:path';
// One by one, and below what only a service needs: `ledgerctl` mints with every call, and loads nothing else for it.
import { SignJWT } from 'jose/jwt/sign';
import { importJWK } from 'jose/key/import';
import type { JWK, JWTVerifyGetKey } from 'jose';
import { makeDirectory } from '../../app/deployment/make-directory.ts';
import { isProduction } from '../../app/deployment/production.ts';
import { isLoopback } from '../../domain/hubs/loopback.ts';

/** Never resolves (RFC 2606), so that nobody mistakes it for a reachable issuer. */
export const DEVELOPMENT_ISSUER = 'https://development-issuer.invalid';
const KEY_FILE = 'development-issuer.jwk.json';

export type DevelopmentIssuer = {
  readonly issuer: string;
  readonly keys: JWTVerifyGetKey;
  mintToken(claims: TokenClaims): Promise<string>;
};

export type TokenClaims = {
  readonly user: string;
  readonly tenant?: string;
  readonly admin?: boolean;
  readonly roles?: readonly string[];
  readonly groups?: readonly string[];
  readonly email?: string;
  /** Absent: the token names none. */
  readonly audience?: string;
  readonly ttlSeconds: number;
  /** Milliseconds since 1970. */
  readonly now: number;
};

/**
 * The development issuer must not exist where it could be reached or relied on: in production, or when the listener
 * accepts connections of other machines. Returns the reason, or undefined when it may run. Pure.
 */
export const whyNoDevelopmentIssuer = (where: {
  readonly nodeEnv: string | undefined;
  readonly listenHost: string;
}): string | undefined => {
  if (isProduction(where.nodeEnv))
    return 'the development token issuer is refused when NODE_ENV=production; set LEDGER_TRUSTED_ISSUERS, for example https://sso.example.com/realms/osac';
  if (!isLoopback(where.listenHost))
    return `the development token issuer is refused on ${where.listenHost}, which other machines can reach; set LEDGER_TRUSTED_ISSUERS or listen on 127.0.0.1`;
  return undefined;
};

/** Opens the issuer whose RSA key lives in the secrets directory; the first start creates the key (mode 0600). */
export const openDevelopmentIssuer = async (secretsDir: string): Promise<DevelopmentIssuer> => {
  const { createLocalJWKSet } = await import('jose/jwks/local');
  const key = await readOrCreateKey(secretsDir);
  const publicKey: JWK = {
    kty: 'RSA',
    kid: await keyIdOf(key),
    alg: 'RS256',
    use: 'sig',
    n: key.n ?? '',
    e: key.e ?? '',
  };
  return {
    issuer: DEVELOPMENT_ISSUER,
    keys: createLocalJWKSet({ keys: [publicKey] }),
    mintToken: await minterOf(key),
  };
};

const thumbprintOf = async (key: JWK): Promise<string> => {
  const { calculateJwkThumbprint } = await import('jose/jwk/thumbprint');
  return calculateJwkThumbprint(key);
};

const keyIdOf = async (key: JWK): Promise<string> => key.kid ?? (await thumbprintOf(key));

const minterOf = async (key: JWK): Promise<DevelopmentIssuer['mintToken']> => {
  const kid = await keyIdOf(key);
  const privateKey = await importJWK(key, 'RS256');
  return (claims) => {
    const issuedAt = Math.floor(claims.now / 1000);
    return new SignJWT({
      typ: 'Bearer',
      preferred_username: claims.user,
      ...(claims.email === undefined ? {} : { email: claims.email }),
      ...(claims.tenant === undefined ? {} : { organization: [claims.tenant] }),
      ...(claims.audience === undefined ? {} : { aud: claims.audience }),
      groups: [...(claims.admin === true ? ['admins'] : []), ...(claims.groups ?? [])],
      realm_access: { roles: [...(claims.roles ?? [])] },
      jti: randomUUID(),
    })
      .setProtectedHeader({ alg: 'RS256', kid, typ: 'JWT' })
      .setIssuer(DEVELOPMENT_ISSUER)
      .setSubject(claims.user)
      .setIssuedAt(issuedAt)
      .setExpirationTime(issuedAt + claims.ttlSeconds)
      .sign(privateKey);
  };
};

/**
 * Mints one token with the key in the secrets directory (`ledgerctl token`). Throws when there is none: a key made here
 * would be one that no service knows, and nobody would learn why its tokens are refused.
 */
export const mintToken = async (secretsDir: string, claims: TokenClaims): Promise<string> => {
  const key = await readKey(join(secretsDir, KEY_FILE));
  if (key === undefined)
    throw new Error(
      `no development issuer key in ${secretsDir}: start the service first, or point LEDGER_DATA_DIR / LEDGER_SECRETS_DIR at the service's directory`,
    );
  return (await minterOf(key))(claims);
};

/** Two processes that start together agree on one key: the file is linked into place and the loser reads it. */
const readOrCreateKey = async (secretsDir: string): Promise<JWK> => {
  const path = join(secretsDir, KEY_FILE);
  const existing = await readKey(path);
  if (existing !== undefined) return existing;
  await makeDirectory(secretsDir);
  const { exportJWK } = await import('jose/key/export');
  const { generateKeyPair } = await import('jose/key/generate/keypair');
  const { privateKey } = await generateKeyPair('RS256', { modulusLength: 2048, extractable: true });
  const jwk = await exportJWK(privateKey);
  const key = { ...jwk, kid: await thumbprintOf(jwk), alg: 'RS256' };
  const draft = `${path}.${randomUUID()}`;
  const file = await open(draft, 'wx', 0o600);
  try {
    await file.writeFile(JSON.stringify(key));
    await file.sync();
  } finally {
    await file.close();
  }
  try {
    await link(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    await unlink(draft);
  }
  const stored = await readKey(path);
  if (stored === undefined) throw new Error(`${path} vanished while it was being created`);
  return stored;
};

const readKey = async (path: string): Promise<JWK | undefined> => {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as JWK;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Error(`${path} is not a key file`, { cause: error });
  }
};
