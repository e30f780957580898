import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { JsonObject } from '../../domain/json.ts';
import { kinds, type AnyKind } from '../../domain/kinds.ts';

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

/** Examples of a folder, by name of file, and of the kinds that it holds none of. */
export const readExamples = async (folder: string): Promise<readonly OperationExample[]> => {
  const files = await readdir(folder).catch(() => []);
  const lists = await Promise.all(
    files
      .filter((file) => file.endsWith('.json'))
      .toSorted()
      .map(async (file) => JSON.parse(await readFile(join(folder, file), 'utf8')) as OperationExample[]),
  );
  const stored = lists.flat();
  const isTold = ({ service }: AnyKind): boolean =>
    stored.some(({ operationId }) => operationId.split('_')[1] === service);
  return [...stored, ...kinds.filter((kind) => !isTold(kind)).flatMap(plainExamples)];
};

type Told = Pick<AnyKind, 'kind' | 'words' | 'service' | 'methods' | 'example'>;

/** On each surface an object that holds what it must, and a change of it. */
export const plainExamples = ({
  kind,
  words,
  service,
  methods,
  example,
}: Told): readonly OperationExample[] =>
  (['public', 'private'] as const)
    .filter((surface) => methods[surface].includes('Create'))
    .flatMap((surface) => {
      const made = `${kind}-${surface}`;
      const metadata = { name: `example-${surface}` };
      return [
        {
          id: 'plain',
          operationId: `${surface}_${service}_Create`,
          summary: `Plain ${words}`,
          body: { ...example, metadata },
          made,
        },
        {
          id: 'described',
          operationId: `${surface}_${service}_Update`,
          summary: 'Change one field; the others stay',
          parameters: { id: made },
          body: { metadata: { description: 'For the first tests' } },
        },
      ];
    });
