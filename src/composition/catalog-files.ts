import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { documentKinds } from '../domain/kinds.ts';
import type { DocumentKind } from '../domain/catalog/document-kind.ts';
import { isRefused } from '../domain/decider.ts';
import { objectAt, stringAt } from '../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';
import { parseJson } from '../http/body.ts';
import { ApiError } from '../http/errors.ts';
import { checkNewName, withoutServerSet } from '../http/osac/creates.ts';
import { decodeMessage, MESSAGES } from '../http/osac/messages.ts';
import { takeSecrets } from '../http/osac/secrets.ts';

/** Those of what it refers to stand before each kind, the tenants before all. Each file holds bodies of the private API. */
const inOrder = (
  wanted: readonly CatalogKind[],
  placed: readonly CatalogKind[] = [],
): readonly CatalogKind[] =>
  wanted.reduce((before, kind) => {
    if (before.includes(kind)) return before;
    const others = LOADABLE.filter(
      (other) =>
        other.kind === kind.namesById ||
        kind.references.some((to) => to.kind === other.kind && other !== kind),
    );
    return [...inOrder(others, before), kind];
  }, placed);
const LOADABLE: readonly CatalogKind[] = documentKinds.filter(({ inCatalogue }) => inCatalogue === true);
const KINDS = inOrder(
  LOADABLE.toSorted((left, right) => Number(right.kind === 'tenant') - Number(left.kind === 'tenant')),
);

/** A catalogue that cannot be used: which file, which entry, what is wrong. */
export class BadCatalog extends Error {
  override readonly name = 'BadCatalog';
}

export type CatalogKind = DocumentKind;
export type CatalogEntry = {
  readonly kind: CatalogKind;
  /** For messages: `hubs.json, entry 2`. */
  readonly where: string;
  /** Canonical private document. */
  readonly document: JsonObject;
};
export type Catalog = { readonly folder: string; readonly entries: readonly CatalogEntry[] };

/**
 * Reads and checks the folder of `LEDGER_CATALOG` as far as that goes without knowing what exists. Called before
 * anything is opened. Throws BadCatalog.
 */
export const readCatalog = (folder: string): Catalog => {
  const files = filesOf(folder);
  const known = KINDS.map(({ collection }) => `${collection}.json`);
  const strange = files.filter(
    (file) => !file.startsWith('.') && !/\.md$/i.test(file) && !known.includes(file),
  );
  if (strange.length > 0)
    throw bad(
      folder,
      `nothing is known of ${strange.join(', ')}; the files of a catalogue are ${known.join(', ')}`,
    );
  const entries = KINDS.flatMap((kind) => {
    const file = `${kind.collection}.json`;
    return files.includes(file) ? readEntries(folder, file, kind) : [];
  });
  return { folder, entries };
};

const bad = (path: string, problem: string, cause?: unknown): BadCatalog =>
  new BadCatalog(`LEDGER_CATALOG: ${path}: ${problem}`, { cause });

const filesOf = (folder: string): readonly string[] => {
  try {
    return readdirSync(folder, { withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map(({ name }) => name);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    const problem = missing ? `folder ${folder} not found` : `${folder} cannot be read: ${textOf(error)}`;
    throw new BadCatalog(`LEDGER_CATALOG: ${problem}. Example: LEDGER_CATALOG=./fixtures/catalog`, {
      cause: error,
    });
  }
};

const readEntries = (folder: string, file: string, kind: CatalogKind): readonly CatalogEntry[] => {
  const path = join(folder, file);
  let entries: JsonValue;
  try {
    entries = parseJson(readFileSync(path, 'utf8'));
  } catch (error) {
    const problem = textOf(error).replace('the request body', 'it');
    throw new BadCatalog(`LEDGER_CATALOG: ${path} cannot be read: ${problem}`, { cause: error });
  }
  if (!Array.isArray(entries)) throw bad(path, 'it must hold a JSON array of objects');
  return entries.map((entry, i): CatalogEntry => {
    const where = `${file}, entry ${i + 1}`;
    try {
      return { kind, where, document: checked(kind, entry) };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      throw bad(path, `entry ${i + 1}: ${error.message.replace('the request body', 'it')}`, error);
    }
  });
};

/** What the API would say to this body, short of what depends on other objects. Throws ApiError. */
const checked = (kind: CatalogKind, entry: JsonValue): JsonObject => {
  const schema = MESSAGES[kind.message]?.private;
  if (schema === undefined) throw new ApiError('INTERNAL', `${kind.words} has no message`);
  const { document } = decodeMessage(schema, JSON.stringify(entry));
  checkNewName(kind, document);
  const taken = takeSecrets(kind, withoutServerSet(document, 'private'));
  const decision = kind.decider.decide(kind.decider.initialState(), {
    type: 'CreateDocument',
    at: '1970-01-01T00:00:00.000Z',
    id: idOf(kind, document) || 'generated',
    tenant: tenantOf(kind, document),
    project: '',
    name: nameOf(kind, document),
    creator: 'system',
    document: taken.document,
    secrets: Object.fromEntries(
      taken.values.map(({ path, kind: of }) => [path, { id: path, version: '0', kind: of, fingerprint: '' }]),
    ),
  });
  if (isRefused(decision)) throw new ApiError('INVALID_ARGUMENT', decision.message);
  return document;
};

/** The id that the object will have; empty: a generated one. */
export const idOf = (kind: CatalogKind, document: JsonObject): string => {
  if (kind.ids === 'equals-name') return nameOf(kind, document);
  return kind.ids === 'generated' ? '' : stringAt(document, 'id');
};

/** Name and tenant that the object will have. */
export const nameOf = (kind: CatalogKind, document: JsonObject): string =>
  stringAt(objectAt(document, 'metadata'), 'name') || kind.deriveName?.(document) || '';
export const tenantOf = (kind: CatalogKind, document: JsonObject): string =>
  kind.defaultTenant === 'own-name'
    ? nameOf(kind, document)
    : stringAt(objectAt(document, 'metadata'), 'tenant') || kind.defaultTenant;

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
