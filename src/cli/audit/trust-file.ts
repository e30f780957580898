import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import type { LaterProof } from '../../app/audit/bundle/pin-check.ts';
import type { Trust } from '../../app/audit/merkle/key-chain.ts';
import { isObject, own } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { fileFailure } from '../file-errors.ts';

/** A trust.json of the auditor's own. Throws CliFailure (usage) when it is none. */
export const readTrust = async (file: string): Promise<Trust> => {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw fileFailure(error, `--trust: cannot read ${file}`);
  });
  // Loaded when it is needed: every other command, and the service, would load it for nothing.
  const { trustSchema } = await import('../../app/audit/bundle/format.ts');
  try {
    return trustSchema.parse(JSON.parse(text)) as Trust;
  } catch {
    throw new CliFailure(EXIT.usage, `--trust: ${file} is not a trust.json: one holds origin, keys and pin`);
  }
};

/** What a service answered. Throws CliFailure when it is no trust.json. */
export const trustIn = async (answer: unknown): Promise<Trust> => {
  // Loaded when it is needed: see `readTrust`.
  const { trustSchema } = await import('../../app/audit/bundle/format.ts');
  const { data } = trustSchema.safeParse(answer);
  if (data === undefined)
    throw new CliFailure(EXIT.failed, 'the service answered something else than a trust.json');
  return data as Trust;
};

/** What a file holds that is about to be replaced; undefined when there is none, or it is no trust.json. */
export const heldTrust = (file: string): Promise<Trust | undefined> =>
  readTrust(file).catch((error: unknown) => {
    if (error instanceof CliFailure) return undefined;
    throw error;
  });

/** What `ledgerctl audit consistency` has written. Throws CliFailure (usage) when it is none. */
export const readConsistency = async (file: string): Promise<LaterProof> => {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw fileFailure(error, `--consistency: cannot read ${file}`);
  });
  const proof = parsed(text);
  const [from, to, path] = ['from', 'to', 'path'].map((name) => own(proof, name));
  if (Number.isSafeInteger(from) && Number.isSafeInteger(to) && Array.isArray(path))
    return { from: Number(from), to: Number(to), path: path.map(String) };
  throw new CliFailure(
    EXIT.usage,
    `--consistency: ${file} is not a proof of consistency: one holds from, to and path`,
  );
};

const parsed = (text: string): JsonObject => {
  try {
    const value = JSON.parse(text) as JsonValue;
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
};

/** How many leaves the pinned checkpoint covers; undefined without a pin. Throws CliFailure when the pin is no signed checkpoint. */
export const pinnedSize = async ({ pin }: Trust): Promise<number | undefined> => {
  if (pin === undefined) return undefined;
  const { parseCheckpoint } = await import('../../app/audit/merkle/checkpoint.ts');
  const { splitNote } = await import('../../app/audit/merkle/note.ts');
  try {
    return parseCheckpoint(splitNote(pin).text).size;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new CliFailure(EXIT.usage, `--trust: its pin cannot be used: ${why}`, { cause: error });
  }
};

/** Never half a trust file: it is what everything hangs on. Throws CliFailure. */
export const writeTrust = async (file: string, trust: Trust): Promise<void> => {
  const fresh = `${file}.new`;
  try {
    await writeFile(fresh, `${JSON.stringify(trust, null, 2)}\n`);
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true }).catch(() => undefined);
    throw fileFailure(error, `cannot write ${file}`, EXIT.failed);
  }
};
