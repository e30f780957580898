import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import { makeDirectory } from '../app/deployment/make-directory.ts';
import { privateDirectory, UnsafePermissions } from '../adapters/keys/private-files.ts';
import { BadSetting, type Config } from '../config.ts';

/**
 * The directories that the settings name, made where they are not there yet. Throws BadSetting with the variable when one
 * cannot be had, cannot be written to, holds data that every user of the machine could replace, or secrets that others may
 * read.
 */
export const openDirectories = async ({
  dataDir,
  secretsDir,
}: Pick<Config, 'dataDir' | 'secretsDir'>): Promise<void> => {
  await usable('LEDGER_DATA_DIR', dataDir, './data');
  await refuseForEverybody(dataDir);
  await usable('LEDGER_SECRETS_DIR', secretsDir, './data/secrets');
  await privateDirectory(secretsDir).catch((error: unknown) => {
    throw error instanceof UnsafePermissions
      ? new BadSetting(`LEDGER_SECRETS_DIR: ${error.message}`, { cause: error })
      : error;
  });
};

/** A sticky bit does not help: whoever comes first could lay files there that the service takes for its own. */
const refuseForEverybody = async (path: string): Promise<void> => {
  const { mode } = await stat(path);
  if ((mode & constants.S_IWOTH) === 0) return;
  const shown = (mode & 0o7777).toString(8).padStart(4, '0');
  throw new BadSetting(
    `LEDGER_DATA_DIR: every user of this machine can write to ${path} (mode ${shown}); run: chmod o-w '${path}'`,
  );
};

const usable = async (variable: string, path: string, example: string): Promise<void> => {
  try {
    await makeDirectory(path);
    await access(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new BadSetting(
      `${variable}: ${path} is not a directory that the service can write to (${why}). Example: ${variable}=${example}`,
      { cause: error },
    );
  }
};
