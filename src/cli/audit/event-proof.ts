import { z } from 'zod';
import { collectFindings, type Finding, type Findings } from '../../app/audit/bundle/findings.ts';
import { checkHead, type CheckedHead, type HeadOptions } from '../../app/audit/bundle/head-check.ts';
import { fromBase64 } from '../../app/audit/merkle/base64.ts';
import type { Checkpoint } from '../../app/audit/merkle/checkpoint.ts';
import { canonicalHash, leafHashOf, type LeafRecord } from '../../app/audit/merkle/leaf.ts';
import { verifyInclusion } from '../../app/audit/merkle/proofs.ts';
import { splitOf } from '../../app/log/metadata.ts';
import type { JsonObject } from '../../domain/json.ts';
import { CliFailure, EXIT } from '../exit.ts';

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

const record = z.record(z.string(), z.json());
/** Of a leaf in part there are no hashes; one that names `data` is checked as a whole one. */
const proofSchema = z.looseObject({
  event: z.string(),
  leaf: z.looseObject({
    stream: z.string(),
    revision: z.number(),
    id: z.string(),
    type: z.string(),
    data: z.string().optional(),
    metadata: z.string().optional(),
  }),
  leaf_hash: z.string(),
  index: z.number(),
  path: z.array(z.string()),
  checkpoint: z.looseObject({ note: z.string() }),
  stored: z.looseObject({ data: record, metadata: record }).optional(),
});

/** What a service answered, of which nothing is believed. Throws CliFailure when it is nothing that can be checked. */
export const readEventProof = (answer: unknown): EventProofAnswer => {
  const { error } = proofSchema.safeParse(answer);
  if (error === undefined) return answer as EventProofAnswer;
  const where = error.issues[0]?.path.join('.') ?? '';
  throw new CliFailure(
    EXIT.failed,
    `the service answered something else than the proof of an event: ${where === '' ? 'no object' : where}`,
  );
};

export type ProofReport = CheckedHead & {
  readonly ok: boolean;
  readonly findings: readonly Finding[];
  readonly count: number;
  /**
   * How far it goes: `content`, that the event is what is shown; `part`, that what is shown is all of it that its tenant
   * may see; `leaf`, that there is an event of this name and these hashes; `hash`, that there is one of this leaf hash:
   * which one it is says the service alone.
   */
  readonly proven: 'content' | 'part' | 'leaf' | 'hash';
};

/**
 * Checks the proof of one event, and the head that it is under.
 *
 * @param asked name or id of the event that it has to be of; absent: of whichever it says.
 */
export const checkEventProof = async (
  proof: EventProofAnswer,
  { asked, ...options }: HeadOptions & { readonly asked?: string },
): Promise<ProofReport> => {
  const findings = collectFindings();
  const head = await checkHead(proof.checkpoint.note, options, findings);
  const proven = head.checkpoint === undefined ? 'hash' : inclusionOf(proof, head.checkpoint, findings);
  const { event, leaf } = proof;
  if (asked !== undefined && asked !== event && asked.toLowerCase() !== leaf.id.toLowerCase())
    findings.add({ code: 'proof', message: `the proof is of another event, ${event}` });
  const count = findings.count();
  return { ...head, ok: count === 0, findings: findings.list(), count, proven };
};

/** How far a leaf, and what is shown of its event, is proven under a head. */
const inclusionOf = (
  { event, leaf, leaf_hash: stated, index, path, stored }: EventProofAnswer,
  { size, root }: Checkpoint,
  findings: Findings,
): ProofReport['proven'] => {
  const wrong = (message: string): void => findings.add({ code: 'proof', message });
  const whole = 'data' in leaf ? leaf : undefined;
  const leafHash = whole === undefined ? fromBase64(stated) : leafHashOf(whole);
  const hashes = path.flatMap((text) => fromBase64(text) ?? []);
  if (leafHash === undefined || !verifyInclusion({ index, size, leafHash, path: hashes, root }))
    wrong('the leaf is not in the tree of the signed head');
  const content = stored && whole && contentOf(whole, stored);
  if (stored !== undefined && content === undefined) wrong('the shown event does not match its leaf');
  if (`${leaf.stream}@${leaf.revision}` !== event) wrong('the leaf is of another event');
  return content ?? (whole === undefined ? 'hash' : 'leaf');
};

/** Undefined when the leaf was made of something else. */
const contentOf = (
  leaf: LeafRecord,
  { data, metadata }: NonNullable<EventProofAnswer['stored']>,
): 'content' | 'part' | undefined => {
  const split = leaf.hidden === undefined ? undefined : splitOf({ data, metadata });
  const shown = split ?? { data, metadata };
  if (canonicalHash(shown.data) !== leaf.data || canonicalHash(shown.metadata) !== leaf.metadata)
    return undefined;
  if (leaf.hidden === undefined) return 'content';
  if (split === undefined) return 'part';
  return canonicalHash(split.hidden) === leaf.hidden ? 'content' : undefined;
};
