import { KEYS_FILE, keysIn, type TileLog } from '../../../../src/app/audit/bundle/tile-log.ts';
import { parseCheckpoint } from '../../../../src/app/audit/merkle/checkpoint.ts';
import { leafHash } from '../../../../src/app/audit/merkle/hashing.ts';
import { leafBytes, leafOf } from '../../../../src/app/audit/merkle/leaf.ts';
import { createMemoryTree } from '../../../../src/app/audit/merkle/memory-tree.ts';
import { splitNote, type NoteSigner } from '../../../../src/app/audit/merkle/note.ts';
import { decodeEntries, TILE_WIDTH, tilePath } from '../../../../src/app/audit/merkle/tiles.ts';
import { keyOf, vkey, type History } from '../signed-history.ts';
import { tileFiles } from '../tile-files.ts';
import type { Draw, Tampered } from './bundle.ts';

/** The files of a mirror, by path, as `audit mirror` leaves them. */
export type MirrorFiles = Map<string, Buffer>;

const leavesOf = (history: History, size = history.events.length): Buffer[] =>
  history.events.slice(0, size).map((event) => leafBytes(leafOf(event)));

const filesOfLeaves = (leaves: readonly Buffer[]): MirrorFiles =>
  tileFiles(createMemoryTree(leaves.map(leafHash)), leaves);

/** The tiles of a history of this size (default: all of it), and its entries beside them. */
export const filesOfHistory = (history: History, size?: number): MirrorFiles =>
  filesOfLeaves(leavesOf(history, size));

const CHECKPOINT = 'checkpoint';

export const mirrorOf = (history: History, size = history.events.length, signer?: NoteSigner): MirrorFiles =>
  new Map([
    ...filesOfHistory(history, size),
    [CHECKPOINT, Buffer.from(signer === undefined ? history.noteAt(size) : history.noteAt(size, signer))],
    [KEYS_FILE, Buffer.from(JSON.stringify(keysOf(history, signer)))],
  ]);

const keysOf = ({ trust }: History, signer: NoteSigner | undefined): object => ({
  origin: trust.origin,
  keys: signer === undefined ? trust.keys : [{ vkey: vkey(signer), since: trust.keys[0]?.since ?? '' }],
});

/** What `audit verify --tiles` reads of a directory with these files. */
export const logOfMirror = (files: ReadonlyMap<string, Uint8Array>): TileLog => {
  const text = (name: string): string | undefined => {
    const bytes = files.get(name);
    return bytes === undefined ? undefined : Buffer.from(bytes).toString('utf8');
  };
  return {
    note: text(CHECKPOINT),
    keys: keysIn(text(KEYS_FILE) ?? ''),
    read: (path) => files.get(path),
  };
};

/** Content, order and membership of what a mirror shows below a size: what must be the same when nothing is found. */
export const dumpOfMirror = (files: ReadonlyMap<string, Buffer>, below: number): string[] => {
  const { size } = parseCheckpoint(splitNote(files.get(CHECKPOINT)?.toString('utf8') ?? '').text);
  const entries: string[] = [];
  for (let index = 0; index * TILE_WIDTH < size; index += 1) {
    const width = Math.min(TILE_WIDTH, size - index * TILE_WIDTH);
    const bytes = files.get(tilePath({ level: 'entries', index, width })) ?? Buffer.alloc(0);
    for (const entry of decodeEntries(bytes) ?? []) entries.push(entry.toString('utf8'));
  }
  return entries.slice(0, below);
};

export type MirrorVictim = {
  readonly history: History;
  readonly leaves: readonly Buffer[];
  readonly files: ReadonlyMap<string, Buffer>;
  /** Another history of the same size, whose keys are the same: shown to somebody else. */
  readonly otherFiles: ReadonlyMap<string, Buffer>;
  readonly otherLeaves: readonly Buffer[];
  /** The same history, signed by a key that nobody trusts, which lies beside it. */
  readonly foreignFiles: ReadonlyMap<string, Buffer>;
};

export const mirrorVictim = (history: History, other: History): MirrorVictim => ({
  history,
  leaves: leavesOf(history),
  files: mirrorOf(history),
  otherFiles: mirrorOf(other),
  otherLeaves: leavesOf(other),
  foreignFiles: mirrorOf(history, history.events.length, keyOf('foreign')),
});

/** What was done; `file`: the one that must be named; `place`: the first leaf that is another one. */
export type TamperedMirror = Tampered<MirrorFiles> & { readonly file?: string };

export const tamperMirror = (victim: MirrorVictim, draw: Draw): TamperedMirror => {
  const { files, otherFiles, foreignFiles } = victim;
  const names = [...files.keys()];
  const [name, second] = [names[draw.a % names.length] as string, names[draw.b % names.length] as string];
  const bytes = files.get(name) as Buffer;
  const changed = new Map(files);
  const one = (what: string, value: Buffer): TamperedMirror => ({
    what: `${name} ${what}`,
    value: changed.set(name, value),
    ...(name === KEYS_FILE || value.equals(bytes) ? {} : { file: name }),
  });
  switch (draw.kind % 10) {
    case 0: {
      const copy = Buffer.from(bytes);
      const at = Math.floor(draw.bit / 8) % copy.length;
      copy.writeUInt8(copy.readUInt8(at) ^ (1 << (draw.bit % 8)), at);
      return one(`with bit ${draw.bit} flipped`, copy);
    }
    case 1:
      changed.delete(name);
      return { what: `${name} removed`, value: changed, ...(name === KEYS_FILE ? {} : { file: name }) };
    case 2:
      changed.set(name, files.get(second) as Buffer).set(second, bytes);
      return {
        what: `${name} and ${second} swapped`,
        value: changed,
        // Without a head nothing else can be told.
        ...(name === second || name === KEYS_FILE ? {} : { file: second === CHECKPOINT ? second : name }),
      };
    case 3:
      return one(`cut off`, bytes.subarray(0, draw.b % bytes.length));
    case 4:
      return one(`with bytes behind it`, Buffer.concat([bytes, Buffer.alloc(1 + (draw.b % 40), draw.bit)]));
    case 5:
    case 6: {
      const source = draw.kind % 10 === 5 ? otherFiles : foreignFiles;
      for (const [at, each] of names.entries())
        if (((draw.bit >> at) & 1) === 1) changed.set(each, source.get(each) as Buffer);
      return {
        what: `mixed (${draw.bit}) with files of another ${source === otherFiles ? 'history' : 'key'}`,
        value: changed,
      };
    }
    case 7: {
      const size = draw.b % (victim.leaves.length + 1);
      return { what: `taken back to size ${size}`, value: mirrorOf(victim.history, size) };
    }
    default:
      return rebuilt(victim, draw);
  }
};

/** Leaves changed, and all tiles made anew so that they fit each other; the signed head alone does not. */
const rebuilt = ({ files, leaves, otherLeaves }: MirrorVictim, draw: Draw): TamperedMirror => {
  const [i, j] = [draw.a % leaves.length, draw.b % leaves.length];
  const [mine, theirs] = [leaves[i] as Buffer, otherLeaves[i] as Buffer];
  const edits: readonly (readonly [string, Buffer[]])[] = [
    [`leaf ${i} dropped`, leaves.toSpliced(i, 1)],
    [`leaf ${i} again at ${j}`, leaves.toSpliced(j, 0, mine)],
    [`leaves ${i} and ${j} swapped`, leaves.with(i, leaves[j] as Buffer).with(j, mine)],
    [`leaf ${i} replaced`, leaves.with(i, theirs)],
    [`another history from ${i} on`, [...leaves.slice(0, i), ...otherLeaves.slice(i)]],
    [`cut off at ${i}`, leaves.slice(0, i)],
  ];
  const [what, edited] = edits[draw.bit % edits.length] as (typeof edits)[number];
  const value = filesOfLeaves(edited);
  for (const name of [CHECKPOINT, KEYS_FILE]) value.set(name, files.get(name) as Buffer);
  const place = leaves.findIndex((leaf, at) => edited[at]?.equals(leaf) !== true);
  return { what: `${what}, tiles made anew`, value, ...(place < 0 ? {} : { place }) };
};
