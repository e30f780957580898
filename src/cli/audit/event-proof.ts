import { fromBase64 } from '../../app/audit/merkle/base64.ts';
import { parseCheckpoint } from '../../app/audit/merkle/checkpoint.ts';
import { keyChain, type Trust } from '../../app/audit/merkle/key-chain.ts';
import { canonicalHash, leafHashOf, type LeafRecord } from '../../app/audit/merkle/leaf.ts';
import { InvalidNote, verifyNote } from '../../app/audit/merkle/note.ts';
import { verifyInclusion } from '../../app/audit/merkle/proofs.ts';
import type { JsonObject } from '../../domain/json.ts';

/** The answer of `events/{id}/proof`, as far as it is checked. */
export type EventProofAnswer = {
  readonly event: string;
  readonly leaf: LeafRecord;
  readonly index: number;
  readonly path: readonly string[];
  readonly checkpoint: { readonly note: string };
  readonly stored?: { readonly data: JsonObject; readonly metadata: JsonObject };
};

export type CheckedProof = {
  readonly problems: readonly string[];
  readonly size: number;
  readonly time: string;
  /** What the proof says of the data: shown, and hashed by the leaf. */
  readonly content: boolean;
};

/** Checks the proof of one event with keys that are trusted; asks nobody. */
export const checkEventProof = (proof: EventProofAnswer, { origin, keys }: Trust): CheckedProof => {
  const chain = keyChain(
    origin,
    keys,
    keys.slice(0, 1).map(({ vkey }) => vkey),
  );
  const checkpoint = signed(proof.checkpoint.note, chain.vkeys);
  if (typeof checkpoint === 'string') return { problems: [checkpoint], size: 0, time: '', content: false };
  const { size, root, time } = checkpoint;
  const path = proof.path.flatMap((text) => fromBase64(text) ?? []);
  const included = verifyInclusion({
    index: proof.index,
    size,
    leafHash: leafHashOf(proof.leaf),
    path,
    root,
  });
  const { stored, leaf } = proof;
  const content =
    stored !== undefined &&
    canonicalHash(stored.data) === leaf.data &&
    canonicalHash(stored.metadata) === leaf.metadata;
  return {
    problems: [
      ...chain.problems,
      ...(checkpoint.origin === origin ? [] : [`the head is of another log, ${checkpoint.origin}`]),
      ...(included ? [] : ['the leaf is not in the tree of the signed head']),
      ...(stored === undefined || content ? [] : ['what is shown is not what the leaf was made of']),
      ...(`${leaf.stream}@${leaf.revision}` === proof.event ? [] : ['the leaf is of another event']),
    ],
    size,
    time,
    content,
  };
};

const signed = (note: string, vkeys: readonly string[]): ReturnType<typeof parseCheckpoint> | string => {
  try {
    return parseCheckpoint(verifyNote(note, vkeys).text);
  } catch (error) {
    if (error instanceof InvalidNote || error instanceof Error)
      return `the head is not signed: ${error.message}`;
    throw error;
  }
};
