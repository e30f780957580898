import { outlivedAll } from '../../app/audit/bundle/trust-check.ts';
import { fromBase64 } from '../../app/audit/merkle/base64.ts';
import { parseCheckpoint } from '../../app/audit/merkle/checkpoint.ts';
import { keyChain, type KeyChain, type Trust } from '../../app/audit/merkle/key-chain.ts';
import { canonicalHash, leafHashOf, type LeafRecord } from '../../app/audit/merkle/leaf.ts';
import { InvalidNote, verifyNote } from '../../app/audit/merkle/note.ts';
import { verifyInclusion } from '../../app/audit/merkle/proofs.ts';
import type { JsonObject } from '../../domain/json.ts';

/** The answer of `events/{id}/proof`, as far as it is checked. */
export type EventProofAnswer = {
  readonly event: string;
  /** Without the hashes of data and metadata where not all of the event may be seen. */
  readonly leaf: Omit<LeafRecord, 'data' | 'metadata'> & Partial<Pick<LeafRecord, 'data' | 'metadata'>>;
  readonly leaf_hash: string;
  readonly index: number;
  readonly path: readonly string[];
  readonly checkpoint: { readonly note: string };
  readonly stored?: { readonly data: JsonObject; readonly metadata: JsonObject };
};

export type CheckedProof = {
  readonly problems: readonly string[];
  readonly size: number;
  readonly time: string;
  /**
   * How far it goes: `content`, that the event holds what is shown; `leaf`, that there is an event of this name and these
   * hashes; `hash`, that there is one of this leaf hash: which one it is says the service alone.
   */
  readonly proven: 'content' | 'leaf' | 'hash';
};

/** Checks the proof of one event with keys that are trusted; asks nobody. */
export const checkEventProof = (proof: EventProofAnswer, { origin, keys }: Trust): CheckedProof => {
  const chain = keyChain(
    origin,
    keys,
    keys.slice(0, 1).map(({ vkey }) => vkey),
  );
  const checkpoint = signed(proof.checkpoint.note, chain);
  if (typeof checkpoint === 'string') return { problems: [checkpoint], size: 0, time: '', proven: 'hash' };
  const { size, root, time } = checkpoint;
  const path = proof.path.flatMap((text) => fromBase64(text) ?? []);
  const { stored, leaf } = proof;
  const { data, metadata } = leaf;
  const whole = data === undefined || metadata === undefined ? undefined : { ...leaf, data, metadata };
  const leafHash = whole === undefined ? fromBase64(proof.leaf_hash) : leafHashOf(whole);
  const included =
    leafHash !== undefined && verifyInclusion({ index: proof.index, size, leafHash, path, root });
  const content =
    stored !== undefined &&
    canonicalHash(stored.data) === data &&
    canonicalHash(stored.metadata) === metadata;
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
    proven: content ? 'content' : whole === undefined ? 'hash' : 'leaf',
  };
};

const signed = (
  note: string,
  { vkeys, successors }: KeyChain,
): ReturnType<typeof parseCheckpoint> | string => {
  try {
    const { text, signers } = verifyNote(note, vkeys);
    const checkpoint = parseCheckpoint(text);
    const late = outlivedAll(signers, checkpoint, successors);
    return late === undefined ? checkpoint : `the head does not count: ${late}`;
  } catch (error) {
    if (error instanceof InvalidNote || error instanceof Error)
      return `the head is not signed: ${error.message}`;
    throw error;
  }
};
