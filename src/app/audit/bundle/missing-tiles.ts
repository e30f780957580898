import { TILE_WIDTH, tileWidthAt } from '../merkle/tiles.ts';
import type { Finding } from './findings.ts';

/** Of a folder of tiles of which nothing is left; `tiles`: without them nothing else can be looked at. */
export type MissingFolder = { readonly finding: Finding; readonly tiles: boolean };

/**
 * Folders that a tree of `size` leaves has and of which nothing is there: each is one thing to tell, where the files in it
 * would be so many that they hide everything else. One that has a single file is that file, and not told here.
 *
 * @param holds whether there is anything in a folder, whose name ends with `/`.
 */
export const missingFolders = async (
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
