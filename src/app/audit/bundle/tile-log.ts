import type { Checkpoint } from '../merkle/checkpoint.ts';
import type { Trust } from '../merkle/key-chain.ts';
import { TILE_WIDTH, tileWidthAt } from '../merkle/tiles.ts';
import { type Finding, collectFindings, outcomeOf, type Findings, type Outcome } from './findings.ts';
import { FILES, trustSchema } from './format.ts';
import { pinOf, type LaterProof, type PinState } from './pin-check.ts';
import type { ReadTile } from './tile-reading.ts';
import { openTileTree, type TileTree } from './tile-tree.ts';
import { authorityOf, openCheckpoint, type Authority } from './trust-check.ts';
import { verifyTiles } from './verify-tiles.ts';

/** Of a folder of tiles of which nothing is left; `tiles`: without them nothing else can be looked at. */
type MissingFolder = { readonly finding: Finding; readonly tiles: boolean };

/**
 * Folders that a tree of `size` leaves has and of which nothing is there: each is one thing to tell, where the files in it
 * would be so many that they hide everything else. One that has a single file is that file, and not told here.
 *
 * @param holds whether there is anything in a folder, whose name ends with `/`.
 */
const missingFolders = async (
  size: number,
  holds: (folder: string) => Promise<boolean> | boolean,
): Promise<readonly MissingFolder[]> => {
  const folders = [
    { name: 'entries', count: Math.ceil(size / TILE_WIDTH), what: 'bundles of entries' },
    ...levelsOf(size).map((level) => ({ name: `${level}`, count: tilesOf(level, size), what: 'tiles' })),
  ];
  const missing: MissingFolder[] = [];
  for (const { name, count, what } of folders) {
    const file = `tile/${name}/`;
    if (count < 2 || (await holds(file))) continue;
    const tiles = name !== 'entries';
    const message =
      `the whole folder is missing, with ${count} ${what}` + (tiles ? ': nothing else was looked at' : '');
    missing.push({ finding: { code: 'missing-file', file, place: [0, size], message }, tiles });
  }
  return missing;
};

const levelsOf = (size: number): number[] => {
  const levels: number[] = [];
  while (tileWidthAt(levels.length, 0, size) > 0) levels.push(levels.length);
  return levels;
};

const tilesOf = (level: number, size: number): number =>
  Math.ceil(Math.floor(size / TILE_WIDTH ** level) / TILE_WIDTH);

/** The files of a log in the layout of C2SP tlog-tiles, wherever they lie; nothing about them is trusted. */
export type TileLog = {
  /** Text of `checkpoint`; undefined when there is none. */
  readonly note: string | undefined;
  /** Keys of the log that lie beside it, and how each came to be trusted; undefined when there are none. */
  readonly keys: Trust | undefined;
  readonly read: ReadTile;
  /** Whether there is anything in a folder, whose name ends with `/`; absent: that cannot be told. */
  readonly holds?: (folder: string) => Promise<boolean>;
};

/** Beside the files of the specification: the keys of the log, as a trust.json without pin. */
export const KEYS_FILE = 'keys.json';

export type TilesReport = Outcome & {
  /** Whether the keys are the auditor's own, those that a mirror began with, or those that came with the tiles. */
  readonly keys: 'pinned' | 'of the mirror' | 'from the log';
  readonly pin: PinState;
  /** Events that the pin covers; undefined without one that can be used. */
  readonly pinSize: number | undefined;
  readonly checkpoint: { readonly size: number; readonly time: string; readonly note: string } | undefined;
  /** Tiles of hashes, and bundles of entries, that were looked at. */
  readonly tiles: number;
  readonly bundles: number;
};

type TileLogOptions = { readonly trust?: Trust; readonly later?: LaterProof };

/** `what`: where the tiles come from. Default: they lie somewhere. */
type ReportOptions = TileLogOptions & { readonly what?: 'service' };

/**
 * Checks tiles and entries against the signed head that lies beside them, and that head against the auditor's pin. Never
 * throws for what is wrong with them: that is what it reports.
 */
export const verifyTileLog = async (log: TileLog, options: TileLogOptions = {}): Promise<TilesReport> => {
  const findings = collectFindings();
  const opened = openHead(log, options.trust, findings);
  const counts = { tiles: 0, bundles: 0 };
  let rootAtPin: Buffer | undefined;
  const { checkpoint } = opened;
  if (checkpoint !== undefined)
    try {
      const missing = log.holds === undefined ? [] : await missingFolders(checkpoint.size, log.holds);
      for (const { finding } of missing) findings.add(finding);
      if (!missing.some((folder) => folder.tiles)) {
        const entries = missing.length === 0;
        const { ok, tiles, bundles } = await verifyTiles(checkpoint, log.read, { findings, entries });
        Object.assign(counts, { tiles, bundles });
        const tree = openTileTree(checkpoint, log.read, findings.add);
        if (ok) rootAtPin = await rootAtPinOf(opened, options.trust, tree);
      }
    } catch (error) {
      findings.add(unreadable(error));
    }
  return report(log, { ...opened, rootAtPin }, options, findings, counts);
};

/** Keys as they lie beside tiles, without any pin; undefined for a text that holds none. */
export const keysIn = (text: string): Trust | undefined => {
  try {
    const parsed = trustSchema.safeParse(JSON.parse(text));
    const { origin, keys } = (parsed.data ?? {}) as Partial<Trust>;
    return origin === undefined || keys === undefined ? undefined : { origin, keys };
  } catch {
    return undefined;
  }
};

/** What is known of a log before any of its tiles is read. */
export type OpenedHead = {
  readonly authority: Authority | undefined;
  readonly checkpoint: Checkpoint | undefined;
};

export const openHead = (
  { note, keys }: Pick<TileLog, 'note' | 'keys'>,
  trust: Trust | undefined,
  findings: Findings,
): OpenedHead => {
  // A pin that comes with what is checked pins nothing.
  const shipped = keys === undefined ? undefined : { origin: keys.origin, keys: keys.keys };
  const authority = authorityOf(shipped, trust, findings, { file: KEYS_FILE, what: 'the log is' });
  if (authority === undefined)
    findings.add({
      code: 'missing-file',
      file: KEYS_FILE,
      message: 'no keys lie beside the tiles, and --trust names none',
    });
  if (note === undefined)
    findings.add({ code: 'missing-file', file: FILES.checkpoint, message: 'the signed head is missing' });
  if (note === undefined || authority === undefined) return { authority, checkpoint: undefined };
  const checkpoint = openCheckpoint(note, authority, (message) =>
    findings.add({ code: 'checkpoint', file: FILES.checkpoint, message }),
  );
  return { authority, checkpoint };
};

/** Root of the tree at the auditor's pin; undefined without a pin, behind the tree, or where tiles are wrong. */
export const rootAtPinOf = async (
  { authority, checkpoint }: OpenedHead,
  trust: Trust | undefined,
  tree: TileTree,
): Promise<Buffer | undefined> => {
  const pin = trust === undefined ? undefined : authority?.pin;
  if (pin === undefined || checkpoint === undefined || pin.size >= checkpoint.size) return undefined;
  return tree.rootAt(pin.size);
};

export const unreadable = (error: unknown): Finding => ({
  code: 'unreadable',
  message: `reading ended before the end: ${error instanceof Error ? error.message : String(error)}`,
});

export const report = (
  { note }: Pick<TileLog, 'note'>,
  { authority, checkpoint, rootAtPin }: OpenedHead & { readonly rootAtPin: Buffer | undefined },
  { trust, later, what }: ReportOptions = {},
  findings: Findings = collectFindings(),
  counts: Pick<TilesReport, 'tiles' | 'bundles'> = { tiles: 0, bundles: 0 },
): TilesReport => {
  const ask = { trust, later, authority, checkpoint, rootAtPin, what: what ?? ('tiles' as const) };
  const pin = pinOf({ ...ask, proofs: undefined, target: undefined }, findings);
  return {
    ...outcomeOf(findings),
    keys: trust === undefined ? 'from the log' : 'pinned',
    pin,
    pinSize: trust === undefined ? undefined : authority?.pin?.size,
    checkpoint:
      checkpoint === undefined || note === undefined
        ? undefined
        : { size: checkpoint.size, time: checkpoint.time, note },
    ...counts,
  };
};
