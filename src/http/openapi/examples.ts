import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../../domain/json.ts';

/** A stored example of a request. A test sends every one of them and expects the status. */
export type OperationExample = {
  /** Unique among the examples of its operation. */
  readonly id: string;
  readonly operationId: string;
  readonly summary: string;
  /** Query, path and header parameters by their names. */
  readonly parameters?: { readonly [name: string]: string | number | boolean };
  readonly body?: JsonObject;
  /** Where the service chooses ids: what later examples call the object that this one creates. */
  readonly made?: string;
};

/** Examples of a folder, by name of file; none when there is no such folder. */
export const readExamples = async (folder: string): Promise<readonly OperationExample[]> => {
  const files = await readdir(folder).catch(() => []);
  const lists = await Promise.all(
    files
      .filter((file) => file.endsWith('.json'))
      .toSorted()
      .map(async (file) => JSON.parse(await readFile(join(folder, file), 'utf8')) as OperationExample[]),
  );
  return lists.flat();
};
