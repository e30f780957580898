import type { JsonObject } from '../../domain/json.ts';
import { COUNT, FLAG, listOf, record, TEXT, TIME, type Description } from './ledger-schemas.ts';

export const AUDIT_TREE_DESCRIPTIONS: { readonly [route: string]: Description } = {
  'GET audit/tree': {
    summary: 'How far the signed heads of the tree over the log are, and the keys that signed them',
    description:
      'Of several instances with the role `auditor` one signs, the others stand by. `mismatch`: the tree is not the one that was signed, so nothing is signed any more.',
    answer: 'AuditTree',
    errors: ['FAILED_PRECONDITION'],
  },
  'POST audit/keys': {
    summary: 'Replaces the key that signs tree heads',
    description:
      'The new key is announced in a note that the present one signs, which is destroyed then. Auditors who trust the old key follow that note.',
    body: {
      type: 'object',
      properties: {
        lost: {
          ...FLAG,
          description:
            'The present key is gone for good: a key begins that nothing announces, and auditors must be told. Without effect while the present one is there.',
        },
      },
    },
    answer: record({
      vkey: TEXT,
      since: TIME,
      announced: {
        ...FLAG,
        description: 'By the key before it. False: auditors refuse it until they are told to trust it.',
      },
    }),
    errors: ['ABORTED', 'FAILED_PRECONDITION'],
  },
};

export const AUDIT_TREE_COMPONENTS: { readonly [name: string]: JsonObject } = {
  AuditTree: record({
    origin: { ...TEXT, description: 'Names the log in checkpoints: `fulfillment-ledger/<store id>`.' },
    state: { type: 'string', enum: ['standby', 'catching-up', 'signing', 'mismatch', 'failing'] },
    failures: { ...COUNT, description: 'Attempts to sign that failed since the start.' },
    'error?': TEXT,
    signed_size: { ...COUNT, description: 'Events under the last signed head.' },
    unsigned_leaves: {
      ...COUNT,
      description: 'Events that no signed head covers yet, as far as this instance has read the log.',
    },
    head_age_seconds: { type: 'number', description: 'Since the last head was signed.' },
    caught_up: {
      ...FLAG,
      description:
        'Whether this instance has read all of the log. False: more events may be unsigned than are counted.',
    },
    keys: listOf(record({ vkey: TEXT, since: TIME })),
  }),
};
