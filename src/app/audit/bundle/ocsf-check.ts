import { isObject, listAt, objectAt, own, stringAt } from '../../../domain/json-tools.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { canonicalText, type LeafRecord } from '../merkle/leaf.ts';
import type { Findings } from './findings.ts';
import { FILES, type LineEvent } from './format.ts';
import { eventName } from './lines.ts';
import { ocsfOf } from './ocsf.ts';
import { lineBatches, type DigestedSource, type TextLine } from './reading.ts';

export const OCSF_FILE = 'ocsf.ndjson';

/**
 * Whether the OCSF records are those that the events give, one for each that is not withheld. Called when the events
 * themselves were found right. The version of the product, and the kind and id of a resource that is not the document of
 * its stream, are taken as the record states them.
 */
export const checkOcsf = async (files: DigestedSource, findings: Findings): Promise<void> => {
  const records = linesOf(files, OCSF_FILE);
  let line = 0;
  let version: string | undefined;
  const wrong = (message: string, leaf?: LeafRecord): void => {
    const event = eventName(leaf);
    findings.add({
      code: 'content',
      file: OCSF_FILE,
      line,
      message,
      ...(event === undefined ? {} : { event }),
    });
  };
  for await (const { text } of linesOf(files, FILES.events)) {
    const { leaf, event, revealed } = JSON.parse(text ?? 'null') as ShownLine;
    if (leaf === null || event === null) continue;
    line += 1;
    const next = await records.next();
    if (next.done === true) return wrong('this record, and all behind it, are missing', leaf);
    const record = recordIn(next.value);
    if (record === undefined) {
      wrong('it is not a JSON object on a line of its own', leaf);
      continue;
    }
    const productVersion = stringAt(objectAt(objectAt(record, 'metadata'), 'product'), 'version');
    version ??= productVersion;
    const [resource] = listAt(record, 'resources');
    const about = isObject(resource) ? resource : {};
    const expected = ocsfOf({
      leaf,
      event,
      kind: stringAt(about, 'type'),
      resourceId: stringAt(about, 'uid'),
      productVersion: version,
      ...(revealed === undefined ? {} : { revealed }),
    });
    if (canonicalText(record) !== canonicalText(expected))
      wrong('it is not the record that the event gives', leaf);
  }
  line += 1;
  if ((await records.next()).done !== true) wrong('there are more records than events');
};

type ShownLine = {
  readonly leaf: LeafRecord | null;
  readonly event: LineEvent | null;
  readonly revealed?: { readonly [path: string]: string };
};

/** Undefined for a text that two readers could read in two ways, too. */
const recordIn = ({ text, ended }: TextLine): JsonObject | undefined => {
  if (text === undefined || !ended) return undefined;
  try {
    const record = JSON.parse(text) as JsonObject;
    return isObject(record) && own(record, 'metadata') !== undefined && JSON.stringify(record) === text
      ? record
      : undefined;
  } catch {
    return undefined;
  }
};

async function* linesOf(files: DigestedSource, name: string): AsyncGenerator<TextLine, undefined> {
  for await (const batch of lineBatches(files.stream(name))) yield* batch;
  return undefined;
}
