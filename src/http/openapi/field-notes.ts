import type { DescField, DescMessage } from '@bufbuild/protobuf';
import type { JsonObject } from '../../domain/json.ts';
import { NAME_PATTERN } from '../../domain/metadata-rules.ts';
import type { AnyKind } from '../../domain/kinds.ts';
import { MESSAGES, fieldOf, type Surface } from '../osac/messages.ts';

/** What a declaration says of single fields, for readers of the document and for the schemas. */
export type FieldNote = {
  readonly description?: string;
  /** Set by the service; what a request says of it is ignored. */
  readonly readOnly?: true;
  /** How answers show a write-only value. */
  readonly answers?: '***' | 'absent';
  readonly request?: JsonObject;
};

export type FieldNotes = { readonly of: (message: DescMessage, field: DescField) => FieldNote | undefined };

/** A path of a declaration can be told of a message only where no other kind uses that message. */
export const fieldNotes = (kinds: readonly AnyKind[]): FieldNotes => {
  const noted = new Map<DescMessage, Map<string, FieldNote>>();
  const users = new Map<DescMessage, Set<string>>();
  const add = (kind: AnyKind, surface: Surface, path: string, note: FieldNote): void => {
    const root = MESSAGES[kind.message]?.[surface];
    const found = root === undefined ? undefined : resolve(root, path.split('.'));
    if (found === undefined) return;
    const { message, field } = found;
    users.set(message, (users.get(message) ?? new Set()).add(kind.kind));
    const fields = noted.get(message) ?? new Map<string, FieldNote>();
    noted.set(message, fields.set(field.name, merge(fields.get(field.name), note)));
  };
  for (const kind of kinds)
    for (const surface of ['public', 'private'] as const)
      for (const [path, note] of notesOf(kind, surface)) add(kind, surface, path, note);
  return {
    of: (message, field) => {
      if (message.name === 'Metadata') return METADATA[field.name];
      return (users.get(message)?.size ?? 0) > 1 ? undefined : noted.get(message)?.get(field.name);
    },
  };
};

const notesOf = (kind: AnyKind, surface: Surface): (readonly [path: string, note: FieldNote])[] => [
  ['id', { description: ID_RULES[kind.ids] }],
  ...(surface === 'public'
    ? [['status', { readOnly: true, description: 'Set by the service; ignored in requests.' }] as const]
    : []),
  ...kind.immutable.map((path) => [path, { description: 'Never changes after creation.' }] as const),
  ...kind.references.map(({ path, kind: target, scope }) => {
    const place = scope === 'local' ? ' of the same tenant' : '';
    // What is personal is not repeated elsewhere, so that it can be erased.
    const given =
      target === 'user' ? 'by id or name, answered by id' : 'by id, name or both, answered with both';
    const words = `Refers to one ${wordsOf(target)}${place}, ${given}.`;
    return [path, { description: words }] as const;
  }),
  ...kind.secrets.map(({ path, kind: secret, reads }) => [path, secretNote(secret, reads)] as const),
];

/** Break-glass credentials are made here and shown by the call that created them, never again. */
const secretNote = (
  kind: AnyKind['secrets'][number]['kind'],
  reads: AnyKind['secrets'][number]['reads'],
): FieldNote => {
  if (kind === 'break-glass-password')
    return {
      description: 'Made by the service; answered once, by the call that created the object.',
      readOnly: true,
    };
  const shown = reads === '***' ? 'answers show three asterisks' : 'never answered';
  return { description: `Write-only: ${shown}.`, answers: reads };
};

const wordsOf = (kind: string): string => kind.replaceAll(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`);

const ID_RULES = {
  'client-may-choose': 'Chosen by the caller or made by the service.',
  generated: 'Made by the service; ignored in requests.',
  'equals-name': "Equals 'metadata.name'.",
} as const;

const merge = (left: FieldNote | undefined, right: FieldNote): FieldNote => ({
  ...left,
  ...right,
  description: [left?.description, right.description].filter((text) => text !== undefined).join(' '),
});

/** The message and field that a path ends in; `*` stands for every key or index. */
const resolve = (
  root: DescMessage,
  path: readonly string[],
): { readonly message: DescMessage; readonly field: DescField } | undefined => {
  let message = root;
  let found: DescField | undefined;
  for (const part of path) {
    if (part === '*') continue;
    if (found !== undefined) {
      if (found.message === undefined) return undefined;
      message = found.message;
    }
    found = fieldOf(message, part);
    if (found === undefined) return undefined;
  }
  return found === undefined ? undefined : { message, field: found };
};

const LABEL_OF_NAME = NAME_PATTERN.slice(0, -1);
const KEY = '^([a-z0-9.-]{1,253}/)?[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$';
const LABEL = '^([a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?)?$';

/** Rules of `metadata`, which are the same for every kind (OSAC). */
const METADATA: { readonly [field: string]: FieldNote | undefined } = {
  creation_timestamp: { readOnly: true, description: 'When the object was made.' },
  deletion_timestamp: { readOnly: true, description: 'When its deletion was asked for.' },
  creator: { readOnly: true, description: 'Id of the user who made it.' },
  version: { description: 'Counts the changes of the document. In requests only `lock=true` looks at it.' },
  finalizers: { description: 'Keep a deleted object readable until the list is empty.' },
  tenant: { description: "Never changes after creation. Default: the caller's own tenant." },
  project: { description: 'Never changes after creation. Empty: the default project.' },
  name: {
    description:
      'Never changes after creation. A DNS label; a project has up to four of them joined by dots.',
    request: { pattern: `${LABEL_OF_NAME}(\\.${LABEL_OF_NAME.slice(1)}){0,3}$`, maxLength: 255 },
  },
  labels: {
    description: 'Lower case keys, with an optional DNS prefix and a slash.',
    request: {
      propertyNames: { pattern: KEY, maxLength: 317 },
      additionalProperties: { type: 'string', pattern: LABEL },
    },
  },
  annotations: {
    description: 'Keys like those of labels, any text.',
    request: { propertyNames: { pattern: KEY, maxLength: 317 } },
  },
  display_name: { request: { maxLength: 63 } },
  description: { request: { maxLength: 256 } },
};
