import type { JsonObject } from '../../domain/json.ts';
import { AUDIT_OUTCOME as OUTCOME, HASH, SIZE } from './audit-schemas.ts';
import { COUNT, FLAG, listOf, OPEN, query, record, TEXT, TIME, type Description } from './ledger-schemas.ts';
import { componentRef } from './message-schemas.ts';
import { ANY_WRITE, OF_ONE_OBJECT } from './refusals.ts';

/** An empty value is refused: it is most often a variable that was not set. */
const FILLED: JsonObject = { type: 'string', minLength: 1 };
const REASON = { ...query('reason', TEXT, 'Why; kept in the history.'), required: true };

const PAGE: readonly JsonObject[] = [
  query('limit', { type: 'integer', minimum: 1, maximum: 500, default: 100 }, 'How many events at most.'),
  query(
    'cursor',
    FILLED,
    '`next_cursor` of the page before; good for the same query of the same caller only.',
  ),
  query(
    'order',
    { type: 'string', enum: ['asc', 'desc'], default: 'asc' },
    '`desc`: the newest first. Cursors are good for the order that they came from.',
  ),
];
const FILTER: readonly JsonObject[] = [
  query('tenant', FILLED, 'Only of these tenants; may be repeated. One that is out of reach is refused.'),
  query(
    'subject',
    FILLED,
    'Only what this subject did: its id, or the exact user name. Who was erased is found by the id alone. 429 ' +
      'with SEARCHES_BUSY: too many look for people by name.',
  ),
  query('type', FILLED, 'Only events of these types; may be repeated, or a comma list.'),
  query('outcome', OUTCOME, 'Only calls that ended so.'),
  query('from', TIME, 'Recorded at that time or later.'),
  query('to', TIME, 'Recorded before that time.'),
];
const MOMENT = 'a time of RFC 3339 or a position';

export const AUDIT_DESCRIPTIONS: { readonly [route: string]: Description } = {
  'GET events': {
    summary: 'Who did what, oldest first unless asked for otherwise',
    description:
      'Of your own tenants, and of those that you were granted. All pages show the history as it was when the first one was ' +
      'asked for. A page may be short, and even empty, and go on nevertheless. Tenants do not see what only the service or ' +
      'the provider may read. Personal data of which the key was destroyed reads `{"erased":true}`.',
    ownParameters: [
      ...FILTER,
      query('kind', FILLED, 'Only about this kind.'),
      query('resource_id', FILLED, 'With `kind`: only about this object.'),
      query('id', FILLED, 'The same as `resource_id`.'),
      ...PAGE,
    ],
    answer: 'AuditEvents',
  },
  'GET events/{id}': {
    summary: 'One event',
    answer: 'AuditEvent',
  },
  'GET resources/{kind}/{id}/events': {
    summary: 'Everything that happened to one object',
    description:
      'Its own events, those of the workflow that served it, what was refused about it, and those that name it: reservations of ' +
      'its name and of capacity for it, looks at it, exports, holds and erasures.',
    ownParameters: [...FILTER, ...PAGE],
    answer: 'AuditEvents',
  },
  'GET resources/{kind}/{id}': {
    summary: 'An object as it was',
    description:
      'As GET of its own route showed it then. Before its first event, and behind its deletion, it is as absent as one that ' +
      'never was; a moment in the future is refused.',
    ownParameters: [query('as_of', FILLED, `When: ${MOMENT}. Default: now.`)],
    answer: record({ kind: TEXT, id: TEXT, as_of: record({ 'position?': TEXT }), document: OPEN }),
  },
  'GET resources/{kind}/{id}/diff': {
    summary: 'What changed on an object between two moments',
    description: 'Objects are compared field by field, lists as a whole. Paths are JSON Pointers.',
    ownParameters: [
      { ...query('from', FILLED, `The earlier moment: ${MOMENT}.`), required: true },
      query('to', FILLED, `The later moment: ${MOMENT}. Default: now.`),
    ],
    answer: 'AuditDiff',
  },
  'GET events/{id}/proof': {
    summary: 'That an event is in the signed history',
    description:
      'RFC 6962 paths from the leaf to the tree of all events and to that of its tenant, and the first signed head that covers ' +
      'it. 503 with NOT_SIGNED_YET: it was recorded less than 10 seconds ago.',
    answer: 'AuditProof',
  },
  'GET checkpoints': {
    summary: 'Signed heads of the tree: the newest one, or those behind a size',
    ownParameters: [
      query('after', COUNT, 'Only heads of more leaves, smallest first; absent: the newest head alone.'),
      query('limit', { type: 'integer', minimum: 1, maximum: 1_000, default: 100 }, 'How many at most.'),
    ],
    answer: record({ items: listOf(componentRef('AuditCheckpoint')) }),
  },
  'GET checkpoint': {
    summary: 'The newest signed head as C2SP tlog-checkpoint',
    content: { 'text/plain': TEXT },
  },
  'GET consistency': {
    summary: 'That the tree of one size continues that of another',
    ownParameters: [
      { ...query('from', SIZE, 'The smaller size.'), required: true },
      { ...query('to', SIZE, 'The larger size.'), required: true },
    ],
    answer: record({ from: SIZE, to: SIZE, path: listOf(HASH) }),
  },
  'GET trust.json': {
    summary: 'What to keep: the keys of the log and a signed head',
    description:
      'The pin is a head over everything that was recorded when it was asked for: the answer waits for it, 10 seconds as a rule. ' +
      'Where nothing is signed any more, since the log is not what was recorded: 500 with EVENT_CHANGED or LOG_DAMAGED, at once.',
    ownParameters: [
      query(
        'newest',
        { type: 'boolean', default: false },
        '`true`: answers at once with the newest head, which may be older than that.',
      ),
    ],
    answer: record({
      origin: TEXT,
      keys: listOf(record({ vkey: TEXT, since: TIME, 'rotation?': TEXT })),
      'pin?': TEXT,
    }),
  },
  'GET tile/{path*}': {
    summary: 'A tile of the tree (C2SP tlog-tiles)',
    description:
      '`<level>/<n>[.p/<w>]` or `entries/<n>[.p/<w>]`, as far as a head was signed. It never changes. Entries come with ' +
      '`Content-Encoding: gzip` where that is accepted. For who may read the history of all tenants.',
    content: { 'application/octet-stream': { type: 'string', format: 'binary' } },
  },
  'POST exports': {
    summary: 'Asks for an export that can be checked without this service',
    description:
      'Made behind the answer, of what a signed head covers: everything that was stored when it was asked for; `failed` where no ' +
      'such head comes, unless one covers all before `to`. All events of ' +
      'the tenant between `from` and `to` are in it; those that `filter` leaves out, and those that you may not see, by their ' +
      'hash. 429 with EXPORTS_BUSY: too many are waiting; with SEARCHES_BUSY: too many look for people by name.',
    body: {
      ...record({
        'tenant?': {
          ...FILLED,
          description: 'Default: your own tenant; where you may read all: the whole log.',
        },
        'format?': { type: 'string', enum: ['native', 'ocsf'], default: 'native' },
        'filter?': record({
          'subject?': FILLED,
          'kind?': FILLED,
          'resource_id?': {
            ...FILLED,
            description:
              'With `kind`: one of which there is something to read; with `tenant` something that the tenant may read.',
          },
          'types?': { ...listOf(FILLED), minItems: 1 },
          'outcome?': OUTCOME,
        }),
        'from?': { ...FILLED, description: 'Recorded at that time or later.' },
        'to?': { ...FILLED, description: 'Recorded before that time.' },
        'pins?': {
          ...listOf(SIZE),
          description: 'Sizes of signed heads that you keep; none is larger than the tree.',
        },
      }),
    },
    status: 202,
    answer: 'AuditExport',
  },
  'GET exports': {
    summary: 'Your exports, newest first; of provider admins: all',
    description:
      'Of histories that you may read: one that was made under a grant is gone with that grant, for you.',
    answer: record({ items: listOf(componentRef('AuditExport')) }),
  },
  'GET exports/{id}': {
    summary: 'How far an export is',
    answer: 'AuditExport',
  },
  'GET exports/{id}/file': {
    summary: 'The file of an export: a tar',
    description:
      'A download that broke off goes on with `Range` and `If-Range`. Each download is an event, and a `HEAD` a look.',
    content: { 'application/x-tar': { type: 'string', format: 'binary' } },
    partial: true,
    headers: ['ETag'],
    parameters: [],
    errors: [...ANY_WRITE, 'RANGE_NOT_SATISFIABLE'],
  },
  'DELETE exports/{id}': {
    summary: 'Removes the file of an export, or stops making it',
    answer: 'AuditExport',
  },
  'GET holds': {
    summary: 'Legal holds that stand',
    answer: record({ items: listOf(componentRef('LegalHold')) }),
  },
  'POST holds': {
    summary: 'Places a legal hold: whose data it covers cannot be erased',
    description:
      'Refused where an erasure of that data has begun (ERASURE_UNDER_WAY), and over tenants and subjects of which nothing is ' +
      'known (TENANT_NOT_FOUND, SUBJECT_NOT_FOUND). The one tenant whom it concerns sees it in its ' +
      'history, without the reason. Provider admins only.',
    body: record({
      scope: {
        description: 'Whose data: of one subject, of the people of a tenant, or of everybody.',
        anyOf: [
          record({ kind: { type: 'string', enum: ['subject', 'tenant'] }, id: TEXT }),
          record({ kind: { const: 'all' } }),
        ],
      },
      reason: TEXT,
      'ticket?': TEXT,
    }),
    answer: 'LegalHold',
  },
  'DELETE holds/{id}': {
    summary: 'Releases a legal hold',
    ownParameters: [REASON],
    answer: record({ id: TEXT, released: FLAG }),
  },
  'GET erasures': {
    summary: 'All erasures, oldest first',
    answer: record({ items: listOf(componentRef('Erasure')) }),
  },
  'GET erasures/{id}': {
    summary: 'One erasure',
    answer: 'Erasure',
  },
  'POST erasures': {
    errors: OF_ONE_OBJECT,
    summary: "Destroys a person's key, so that their data cannot be read any more, anywhere",
    description:
      'What was proven stays proven: hashes are over the ciphertext. Refused while a legal hold covers the person (LEGAL_HOLD). ' +
      'Cannot be undone. Provider admins only.',
    body: record({
      subject_id: { ...TEXT, description: 'Id of the User, which is `metadata.creator` of what they made.' },
      'tenant?': { ...TEXT, description: 'Tenant of the person; left out for somebody who belongs to none.' },
      reason: TEXT,
      'request_id?': { ...TEXT, description: "Number of the person's request in your own files." },
    }),
    answer: 'Erasure',
  },
  'GET grants': {
    summary: 'All grants that were ever given',
    answer: record({ items: listOf(componentRef('AuditGrant')) }),
  },
  'POST grants': {
    summary: 'Lets an auditor read the history of tenants that are not its own',
    description:
      'Tenants that it names are told in their own history; they must have one. It may be given before the first login of its ' +
      'subject: `subject_seen` is false then. A grant for all tenants shows what only the provider sees, too. ' +
      'Provider admins only.',
    body: record({
      subject: { ...TEXT, description: '`actor.subject` of the events of who gets it, a UUID.' },
      tenants: { anyOf: [{ const: 'all' }, listOf(TEXT)] },
      reason: TEXT,
      'expires_at?': { ...FILLED, description: 'A time of RFC 3339; absent: until it is withdrawn.' },
    }),
    answer: 'AuditGrant',
    errors: ['ALREADY_EXISTS'],
  },
  'DELETE grants/{id}': {
    summary: 'Withdraws a grant; it counts at once',
    description:
      'Exports that were made under it are out of the reach of its subject from then on; what was fetched cannot be taken back. ' +
      'Admins see them, and remove them with DELETE exports/{id}.',
    ownParameters: [REASON],
    answer: 'AuditGrant',
  },
};
