import { z } from 'zod';
import {
  filled,
  FLAG,
  flagIn,
  maybe,
  neededText,
  oneOf,
  OPEN,
  shortText,
  TEXT,
  timeIn,
  wholeNumber,
  itemsOf,
} from '../ledger/forms.ts';
import type { Descriptions } from '../openapi/description.ts';
import { ANY_WRITE, OF_ONE_OBJECT } from '../openapi/refusals.ts';
import {
  AUDIT_DIFF,
  AUDIT_EVENT,
  AUDIT_EVENTS,
  AUDIT_EXPORT,
  AUDIT_GRANT,
  CHECKPOINT,
  CONSISTENCY,
  ERASURE,
  LEGAL_HOLD,
  OUTCOMES,
  PROOF,
  SIZE_TEXT,
  TRUST,
} from './answers.ts';

export const REASON_QUERY = z.strictObject({
  reason: neededText(1_000, 'why').describe('Why; kept in the history.'),
});

const MOST_NAMED = 20;
/** Each of them once, in one order: a question that is asked in another one is the same. */
const names = (without: string) => {
  const error = `may name at most ${MOST_NAMED}`;
  return z
    .array(TEXT.min(1).max(500, { error }))
    .min(1, { error: `must not be empty; leave it out for ${without}` })
    .max(MOST_NAMED, { error })
    .transform((all) => [...new Set(all)].toSorted());
};
const page = (most: number, what: string) => wholeNumber(1, most, '100 of them').default(100).describe(what);

const PAGE = {
  limit: page(500, 'How many events at most.'),
  cursor: filled('the first page')
    .describe('`next_cursor` of the page before; good for the same query of the same caller only.')
    .optional(),
  order: oneOf(['asc', 'desc'], 'the oldest first', 'must be asc (oldest first) or desc (newest first)')
    .default('asc')
    .describe('`desc`: the newest first. Cursors are good for the order that they came from.'),
};
const FILTER = maybe({
  tenant: names('every tenant that you may read').describe(
    'Only of these tenants; may be repeated. One that is out of reach is refused.',
  ),
  subject: filled('everybody', 500).describe(
    'Only what this subject did: its id, or the exact user name. An erased person is found by the id alone. 429 ' +
      'with SEARCHES_BUSY: too many look for people by name.',
  ),
  type: names('every type').describe('Only events of these types; may be repeated, or a comma list.'),
  outcome: oneOf(OUTCOMES, 'every outcome').describe('Only calls that ended so.'),
  from: timeIn('all from the beginning').describe('Recorded at that time or later.'),
  to: timeIn('all up to now').describe('Recorded before that time.'),
});
const OBJECT = filled('every object', 500);
const OF_OBJECT = maybe({
  kind: filled('every kind', 500).describe('Only about this kind.'),
  resource_id: OBJECT.describe('With `kind`: only about this object.'),
  id: OBJECT.describe('The same as `resource_id`.'),
});

export const EVENTS_QUERY = z.strictObject({ ...FILTER, ...OF_OBJECT, ...PAGE });
export const OBJECT_EVENTS_QUERY = z.strictObject({ ...FILTER, ...PAGE });
export type EventsQuery = z.infer<typeof OBJECT_EVENTS_QUERY> & Partial<z.infer<typeof EVENTS_QUERY>>;

const MOMENT = 'a time of RFC 3339 or a position';
const moment = (what: string) =>
  filled('the present').describe(`${what}: ${MOMENT}. Default: now.`).optional();
export const AS_OF_QUERY = z.strictObject({ as_of: moment('When') });
export const DIFF_QUERY = z.strictObject({
  from: neededText(1_000, 'a time or a position').describe(`The earlier moment: ${MOMENT}.`),
  to: moment('The later moment'),
});

const SIZE = wholeNumber(0, 2 ** 31, undefined, 'a size');
export const CONSISTENCY_QUERY = z.strictObject({
  from: SIZE.describe('The smaller size.'),
  to: SIZE.describe('The larger size.'),
});
export const HEADS_QUERY = z.strictObject({
  after: wholeNumber(0, 2 ** 31, 'the newest head alone')
    .describe('Only heads of more leaves, smallest first; absent: the newest head alone.')
    .optional(),
  limit: page(1_000, 'How many at most.'),
});
export const TRUST_QUERY = z.strictObject({
  newest: flagIn('a head over all that is recorded by now')
    .default(false)
    .describe('`true`: answers at once with the newest head, which may be older than that.'),
});

const TYPES = 'must be a list of event types';
const MOST_PINS = 100;
const PINS = `must be a list of at most ${MOST_PINS} sizes`;
const EXPORT_FILTER = maybe({
  subject: filled('everybody', 500),
  kind: filled('every kind', 100),
  resource_id: OBJECT.describe(
    'With `kind`: one of which there is something to read; with `tenant` something that the tenant may read.',
  ),
  types: z
    .array(z.string({ error: TYPES }).min(1, { error: TYPES }), { error: TYPES })
    .min(1, { error: 'must not be empty; leave it out for every type' }),
  outcome: oneOf(OUTCOMES, 'every outcome'),
});
export const EXPORT_BODY = z.strictObject({
  ...maybe({
    tenant: filled('your own tenant, or for the whole log where you may read that', 100).describe(
      'Default: your own tenant, or the whole log if you may read all of it.',
    ),
    from: timeIn('all from the beginning').describe('Recorded at that time or later.'),
    to: timeIn('all up to now').describe('Recorded before that time.'),
  }),
  format: oneOf(['native', 'ocsf'], 'native').default('native'),
  filter: z.strictObject(EXPORT_FILTER, { error: 'must be an object' }).prefault({}),
  pins: z
    .array(z.int({ error: PINS }).min(0, { error: PINS }).describe(SIZE_TEXT), { error: PINS })
    .max(MOST_PINS, { error: PINS })
    .default([])
    .describe('Sizes of signed heads that you keep; none is larger than the tree.'),
});

const SCOPE_ID = z.string().min(1).max(100);
export const HOLD_BODY = z.strictObject({
  scope: z
    .union(
      [
        z.strictObject({ kind: z.enum(['subject', 'tenant']), id: SCOPE_ID }),
        z.strictObject({ kind: z.literal('all') }),
      ],
      { error: 'must be {"kind":"subject","id":…}, {"kind":"tenant","id":…} or {"kind":"all"}' },
    )
    .describe('Data of one subject, of the people of a tenant, or of everybody.'),
  reason: neededText(),
  ticket: shortText(128).optional(),
});
export const ERASURE_BODY = z.strictObject({
  subject_id: neededText(100).describe('Id of the User, which is `metadata.creator` of what they made.'),
  tenant: shortText(100)
    .default('')
    .describe('Tenant of the person; left out for somebody who belongs to none.'),
  reason: neededText(),
  request_id: shortText(128).describe("Number of the person's request in your own files.").optional(),
});

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MOST_TENANTS = 1_000;
export const GRANT_BODY = z.strictObject({
  /** Nobody's id is a name: a grant to one would let nobody see anything. */
  subject: neededText(100)
    .regex(UUID, {
      error: "must be the id of a subject, a UUID in lower case ('actor.subject' of its events), not a name",
    })
    .describe('`actor.subject` of the events of who gets it, a UUID.'),
  tenants: z.union([z.literal('all'), z.array(z.string().min(1)).max(MOST_TENANTS)], {
    error: "must be 'all' or a list of names of tenants",
  }),
  reason: neededText(),
  expires_at: timeIn('a grant until it is withdrawn')
    .describe('A time of RFC 3339; absent: until it is withdrawn.')
    .optional(),
});

export const AUDIT_DESCRIPTIONS: Descriptions = {
  'GET events': {
    summary: 'Events with their actors, oldest first by default',
    description:
      'Events of your own tenants, and of those that you were granted. All pages show the history as it was when the first one was ' +
      'asked for. A page may be short, and even empty, and go on nevertheless. Tenants do not see what only the service or ' +
      'the provider may read. Personal data of which the key was destroyed reads `{"erased":true}`.',
    query: EVENTS_QUERY,
    answer: AUDIT_EVENTS,
  },
  'GET events/{id}': {
    summary: 'One event',
    answer: AUDIT_EVENT,
  },
  'GET resources/{kind}/{id}/events': {
    summary: 'Everything that happened to one object',
    description:
      'Its own events, those of its workflow, refusals about it, and those that name it. The last are reservations of its name ' +
      'and of capacity for it, looks at it, exports, holds and erasures.',
    query: OBJECT_EVENTS_QUERY,
    answer: AUDIT_EVENTS,
  },
  'GET resources/{kind}/{id}': {
    summary: 'An object as it was',
    description:
      'As GET of its own route showed it then. Before its first event, and behind its deletion, it is as absent as one that ' +
      'never was; a moment in the future is refused.',
    query: AS_OF_QUERY,
    answer: z.strictObject({
      kind: TEXT,
      id: TEXT,
      as_of: z.strictObject({ position: TEXT.optional() }),
      document: OPEN,
    }),
  },
  'GET resources/{kind}/{id}/diff': {
    summary: 'Changes of an object between two moments',
    description: 'Objects are compared field by field, lists as a whole. Paths are JSON Pointers.',
    query: DIFF_QUERY,
    answer: AUDIT_DIFF,
  },
  'GET events/{id}/proof': {
    summary: 'Proof that an event is in the signed history',
    description:
      'RFC 6962 paths from the leaf to the trees of all events and of its tenant, and the first signed head that covers it. ' +
      'The answer is 503 with NOT_SIGNED_YET if the event was recorded less than 10 seconds ago.',
    answer: PROOF,
  },
  'GET checkpoints': {
    summary: 'Signed heads of the tree: the newest one, or those behind a size',
    query: HEADS_QUERY,
    answer: itemsOf(CHECKPOINT),
  },
  'GET checkpoint': {
    summary: 'The newest signed head as C2SP tlog-checkpoint',
    content: { 'text/plain': TEXT },
  },
  'GET consistency': {
    summary: 'Proof that the tree of one size continues that of another',
    query: CONSISTENCY_QUERY,
    answer: CONSISTENCY,
  },
  'GET trust.json': {
    summary: 'The keys of the log and a signed head: keep them',
    description:
      'The pin is a head over everything that was recorded when it was asked for: the answer waits for it, 10 seconds as a rule. ' +
      'The answer is 500 with EVENT_CHANGED or LOG_DAMAGED, at once: signing has stopped, since the log is not what was recorded.',
    query: TRUST_QUERY,
    answer: TRUST,
  },
  'GET tile/{path*}': {
    summary: 'A tile of the tree (C2SP tlog-tiles)',
    description:
      '`<level>/<n>[.p/<w>]` or `entries/<n>[.p/<w>]`, as far as a head was signed. It never changes. Entries come with ' +
      '`Content-Encoding: gzip` where that is accepted. For who may read the history of all tenants.',
    content: { 'application/octet-stream': TEXT.meta({ format: 'binary' }) },
  },
  'POST exports': {
    summary: 'Asks for an export that can be checked without this service',
    description:
      'Made behind the answer, of everything that was stored before it and that a signed head covers. It is `failed` if no such ' +
      'head comes, unless one covers all before `to`. All events of the tenant between `from` and `to` are in it. Those that ' +
      '`filter` leaves out, and those that you may not see, are there by their hash. 429 with EXPORTS_BUSY: too many are waiting; with SEARCHES_BUSY: too many look for people by name.',
    body: EXPORT_BODY,
    status: 202,
    answer: AUDIT_EXPORT,
  },
  'GET exports': {
    summary: 'Your exports, newest first; all exports for provider admins',
    description:
      'Exports of histories that you may read. An export that was made under a grant is gone for you with that grant.',
    answer: itemsOf(AUDIT_EXPORT),
  },
  'GET exports/{id}': {
    summary: 'How far an export is',
    answer: AUDIT_EXPORT,
  },
  'GET exports/{id}/file': {
    summary: 'The file of an export: a tar',
    description:
      'A download that broke off goes on with `Range` and `If-Range`. Each download is an event, and a `HEAD` a look.',
    content: { 'application/x-tar': TEXT.meta({ format: 'binary' }) },
    partial: true,
    headers: ['ETag'],
    parameters: [],
    errors: [...ANY_WRITE, 'RANGE_NOT_SATISFIABLE'],
  },
  'DELETE exports/{id}': {
    summary: 'Removes the file of an export, or stops making it',
    answer: AUDIT_EXPORT,
  },
  'GET holds': {
    summary: 'Legal holds that stand',
    answer: itemsOf(LEGAL_HOLD),
  },
  'POST holds': {
    summary: 'Places a legal hold: whose data it covers cannot be erased',
    description:
      'Refused where an erasure of that data has begun (ERASURE_UNDER_WAY), and over tenants and subjects of which nothing is ' +
      'known (TENANT_NOT_FOUND, SUBJECT_NOT_FOUND). The one tenant whom it concerns sees it in its ' +
      'history, without the reason. Provider admins only.',
    body: HOLD_BODY,
    answer: LEGAL_HOLD,
  },
  'DELETE holds/{id}': {
    summary: 'Releases a legal hold',
    query: REASON_QUERY,
    answer: z.strictObject({ id: TEXT, released: FLAG }),
  },
  'GET erasures': {
    summary: 'All erasures, oldest first',
    answer: itemsOf(ERASURE),
  },
  'GET erasures/{id}': {
    summary: 'One erasure',
    answer: ERASURE,
  },
  'POST erasures': {
    errors: OF_ONE_OBJECT,
    summary: "Destroys a person's key, so that their data cannot be read any more, anywhere",
    description:
      'Proofs still hold: hashes are over the ciphertext. Refused while a legal hold covers the person (LEGAL_HOLD). ' +
      'Cannot be undone. Provider admins only.',
    body: ERASURE_BODY,
    answer: ERASURE,
  },
  'GET grants': {
    summary: 'All grants that were ever given',
    answer: itemsOf(AUDIT_GRANT),
  },
  'POST grants': {
    summary: 'Lets an auditor read the history of tenants that are not its own',
    description:
      'Tenants that it names are told in their own history; they must have one. It may be given before the first login of its ' +
      'subject: `subject_seen` is false then. A grant for all tenants shows what only the provider sees, too. ' +
      'Provider admins only.',
    body: GRANT_BODY,
    answer: AUDIT_GRANT,
    errors: ['ALREADY_EXISTS'],
  },
  'DELETE grants/{id}': {
    summary: 'Withdraws a grant; it counts at once',
    description:
      'Exports that were made under it are out of the reach of its subject from then on; a fetched file cannot be taken back. ' +
      'Admins see them, and remove them with DELETE exports/{id}.',
    query: REASON_QUERY,
    answer: AUDIT_GRANT,
  },
};
