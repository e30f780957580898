import { open, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CliFailure, EXIT } from '../exit.ts';
import { fileErrorText, fileFailure } from '../file-errors.ts';

/** Beside the file that a download is written to, until it is whole. */
export const partOf = (target: string): string => `${target}.part`;

/**
 * Whether a file can be written, asked before the service works for minutes to fill it. Leaves nothing behind.
 *
 * @param replaced says what to do about a file that is there; undefined: it may be replaced.
 * @throws CliFailure (usage).
 */
export const assertTarget = async (target: string, replaced: string | undefined): Promise<void> => {
  const refuse = (why: string): never => {
    throw new CliFailure(EXIT.usage, why);
  };
  const there = await found(target);
  if (there?.isDirectory() === true)
    refuse(`${target} is a directory: name the file in it, for example ${join(target, 'acme.tar')}`);
  if (there !== undefined && replaced !== undefined) refuse(`${target} is there already: ${replaced}`);
  const folder = dirname(target);
  const parent = await found(folder);
  if (parent === undefined) refuse(`cannot write ${target}: directory ${folder} not found; make it first`);
  if (parent?.isDirectory() === false) refuse(`cannot write ${target}: ${folder} is not a directory`);
  const part = partOf(target);
  const begun = await found(part);
  try {
    await (await open(part, 'a', 0o600)).close();
    if (begun === undefined) await rm(part, { force: true });
  } catch (error) {
    throw fileFailure(error, `cannot write ${target}`);
  }
};

/** Undefined when there is nothing of this name; throws CliFailure when that cannot be told. */
const found = async (path: string) => {
  try {
    return await stat(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return undefined;
    throw new CliFailure(EXIT.usage, fileErrorText(error, `cannot write ${path}`), { cause: error });
  }
};
