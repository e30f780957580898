import type { BundleSink } from '../bundle/format.ts';
import type { LinePage } from '../bundle/writer.ts';
import type { LinesAsked } from './export-lines.ts';
import type { ProofsAsked } from './export-proofs.ts';

/** What of an export is made page by page. */
export type PagesAsked = LinesAsked | ProofsAsked;

/**
 * Makes lines or proofs of an export on another thread, page by page as they are taken; undefined: not now, they are to be
 * made by who asks. Throws LogDamaged when log and tree do not agree, BundleInconsistent for a tree with gaps, and the signal's reason.
 */
export type MakePages = (asked: PagesAsked, signal: AbortSignal) => AsyncIterable<LinePage> | undefined;

/** A finished file. */
export type ExportFile = {
  readonly bytes: number;
  /** Bytes [from, to); errors when the file vanishes meanwhile. */
  read(from: number, to: number): AsyncIterable<Uint8Array>;
};

/**
 * Where exports of this instance lie. An export is expected from the moment it is accepted until it is forgotten, so
 * that a crash is made up for.
 */
export type ExportFiles = {
  /** From now on the export is to be made here. */
  expect(id: string): Promise<void>;
  /** Exports that are expected or lie here. */
  list(): Promise<readonly string[]>;
  /** Begins anew; what an earlier try left is removed. */
  begin(id: string): Promise<BundleSink>;
  /** Makes one file of what was written. Digest: SHA-256, hex. */
  finish(id: string, signal: AbortSignal): Promise<{ readonly bytes: number; readonly digest: string }>;
  /** Undefined: it is not here (any more). */
  find(id: string): Promise<ExportFile | undefined>;
  /** Removes the file, what an interrupted try left, and that it is expected. */
  forget(id: string): Promise<void>;
};
