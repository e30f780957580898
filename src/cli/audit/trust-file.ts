import { readFile, rename, writeFile } from 'node:fs/promises';
import { trustSchema } from '../../app/audit/bundle/format.ts';
import type { Trust } from '../../app/audit/merkle/key-chain.ts';
import { CliFailure, EXIT } from '../exit.ts';

/** A trust.json of the auditor's own. Throws CliFailure (usage) when it is none. */
export const readTrust = async (file: string): Promise<Trust> => {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new CliFailure(EXIT.usage, `--trust: ${error instanceof Error ? error.message : String(error)}`);
  });
  try {
    return trustSchema.parse(JSON.parse(text)) as Trust;
  } catch {
    throw new CliFailure(EXIT.usage, `--trust: ${file} is no trust.json: it holds origin, keys and pin`);
  }
};

/** Never half a trust file: it is what everything hangs on. */
export const writeTrust = async (file: string, trust: Trust): Promise<void> => {
  await writeFile(`${file}.new`, `${JSON.stringify(trust, null, 2)}\n`);
  await rename(`${file}.new`, file);
};
