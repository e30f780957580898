import { z } from 'zod';
import type { JsonObject } from '../../../domain/json.ts';
import type { LeafRecord } from '../merkle/leaf.ts';

/**
 * An export bundle: a directory (or a tar of it) that proves a part of the history to somebody who trusts nothing but
 * the audit keys. All events between two sizes of a tree are in it, those that the reader may not see by their hash.
 */
export const BUNDLE_FORMAT = 'fulfillment-ledger/export/v1';

export const FILES = {
  manifest: 'manifest.json',
  /** Signed note over the digest of the manifest, and so of everything: see `manifestText`. */
  manifestNote: 'manifest.note',
  trust: 'trust.json',
  checkpoint: 'checkpoint',
  proofs: 'proofs.json',
  /** Hashes of all leaves of the range, 32 bytes each: with them a wrong event is named, not only noticed. */
  leaves: 'leaves.bin',
  events: 'events.ndjson',
} as const;

/** What the audit key signs of an export as a whole. `digest`: SHA-256 of manifest.json, lower-case hex. */
export const manifestText = (origin: string, digest: string): string =>
  `${origin}\nexport manifest\nsha256 ${digest}\n`;

/** JSON Schemas of the event types, by type. */
export const SCHEMA_FOLDER = 'schemas/';

/** Whether it is the name of one of them: it leads nowhere else. */
export const isSchema = (name: string): boolean => /^schemas\/[\w-]+(?:\.[\w-]+)*\.json$/.test(name);

/** A bundle over one tenant's tree, or over that of the whole log (provider). `''`: the service itself. */
export type BundleScope = { readonly kind: 'log' } | { readonly kind: 'tenant'; readonly tenant: string };

/**
 * `full`: data and metadata are there and hash to what the leaf says. `redacted`: the leaf is there, data and metadata
 * are what the reader may see; they hash to what a leaf with `hidden` says. Beside any other leaf they are unproven: so
 * the provider is shown what the service alone may read.
 * `withheld`: only the hash of the leaf is there.
 */
export type Shown = 'full' | 'redacted' | 'withheld';

/** Why an event is withheld: the filter leaves it out, or this reader may not see it whatever the filter is. */
export type WhyWithheld = 'filter' | 'audience';

/** One line of events.ndjson, in RFC 8785 form. */
export type BundleLine = {
  /** Place in the tree of the whole log. */
  readonly index: number;
  /** Place in the tree of the event's tenant. */
  readonly tenantIndex: number;
  readonly shown: Shown;
  readonly leaf: LeafRecord | null;
  /** Lower-case hex leaf hash; only where `leaf` is null. */
  readonly hash?: string;
  /** Only where the event is withheld. */
  readonly why?: WhyWithheld;
  readonly event: LineEvent | null;
  /** Clear texts of personal fields by their path in `event`; outside of what is hashed, gone once erased. */
  readonly revealed?: { readonly [path: string]: string };
};

export type LineEvent = {
  readonly position: string;
  readonly recordedAt: string;
  readonly data: JsonObject;
  readonly metadata: JsonObject;
};

const size = z.number().int().nonnegative();
const text = z.string();
const hashes = z.array(z.base64()).max(64);

const scopeSchema = z.union([
  z.strictObject({ kind: z.literal('log') }),
  z.strictObject({ kind: z.literal('tenant'), tenant: text }),
]);

export const trustSchema = z.strictObject({
  origin: text,
  keys: z
    .array(z.strictObject({ vkey: text, since: text, rotation: text.optional() }))
    .min(1)
    .max(1000),
  pin: text.optional(),
});

/** A tree in the tree of the tenants. */
const placeFields = { size, root: z.base64(), index: size, path: hashes };

const pinSchema = z.strictObject({
  size,
  path: hashes,
  /** Tenant bundles: the tenant's tree at that size, and consistency from it to the one of the checkpoint. */
  tenant: z.strictObject({ ...placeFields, consistency: hashes }).optional(),
  /** The tenant had none: the trees between which it would stand. */
  between: z
    .array(z.strictObject({ key: z.base64(), ...placeFields }))
    .max(2)
    .optional(),
});

export const proofsSchema = z.strictObject({
  v: z.literal(1),
  scope: scopeSchema,
  /** Size and compact range of the tree before the first event of the bundle. */
  from: z.strictObject({ size, hashes }),
  /** Size of the tree behind its last event. */
  to: z.strictObject({ size }),
  /** Size of the tree that the checkpoint vouches for, and the consistency proof from `to` to it. */
  tree: z.strictObject({ size, path: hashes }),
  /** Tenant bundles: root of the tenant's tree at that size, and its place among the trees of all tenants. */
  tenant: z.strictObject({ root: z.base64(), index: size, path: hashes }).optional(),
  /** Consistency of the main tree from other sizes (those of pins) to the checkpoint. */
  pins: z.array(pinSchema).max(100_000),
});
export type BundleProofs = z.infer<typeof proofsSchema>;

/** *proofs.json* as it is written. */
export const proofsText = (proofs: BundleProofs): string => `${JSON.stringify(proofs, null, 2)}\n`;

export const manifestSchema = z.strictObject({
  format: z.literal(BUNDLE_FORMAT),
  origin: text,
  scope: scopeSchema,
  /** What was asked for, as it was asked. Not proven: see `notProven`. */
  filter: z.record(text, z.json()),
  asOf: z.strictObject({ position: text, time: text.optional() }),
  createdAt: text,
  range: z.strictObject({ from: size, to: size }),
  counts: z.strictObject({ events: size, full: size, redacted: size, withheld: size }),
  files: z
    .array(z.strictObject({ name: text, bytes: size, sha256: z.string().regex(/^[0-9a-f]{64}$/) }))
    .max(10_000),
  proven: z.array(text),
  notProven: z.array(text),
});
export type BundleManifest = z.infer<typeof manifestSchema>;

/** Where a bundle is written to: files one after the other. */
export type BundleSink = {
  /** Begins a file of this name; `/` parts folders. */
  readonly file: (name: string) => Promise<{
    readonly write: (bytes: Uint8Array) => Promise<void>;
    readonly close: () => Promise<void>;
  }>;
};

/** What a bundle is read from; nothing about it is trusted. */
export type BundleSource = {
  /** Names of all files, a name as often as it comes. */
  readonly names: () => Promise<readonly string[]>;
  /** The bytes of a file; throws when it is not there or cannot be read. */
  readonly read: (name: string) => AsyncIterable<Uint8Array>;
};

export const scopeName = (scope: BundleScope): string =>
  scope.kind === 'log'
    ? 'the whole log'
    : scope.tenant === ''
      ? 'the service itself'
      : `tenant ${tenantName(scope.tenant)}`;

/** So that no tenant's name reads like that of another one: in other letters that look the same, or with spaces. */
const tenantName = (tenant: string): string =>
  /^[\w.-]+$/.test(tenant)
    ? tenant
    : JSON.stringify(tenant).replaceAll(
        /[^ -~]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );

/**
 * What a bundle proves, and what it does not, in words for its manifest and for the report of its check.
 *
 * @param counts only of what is there; absent: of whatever may be.
 */
export const provenBy = (
  scope: BundleScope,
  { from, to }: { from: number; to: number },
  counts: Pick<BundleManifest['counts'], Shown> & { readonly redactedProven?: number } = {
    full: 1,
    redacted: 1,
    withheld: 1,
  },
): string[] => [
  `all events of ${scopeName(scope)} from size ${from} to size ${to} of its tree are in ${FILES.events}: none is ` +
    'missing, added, moved or changed',
  ...(counts.full === 0
    ? []
    : [
        'events shown in full: stream, revision, id, type, time of occurrence, data and metadata are as stored',
      ]),
  ...(counts.redacted === 0
    ? []
    : counts.redacted === counts.redactedProven
      ? ['redacted events: the same for every part that is shown']
      : [
          'of redacted events: the same of all that is shown where the leaf has `hidden`; where it has not (of what the ' +
            'service alone may read): stream, revision, id, type and time of occurrence',
        ]),
  ...(counts.withheld === 0 ? [] : ['withheld events: they exist']),
];

/** Holds for who has no pin that the bundle continues. */
export const NOT_PROVEN_WITHOUT_PIN = 'whether later history was taken back, unless a checkpoint is pinned';

export const NOT_PROVEN: readonly string[] = [
  'the range: which sizes belong to the times that were asked for is up to the exporter, since recorded times are not proven',
  'the filter: that the events it chose are all that match it is up to the exporter, unless all are shown in full; and ' +
    'why an event was withheld, by the filter or because this reader may not see it',
  'position and recordedAt of events, data and metadata of redacted events whose leaf has no `hidden`, what `revealed` ' +
    'says and the manifest: they are as the service stated them, which its signature shows',
  'events behind the checkpoint: up to 10 s or 1,000 events were not signed yet when it was made',
  NOT_PROVEN_WITHOUT_PIN,
];
