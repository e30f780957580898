import { InvalidCheckpoint, parseCheckpoint, type Checkpoint } from '../merkle/checkpoint.ts';
import { keyChain, type Trust } from '../merkle/key-chain.ts';
import { InvalidNote, verifyNote } from '../merkle/note.ts';
import { FILES } from './format.ts';
import type { Findings } from './findings.ts';

/** The keys and the pin that a check goes by. */
export type Authority = {
  readonly origin: string;
  readonly vkeys: readonly string[];
  /** The auditor's pin, verified; undefined when there is none. */
  readonly pin: Checkpoint | undefined;
};

/**
 * `pinned`: what the auditor trusts. Without it the keys of the bundle are taken as they are: that shows that the
 * bundle fits together, not who made it.
 */
export const authorityOf = (
  shipped: Trust | undefined,
  pinned: Trust | undefined,
  findings: Findings,
): Authority | undefined => {
  const root = pinned ?? shipped;
  if (root === undefined) return undefined;
  if (shipped !== undefined && shipped.origin !== root.origin)
    findings.add({
      code: 'origin',
      file: FILES.trust,
      message: `the bundle is of ${shipped.origin}, you trust ${root.origin}`,
    });
  const own = keyChain(root.origin, root.keys);
  const chain =
    shipped === undefined || pinned === undefined ? own : keyChain(root.origin, shipped.keys, own.vkeys);
  for (const problem of new Set([...own.problems, ...chain.problems]))
    findings.add({ code: 'key', file: FILES.trust, message: problem });
  const authority = { origin: root.origin, vkeys: chain.vkeys, pin: undefined };
  if (root.pin === undefined) return authority;
  const pin = openCheckpoint(root.pin, authority, (message) =>
    findings.add({ code: 'pin', file: FILES.trust, message: `the pin cannot be used: ${message}` }),
  );
  return { ...authority, pin };
};

/** A checkpoint that one of the trusted keys signed; otherwise says why not. */
export const openCheckpoint = (
  note: string,
  { origin, vkeys }: Pick<Authority, 'origin' | 'vkeys'>,
  refuse: (message: string) => void,
): Checkpoint | undefined => {
  try {
    const checkpoint = parseCheckpoint(verifyNote(note, vkeys).text);
    if (checkpoint.origin === origin) return checkpoint;
    refuse(`it is of ${checkpoint.origin}, not of ${origin}`);
  } catch (error) {
    if (!(error instanceof InvalidNote || error instanceof InvalidCheckpoint)) throw error;
    refuse(error.message);
  }
  return undefined;
};
