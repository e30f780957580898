import { sizeProblem } from '../../app/audit/bundle/pin-check.ts';
import { outlivedAll } from '../../app/audit/bundle/trust-check.ts';
import { fromBase64 } from '../../app/audit/merkle/base64.ts';
import { parseCheckpoint, type Checkpoint } from '../../app/audit/merkle/checkpoint.ts';
import { keyChain, type KeyChain, type Trust } from '../../app/audit/merkle/key-chain.ts';
import { canonicalHash, leafHashOf, type LeafRecord } from '../../app/audit/merkle/leaf.ts';
import { InvalidNote, verifyNote } from '../../app/audit/merkle/note.ts';
import { verifyConsistency, verifyInclusion } from '../../app/audit/merkle/proofs.ts';
import { splitOf } from '../../app/hidden-fields.ts';
import type { JsonObject } from '../../domain/json.ts';

/** The answer of `events/{id}/proof`, as far as it is checked. */
export type EventProofAnswer = {
  readonly event: string;
  /** Without its hashes where what may be seen of the event is not what they were made of. */
  readonly leaf: LeafRecord | Pick<LeafRecord, 'v' | 'stream' | 'revision' | 'id' | 'type' | 'occurredAt'>;
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
  /** The signed head; undefined when it does not count. */
  readonly head: Checkpoint | undefined;
  /**
   * How far it goes: `content`, that the event is what is shown; `part`, that what is shown is all of it that its tenant
   * may see; `leaf`, that there is an event of this name and these hashes; `hash`, that there is one of this leaf hash:
   * which one it is says the service alone.
   */
  readonly proven: 'content' | 'part' | 'leaf' | 'hash';
};

/**
 * Checks the proof of one event with keys that are trusted; asks nobody.
 *
 * @param asked name or id of the event that it has to be of; absent: of whichever it says.
 */
export const checkEventProof = (
  proof: EventProofAnswer,
  { origin, keys }: Trust,
  asked?: string,
): CheckedProof => {
  const chain = keyChain(origin, keys);
  const checkpoint = signed(proof.checkpoint.note, chain);
  if (typeof checkpoint === 'string')
    return { problems: [`the head ${checkpoint}`], size: 0, time: '', proven: 'hash', head: undefined };
  const { size, root, time } = checkpoint;
  const path = proof.path.flatMap((text) => fromBase64(text) ?? []);
  const { stored, leaf } = proof;
  const whole = 'data' in leaf ? leaf : undefined;
  const leafHash = whole === undefined ? fromBase64(proof.leaf_hash) : leafHashOf(whole);
  const included =
    leafHash !== undefined && verifyInclusion({ index: proof.index, size, leafHash, path, root });
  const content = stored && whole && contentOf(whole, stored);
  return {
    problems: [
      ...chain.problems,
      ...(checkpoint.origin === origin ? [] : [`the head is of another log, ${checkpoint.origin}`]),
      ...(included ? [] : ['the leaf is not in the tree of the signed head']),
      ...(stored === undefined || content !== undefined
        ? []
        : ['what is shown is not what the leaf was made of']),
      ...(`${leaf.stream}@${leaf.revision}` === proof.event ? [] : ['the leaf is of another event']),
      ...(asked === undefined || asked === proof.event || asked.toLowerCase() === leaf.id.toLowerCase()
        ? []
        : [`the proof is of another event, ${proof.event}`]),
    ],
    size,
    time,
    head: checkpoint,
    proven: content ?? (whole === undefined ? 'hash' : 'leaf'),
  };
};

/** Undefined when the leaf was made of something else. */
const contentOf = (
  leaf: LeafRecord,
  { data, metadata }: NonNullable<EventProofAnswer['stored']>,
): 'content' | 'part' | undefined => {
  const split = leaf.v === 2 ? splitOf({ data, metadata }) : undefined;
  const shown = split ?? { data, metadata };
  if (canonicalHash(shown.data) !== leaf.data || canonicalHash(shown.metadata) !== leaf.metadata)
    return undefined;
  if (leaf.v === 1) return 'content';
  if (split === undefined) return 'part';
  return canonicalHash(split.hidden) === leaf.hidden ? 'content' : undefined;
};

const signed = (
  note: string,
  { vkeys, successors }: KeyChain,
): ReturnType<typeof parseCheckpoint> | string => {
  try {
    const { text, signers } = verifyNote(note, vkeys);
    const checkpoint = parseCheckpoint(text);
    const late = outlivedAll(signers, checkpoint, successors);
    return late === undefined ? checkpoint : `does not count: ${late}`;
  } catch (error) {
    if (error instanceof InvalidNote || error instanceof Error) return `is not signed: ${error.message}`;
    throw error;
  }
};

/** The auditor's pin; undefined without one. In words what is wrong with it. */
export const pinIn = ({ origin, keys, pin }: Trust): Checkpoint | string | undefined => {
  if (pin === undefined) return undefined;
  const checkpoint = signed(pin, keyChain(origin, keys));
  return typeof checkpoint === 'string' ? `your pin cannot be used: it ${checkpoint}` : checkpoint;
};

/**
 * Why a head is of another history than the pin; undefined when the one continues the other.
 *
 * @param path proof of consistency from the smaller to the larger of them, in base64.
 */
export const pinProblem = (
  head: Checkpoint,
  pin: Checkpoint,
  path: readonly string[],
): string | undefined => {
  if (head.size === pin.size) {
    const problem = sizeProblem(pin, head);
    return problem && `the head is of another history than your pin of size ${pin.size}: ${problem}`;
  }
  const [smaller, larger] = head.size < pin.size ? [head, pin] : [pin, head];
  const roots = { fromRoot: smaller.root, toRoot: larger.root };
  const hashes = path.map((text) => fromBase64(text) ?? Buffer.alloc(0));
  return verifyConsistency({ from: smaller.size, to: larger.size, ...roots, path: hashes })
    ? undefined
    : `the head is of another history than your pin of size ${pin.size}, or the proof between them is wrong`;
};
