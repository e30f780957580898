import { readdirSync, readFileSync } from 'node:fs';
import type { DocumentKind } from '../../src/domain/catalog/document-kind.ts';
import type { JsonObject, JsonValue } from '../../src/domain/json.ts';
import { withValueAt } from '../../src/domain/json-tools.ts';
import { documentKinds } from '../../src/domain/kinds.ts';

/** Stored samples: one file per version that was ever written, `<Type>.v<n>.json`. */
const FOLDER = new URL('../../fixtures/events/', import.meta.url);

export type EventSample = { readonly type: string; readonly version: number; readonly data: JsonObject };

const stored = readdirSync(FOLDER).map((file): EventSample => {
  const [, type = '', version = ''] = /^(\w+)\.v(\d+)\.json$/.exec(file) ?? [];
  const data = JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as JsonObject;
  return { type, version: Number(version), data };
});

const at = '2026-11-21T12:00:00.000Z';
const sealed: JsonObject = { alg: 'A256GCM', keyId: 'u-1.1', nonce: 'n', ct: 'Y2lwaGVydGV4dA', tag: 't' };

/** Events of a document that holds something wherever its kind says that not everybody may read it. */
const derived = ({ kind, events, hidden, secrets, personal = [] }: DocumentKind): EventSample[] => {
  const held: readonly (readonly [path: string, value: JsonValue])[] = [
    ...hidden.map((path) => [path, ['quay.example/seen-by-admins'] as JsonValue] as const),
    ...personal.filter((path) => !path.includes('*')).map((path) => [path, sealed] as const),
  ];
  const document = held.reduce((made, [path, value]) => withValueAt(made, path, value), {
    metadata: { labels: { site: 'north' } },
  } as JsonObject);
  const refs = secrets.map((secret) => [
    secret.path.replace('*', 'key'),
    { id: `${kind}-1`, version: '1', kind: secret.kind, fingerprint: '1122334455667788' },
  ]);
  const whole = { at, document, ...(refs.length === 0 ? {} : { secrets: Object.fromEntries(refs) }) };
  const created = { id: 'one', tenant: 'acme', project: '', name: 'one', creator: 'subject-1', ...whole };
  return [
    { type: events.created, version: 1, data: created },
    { type: events.revised, version: 1, data: whole },
    { type: events.deletionRequested, version: 1, data: { at } },
    { type: events.retired, version: 1, data: { at } },
  ];
};

/** A sample of every version of every event type: those of document kinds follow from the kind, unless one is stored. */
export const eventSamples: readonly EventSample[] = [
  ...stored,
  ...documentKinds.flatMap(derived).filter(({ type }) => stored.every((sample) => sample.type !== type)),
];
