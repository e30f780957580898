import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { calculateJwkThumbprint, exportJWK } from 'jose';
import { z } from 'zod';
import type { ConsoleKey, ConsoleKeys } from '../../app/consoles/tickets.ts';
import {
  createPrivate,
  destroyFile,
  privateDirectory,
  readPrivate,
  removeStaleTemporaries,
} from './private-files.ts';
import { seal, unseal } from './seal.ts';

const storedKey = z.strictObject({
  v: z.literal(1),
  since: z.iso.datetime(),
  nonce: z.string(),
  ct: z.string(),
  tag: z.string(),
});

/** Milliseconds after which a key is replaced. */
const ROTATED_AFTER_MS = 30 * 86_400_000;
/** Milliseconds for which a replaced key is kept: its last tickets are over, and no instance signs with it any more. */
const KEPT_MS = 3_600_000;
/** Milliseconds for which the folder is believed to hold what it held. */
const BELIEVED_MS = 60_000;
const SUFFIX = '.key';

type Kept = ConsoleKey & { readonly since: string };

const keyOf = async (privateKey: KeyObject, since: string): Promise<Kept> => {
  const jwk = await exportJWK(createPublicKey(privateKey));
  const kid = await calculateJwkThumbprint(jwk);
  return { kid, privateKey, publicJwk: { ...jwk, kid, alg: 'ES256', use: 'sig' }, since };
};

/**
 * One file (0600) per key pair, named by the thumbprint of its public key: the private key (PKCS #8) sealed by the
 * deployment's key. All instances of a deployment share the directory: of two keys that were made at the same time, both
 * are good.
 */
export const openConsoleKeyFiles = async ({
  directory,
  kek,
  now,
}: {
  /** Created with mode 0700. */
  readonly directory: string;
  /** 32 bytes: `DeploymentKeys.consoleKek`. */
  readonly kek: Uint8Array;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}): Promise<ConsoleKeys> => {
  await privateDirectory(directory);
  await removeStaleTemporaries(directory);
  let known: { readonly keys: readonly Kept[]; readonly at: number } | undefined;

  const read = async (kid: string): Promise<Kept | undefined> => {
    const path = join(directory, `${kid}${SUFFIX}`);
    const content = await readPrivate(path);
    if (content === undefined) return undefined;
    const { v: _v, since, ...sealed } = storedKey.parse(JSON.parse(content.toString('utf8')));
    const der = unseal(kek, sealed, `${kid} ${since}`, path);
    return keyOf(createPrivateKey({ key: der, format: 'der', type: 'pkcs8' }), since);
  };

  const load = async (): Promise<readonly Kept[]> => {
    const names = (await readdir(directory)).filter((name) => name.endsWith(SUFFIX));
    const found = await Promise.all(names.map((name) => read(name.slice(0, -SUFFIX.length))));
    const keys = found
      .filter((key) => key !== undefined)
      .toSorted((left, right) => right.since.localeCompare(left.since) || left.kid.localeCompare(right.kid));
    known = { keys, at: now() };
    return keys;
  };

  const all = async (): Promise<readonly Kept[]> =>
    known === undefined || now() - known.at > BELIEVED_MS ? load() : known.keys;

  const isOld = ({ since }: Kept): boolean => now() - Date.parse(since) > ROTATED_AFTER_MS;

  const make = async (): Promise<readonly Kept[]> => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const since = new Date(now()).toISOString();
    const { kid } = await keyOf(privateKey, since);
    const sealed = seal(kek, privateKey.export({ format: 'der', type: 'pkcs8' }), `${kid} ${since}`);
    await createPrivate(join(directory, `${kid}${SUFFIX}`), JSON.stringify({ v: 1, since, ...sealed }));
    return load();
  };

  /** Those behind a newer key that is in force for long enough. */
  const tidy = async ([newest, ...older]: readonly Kept[]): Promise<void> => {
    if (newest === undefined || now() - Date.parse(newest.since) < KEPT_MS || older.length === 0) return;
    for (const { kid } of older) await destroyFile(join(directory, `${kid}${SUFFIX}`));
    await load();
  };

  let making: Promise<readonly Kept[]> | undefined;
  const current = async (): Promise<ConsoleKey> => {
    let [newest] = await all();
    if (newest === undefined || isOld(newest)) {
      making ??= make().finally(() => {
        making = undefined;
      });
      [newest] = await making;
    } else await tidy(await all());
    if (newest === undefined) throw new Error(`${directory} holds no key although one was made`);
    return newest;
  };

  return {
    current,
    find: async (kid) => {
      const found = (await all()).find((key) => key.kid === kid);
      // Another instance may have made it since.
      return found ?? (/^[\w-]{43}$/.test(kid) ? (await load()).find((key) => key.kid === kid) : undefined);
    },
    all: async () => {
      await current();
      return all();
    },
  };
};
