import { leafBytes, leafOf } from '../../../../src/app/audit/merkle/leaf.ts';
import type { History } from '../signed-history.ts';
import { tileFiles } from '../tile-files.ts';
import type { Draw, Tampered } from './bundle.ts';

export type TileVictim = {
  readonly history: History;
  readonly files: ReadonlyMap<string, Buffer>;
  readonly otherFiles: ReadonlyMap<string, Buffer>;
};

const filesOf = (history: History): Map<string, Buffer> =>
  tileFiles(
    history.tree,
    history.events.map((event) => leafBytes(leafOf(event))),
  );

export const tileVictim = (history: History, other: History): TileVictim => ({
  history,
  files: filesOf(history),
  otherFiles: filesOf(other),
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
