import { readFile } from 'node:fs/promises';
import { InvalidArgumentError } from 'commander';
import { isObject, objectAt, own, stringAt } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { fileFailure } from '../file-errors.ts';
import { hasUnseen } from '../../domain/visible-text.ts';
import { printable } from '../output.ts';
import type { KindNames, NamedKind } from './kind-names.ts';
import type { Surface } from './resource-api.ts';

/** Loaded when a command needs it: most do not. */
const yamlLibrary = () => import('yaml');

/** One object of a file, with what it is and where it stands there. */
export type FileDocument = {
  readonly kind: NamedKind;
  /** As the service takes it: without what only says which kind it is. */
  readonly document: JsonObject;
  /** `clusters.yaml, document 2`: how messages name it. */
  readonly where: string;
};

export type Source = { readonly file: string; readonly text: string };

/** A file, or what comes in on stdin for `-`. Throws CliFailure when it cannot be read. */
export const readSource = async (file: string, stdin: () => Promise<string>): Promise<Source> => {
  if (file === '-') return { file: 'stdin', text: await stdin() };
  try {
    return { file, text: await readFile(file, 'utf8') };
  } catch (error) {
    throw fileFailure(error, `cannot read ${file}`);
  }
};

/**
 * The objects of a file in YAML (of which JSON is a part), one or several documents, each an object or a list of them.
 * What a document is comes from `@type`, from `kind`, or from `fallback`. Throws CliFailure or InvalidArgumentError
 * that name the place; nothing is returned of a file that is wrong anywhere.
 */
export const parseDocuments = async (
  { file, text }: Source,
  names: KindNames,
  fallback?: NamedKind,
): Promise<readonly FileDocument[]> => {
  const { parseAllDocuments } = await yamlLibrary();
  const parsed = [...parseAllDocuments(text, { uniqueKeys: true, prettyErrors: true })];
  const values = parsed.flatMap((document, i) => {
    const [wrong] = document.errors;
    if (wrong !== undefined) throw new CliFailure(EXIT.usage, `${file}: ${wrong.message}`);
    // 100 aliases are far more than a file of objects holds; without a bound a small file becomes gigabytes.
    const value = document.toJS({ maxAliasCount: 100 }) as JsonValue | undefined;
    const place = parsed.length > 1 ? `${file}, document ${i + 1}` : file;
    if (Array.isArray(value))
      return value.map((item, n) => ({ value: item, where: `${place}, entry ${n + 1}` }));
    return value === null || value === undefined ? [] : [{ value, where: place }];
  });
  if (values.length === 0) throw new CliFailure(EXIT.usage, `${file}: it holds no object`);
  return values.map(({ value, where }) => readDocument(value, where, names, fallback));
};

const readDocument = (
  value: JsonValue,
  where: string,
  names: KindNames,
  fallback: NamedKind | undefined,
): FileDocument => {
  if (!isObject(value)) throw new CliFailure(EXIT.usage, `${where}: an object is needed`);
  const { '@type': type, kind: called, ...document } = value;
  const said = typeof type === 'string' ? type.replace(/^.*[./]/, '') : called;
  if (said === undefined && fallback === undefined)
    throw new InvalidArgumentError(`${where}: say what it is with "kind:" in the file, or with --kind`);
  if (said !== undefined && typeof said !== 'string')
    throw new InvalidArgumentError(`${where}: "kind" must be the name of a kind`);
  try {
    const kind = said === undefined ? fallback : names.find(said);
    return { kind: kind as NamedKind, document, where };
  } catch (error) {
    if (!(error instanceof InvalidArgumentError)) throw error;
    throw new InvalidArgumentError(printable(`${where}: ${error.message}`));
  }
};

/** The object as files hold it: with `@type`, so that it can be given back to `apply`. */
export const typed = ({ kind }: NamedKind, surface: Surface, object: JsonObject): JsonObject => {
  const type = `type.googleapis.com/osac.${surface}.v1.${kind.message}`;
  const { id, metadata, ...rest } = object;
  // Whatever order the service stores it in: readers look for what it is at the beginning.
  return {
    '@type': type,
    ...(id === undefined ? {} : { id }),
    ...(metadata === undefined ? {} : { metadata }),
    ...rest,
  };
};

export const toYaml = async (values: readonly JsonObject[]): Promise<string> => {
  const { Document, visit } = await yamlLibrary();
  const textOf = (value: JsonObject): string => {
    const document = new Document(value, { aliasDuplicateObjects: false });
    visit(document, {
      Scalar: (_key, scalar) => {
        // Only these quotes know the escapes in which it is shown.
        if (typeof scalar.value === 'string' && hasUnseen(scalar.value)) scalar.type = 'QUOTE_DOUBLE';
      },
    });
    return document.toString({ lineWidth: 0 });
  };
  return values.map(textOf).join('---\n');
};

/** What a tenant's file may still hold from an earlier `get`, and what the service alone writes. */
const SYSTEM_METADATA = ['creation_timestamp', 'deletion_timestamp', 'creator', 'version'];

/**
 * What an update sends of a file: the caller's part. `version` is the state that the file was made from, if it says so.
 */
export const desiredOf = (
  document: JsonObject,
): { readonly desired: JsonObject; readonly version?: number } => {
  const { status: _status, metadata, ...rest } = document;
  if (!isObject(metadata)) return { desired: rest };
  const kept = Object.entries(metadata).filter(([key]) => !SYSTEM_METADATA.includes(key));
  const version = own(metadata, 'version');
  return {
    desired: { ...rest, metadata: Object.fromEntries(kept) },
    ...(typeof version === 'number' ? { version } : {}),
  };
};

/** The id or name by which a file's object can be found, derived as the service derives it when it is left out. */
export const identityOf = (
  { kind }: NamedKind,
  document: JsonObject,
): { readonly id?: string; readonly name?: string } => {
  const id = stringAt(document, 'id');
  if (id !== '') return { id };
  const name = stringAt(objectAt(document, 'metadata'), 'name') || (kind.deriveName?.(document) ?? '');
  return name === '' ? {} : { name };
};
