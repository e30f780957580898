import { canonicalText } from '../../../../src/app/audit/merkle/leaf.ts';
import type { Finding } from '../../../../src/app/audit/bundle/findings.ts';
import type { JsonObject } from '../../../../src/domain/json.ts';
import {
  asTenant,
  bundleOf,
  editLines,
  fitManifest,
  historyOf,
  keyOf,
  lineOf,
  textOf,
  type History,
  type MemoryBundle,
} from '../signed-history.ts';

/** Numbers that a mutation draws what it does from. */
export type Draw = {
  readonly kind: number;
  readonly a: number;
  readonly b: number;
  readonly bit: number;
  readonly forger: boolean;
};

/** What was done, and where it must be named; undefined: no place of its own, any finding will do. */
export type Tampered<T> = { readonly what: string; readonly value: T; readonly place?: number };

export type BundleVictim = {
  readonly history: History;
  /** Another history of the same size, whose keys are the same: shown to somebody else. */
  readonly other: History;
  readonly tenant?: string;
  readonly files: MemoryBundle;
  readonly otherFiles: MemoryBundle;
  /** Signed by a key that nobody trusts. */
  readonly foreignFiles: MemoryBundle;
  /** Main places of the events of the bundle. */
  readonly places: readonly number[];
};

export const bundleVictim = async (
  history: History,
  other: History,
  tenant?: string,
): Promise<BundleVictim> => {
  // An export for a tenant shows what hides something from it as far as it may be seen.
  const ask = tenant === undefined ? {} : { tenant, show: asTenant };
  const foreign = historyOf(history.events, keyOf('foreign'));
  return {
    history,
    other,
    ...(tenant !== undefined && { tenant }),
    files: await bundleOf(history, ask),
    otherFiles: await bundleOf(other, ask),
    foreignFiles: await bundleOf(foreign, ask),
    places: tenant === undefined ? history.events.map((_, place) => place) : history.placesOf(tenant),
  };
};

/** Content, order and membership of a bundle: what must be the same when nothing is found. */
export const dumpOf = (files: MemoryBundle): string => {
  const proofs = JSON.parse(textOf(files, 'proofs.json')) as {
    scope: JsonObject;
    from: { size: number };
    to: JsonObject;
  };
  const lines = textOf(files, 'events.ndjson')
    .split('\n')
    .slice(0, -1)
    .map((text) => {
      const { leaf, shown, event } = JSON.parse(text) as {
        leaf: JsonObject;
        shown: string;
        event: { data: JsonObject; metadata: JsonObject };
      };
      return { leaf, shown, data: event.data, metadata: event.metadata };
    });
  return canonicalText({ scope: proofs.scope, from: proofs.from.size, to: proofs.to, lines });
};

const flipped = (bytes: Buffer, bit: number): Buffer => {
  const copy = Buffer.from(bytes);
  if (copy.length === 0) return copy;
  const at = Math.floor(bit / 8) % copy.length;
  copy.writeUInt8(copy.readUInt8(at) ^ (1 << (bit % 8)), at);
  return copy;
};

type LineEdit = {
  readonly what: string;
  readonly edit: (lines: JsonObject[]) => JsonObject[];
};

const lineEdit = (victim: BundleVictim, { kind, a, b }: Draw): LineEdit => {
  const count = victim.places.length;
  const [i, j] = [a % count, b % count];
  const theirs = (place: number): JsonObject =>
    lineOf(victim.other, victim.places[place] ?? 0) as unknown as JsonObject;
  switch (kind % 7) {
    case 0:
      return { what: `line ${i} dropped`, edit: (lines) => lines.toSpliced(i, 1) };
    case 1:
      return {
        what: `lines ${i} and ${j} swapped`,
        edit: (lines) => lines.with(i, lines[j] as JsonObject).with(j, lines[i] as JsonObject),
      };
    case 2:
      return {
        what: `line ${j} again at ${i}`,
        edit: (lines) => lines.toSpliced(i, 0, lines[j] as JsonObject),
      };
    case 3:
      return {
        what: `line of another history put in at ${i}`,
        edit: (lines) => lines.toSpliced(i, 0, theirs(i)),
      };
    case 4:
      return { what: `cut off at ${i}`, edit: (lines) => lines.slice(0, i) };
    case 5:
      return {
        what: `another history from ${i} on`,
        edit: (lines) => lines.map((line, n) => (n < i ? line : theirs(n))),
      };
    default:
      return {
        what: `data of line ${i} changed`,
        edit: (lines) => lines.with(i, withData(lines[i] as JsonObject, b)),
      };
  }
};

const withData = (line: JsonObject, b: number): JsonObject => {
  const event = line['event'] as { data: JsonObject; metadata: JsonObject };
  const changed =
    b % 2 === 0
      ? { data: { ...event.data, forged: b } }
      : { metadata: { ...event.metadata, command: 'Forged' } };
  return { ...line, event: { ...event, ...changed } };
};

/** Numbers as they would be if nothing had happened. */
const renumbered = (lines: JsonObject[], tenant: string | undefined): JsonObject[] =>
  lines.map((line, n) => ({ ...line, [tenant === undefined ? 'index' : 'tenantIndex']: n }));

/** Kinds of mutations of a bundle; see `lineEdit` for the first ones. */
export const tamperBundle = (victim: BundleVictim, draw: Draw): Tampered<MemoryBundle> => {
  const files = new Map(victim.files);
  const names = [...files.keys()];
  const name = names[draw.a % names.length] as string;
  const bytes = files.get(name) as Buffer;
  const result = (what: string, place?: number): Tampered<MemoryBundle> => {
    if (draw.forger) tryToFit(files, draw.b % 3 !== 0);
    return {
      what: `${what}${draw.forger ? ', digests fitted' : ''}`,
      value: files,
      ...(place === undefined ? {} : { place }),
    };
  };
  switch (draw.kind % 13) {
    case 7:
      files.set(name, flipped(bytes, draw.bit));
      return result(`bit ${draw.bit} of ${name} flipped`);
    case 8:
      files.set('events.ndjson', flipped(files.get('events.ndjson') as Buffer, draw.bit));
      return result(`bit ${draw.bit} of events.ndjson flipped`);
    case 9:
      files.set(name, bytes.subarray(0, draw.b % bytes.length));
      return result(`${name} cut off`);
    case 10:
      files.delete(name);
      return result(`${name} removed`);
    case 11: {
      // Some files of the same export, signed by another key; or of another history, signed by the right one.
      const source = draw.b % 2 === 0 ? victim.foreignFiles : victim.otherFiles;
      for (const [at, each] of names.entries())
        if (((draw.bit >> at) & 1) === 1) files.set(each, source.get(each) as Buffer);
      return result(draw.b % 2 === 0 ? 'signed by another key' : 'mixed with another history');
    }
    case 12: {
      const { what, edit } = lineEdit(victim, { ...draw, kind: draw.bit });
      editLines(files, (lines) => renumbered(edit(lines), victim.tenant));
      return result(`${what}, numbered anew`, firstDifference(victim.files, files));
    }
    default: {
      const { what, edit } = lineEdit(victim, draw);
      editLines(files, edit);
      return result(what, firstDifference(victim.files, files));
    }
  }
};

/** The first line that shows another event than before; undefined when none does. */
const firstDifference = (before: MemoryBundle, after: MemoryBundle): number | undefined => {
  const shown = (files: MemoryBundle): string[] =>
    textOf(files, 'events.ndjson')
      .split('\n')
      .map((text) =>
        text === '' ? '' : JSON.stringify({ ...(JSON.parse(text) as JsonObject), index: 0, tenantIndex: 0 }),
      );
  const [old, fresh] = [shown(before), shown(after)];
  const length = Math.max(old.length, fresh.length);
  const place = Array.from({ length }, (_, n) => n).find((n) => old[n] !== fresh[n]);
  return place;
};

/** A forger makes the manifest fit, with the audit key or with another one; where nothing can be read any more there is nothing to fit. */
const tryToFit = (files: MemoryBundle, withKey: boolean): void => {
  if (!files.has('manifest.json')) return;
  try {
    fitManifest(files, withKey ? keyOf('first') : keyOf('foreign'));
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof TypeError)) throw error;
  }
};

/** Whether a finding says that something is wrong at a place. */
export const names = ({ place }: Finding, wanted: number): boolean =>
  place === wanted || (Array.isArray(place) && place[0] <= wanted && wanted < place[1]);
