import { z } from 'zod';
import type { EventType } from '../event-type.ts';
import { count, jsonObject, text, time, typesOf } from '../schemas.ts';
import { OPERATOR_ACTS } from './events.ts';

const encrypted = z.strictObject({
  alg: z.literal('A256GCM'),
  keyId: text,
  nonce: text,
  ct: text,
  tag: text,
});

const request = z.strictObject({
  format: z.enum(['native', 'ocsf']),
  audience: z.enum(['tenant', 'provider']).exactOptional(),
  tenant: text.exactOptional(),
  filter: jsonObject,
  from: time.exactOptional(),
  to: time.exactOptional(),
  pins: z.array(count).exactOptional(),
});

const scope = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('subject'), id: text }),
  z.strictObject({ kind: z.literal('tenant'), id: text }),
  z.strictObject({ kind: z.literal('all') }),
]);

const asked = z.strictObject({
  subject: text.exactOptional(),
  kind: text.exactOptional(),
  resource_id: text.exactOptional(),
  event: text.exactOptional(),
  types: z.array(text).exactOptional(),
  outcome: text.exactOptional(),
  from: text.exactOptional(),
  to: text.exactOptional(),
  as_of: text.exactOptional(),
});

const erasure = {
  erasureId: text,
  subjectId: text,
  tenant: text,
  tenants: z.array(text).exactOptional(),
  reason: text,
  requestId: text.exactOptional(),
};

/**
 * What a person wrote down as a reason is the provider's to read: it may name somebody, and topics and exports for tenants
 * would hold it in clear text. What an export was asked for by are words of the service and things that are there.
 */
const REASON = { providerOnly: ['reason'] };

/** Registry entries of the audit context (events.ts). Whose history they belong to says their metadata. */
export const auditEventTypes: readonly EventType[] = typesOf({ context: 'audit', audience: 'tenant' }, [
  [
    'RequestRefused',
    {
      subjectId: text,
      outcome: z.enum(['rejected', 'denied', 'unauthenticated']),
      code: text,
      error: text.exactOptional(),
      command: text,
      commandId: text.exactOptional(),
      kind: text.exactOptional(),
      resourceId: text.exactOptional(),
      bodyHash: text.exactOptional(),
      fields: z.array(text).exactOptional(),
      message: encrypted.exactOptional(),
      named: encrypted.exactOptional(),
      told: text.exactOptional(),
    },
    { personal: ['message', 'named'] },
  ],
  ['RefusalsSuppressed', { subjectId: text.exactOptional(), count, since: time, until: time }],
  [
    'AuditRead',
    {
      subjectId: text,
      what: text,
      query: jsonObject,
      tenants: z.array(text).exactOptional(),
      asked: asked.exactOptional(),
    },
    { providerOnly: ['query'] },
  ],
  [
    'AuditReadNoticed',
    {
      subjectId: text,
      what: text,
      kind: text.exactOptional(),
      resourceId: text.exactOptional(),
      asked: asked.exactOptional(),
    },
  ],
  [
    'OperatorActed',
    {
      subjectId: text,
      act: z.enum(OPERATOR_ACTS),
      on: text.exactOptional(),
      kind: text.exactOptional(),
      resourceId: text.exactOptional(),
      hosts: z.array(text).exactOptional(),
      named: encrypted.exactOptional(),
    },
    { audience: 'provider', personal: ['named'] },
  ],
  [
    'LogRestored',
    { formerId: text, deploymentId: text, lastPosition: text, lastEventAt: time },
    { audience: 'provider' },
  ],
  ['AuditExportRequested', { subjectId: text, request }],
  ['AuditExportCompleted', { events: count, bytes: count, digest: text, treeSize: count }],
  ['AuditExportFailed', { reason: text }],
  ['AuditExportDownloaded', { subjectId: text }],
  ['AuditExportDiscarded', { reason: text }],
  [
    'LegalHoldPlaced',
    { holdId: text, scope, tenant: text.exactOptional(), reason: text, ticket: text.exactOptional() },
    { providerOnly: ['reason', 'ticket'] },
  ],
  ['LegalHoldReleased', { holdId: text, scope, reason: text }, REASON],
  // Where else somebody appears is for no tenant to know.
  ['ErasureBegun', erasure, { providerOnly: ['reason', 'tenants'] }],
  ['SubjectKeyDestroyed', erasure, { providerOnly: ['reason', 'tenants'] }],
  [
    'AuditGrantGiven',
    {
      subjectId: text,
      tenants: z.union([z.array(text), z.literal('all')]),
      reason: text,
      expiresAt: time.exactOptional(),
    },
    REASON,
  ],
  ['AuditGrantWithdrawn', { reason: text }, REASON],
  ['AuditGrantNoticed', { grantId: text, subjectId: text, expiresAt: time.exactOptional() }],
  ['AuditGrantEndNoticed', { grantId: text }],
]);
