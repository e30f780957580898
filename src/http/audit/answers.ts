import { z } from 'zod';
import { COUNT, FLAG, JSON_VALUE, listOf, maybe, OPEN, TEXT, TIME } from '../ledger/forms.ts';

export const OUTCOMES = ['accepted', 'rejected', 'denied', 'unauthenticated'] as const;
const HASH = TEXT.meta({ contentEncoding: 'base64' });
/** Number of leaves of a tree. */
export const SIZE_TEXT = 'Number of leaves of a tree.';
const SIZE = COUNT.describe(SIZE_TEXT);
const ERASED = z.strictObject({ erased: z.literal(true) });

const PERSON = z.strictObject(maybe({ user_name: TEXT, email: TEXT, issuer: TEXT }));
const SOURCE = z.strictObject(maybe({ ip: TEXT, user_agent: TEXT }));
/** What the metadata of an event says, under its names there. */
const METADATA = {
  command: TEXT,
  command_id: TEXT,
  correlation_id: TEXT,
  causation_id: TEXT,
  ticket: TEXT,
  traceparent: TEXT,
};
export const AUDIT_EVENT = z
  .strictObject({
    id: TEXT,
    event: TEXT.describe('`<stream>@<revision>`.'),
    index: COUNT.describe('Leaf of the tree of all events.'),
    position: TEXT,
    stream: TEXT,
    revision: COUNT,
    type: TEXT,
    tenant: TEXT,
    ...maybe({
      project: TEXT,
      kind: TEXT,
      resource_id: TEXT,
      also_about: listOf(z.strictObject({ kind: TEXT, resource_id: TEXT })).describe(
        'Other objects that the event names: it is found under them, too.',
      ),
    }),
    outcome: z.enum(OUTCOMES),
    occurred_at: TEXT,
    recorded_at: TIME,
    actor: z.strictObject({
      subject: TEXT,
      roles: listOf(TEXT),
      ...maybe({
        auth_method: TEXT,
        via: TEXT,
        on_behalf_of: TEXT,
        vouched_by: TEXT.describe('The issuer that vouches, if it is not the issuer of the subject.'),
        personal: z.union([PERSON, ERASED]),
      }),
    }),
    ...maybe({ source: z.union([SOURCE, ERASED]), ...METADATA }),
    shown: z.enum(['full', 'redacted']).describe('`redacted`: more was stored than you may see.'),
    data: OPEN,
  })
  .meta({ id: 'AuditEvent' });
export type AuditEvent = z.infer<typeof AUDIT_EVENT>;

export const AUDIT_EVENTS = z
  .strictObject({
    items: listOf(AUDIT_EVENT),
    size: COUNT.describe('Events of the whole log when the first page was asked for.'),
    next_cursor: TEXT.optional(),
    subject: TEXT.describe('Id of the subject that was asked for, also where that was by name.').optional(),
  })
  .meta({ id: 'AuditEvents' });
export type AuditEvents = z.infer<typeof AUDIT_EVENTS>;

const END = z.strictObject({ position: TEXT.optional(), exists: FLAG });
const CHANGE = z.strictObject({
  path: TEXT,
  op: z.enum(['add', 'remove', 'replace']),
  before: JSON_VALUE.optional(),
  after: JSON_VALUE.optional(),
});
export type Change = z.infer<typeof CHANGE>;
export const AUDIT_DIFF = z
  .strictObject({ kind: TEXT, id: TEXT, from: END, to: END, changes: listOf(CHANGE) })
  .meta({ id: 'AuditDiff' });
export type AuditDiff = z.infer<typeof AUDIT_DIFF>;

export const CHECKPOINT = z
  .strictObject({
    size: SIZE,
    root: HASH,
    time: TIME,
    position: TEXT,
    key_id: TEXT,
    note: TEXT.describe('The signed note, which alone counts.'),
  })
  .meta({ id: 'AuditCheckpoint' });
export type Checkpoint = z.infer<typeof CHECKPOINT>;

export const PROOF = z
  .strictObject({
    id: TEXT,
    event: TEXT,
    leaf: z
      .strictObject({
        v: z.literal(1),
        stream: TEXT,
        revision: COUNT,
        id: TEXT,
        type: TEXT,
        occurredAt: TEXT,
        ...maybe({ data: TEXT, metadata: TEXT, hidden: TEXT }),
      })
      .describe(
        'The leaf; its hash is over its RFC 8785 form. `data` and `metadata` are SHA-256, hex, of what is stored. With ' +
          '`hidden` they are of what the tenant may see, and `hidden` is of the rest, with a salt. They are there where you ' +
          'may see what they are of.',
      ),
    leaf_hash: HASH,
    index: COUNT,
    path: listOf(HASH),
    tenant: z.strictObject({
      name: TEXT,
      index: COUNT,
      size: SIZE,
      root: HASH,
      path: listOf(HASH),
      place: COUNT.describe('Place of this tenant among all, by the hash of its name.'),
      count: COUNT,
      place_path: listOf(HASH),
    }),
    checkpoint: CHECKPOINT,
    stored: z
      .strictObject({ data: OPEN, metadata: OPEN })
      .describe(
        'The event that the leaf proves: all of it, or (with `hidden`) the part that the tenant may see. Absent if you may ' +
          'not see all of that.',
      )
      .optional(),
  })
  .meta({ id: 'AuditProof' });

export const CONSISTENCY = z.strictObject({ from: SIZE, to: SIZE, path: listOf(HASH) });
export const TRUST = z.strictObject({
  origin: TEXT,
  keys: listOf(z.strictObject({ vkey: TEXT, since: TIME, rotation: TEXT.optional() })),
  pin: TEXT.optional(),
});

export const AUDIT_EXPORT = z
  .strictObject({
    id: TEXT,
    state: z.enum(['waiting', 'running', 'complete', 'failed', 'discarded']),
    request: z.strictObject({
      format: z.enum(['native', 'ocsf']),
      audience: z.enum(['tenant', 'provider']),
      tenant: TEXT.optional(),
      filter: OPEN,
      ...maybe({ from: TIME, to: TIME }),
    }),
    requested_by: TEXT,
    requested_at: TIME,
    ...maybe({
      events_done: COUNT,
      events: COUNT,
      bytes: COUNT,
      sha256: TEXT,
      tree_size: SIZE,
      completed_at: TIME,
      file: TEXT,
      reason: TEXT.describe('Why it failed or was discarded.'),
    }),
  })
  .meta({ id: 'AuditExport' });
export type Export = z.infer<typeof AUDIT_EXPORT>;

export const LEGAL_HOLD = z
  .strictObject({
    id: TEXT,
    scope: z.strictObject({ kind: TEXT, id: TEXT.optional() }),
    reason: TEXT,
    ticket: TEXT.optional(),
    placed_at: TIME,
  })
  .meta({ id: 'LegalHold' });
export type Hold = z.infer<typeof LEGAL_HOLD>;

export const ERASURE = z
  .strictObject({
    id: TEXT,
    state: z.enum(['running', 'complete']),
    subject_id: TEXT,
    tenant: TEXT,
    tenants: listOf(TEXT)
      .describe(
        'All tenants in whose history the subject appears, where these are more: a hold over any of them keeps the data.',
      )
      .optional(),
    reason: TEXT,
    ...maybe({
      request_id: TEXT,
      begun_at: TIME,
      by: TEXT.describe('Subject who asked for it.'),
      completed_at: TIME,
      already: z
        .literal(true)
        .describe('In answers to POST: this erasure was done before, and has left nothing to destroy.'),
    }),
  })
  .meta({ id: 'Erasure' });
export type Erasure = z.infer<typeof ERASURE>;

export const AUDIT_GRANT = z
  .strictObject({
    id: TEXT,
    status: z.enum(['given', 'withdrawn']),
    subject: TEXT,
    tenants: z.union([z.literal('all'), listOf(TEXT)]),
    reason: TEXT,
    ...maybe({
      given_at: TIME,
      expires_at: TIME,
      subject_seen: FLAG.describe(
        'In answers to POST: whether this subject has ever called. The grant counts when it does.',
      ),
    }),
  })
  .meta({ id: 'AuditGrant' });
export type Grant = z.infer<typeof AUDIT_GRANT>;
