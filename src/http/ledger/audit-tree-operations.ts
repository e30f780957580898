import { z } from 'zod';
import type { Descriptions } from '../openapi/description.ts';
import { COUNT, FLAG, listOf, TEXT, TIME } from './forms.ts';

export const AUDIT_TREE = z
  .strictObject({
    origin: TEXT.describe('Names the log in checkpoints: `fulfillment-ledger/<store id>`.'),
    state: z.enum(['standby', 'catching-up', 'signing', 'mismatch', 'failing']),
    failures: COUNT.describe('Attempts to sign that failed since the start.'),
    error: TEXT.optional(),
    signed_size: COUNT.describe('Events under the last signed head.'),
    unsigned_leaves: COUNT.describe(
      'Events that no signed head covers yet, as far as this instance has read the log.',
    ),
    head_age_seconds: z.number().describe('Since the last head was signed.'),
    caught_up: FLAG.describe(
      'Whether this instance has read all of the log. False: more events may be unsigned than are counted.',
    ),
    keys: listOf(z.strictObject({ vkey: TEXT, since: TIME })),
  })
  .meta({ id: 'AuditTree' });
export type AuditTree = z.infer<typeof AUDIT_TREE>;

const NEW_KEY = z.strictObject({
  vkey: TEXT,
  since: TIME,
  announced: FLAG.describe(
    'By the key before it. False: auditors refuse it until they are told to trust it.',
  ),
});
export type NewKey = z.infer<typeof NEW_KEY>;

export const KEYS_BODY = z.object({
  lost: FLAG.default(false).describe(
    'The present key is gone for good: a key begins that nothing announces, and auditors must be told. Without effect while the present one is there.',
  ),
});

export const AUDIT_TREE_DESCRIPTIONS: Descriptions = {
  'GET audit/tree': {
    summary: 'How far the signed heads of the tree over the log are, and the keys that signed them',
    description:
      'One of several instances with the role `auditor` signs, the others stand by. `mismatch`: the tree is not the one that was signed, so nothing is signed any more.',
    answer: AUDIT_TREE,
    errors: ['FAILED_PRECONDITION'],
  },
  'POST audit/keys': {
    summary: 'Replaces the key that signs tree heads',
    description:
      'The new key is announced in a note that the present one signs, which is destroyed then. Auditors who trust the old key follow that note.',
    body: KEYS_BODY,
    answer: NEW_KEY,
    errors: ['ABORTED', 'FAILED_PRECONDITION'],
  },
};
