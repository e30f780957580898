import { InvalidNote, parseVkey, signNote, verifyNote, type NoteSigner } from './note.ts';

/**
 * Keys of an audit log and how each came to be trusted (design §7): the first is pinned by the auditor, every later
 * one was announced in a note that the one before it signed.
 */
export type ChainedKey = {
  readonly vkey: string;
  /** When it began to sign (ISO). */
  readonly since: string;
  /** Note of `rotationText`, signed by the previous key; absent for the first key only. */
  readonly rotation?: string;
};

/** What a trust.json holds. */
export type Trust = {
  readonly origin: string;
  readonly keys: readonly ChainedKey[];
  /** Note of a checkpoint that is known to be right. */
  readonly pin?: string;
};

export const rotationText = (origin: string, { vkey, since }: Pick<ChainedKey, 'vkey' | 'since'>): string =>
  `${origin}\naudit key rotation\nkey ${vkey}\nsince ${since}\n`;

/** The announcement of the next key, signed by the one that it replaces. */
export const signRotation = (
  origin: string,
  next: Pick<ChainedKey, 'vkey' | 'since'>,
  previous: NoteSigner,
): string => signNote(rotationText(origin, next), previous);

export type KeyChain = {
  /** All keys whose signatures count, oldest first. */
  readonly vkeys: readonly string[];
  /** What is wrong with the chain, in words; empty when nothing is. */
  readonly problems: readonly string[];
};

/**
 * The keys of `keys` that lead back to a trusted one. `trusted`: vkeys of the auditor's own; absent: the first of
 * `keys` is taken as it is, which proves nothing of who signed.
 */
export const keyChain = (
  origin: string,
  keys: readonly ChainedKey[],
  trusted?: readonly string[],
): KeyChain => {
  const vkeys = new Set<string>(trusted ?? keys.slice(0, 1).map(({ vkey }) => vkey));
  const problems: string[] = [];
  for (const [at, key] of keys.entries()) {
    const problem = vkeys.has(key.vkey) ? undefined : problemOf(origin, key, keys[at - 1], vkeys);
    if (problem === undefined) vkeys.add(key.vkey);
    else problems.push(`key ${at + 1} of the chain ${problem}`);
  }
  return { vkeys: [...vkeys], problems };
};

const problemOf = (
  origin: string,
  key: ChainedKey,
  previous: ChainedKey | undefined,
  trusted: ReadonlySet<string>,
): string | undefined => {
  if (previous === undefined) return 'is not one that you trust';
  if (!trusted.has(previous.vkey)) return 'follows a key that is not trusted';
  if (key.rotation === undefined) return 'came without a note of the key before it';
  try {
    if (parseVkey(key.vkey).name !== origin) return `is not a key of ${origin}`;
    const { text } = verifyNote(key.rotation, [previous.vkey]);
    return text === rotationText(origin, key) ? undefined : 'is not the one that the key before it announced';
  } catch (error) {
    if (!(error instanceof InvalidNote)) throw error;
    return `was not announced by the key before it: ${error.message}`;
  }
};
