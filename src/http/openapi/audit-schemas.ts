import type { JsonObject } from '../../domain/json.ts';
import { COUNT, FLAG, listOf, OPEN, record, TEXT, TIME } from './ledger-schemas.ts';
import { componentRef } from './message-schemas.ts';

export const AUDIT_OUTCOME: JsonObject = {
  type: 'string',
  enum: ['accepted', 'rejected', 'denied', 'unauthenticated'],
};
export const HASH: JsonObject = { type: 'string', contentEncoding: 'base64' };
export const SIZE: JsonObject = { ...COUNT, description: 'Number of leaves of a tree.' };

const ERASED = record({ erased: { const: true } });

/** What the answers of `/api/audit/v1` look like. */
export const AUDIT_COMPONENTS: { readonly [name: string]: JsonObject } = {
  AuditEvents: record({
    items: listOf(componentRef('AuditEvent')),
    size: { ...COUNT, description: 'Events of the whole log when the first page was asked for.' },
    'next_cursor?': TEXT,
    'subject?': {
      ...TEXT,
      description: 'Id of the subject that was asked for, also where that was by name.',
    },
  }),
  AuditEvent: record({
    id: TEXT,
    event: { ...TEXT, description: '`<stream>@<revision>`.' },
    index: { ...COUNT, description: 'Leaf of the tree of all events.' },
    position: TEXT,
    stream: TEXT,
    revision: COUNT,
    type: TEXT,
    tenant: TEXT,
    'project?': TEXT,
    'kind?': TEXT,
    'resource_id?': TEXT,
    'also_about?': {
      ...listOf(record({ kind: TEXT, resource_id: TEXT })),
      description: 'Other objects that the event names: it is found under them, too.',
    },
    outcome: AUDIT_OUTCOME,
    occurred_at: TEXT,
    recorded_at: TIME,
    actor: record({
      subject: TEXT,
      roles: listOf(TEXT),
      'auth_method?': TEXT,
      'via?': TEXT,
      'on_behalf_of?': TEXT,
      'vouched_by?': TEXT,
      'personal?': { anyOf: [record({ 'user_name?': TEXT, 'email?': TEXT, 'issuer?': TEXT }), ERASED] },
    }),
    'source?': { anyOf: [record({ 'ip?': TEXT, 'user_agent?': TEXT }), ERASED] },
    'command?': TEXT,
    'command_id?': TEXT,
    'correlation_id?': TEXT,
    'causation_id?': TEXT,
    'ticket?': TEXT,
    'traceparent?': TEXT,
    shown: {
      type: 'string',
      enum: ['full', 'redacted'],
      description: '`redacted`: more was stored than you may see.',
    },
    data: OPEN,
  }),
  AuditDiff: record({
    kind: TEXT,
    id: TEXT,
    from: record({ 'position?': TEXT, exists: FLAG }),
    to: record({ 'position?': TEXT, exists: FLAG }),
    changes: listOf(
      record({
        path: TEXT,
        op: { type: 'string', enum: ['add', 'remove', 'replace'] },
        'before?': {},
        'after?': {},
      }),
    ),
  }),
  AuditCheckpoint: record({
    size: SIZE,
    root: HASH,
    time: TIME,
    position: TEXT,
    key_id: TEXT,
    note: { ...TEXT, description: 'The signed note: what counts.' },
  }),
  AuditProof: record({
    id: TEXT,
    event: TEXT,
    leaf: {
      ...record({
        v: { type: 'integer', const: 1 },
        stream: TEXT,
        revision: COUNT,
        id: TEXT,
        type: TEXT,
        occurredAt: TEXT,
        'data?': TEXT,
        'metadata?': TEXT,
        'hidden?': TEXT,
      }),
      description:
        'The leaf; its hash is over its RFC 8785 form. `data` and `metadata` are SHA-256, hex, of what is stored. With ' +
        '`hidden` they are of what the tenant may see, and `hidden` is of the rest, with a salt. They are there where you ' +
        'may see what they are of.',
    },
    leaf_hash: HASH,
    index: COUNT,
    path: listOf(HASH),
    tenant: record({
      name: TEXT,
      index: COUNT,
      size: SIZE,
      root: HASH,
      path: listOf(HASH),
      place: { ...COUNT, description: 'Place of this tenant among all, by the hash of its name.' },
      count: COUNT,
      place_path: listOf(HASH),
    }),
    checkpoint: componentRef('AuditCheckpoint'),
    'stored?': {
      ...record({ data: OPEN, metadata: OPEN }),
      description:
        'What the leaf proves: all that is stored, or (with `hidden`) what the tenant may see of it. Absent where it was made ' +
        'of more than you may see.',
    },
  }),
  AuditExport: record({
    id: TEXT,
    state: { type: 'string', enum: ['waiting', 'running', 'complete', 'failed', 'discarded'] },
    request: record({
      format: { type: 'string', enum: ['native', 'ocsf'] },
      audience: { type: 'string', enum: ['tenant', 'provider'] },
      'tenant?': TEXT,
      filter: OPEN,
      'from?': TIME,
      'to?': TIME,
    }),
    requested_by: TEXT,
    requested_at: TIME,
    'events_done?': COUNT,
    'events?': COUNT,
    'bytes?': COUNT,
    'sha256?': TEXT,
    'tree_size?': SIZE,
    'completed_at?': TIME,
    'file?': TEXT,
    'reason?': { ...TEXT, description: 'Why it failed or was discarded.' },
  }),
  LegalHold: record({ id: TEXT, scope: OPEN, reason: TEXT, 'ticket?': TEXT, placed_at: TIME }),
  Erasure: record({
    id: TEXT,
    state: { type: 'string', enum: ['running', 'complete'] },
    subject_id: TEXT,
    tenant: TEXT,
    'tenants?': {
      ...listOf(TEXT),
      description:
        'All tenants in whose history the subject appears, where these are more: a hold over any of them keeps the data.',
    },
    reason: TEXT,
    'request_id?': TEXT,
    'begun_at?': TIME,
    'by?': { ...TEXT, description: 'Subject who asked for it.' },
    'completed_at?': TIME,
    'already?': {
      const: true,
      description: 'In answers to POST: this erasure was done before, and has left nothing to destroy.',
    },
  }),
  AuditGrant: record({
    id: TEXT,
    status: { type: 'string', enum: ['given', 'withdrawn'] },
    subject: TEXT,
    tenants: { anyOf: [{ const: 'all' }, listOf(TEXT)] },
    reason: TEXT,
    'given_at?': TIME,
    'expires_at?': TIME,
    'subject_seen?': {
      ...FLAG,
      description: 'In answers to POST: whether this subject has ever called. The grant counts when it does.',
    },
  }),
};
