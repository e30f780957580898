import type { BundleSource } from '../../app/audit/bundle/format.ts';
import type { BundleReport } from '../../app/audit/bundle/verify.ts';
import type { JsonObject } from '../../domain/json.ts';
import { printable } from '../output.ts';

/** What an export was asked for, as its manifest says; undefined where that cannot be told. */
export const filterOf = async (source: BundleSource): Promise<JsonObject | undefined> => {
  // Loaded when it is needed: every other command, and the service, would load it for nothing.
  const { FILES, manifestSchema } = await import('../../app/audit/bundle/format.ts');
  const chunks: Uint8Array[] = [];
  for await (const chunk of source.read(FILES.manifest)) chunks.push(chunk);
  const manifest = manifestSchema.safeParse(JSON.parse(Buffer.concat(chunks).toString('utf8')));
  return manifest.success ? (manifest.data.filter as JsonObject) : undefined;
};

/** The times, which choose the range; everything else chooses from it. */
const RANGE: readonly string[] = ['from', 'to'];

const chosenBy = (filter: JsonObject): readonly (readonly [string, unknown])[] =>
  Object.entries(filter).filter(([name]) => !RANGE.includes(name));

/** The times that were asked for: the manifest's word, too. */
export const periodText = ({ from, to }: NonNullable<BundleReport['period']> = {}): string[] => {
  if (from === undefined && to === undefined) return [];
  const which =
    from === undefined
      ? `before ${to}`
      : to === undefined
        ? `at ${from} or later`
        : `from ${from} to before ${to}`;
  return [printable(`asked for: recorded ${which}: as the service stated`)];
};

/** What was chosen from the range: the manifest's word, as all of the filter is. */
export const filterText = (filter: JsonObject | undefined): string[] => {
  if (filter === undefined) return [];
  const chosen = chosenBy(filter);
  if (chosen.length === 0) return ['filter: none was asked for: this is all of the history in this range'];
  const words = chosen.map(
    ([name, value]) => `${name} ${Array.isArray(value) ? value.map(String).join(', ') : String(value)}`,
  );
  return [printable(`filter: ${words.join('; ')}`)];
};

/** With what begins what is not proven of a filter, and of the times of a range. */
const OF_FILTER = 'the filter:';
const OF_RANGE = 'the range:';

/**
 * Where no filter was asked for there is nothing to prove of one, nor of times that nobody named; why something is withheld
 * is the service's word all the same.
 */
export const notProvenOf = (
  {
    notProven,
    withheldBy,
    range,
    treeSize,
  }: Pick<BundleReport, 'notProven' | 'withheldBy' | 'range' | 'treeSize'>,
  filter: JsonObject | undefined,
): readonly string[] => {
  if (filter === undefined) return notProven;
  const isUnfiltered = chosenBy(filter).length === 0 && withheldBy.filter === 0;
  const isAllTime =
    RANGE.every((name) => !Object.hasOwn(filter, name)) && range?.from === 0 && range.to === treeSize;
  const withheld =
    withheldBy.audience === 0 ? [] : ['why events are withheld: that this reader may not see them'];
  return notProven.flatMap((text) => {
    if (isUnfiltered && text.startsWith(OF_FILTER)) return withheld;
    return isAllTime && text.startsWith(OF_RANGE) ? [] : [text];
  });
};
