import { createHash } from 'node:crypto';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import type { Checkpoint } from '../merkle/checkpoint.ts';
import { extendRange, rangeHashes, rootAt } from '../merkle/compact-range.ts';
import { HASH_BYTES, type HashAt } from '../merkle/hashing.ts';
import type { Trust } from '../merkle/key-chain.ts';
import {
  BUNDLE_FORMAT,
  FILES,
  manifestText,
  NOT_PROVEN,
  provenBy,
  SCHEMA_FOLDER,
  type BundleManifest,
  type BundleScope,
  type BundleSink,
} from './format.ts';

/** Consecutive lines as they are written. */
export type LinePage = {
  /** Lines, each with its newline. */
  readonly text: Uint8Array;
  /** Hashes of the leaves that they stand for, 32 bytes each. */
  readonly hashes: Uint8Array;
  /** Leaves, and how they are shown. */
  readonly counts: Counts;
};

type Counts = BundleManifest['counts'];

export type BundleContent = {
  readonly scope: BundleScope;
  /** Sizes of the tree of the scope: [from, to) is exported, every event of it. */
  readonly range: { readonly from: number; readonly to: number };
  /** The signed checkpoint and its note; its trees hold the range. */
  readonly checkpoint: Checkpoint;
  readonly note: string;
  readonly trust: Trust;
  /** The main tree. */
  readonly hashAt: HashAt;
  /** Tenant bundles: the tenant's tree. */
  readonly tenant?: { readonly hashAt: HashAt };
  /** The text of *proofs.json*, which is long. */
  readonly proofs: AsyncIterable<Pick<LinePage, 'text'>>;
  /** The events of the range in their order. */
  readonly lines: AsyncIterable<LinePage>;
  readonly schemas?: { readonly [type: string]: JsonObject };
  /** More files with what was derived from the events, for example `ocsf.ndjson`. */
  readonly more?: readonly {
    readonly name: string;
    readonly lines: AsyncIterable<Pick<LinePage, 'text'>>;
  }[];
  readonly filter: JsonObject;
  readonly asOf: { readonly position: string; readonly time?: string };
  /** ISO */
  readonly createdAt: string;
  /** Signs a text as a note with the audit key: what is not in the tree is then as the service stated it. */
  readonly sign: (text: string) => string | Promise<string>;
};

/** The events do not lead to the root that was signed: log and tree do not belong together. */
export class BundleInconsistent extends Error {
  static readonly NAME = 'BundleInconsistent';
  override readonly name = BundleInconsistent.NAME;
}

/** Bytes that are gathered before they are written. */
const CHUNK = 256 * 1024;

/**
 * Writes a bundle; the manifest and its signature last, so that what has them is whole. Throws BundleInconsistent when the events are not
 * those that were signed, and RangeError for a range that the checkpoint does not cover.
 */
export const writeBundle = async (content: BundleContent, sink: BundleSink): Promise<BundleManifest> => {
  const { scope, range, trust, note, proofs } = content;
  const files: BundleManifest['files'][number][] = [];
  const add = async (
    name: string,
    parts: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array | string>,
  ) => {
    files.push(await writeFile(sink, name, parts));
  };
  await add(FILES.trust, [json(trust)]);
  await add(FILES.checkpoint, [note]);
  await add(FILES.proofs, textsOf(proofs));
  for (const [type, schema] of Object.entries(content.schemas ?? {}))
    await add(`${SCHEMA_FOLDER}${fileName(type)}.json`, [json(schema)]);
  const counts = { events: 0, full: 0, redacted: 0, withheld: 0 };
  const leaves = leavesOf(content);
  await add(FILES.events, countedLines(content.lines, leaves, counts));
  await add(FILES.leaves, [leaves.signed()]);
  for (const { name, lines } of content.more ?? []) await add(name, textsOf(lines));
  const manifest: BundleManifest = {
    format: BUNDLE_FORMAT,
    origin: content.checkpoint.origin,
    scope,
    filter: content.filter,
    asOf: content.asOf,
    createdAt: content.createdAt,
    range,
    counts,
    files,
    proven: provenBy(scope, range),
    notProven: [...NOT_PROVEN],
  };
  const { sha256 } = await writeFile(sink, FILES.manifest, [json(manifest)]);
  await writeFile(sink, FILES.manifestNote, [await content.sign(manifestText(manifest.origin, sha256))]);
  return manifest;
};

const json = (value: unknown): string => `${JSON.stringify(value as JsonValue, null, 2)}\n`;

/** Event types are plain words; anything else must not leave its folder. */
const fileName = (type: string): string => type.replaceAll(/[^A-Za-z0-9_]/g, '_');

async function* countedLines(
  lines: BundleContent['lines'],
  leaves: CollectedLeaves,
  counts: Counts,
): AsyncGenerator<Uint8Array> {
  for await (const { text, hashes, counts: more } of lines) {
    for (let at = 0; at < hashes.length; at += HASH_BYTES)
      leaves.add(Buffer.from(hashes.subarray(at, at + HASH_BYTES)));
    for (const what of ['events', 'full', 'redacted', 'withheld'] as const) counts[what] += more[what];
    yield text;
  }
}

async function* textsOf(pages: BundleContent['proofs']): AsyncGenerator<Uint8Array> {
  for await (const { text } of pages) yield text;
}

type CollectedLeaves = {
  readonly add: (leaf: Buffer) => void;
  /** All of them, behind each other. Throws BundleInconsistent when they are not those of the tree. */
  readonly signed: () => Buffer;
};

const leavesOf = ({ range: { from, to }, hashAt, tenant }: BundleContent): CollectedLeaves => {
  const tree = tenant?.hashAt ?? hashAt;
  const grown = extendRange({ size: from, hashes: rangeHashes(from, tree) });
  const bytes = Buffer.alloc((to - from) * HASH_BYTES);
  return {
    add: (leaf) => {
      if (grown.size() < to) bytes.set(leaf, (grown.size() - from) * HASH_BYTES);
      grown.append(leaf);
    },
    signed: () => {
      if (grown.size() !== to)
        throw new BundleInconsistent(`${grown.size() - from} events came for the range [${from}, ${to})`);
      if (!grown.root().equals(rootAt(to, tree)))
        throw new BundleInconsistent(`the events of [${from}, ${to}) are not those of the audit tree`);
      return bytes;
    },
  };
};

const writeFile = async (
  sink: BundleSink,
  name: string,
  parts: Iterable<Uint8Array | string> | AsyncIterable<Uint8Array | string>,
): Promise<BundleManifest['files'][number]> => {
  const file = await sink.file(name);
  const hash = createHash('sha256');
  let [bytes, held] = [0, 0];
  let gathered: Uint8Array[] = [];
  const flush = async (): Promise<void> => {
    const chunk = Buffer.concat(gathered);
    gathered = [];
    held = 0;
    hash.update(chunk);
    bytes += chunk.length;
    await file.write(chunk);
  };
  try {
    for await (const part of parts) {
      const chunk = typeof part === 'string' ? Buffer.from(part) : part;
      gathered.push(chunk);
      held += chunk.length;
      if (held >= CHUNK) await flush();
    }
    if (held > 0) await flush();
  } catch (error) {
    // Why it broke off is what somebody is told, not that the file did not close then either.
    await file.close().catch(() => undefined);
    throw error;
  }
  await file.close();
  return { name, bytes, sha256: hash.digest('hex') };
};
