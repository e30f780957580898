import { readdirSync, readFileSync } from 'node:fs';
import type { ActingKind } from '../../../src/domain/acting-kind.ts';
import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import type { DocumentKind } from '../../../src/domain/catalog/document-kind.ts';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { withValueAt } from '../../../src/domain/json-tools.ts';
import { documentKinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';

/** Stored samples: one file per version that was ever written, `<Type>.v<n>.json`. */
const FOLDER = new URL('../../../fixtures/events/', import.meta.url);

export type EventSample = { readonly type: string; readonly version: number; readonly data: JsonObject };

const stored = readdirSync(FOLDER).map((file): EventSample => {
  const [, type = '', version = ''] = /^(\w+)\.v(\d+)\.json$/.exec(file) ?? [];
  const data = JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as JsonObject;
  return { type, version: Number(version), data };
});

const at = '2026-11-21T12:00:00.000Z';
const sealed: JsonObject = { alg: 'A256GCM', keyId: 'u-1.1', nonce: 'n', ct: 'Y2lwaGVydGV4dA', tag: 't' };

/** Events of a document that holds something wherever its kind says that not everybody may read it. */
const ofDocument = ({
  kind,
  events,
  hidden,
  secrets,
  personal = [],
}: Pick<DocumentKind, 'kind' | 'events' | 'hidden' | 'secrets' | 'personal'>): EventSample[] => {
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

/** Events that every kind has which is one object on a hub (`placedTypes`), under its own prefix. */
const ofPlaced = ({ kind, events, privateOnly, secrets }: ActingKind): EventSample[] => {
  const prefix = events.created.replace(/Ordered$/, '');
  const made = (name: string, data: JsonObject = {}): EventSample => ({
    type: `${prefix}${name}`,
    version: 1,
    data: { at, ...data },
  });
  const names = { revised: `${prefix}Revised`, deletionRequested: `${prefix}DeletionRequested` };
  const place = { hub: 'hub-1', namespace: 'osac', objectName: `${kind}-1` };
  return [
    ...ofDocument({ kind, events: { ...events, ...names }, hidden: privateOnly, secrets }),
    made('Placed', { ...place, simulated: false, controller: 'operator' }),
    made('Waiting', { message: 'no hub can take it now' }),
    made('Failed', { reason: 'ProvisioningFailed', message: 'the hub could not carry it out' }),
    made('StatusReported', { status: { message: 'written by an admin', hub: 'hub-1' } }),
    made('Lacking', { message: "pool 'public' has no free address" }),
    made('RetryRequested'),
    made('Withdrawn'),
  ].filter(({ type }) => registry.get(type)?.resource === kind);
};

/** A sample of every version of every event type: those that follow from a kind do, unless one is stored. */
export const eventSamples: readonly EventSample[] = [
  ...stored,
  ...[...documentKinds.flatMap(ofDocument), ...actingKinds.flatMap(ofPlaced)].filter(({ type }) =>
    stored.every((sample) => sample.type !== type),
  ),
];
