import { unchangedEventsOf } from '../../app/audit/event-source.ts';
import { shownTo } from '../../app/audit/shown-event.ts';
import type { AuditLeaf } from '../../app/audit/tree.ts';
import type { RequestHash } from '../../app/commands/command.ts';
import type { RecordedEvent } from '../../app/log/event-store.ts';
import { isNotice } from '../../domain/audit/events.ts';
import { isObject } from '../../domain/json-tools.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import { kinds, type AnyKind } from '../../domain/kinds.ts';
import type { AuditQuery, Order } from '../../projections/audit/find.ts';
import type { LookedAt } from '../audit-reads.ts';
import { invalid, ApiError } from '../errors.ts';
import { snakeCase } from '../ledger/forms.ts';
import { breathe } from '../ledger/query.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from '../ledger/serve.ts';
import { type Reach, lookAt, narrowed, reaches, type Look, type Seen } from './access.ts';
import { OUTCOMES } from './answers.ts';
import { eventJson } from './event-json.ts';
import { isThere } from './event-presence.ts';
import { firstFound } from './first-match.ts';
import { assertNames, isKind, noSuchKind } from './names.ts';
import { EVENTS_QUERY, OBJECT_EVENTS_QUERY, type EventsQuery } from './operations.ts';
import { assertReach, assertSomeReach, reachText } from './reach.ts';
import type { AuditServices } from './services.ts';
import { subjectOf } from './subjects.ts';

export type Place = {
  /** Leaf behind which it goes on, in the order of the list. */
  readonly after: number;
  /** Leaves that there were when the first page was asked for: all pages are of one moment. */
  readonly below: number;
};

/**
 * Cursors are signed, and good for one question over one set of tenants only: a cursor that travelled shows nobody
 * anything, and none can be made up.
 */
export type Cursors = {
  readonly write: (place: Place, tenants: Reach['tenants'], filter: JsonObject) => string;
  /** Throws ApiError 400 that says what it does not belong to. */
  readonly read: (cursor: string, tenants: Reach['tenants'], filter: JsonObject) => Place;
};

const createCursors = (requestHash: RequestHash): Cursors => {
  const mac = (what: string, body: JsonValue): string =>
    requestHash({ method: 'cursor', route: what, body }).slice(0, 32);
  const tenantsMac = (tenants: Reach['tenants']): string =>
    mac('tenants', tenants === 'all' ? 'all' : tenants.toSorted());
  const placeMac = (...parts: readonly JsonValue[]): string => mac('place', [...parts]);

  return {
    write: ({ after, below }, tenants, filter) => {
      const [t, f] = [tenantsMac(tenants), mac('filter', filter)];
      return Buffer.from(JSON.stringify({ after, below, t, f, m: placeMac(after, below, t, f) })).toString(
        'base64url',
      );
    },
    read: (cursor, tenants, filter) => {
      const { after, below, t, f, m } = parsed(cursor);
      if (!Number.isSafeInteger(after) || !Number.isSafeInteger(below)) throw unreadable();
      if (m !== placeMac(after as number, below as number, t ?? null, f ?? null)) throw unreadable();
      if (t !== tenantsMac(tenants))
        throw refused('this cursor belongs to a list over other tenants; begin without a cursor');
      if (f !== mac('filter', filter))
        throw refused('this cursor belongs to another query; repeat that query, or begin without a cursor');
      return { after: after as number, below: below as number };
    },
  };
};

const parsed = (cursor: string): JsonObject => {
  try {
    const value = JSON.parse(Buffer.from(cursor, 'base64url').toString('utf8')) as JsonValue;
    if (isObject(value)) return value;
  } catch {
    // said below
  }
  throw unreadable();
};

const refused = (message: string): ApiError => invalid(message, 'cursor', 'CURSOR_MISMATCH');
const unreadable = (): ApiError =>
  invalid("'cursor' is not one that this service gave", 'cursor', 'CURSOR_INVALID');

/** Who did what: the events of one's tenants, one event, everything about one object. */
export const auditEventRoutes = (services: AuditServices): readonly LedgerRoute[] => {
  const lists = { services, cursors: createCursors(services.requestHash) };
  return [
    lookAt(
      services,
      'events',
      async (call, reach, _services, query) =>
        list(call, reach, 'events', query, await readFilter(query, call, reach, services), lists),
      EVENTS_QUERY,
    ),
    lookAt(services, 'events/{id}', one),
    lookAt(
      services,
      'resources/{kind}/{id}/events',
      async (call, reach, _services, query) => {
        const about = { kind: categoryOf(call.path['kind'] ?? ''), resource_id: call.path['id'] ?? '' };
        if (!(await isKind(about.kind, reach, services, call.signal)))
          throw new ApiError('NOT_FOUND', noSuchKind(call.path['kind'] ?? ''));
        const filter = { ...(await readFilter(query, call, reach, services)), ...about };
        return list(call, reach, 'resource events', query, filter, lists);
      },
      OBJECT_EVENTS_QUERY,
    ),
  ];
};

/** A kind by its name, in either spelling, or that of its list: `hostType`, `host_type`, `host_types`. */
export const kindNamed = (name: string): AnyKind | undefined =>
  kinds.find(({ kind, collection }) => [kind, snakeCase(kind), collection].includes(name));

/** The stream category of a kind; any other category stands for itself. */
export const categoryOf = (name: string): string => kindNamed(name)?.kind ?? name;

/** What a list of events is asked by; the same filter always reads the same. Throws ApiError 400. */
type Filter = { readonly [name: string]: string | string[] };

const readFilter = async (
  { kind: named = '', resource_id: byResource, id: byId, outcome, subject = '', ...asked }: EventsQuery,
  { signal }: LedgerCall,
  reach: Reach,
  services: AuditServices,
): Promise<Filter> => {
  const id = byResource ?? byId ?? '';
  if (byId !== undefined && byResource !== undefined)
    throw invalid("query parameters 'id' and 'resource_id' are the same: give one of them", 'id');
  if (id !== '' && named === '') {
    const name = byId === undefined ? 'resource_id' : 'id';
    throw invalid(`query parameter '${name}' needs 'kind': the kind of the object`, name);
  }
  const { tenant = [], type: types = [], from = '', to = '' } = asked;
  const kind = categoryOf(named);
  await assertNames({ types, kind }, { types: 'type', kind: 'kind' }, reach, services, signal);
  if (from !== '' && to !== '' && from > to)
    throw invalid("query parameter 'from' must not be later than 'to'", 'from');
  return filled({ tenant, subject, kind, resource_id: id, type: types, outcome: outcome ?? '', from, to });
};

const filled = (filter: Filter): Filter =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value.length > 0));

/** What is recorded of a question, and what cursors are for, where it is not in log order. */
const inOrder = (filter: Filter, order: Order): JsonObject => ({
  ...(filter as JsonObject),
  ...(order === 'asc' ? {} : { order }),
});

type Lists = { readonly services: AuditServices; readonly cursors: Cursors };

const list = async (
  call: LedgerCall,
  reach: Reach,
  what: string,
  { limit, order, cursor = '' }: EventsQuery,
  asking: Filter,
  lists: Lists,
): Promise<Look> => {
  const { services, cursors } = lists;
  const { tenant = [], subject: who } = asking;
  const asked = typeof tenant === 'string' ? [tenant] : tenant;
  assertReach(asked, reach, call.principal, { ...services, field: "query parameter 'tenant'" });
  const tenants = narrowed(reach, asked);
  const subject =
    typeof who === 'string'
      ? await subjectOf(
          who,
          { ...reach, tenants },
          { ...services, field: "query parameter 'subject'" },
          call.signal,
        )
      : undefined;
  // What is recorded, and what cursors are for, is the id: a name is personal data.
  const filter: Filter = subject === undefined ? asking : { ...asking, subject };
  const asCursors = inOrder(filter, order);
  const place: Place =
    cursor === '' ? placeAtFirst(order, services.reader.size()) : cursors.read(cursor, tenants, asCursors);
  return {
    what,
    query: { ...asCursors, limit, ...(cursor === '' ? {} : { after: place.after }) },
    tenants,
    answer: ({ shows }) =>
      page(call, { tenants, audience: reach.audience }, filter, { limit, order, place, shows }, lists),
  };
};

const placeAtFirst = (order: Order, below: number): Place => ({ after: order === 'asc' ? -1 : below, below });

const goesOn = (order: Order, after: number, below: number): boolean =>
  order === 'asc' ? after + 1 < below : after > 0;

/**
 * Tells of an event that is shown, unless its tenant may not see it: neither what only the provider reads of a tenant, nor
 * what it is about, is told to that tenant; and of notices that were read it is not told again: whoever polls would
 * beget one for each that the poll before has left. `asked`: the object that was asked for.
 */
export const showing = (
  { leaf, event }: { readonly leaf: AuditLeaf; readonly event: RecordedEvent },
  { shows }: Pick<Seen, 'shows'>,
  asked: LookedAt | undefined,
  { words }: Pick<AuditServices, 'words'>,
): void => {
  if (isNotice(event.type) || shownTo(event, 'tenant', words) === undefined) return;
  const known = [leaf, ...(leaf.also ?? []).filter(({ hidden }) => !hidden)];
  const isKnown = known.some(
    ({ kind, resourceId }) => kind === asked?.kind && (asked.id === undefined || resourceId === asked.id),
  );
  shows(leaf.tenant, isKnown ? asked : undefined);
};

const objectAsked = ({ kind, resource_id: id }: Filter): LookedAt | undefined =>
  typeof kind === 'string' ? { kind, ...(typeof id === 'string' ? { id } : {}) } : undefined;

export const objectOf = ({ kind, resourceId: id }: AuditLeaf): LookedAt | undefined =>
  kind === '' || id === '' ? undefined : { kind, id };

/** Leaves that are looked at for one page; of steps that find fewer than were wanted, so many. */
const MOST_LOOKED = 1_000;
const MOST_SPARSE = 10;
/** Leaves that are fetched at least where the first ones did not fill a page, and at most in one go: some milliseconds. */
const REFILL = 20;
const AT_ONCE = 30;

const page = async (
  { signal }: LedgerCall,
  { tenants, audience }: Reach,
  filter: Filter,
  {
    limit,
    order,
    place,
    shows,
  }: Pick<Seen, 'shows'> & { readonly limit: number; readonly order: Order; readonly place: Place },
  { services, cursors }: Lists,
): Promise<LedgerAnswer> => {
  const { reader, store } = services;
  const { below } = place;
  const items: JsonValue[] = [];
  const asked = objectAsked(filter);
  let at: number | undefined = place.after;
  let looked = 0;
  // What the caller may not see takes no place on the page, as far as the work for one allows.
  for (let sparse = 0; sparse < MOST_SPARSE && looked < MOST_LOOKED; ) {
    const wanted = Math.min(AT_ONCE, Math.max(limit - items.length, looked === 0 ? 0 : REFILL));
    const { leaves, next } = reader.find({
      ...queryOf(filter, { tenants, audience }),
      order,
      after: at,
      below,
      limit: wanted,
    });
    await breathe();
    const events = await unchangedEventsOf(store, leaves, breathe, signal);
    looked += leaves.length;
    if (leaves.length < wanted) sparse += 1;
    at = next;
    for (const [i, leaf] of leaves.entries()) {
      const event = events[i];
      const shown = event === undefined ? undefined : eventJson(leaf, event, audience, services);
      if (shown !== undefined && event !== undefined) {
        items.push(shown);
        showing({ leaf, event }, { shows }, asked, services);
      }
      if (items.length === limit && i + 1 < leaves.length) {
        at = leaf.index;
        break;
      }
      if (i % 10 === 9) await breathe();
    }
    if (at === undefined || items.length >= limit) break;
    await breathe();
  }
  return {
    json: {
      items,
      size: below,
      ...(filter['subject'] === undefined ? {} : { subject: filter['subject'] }),
      ...(at !== undefined && goesOn(order, at, below)
        ? { next_cursor: cursors.write({ after: at, below }, tenants, inOrder(filter, order)) }
        : {}),
    },
  };
};

const queryOf = (filter: Filter, { tenants, audience }: Reach): Omit<AuditQuery, 'limit' | 'order'> => {
  const text = (name: string): string | undefined => {
    const value = filter[name];
    return typeof value === 'string' ? value : undefined;
  };
  const [subject, kind, resourceId, from, to] = ['subject', 'kind', 'resource_id', 'from', 'to'].map(text);
  const outcome = OUTCOMES.find((known) => known === text('outcome'));
  const types = filter['type'];
  return {
    tenants,
    provider: audience === 'provider',
    ...(subject === undefined ? {} : { subject }),
    ...(kind === undefined ? {} : { kind }),
    ...(resourceId === undefined ? {} : { resourceId }),
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(Array.isArray(types) ? { types } : {}),
  };
};

const one = ({ path, signal, principal }: LedgerCall, reach: Reach, services: AuditServices): Look => {
  const id = path['id'] ?? '';
  assertSomeReach(reach, principal);
  return {
    what: 'event',
    query: { id: id.slice(0, 500) },
    answer: async ({ shows }) => {
      const { leaf, event } = await findEvent(id, reach, services, signal);
      const shown = eventJson(leaf, event, reach.audience, services);
      if (shown === undefined) throw eventNotFound(id, reach);
      showing({ leaf, event }, { shows }, objectOf(leaf), services);
      return { json: shown };
    },
  };
};

/** By its id, or by `<stream>@<revision>`. What the caller may not see is as absent as what is not there: ApiError 404. */
export const findEvent = async (
  id: string,
  reach: Reach,
  { reader, store }: Pick<AuditServices, 'reader' | 'store'>,
  signal: AbortSignal,
): Promise<{ readonly leaf: AuditLeaf; readonly event: RecordedEvent }> => {
  const [, stream, revision] = /^(.+)@(\d{1,15})$/.exec(id) ?? [];
  const leaf =
    stream === undefined
      ? await firstFound({ tenants: reach.tenants, eventId: id }, { reader }, signal)
      : leafAt(stream, Number(revision), reach, { reader });
  if (leaf === undefined || !reaches(reach, leaf.tenant)) throw eventNotFound(id, reach);
  const [event] = await unchangedEventsOf(store, [leaf], breathe, signal);
  if (event === undefined) throw eventNotFound(id, reach);
  return { leaf, event };
};

const leafAt = (
  stream: string,
  revision: number,
  reach: Reach,
  { reader }: Pick<AuditServices, 'reader'>,
): AuditLeaf | undefined => {
  const index = isThere(stream, revision, reach, { reader }) ? reader.indexOf(stream, revision) : undefined;
  return index === undefined ? undefined : reader.leaf(index);
};

export const eventNotFound = (id: string, reach: Reach): ApiError =>
  new ApiError(
    'NOT_FOUND',
    `event '${id.slice(0, 200)}' not found ${reachText(reach)}: give its id, or <stream>@<revision>`,
  );
