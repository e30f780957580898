import type { Checkpoint } from '../merkle/checkpoint.ts';
import type { Trust } from '../merkle/key-chain.ts';
import { tilePath } from '../merkle/tiles.ts';
import { collectFindings, outcomeOf, type Findings } from './findings.ts';
import { FILES } from './format.ts';
import { sizeProblem, takenBack } from './pin-check.ts';
import {
  KEYS_FILE,
  keysIn,
  openHead,
  report,
  rootAtPinOf,
  type OpenedHead,
  type TileLog,
  type TilesReport,
} from './tile-log.ts';
import { edgeOf, type ReadTile } from './tile-reading.ts';
import { firstDifference, openTileTree, type TileTree } from './tile-tree.ts';
import { openCheckpoint } from './trust-check.ts';
import { verifyTiles } from './verify-tiles.ts';

/** Where a mirror is kept: files by the paths of C2SP tlog-tiles. */
export type MirrorStore = {
  readonly read: (path: string) => Promise<Uint8Array | undefined> | Uint8Array | undefined;
  /** Whole or not at all, in place of what is there. */
  readonly write: (path: string, bytes: Uint8Array) => Promise<void>;
  /** Paths of the partial tiles and bundles that are there. */
  readonly partial: () => Promise<readonly string[]>;
  readonly remove: (path: string) => Promise<void>;
};

export type MirrorReport = TilesReport & {
  /** Files that were fetched and kept. */
  readonly fetched: number;
  /** Paths of files that were there and damaged: they were fetched anew. */
  readonly mended: readonly string[];
  /** Size of the tree that the mirror held before; undefined when it held none. */
  readonly heldSize: number | undefined;
};

type Progress = { fetched: number; readonly mended: string[] };

/**
 * Brings a mirror to the newest signed head of a log. Nothing is kept that does not lead to that head, and nothing at all
 * when that head does not continue the auditor's pin and the head of the mirror: what a mirror holds is never replaced by
 * another history. Files that are there are not fetched again; a mirror that was broken off is continued.
 */
export const mirrorLog = async (
  log: TileLog,
  store: MirrorStore,
  { trust }: { readonly trust?: Trust } = {},
): Promise<MirrorReport> => {
  const findings = collectFindings();
  const known = trust ?? (await heldKeys(store, findings));
  const opened = openHead(log, known, findings);
  const held = await heldHead(store, opened, findings);
  const progress: Progress = { fetched: 0, mended: [] };
  const { checkpoint } = opened;
  const reading = readingOf(log.read, store, progress);
  const sound = checkpoint !== undefined && findings.count() === 0;
  const tree = sound ? openTileTree(checkpoint, reading.look, findings.add) : undefined;
  // The partial tiles make the root: they are asked for first.
  await tree?.rootAt(checkpoint?.size ?? 0);
  const rootAtPin = tree && (await rootAtPinOf(opened, known, tree));
  const options = { what: 'service', ...(known !== undefined && { trust: known }) } as const;
  const looked = report(log, { ...opened, rootAtPin }, options, findings);
  if (sound && tree !== undefined && held !== undefined)
    await checkHeld(held, checkpoint, { tree, store }, findings);
  let counts = { tiles: looked.tiles, bundles: looked.bundles };
  if (sound && findings.count() === 0) {
    counts = await verifyTiles(checkpoint, reading.keep, { findings });
    if (findings.count() === 0) await conclude(log, store, opened, reading.looked, progress);
  }
  return {
    ...looked,
    ...outcomeOf(findings),
    keys: trust === undefined && known !== undefined ? 'of the mirror' : looked.keys,
    tiles: counts.tiles,
    bundles: counts.bundles,
    ...progress,
    heldSize: held?.size,
  };
};

/** The keys that the mirror began with, and those that they announced: they are trusted where no others are given. */
const heldKeys = async (store: MirrorStore, findings: Findings): Promise<Trust | undefined> => {
  const bytes = await store.read(KEYS_FILE);
  if (bytes === undefined) return undefined;
  const keys = keysIn(Buffer.from(bytes).toString('utf8'));
  if (keys === undefined)
    findings.add({
      code: 'malformed',
      file: KEYS_FILE,
      message: 'the keys that the mirror holds cannot be read',
    });
  return keys;
};

const heldHead = async (
  store: MirrorStore,
  { authority }: OpenedHead,
  findings: Findings,
): Promise<Checkpoint | undefined> => {
  const note = await store.read(FILES.checkpoint);
  if (note === undefined || authority === undefined) return undefined;
  return openCheckpoint(Buffer.from(note).toString('utf8'), authority, (why) =>
    findings.add({
      code: 'checkpoint',
      file: FILES.checkpoint,
      message: `the head that the mirror holds does not count, begin a new one elsewhere: ${why}`,
    }),
  );
};

/** Tiles of a mirror and those of the service: which are taken, and which are kept. */
const readingOf = (remote: ReadTile, store: MirrorStore, progress: Progress) => {
  const looked = new Map<string, Uint8Array>();
  const fetched = async (path: string): Promise<Uint8Array | undefined> => {
    const bytes = looked.get(path) ?? (await remote(path));
    if (bytes !== undefined) looked.set(path, bytes);
    return bytes;
  };
  /** Keeps nothing: of what is not known to be right, the service's word is taken. */
  const look: ReadTile = async (path, fits) => {
    const here = fits === undefined ? undefined : await store.read(path);
    return here !== undefined && fits?.(here) === true ? here : fetched(path);
  };
  const keep: ReadTile = async (path, fits) => {
    const known = looked.get(path);
    if (fits === undefined) return known ?? remote(path);
    const here = await store.read(path);
    if (here !== undefined && fits(here)) return here;
    const bytes = known ?? (await remote(path));
    if (bytes === undefined || !fits(bytes)) return bytes;
    await store.write(path, bytes);
    progress.fetched += 1;
    if (here !== undefined) progress.mended.push(path);
    return bytes;
  };
  return { look, keep, looked };
};

const checkHeld = async (
  held: Checkpoint,
  checkpoint: Checkpoint,
  { tree, store }: { readonly tree: TileTree; readonly store: MirrorStore },
  findings: Findings,
): Promise<void> => {
  const back = takenBack(held, checkpoint);
  const wrong = (message: string, place: readonly [number, number]): void =>
    findings.add({ code: back === undefined ? 'pin' : 'taken-back', file: FILES.checkpoint, place, message });
  if (back !== undefined) return wrong(`${back}; nothing was kept`, [checkpoint.size, held.size]);
  if (held.size > checkpoint.size) {
    wrong(
      `the service shows a head of size ${checkpoint.size}, the mirror holds one of size ${held.size}: history was taken ` +
        'back, or another instance answers that is behind; nothing was kept',
      [checkpoint.size, held.size],
    );
    return;
  }
  const root = held.size === checkpoint.size ? checkpoint.root : await tree.rootAt(held.size);
  if (root === undefined) return;
  const differs =
    held.size === checkpoint.size ? sizeProblem(held, checkpoint) !== undefined : !root.equals(held.root);
  if (!differs) return;
  const own = openTileTree(held, store.read, () => undefined);
  const at = root.equals(held.root) ? undefined : await firstDifference(own, tree, held.size);
  wrong(
    `the service shows another history than the mirror holds up to size ${held.size}` +
      (at === undefined ? '' : `: they differ from place ${at} on`) +
      '; nothing was kept',
    [at ?? 0, held.size],
  );
};

/** The head last: until then the mirror is that of the head before. Then the partial tiles of that one can go. */
const conclude = async (
  { note = '' }: TileLog,
  store: MirrorStore,
  { authority, checkpoint }: OpenedHead,
  looked: ReadonlyMap<string, Uint8Array>,
  progress: Progress,
): Promise<void> => {
  const wanted = partialPaths(checkpoint?.size ?? 0);
  for (const path of wanted) {
    const [bytes, here] = [looked.get(path), await store.read(path)];
    if (bytes === undefined || (here?.length === bytes.length && Buffer.compare(here, bytes) === 0)) continue;
    await store.write(path, bytes);
    progress.fetched += 1;
    if (here !== undefined) progress.mended.push(path);
  }
  const keys = { origin: authority?.origin ?? '', keys: authority?.keys ?? [] };
  await store.write(KEYS_FILE, Buffer.from(`${JSON.stringify(keys, null, 2)}\n`, 'utf8'));
  await store.write(FILES.checkpoint, Buffer.from(note, 'utf8'));
  for (const path of await store.partial()) if (!wanted.has(path)) await store.remove(path);
};

const partialPaths = (size: number): ReadonlySet<string> => {
  const tiles = edgeOf(size).map(tilePath);
  const [lowest] = edgeOf(size);
  return new Set(lowest?.level === 0 ? [...tiles, tilePath({ ...lowest, level: 'entries' })] : tiles);
};
