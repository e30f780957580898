import { isObject } from './json-tools.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { ResourceKind, ResourceView } from './resource.ts';

/**
 * Personal data of documents. Events hold it as ciphertext, each value under the key of the person it is
 * about; whoever shows a document opens it, and shows `erased` once the key was destroyed.
 */
export type Encrypted = {
  readonly alg: 'A256GCM';
  readonly keyId: string;
  readonly nonce: string;
  readonly ct: string;
  readonly tag: string;
};

/** What is shown in place of a value that nobody can read any more. */
export const ERASED = 'erased';

/** The clear texts of these values, in their order; undefined where the key was destroyed. Synchronous and pure to its caller. */
export type OpenPersonal = (values: readonly Encrypted[]) => readonly (string | undefined)[];

/** The person whose key it is under: `keyId` is `<subject id>.<generation>`. */
export const subjectOf = ({ keyId }: Encrypted): string =>
  keyId.slice(0, Math.max(0, keyId.lastIndexOf('.')));

export const isEncrypted = (value: JsonValue | undefined): value is Encrypted & JsonObject =>
  isObject(value) &&
  value['alg'] === 'A256GCM' &&
  ['keyId', 'nonce', 'ct', 'tag'].every((part) => typeof value[part] === 'string');

/** Every ciphertext in a document, in the order of its keys. */
export const encryptedIn = (value: JsonValue): readonly Encrypted[] => {
  if (typeof value !== 'object' || value === null) return [];
  if (isEncrypted(value)) return [value];
  return Object.values(value).flatMap((inner) => encryptedIn(inner as JsonValue));
};

/** The document with every ciphertext opened. Values that are clear already (those of a dry run) stay. */
export const revealed = (document: JsonObject, open: OpenPersonal): JsonObject => {
  const values = encryptedIn(document);
  if (values.length === 0) return document;
  const texts = open(values);
  const byValue = new Map(values.map((value, i) => [value, texts[i] ?? ERASED]));
  return replaced(document, byValue) as JsonObject;
};

const replaced = (value: JsonValue, texts: ReadonlyMap<Encrypted, string>): JsonValue => {
  if (typeof value !== 'object' || value === null) return value;
  const text = texts.get(value as unknown as Encrypted);
  if (text !== undefined) return text;
  if (Array.isArray(value)) return value.map((inner: JsonValue) => replaced(inner, texts));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, replaced(inner as JsonValue, texts)]),
  );
};

export type RevealOptions = {
  readonly open: OpenPersonal;
  /** What is reserved in place of a name that is still in clear; only where commands are rehearsed (dry runs). */
  readonly nameToken?: (kind: string, tenant: string, name: string) => string;
};

/** The kind with a view that shows personal data; a kind without any as it is. */
export const revealing = <Kind extends Viewed>(kind: Kind, options: RevealOptions): Kind => {
  if (kind.personal === undefined) return kind;
  const named = kind.personal.includes('metadata.name');
  return {
    ...kind,
    view: (state: never): ResourceView => {
      const view = kind.view(state);
      if (!view.exists) return view;
      const document = revealed(view.document, options.open);
      if (!named) return { ...view, document };
      const metadata = document['metadata'];
      const shown = isObject(metadata) ? metadata['name'] : undefined;
      const name = typeof shown === 'string' ? shown : ERASED;
      return { ...view, document, name, claimedName: claimedName(kind.kind, view, options) };
    },
  };
};

type Viewed = Pick<ResourceKind, 'kind' | 'personal'> & { readonly view: (state: never) => ResourceView };

const claimedName = (
  kind: string,
  view: Extract<ResourceView, { exists: true }>,
  { nameToken }: RevealOptions,
): string => {
  const metadata = view.document['metadata'];
  const concealed = isObject(metadata) && isEncrypted(metadata['name']);
  return concealed ? view.name : (nameToken?.(kind, view.tenant, view.name) ?? view.name);
};
