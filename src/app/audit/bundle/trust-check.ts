import { InvalidCheckpoint, parseCheckpoint, type Checkpoint } from '../merkle/checkpoint.ts';
import { keyChain, outlived, type ChainedKey, type KeyChain, type Trust } from '../merkle/key-chain.ts';
import { InvalidNote, verifyNote } from '../merkle/note.ts';
import { FILES } from './format.ts';
import type { Findings } from './findings.ts';

/** The keys and the pin that a check goes by. */
export type Authority = {
  readonly origin: string;
  readonly vkeys: readonly string[];
  /** Of keys that were replaced: what they signed beyond that does not count. */
  readonly successors?: KeyChain['successors'];
  /** What to trust from here on: the auditor's own keys, and behind them those that they announced. */
  readonly keys?: readonly ChainedKey[];
  /** The auditor's pin, verified; undefined when there is none. */
  readonly pin: Checkpoint | undefined;
};

/** What keys came with, in words, and the file that they stand in. */
export type Shipper = { readonly file: string; readonly what: string };

/**
 * `pinned`: what the auditor trusts. Without it the keys of the bundle are taken as they are: that shows that the
 * bundle fits together, not who made it.
 */
export const authorityOf = (
  shipped: Trust | undefined,
  pinned: Trust | undefined,
  findings: Findings,
  { file, what }: Shipper = { file: FILES.trust, what: 'the bundle is' },
): Authority | undefined => {
  const root = pinned ?? shipped;
  if (root === undefined) return undefined;
  if (shipped !== undefined && shipped.origin !== root.origin)
    findings.add({
      code: 'origin',
      file,
      message: `${what} of ${shipped.origin}, you trust ${root.origin}`,
    });
  // A key that came in place of one that was lost is announced by nobody: who holds it in the own file was told to trust it.
  const own = keyChain(
    root.origin,
    root.keys,
    pinned?.keys.map(({ vkey }) => vkey),
  );
  const chain =
    shipped === undefined || pinned === undefined ? own : keyChain(root.origin, shipped.keys, own);
  for (const problem of new Set([...own.problems, ...chain.problems]))
    findings.add({ code: 'key', file, message: problem });
  const held = new Set(root.keys.map(({ vkey }) => vkey));
  const followed = (shipped?.keys ?? []).filter(({ vkey }) => !held.has(vkey) && chain.vkeys.includes(vkey));
  const { vkeys, successors } = chain;
  const keys = [...root.keys, ...followed];
  const authority = { origin: root.origin, vkeys, successors, keys, pin: undefined };
  if (root.pin === undefined) return authority;
  const pin = openCheckpoint(root.pin, authority, (message) =>
    findings.add({ code: 'pin', file: FILES.trust, message: `the pin cannot be used: ${message}` }),
  );
  return { ...authority, pin };
};

/** A checkpoint that one of the trusted keys signed; otherwise says why not. */
export const openCheckpoint = (
  note: string,
  { origin, vkeys, successors }: Pick<Authority, 'origin' | 'vkeys' | 'successors'>,
  refuse: (message: string) => void,
): Checkpoint | undefined => {
  try {
    const { text, signers } = verifyNote(note, vkeys);
    const checkpoint = parseCheckpoint(text);
    const problem =
      checkpoint.origin === origin
        ? outlivedAll(signers, checkpoint, successors)
        : `it is of ${checkpoint.origin}, not of ${origin}`;
    if (problem === undefined) return checkpoint;
    refuse(problem);
  } catch (error) {
    if (!(error instanceof InvalidNote || error instanceof InvalidCheckpoint)) throw error;
    refuse(error.message);
  }
  return undefined;
};

/** Undefined when one of the signers was still in force, in words otherwise. */
export const outlivedAll = (
  signers: readonly string[],
  signed: Pick<Checkpoint, 'size' | 'time'>,
  successors: KeyChain['successors'] = new Map(),
): string | undefined => {
  const problems = signers.map((vkey) => outlived(vkey, signed, successors));
  return problems.includes(undefined) ? undefined : problems[0];
};
