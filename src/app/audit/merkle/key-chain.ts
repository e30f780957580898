import { InvalidNote, parseVkey, signNote, verifyNote, type NoteSigner } from './note.ts';

/**
 * Keys of an audit log and how each came to be trusted: the first is pinned by the auditor, every later
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

export type Rotation = {
  readonly vkey: string;
  readonly since: string;
  /** Leaves of the tree when the key was replaced: the key before it has signed no larger one. */
  readonly size?: number;
};

export const rotationText = (origin: string, { vkey, since, size }: Rotation): string =>
  `${origin}\naudit key rotation\nkey ${vkey}\nsince ${since}\n${size === undefined ? '' : `size ${size}\n`}`;

/** The announcement of the next key, signed by the one that it replaces. */
export const signRotation = (origin: string, next: Rotation, previous: NoteSigner): string =>
  signNote(rotationText(origin, next), previous);

export type KeyChain = {
  /** All keys whose signatures count, oldest first. */
  readonly vkeys: readonly string[];
  /** What is wrong with the chain, in words; empty when nothing is. */
  readonly problems: readonly string[];
  /** Of keys that were replaced, by their vkey: from there on they vouch for nothing. */
  readonly successors: ReadonlyMap<string, Rotation>;
};

/**
 * The keys of `keys` that lead back to a trusted one. `trusted`: vkeys of the auditor's own, or the whole chain of
 * them;
 * absent: the first of `keys` is taken as it is, which proves nothing of who signed. Keys before the first trusted
 * one are
 * not needed, and nothing is believed of them.
 */
export const keyChain = (
  origin: string,
  keys: readonly ChainedKey[],
  trusted?: readonly string[] | KeyChain,
): KeyChain => {
  const known = trusted !== undefined && 'vkeys' in trusted ? trusted : undefined;
  const given = known?.vkeys ?? (trusted as readonly string[] | undefined);
  const vkeys = new Set<string>(given ?? keys.slice(0, 1).map(({ vkey }) => vkey));
  const successors = new Map(known?.successors);
  const problems: string[] = [];
  const begin = keys.findIndex(({ vkey }) => vkeys.has(vkey));
  for (const [at, key] of keys.entries()) {
    if (at < begin) continue;
    const found = announced(origin, key, keys[at - 1], { vkeys, successors });
    if (typeof found === 'string') {
      problems.push(`key ${at + 1} of the chain ${found}`);
      continue;
    }
    vkeys.add(key.vkey);
    if (found !== undefined) successors.set(found.previous, found.successor);
  }
  return { vkeys: [...vkeys], problems, successors };
};

type Announced = { readonly previous: string; readonly successor: Rotation };

/** Who announced a key; undefined: nobody, it is trusted as it is; in words what is wrong otherwise. */
const announced = (
  origin: string,
  key: ChainedKey,
  previous: ChainedKey | undefined,
  { vkeys, successors }: { readonly vkeys: ReadonlySet<string>; readonly successors: KeyChain['successors'] },
): Announced | string | undefined => {
  const isKnown = vkeys.has(key.vkey);
  if (previous === undefined) return isKnown ? undefined : 'is not one that you trust';
  if (!vkeys.has(previous.vkey)) return isKnown ? undefined : 'follows a key that is not trusted';
  // A key that was lost announces none: whoever trusts the next one was told so.
  if (key.rotation === undefined) return isKnown ? undefined : 'came without a note of the key before it';
  try {
    if (parseVkey(key.vkey).name !== origin) return `is not a key of ${origin}`;
    const { text } = verifyNote(key.rotation, [previous.vkey]);
    const successor = successorOf(origin, key, text);
    if (successor === undefined) return 'is not the one that the key before it announced';
    const already = successors.get(previous.vkey);
    if (already !== undefined && rotationText(origin, already) !== text)
      return 'is another one than the key before it announced already: it was stolen, or two histories are shown';
    return { previous: previous.vkey, successor };
  } catch (error) {
    if (!(error instanceof InvalidNote)) throw error;
    return `was not announced by the key before it: ${error.message}`;
  }
};

/** Undefined when the note is about another key. Notes of old have no size. */
const successorOf = (origin: string, { vkey, since }: ChainedKey, text: string): Rotation | undefined => {
  if (text === rotationText(origin, { vkey, since })) return { vkey, since };
  const size = Number(/\nsize (0|[1-9][0-9]{0,15})\n$/.exec(text)?.[1] ?? Number.NaN);
  const stated = { vkey, since, size };
  return Number.isSafeInteger(size) && text === rotationText(origin, stated) ? stated : undefined;
};

/** Clocks of two instances may differ; a head that was being signed is signed a moment later. */
const CLOCK_SKEW_MS = 5 * 60_000;

/**
 * Why the signature of a key does not count for a checkpoint: it had been replaced by then. The time is what the signer
 * states, which a thief of the key can choose; the size is not. Undefined when nothing is wrong.
 */
export const outlived = (
  vkey: string,
  { size, time }: { readonly size: number; readonly time: string },
  successors: KeyChain['successors'],
): string | undefined => {
  const next = successors.get(vkey);
  if (next === undefined) return undefined;
  if (next.size !== undefined && size > next.size)
    return `it was signed with a key that was replaced at size ${next.size}`;
  return Date.parse(time) > Date.parse(next.since) + CLOCK_SKEW_MS
    ? `it was signed with a key that was replaced at ${next.since}`
    : undefined;
};
