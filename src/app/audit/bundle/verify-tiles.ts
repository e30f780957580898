import { isObject, numberAt, stringAt } from '../../../domain/json-tools.ts';
import type { JsonValue } from '../../../domain/json.ts';
import type { Checkpoint } from '../merkle/checkpoint.ts';
import { rootOf } from '../merkle/compact-range.ts';
import { leafHash } from '../merkle/hashing.ts';
import { TILE_WIDTH, tilePath } from '../merkle/tiles.ts';
import { collectFindings, LISTED, outcomeOf, type Finding, type Findings, type Outcome } from './findings.ts';
import {
  addressAt,
  changedTile,
  edgeOf,
  readEntries,
  readHashes,
  rootOfEdge,
  type HashTile,
  type ReadTile,
} from './tile-reading.ts';

export type TilesResult = Outcome & {
  /** Tiles of hashes, and bundles of entries, that were looked at. */
  readonly tiles: number;
  readonly bundles: number;
};

export type TilesOptions = {
  /** Whether there are entries beside the hashes. Default: there are. */
  readonly entries?: boolean;
  /** Where what is wrong is added. Default: a list of its own. */
  readonly findings?: Findings;
};

/** So that a head that claims more leaves than anybody can hold is not followed for ever; as many as are listed. */
const MOST_FINDINGS = LISTED - 1;
const SO_MUCH = 'so much is wrong that not everything was looked at';

/** Hashes of what stands below a tile; undefined where nothing can be told. */
type Below = readonly (Buffer | undefined)[];

/**
 * Whether tiles, and the entries beside them, are those of a checkpoint. It goes from the top: the partial tiles make the
 * root, and every full one the hash that stands for it above, so that the files that were changed are told from those that
 * were not; of one that is wrong, what lies below it decides. Holds a tile of each level.
 */
export const verifyTiles = async (
  { size, root }: Pick<Checkpoint, 'size' | 'root'>,
  read: ReadTile,
  { entries = true, findings = collectFindings() }: TilesOptions = {},
): Promise<TilesResult> => {
  const before = findings.count();
  const seen = { tiles: 0, bundles: 0 };
  const givenUp = (): boolean => findings.count() - before >= MOST_FINDINGS;
  const hashesOf = (tile: HashTile, expected?: Buffer): Promise<Buffer[] | undefined> => {
    seen.tiles += 1;
    return readHashes(read, tile, expected, findings.add);
  };

  const entriesOf = async (tile: HashTile, expected: readonly Buffer[] | undefined): Promise<Below> => {
    seen.bundles += 1;
    const fits =
      expected &&
      ((found: readonly Buffer[]): boolean =>
        found.length === tile.width &&
        found.every((entry, at) => leafHash(entry).equals(expected[at] as Buffer)));
    const found = await readEntries(read, { ...tile, level: 'entries' }, fits, findings.add);
    const hashes = (found ?? []).map((entry) => leafHash(entry));
    if (expected !== undefined) compare(tile, expected, hashes, found);
    return hashes;
  };

  /** Looks at all that stands below a tile. `expected`: what it has to be; undefined: that is not known. */
  const below = async (tile: HashTile, expected: readonly Buffer[] | undefined): Promise<Below> => {
    if (tile.level === 0) return entries ? entriesOf(tile, expected) : [];
    const roots: (Buffer | undefined)[] = [];
    for (let at = 0; at < tile.width && !givenUp(); at += 1)
      roots.push(await visit(addressAt(tile.level - 1, tile.index * TILE_WIDTH + at, size), expected?.[at]));
    return roots;
  };

  /** A full tile and all that stands below it. Returns its root, as far as one can be told. */
  const visit = async (tile: HashTile, expected: Buffer | undefined): Promise<Buffer | undefined> => {
    const stated = await hashesOf(tile, expected);
    const own = stated && rootOf(stated);
    if (stated !== undefined && own !== undefined && expected?.equals(own) === true) {
      await below(tile, stated);
      return own;
    }
    const made = await below(tile, undefined);
    const derived = isWhole(made, tile) ? rootOf(made) : undefined;
    if (stated !== undefined && expected !== undefined) findings.add(changedTile(tile));
    if (expected === undefined || derived?.equals(expected) !== true) compare(tile, stated, made);
    return derived !== undefined && expected?.equals(derived) === true ? derived : (own ?? derived);
  };

  /** What was found below a tile that may itself be wrong, beside what the tile says. */
  const compare = (
    tile: HashTile,
    stated: readonly Buffer[] | undefined,
    made: Below,
    found?: readonly Buffer[],
  ): void => {
    const differing = (stated ?? []).flatMap((hash, at) =>
      made[at] === undefined || made[at].equals(hash) ? [] : [at],
    );
    if (tile.level > 0)
      for (const at of differing)
        findings.add(changedTile(addressAt(tile.level - 1, tile.index * TILE_WIDTH + at, size), true));
    else if (differing.length > MOST_ENTRIES) findings.add(changedBundle(tile, differing));
    else for (const at of differing) findings.add(changedEntry(tile, at, found?.[at]));
  };

  /** Partial tiles that do not lead to the root: with what stands below them some of them may. */
  const judge = async (edge: readonly HashTile[], stated: ReadonlyMap<number, Buffer[]>): Promise<void> => {
    const made = new Map<number, Below>();
    for (const tile of edge) made.set(tile.level, await below(tile, undefined));
    const right = choices(edge, stated, made).find(
      (choice) => rootOfEdge(size, choice)?.equals(root) === true,
    );
    for (const tile of edge) {
      const [here, lower] = [stated.get(tile.level), made.get(tile.level) ?? []];
      if (right === undefined || right.get(tile.level) === here) compare(tile, here, lower);
      else if (here !== undefined) findings.add(changedTile(tile));
    }
    if (right === undefined)
      findings.add({
        code: 'root',
        place: [0, size],
        message: 'the tiles do not lead to the root that was signed',
      });
  };

  const edge = edgeOf(size);
  const stated = new Map<number, Buffer[]>();
  for (const tile of edge) {
    const found = await hashesOf(tile);
    if (found !== undefined) stated.set(tile.level, found);
  }
  if (rootOfEdge(size, stated)?.equals(root) === true)
    for (const tile of edge) await below(tile, stated.get(tile.level));
  else await judge(edge, stated);
  if (givenUp()) findings.add({ code: 'unreadable', place: [0, size], message: SO_MUCH });
  return { ...outcomeOf(findings), ok: findings.count() === before, ...seen };
};

const isWhole = (made: Below, { width }: HashTile): made is Buffer[] =>
  made.length === width && made.every((hash) => hash !== undefined);

/** Every way to take each partial tile as it is or as what stands below it says, those that take most as they are first. */
const choices = (
  edge: readonly HashTile[],
  stated: ReadonlyMap<number, Buffer[]>,
  made: ReadonlyMap<number, Below>,
): ReadonlyMap<number, readonly Buffer[]>[] => {
  let all: { readonly derived: number; readonly tiles: ReadonlyMap<number, readonly Buffer[]> }[] = [
    { derived: 0, tiles: new Map() },
  ];
  for (const tile of edge) {
    const [here, lower] = [stated.get(tile.level), made.get(tile.level) ?? []];
    all = all.flatMap(({ derived, tiles }) => [
      ...(here === undefined ? [] : [{ derived, tiles: new Map([...tiles, [tile.level, here]]) }]),
      ...(isWhole(lower, tile)
        ? [{ derived: derived + 1, tiles: new Map([...tiles, [tile.level, lower]]) }]
        : []),
    ]);
  }
  return all.toSorted((left, right) => left.derived - right.derived).map(({ tiles }) => tiles);
};

/** Entries of one bundle that are named one by one: of more of them it is the bundle that is another one. */
const MOST_ENTRIES = 10;

const changedBundle = (tile: HashTile, differing: readonly number[]): Finding => {
  const first = tile.index * TILE_WIDTH;
  return {
    code: 'changed-event',
    file: tilePath({ ...tile, level: 'entries' }),
    place: [first + (differing[0] ?? 0), first + (differing.at(-1) ?? 0) + 1],
    message: `${differing.length} of its entries have not the hashes that the tile has for them`,
  };
};

const changedEntry = (tile: HashTile, at: number, entry: Buffer | undefined): Finding => {
  const event = entry === undefined ? undefined : eventOf(entry);
  return {
    code: 'changed-event',
    file: tilePath({ ...tile, level: 'entries' }),
    place: tile.index * TILE_WIDTH + at,
    ...(event === undefined ? {} : { event }),
    message: 'the entry has not the hash that the tile has for it',
  };
};

/** The event that an entry says that it is the leaf of. */
const eventOf = (entry: Buffer): string | undefined => {
  try {
    const record = JSON.parse(entry.toString('utf8')) as JsonValue;
    const [stream, revision] = isObject(record)
      ? [stringAt(record, 'stream'), numberAt(record, 'revision')]
      : [''];
    return stream === '' ? undefined : `${stream}@${revision}`;
  } catch {
    return undefined;
  }
};
