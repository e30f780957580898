import { leafHash } from '../../../../src/app/audit/merkle/hashing.ts';
import { leafBytes, leafOf } from '../../../../src/app/audit/merkle/leaf.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import type { History } from '../signed-history.ts';
import { tileFiles } from '../tile-files.ts';
import type { Draw, Tampered } from './bundle.ts';

export type TileVictim = {
  readonly history: History;
  readonly files: ReadonlyMap<string, Buffer>;
  readonly otherFiles: ReadonlyMap<string, Buffer>;
};

/** The tiles of a history of this size (default: all of it), and its entries beside them. */
export const filesOfHistory = (history: History, size = history.events.length): Map<string, Buffer> => {
  const leaves = history.events.slice(0, size).map((event) => leafBytes(leafOf(event)));
  return tileFiles(createMemoryTree(leaves.map(leafHash)), leaves);
};

export const tileVictim = (history: History, other: History): TileVictim => ({
  history,
  files: filesOfHistory(history),
  otherFiles: filesOfHistory(other),
});

export const tamperTiles = ({ files, otherFiles }: TileVictim, draw: Draw): Tampered<Map<string, Buffer>> => {
  const names = [...files.keys()];
  const [name, second] = [names[draw.a % names.length] as string, names[draw.b % names.length] as string];
  const bytes = files.get(name) as Buffer;
  const changed = new Map(files);
  switch (draw.kind % 5) {
    case 0: {
      const copy = Buffer.from(bytes);
      const at = Math.floor(draw.bit / 8) % copy.length;
      copy.writeUInt8(copy.readUInt8(at) ^ (1 << (draw.bit % 8)), at);
      return { what: `bit ${draw.bit} of ${name} flipped`, value: changed.set(name, copy) };
    }
    case 1:
      changed.delete(name);
      return { what: `${name} removed`, value: changed };
    case 2:
      return {
        what: `${name} and ${second} swapped`,
        value: changed.set(name, files.get(second) as Buffer).set(second, bytes),
      };
    case 3:
      return { what: `${name} cut off`, value: changed.set(name, bytes.subarray(0, draw.b % bytes.length)) };
    default:
      for (const [at, each] of names.entries())
        if (((draw.bit >> at) & 1) === 1) changed.set(each, otherFiles.get(each) as Buffer);
      return { what: 'mixed with the tiles of another history', value: changed };
  }
};
