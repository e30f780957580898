import { open, stat } from 'node:fs/promises';
import { CliFailure, EXIT } from './exit.ts';
import { fileErrorText } from './file-errors.ts';

/** With what every SQLite file begins. */
const SQLITE = 'SQLite format 3\0';
const BLOCK = 512;
/** Where the first header of a tar says that it is one. */
const TAR_MAGIC_AT = 257;

/**
 * Whether there is something at `path` that may be an embedded store: a directory, or a file that is not plainly something
 * else. What is a damaged store shows when it is read. `option`: how the caller gave it.
 *
 * @throws CliFailure (usage) that says what is taken instead.
 */
export const assertStorePath = async (path: string, option: string): Promise<void> => {
  const refuse = (why: string, cause?: unknown): never => {
    throw new CliFailure(EXIT.usage, `${option}: ${why}`, { cause });
  };
  try {
    const found = await stat(path);
    if (found.isDirectory()) return;
    // Opening a pipe would wait for who writes into it.
    if (!found.isFile()) refuse(`${path} is neither a file nor a directory`);
    const what = otherThanStore(await beginningOf(path));
    if (what === undefined) return;
    refuse(
      `${path} is ${what}, and no embedded store: give events.db of a data directory, or a backup of it ` +
        `(ledgerctl store backup); an export is checked with ledgerctl audit verify ${path}`,
    );
  } catch (error) {
    if (error instanceof CliFailure) throw error;
    refuse(fileErrorText(error, `cannot read ${path}`), error);
  }
};

const beginningOf = async (path: string): Promise<Buffer> => {
  const file = await open(path);
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(BLOCK), 0, BLOCK, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
};

/** What a file is by its first bytes; undefined: perhaps a store, whole or damaged. */
const otherThanStore = (head: Buffer): string | undefined => {
  if (head.length === 0) return 'empty';
  if (head.toString('latin1', 0, SQLITE.length) === SQLITE) return undefined;
  if (head.toString('latin1', TAR_MAGIC_AT, TAR_MAGIC_AT + 5) === 'ustar') return 'a tar';
  if (head[0] === 0x1f && head[1] === 0x8b) return 'packed with gzip';
  // A store has zeros in its first bytes, whatever else is damaged there.
  return head.includes(0) ? undefined : 'a text';
};
