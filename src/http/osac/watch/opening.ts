import { LRUCache } from 'lru-cache';
import type { Clock, Logger, Timers } from '../../../app/ports.ts';
import type { FilterNode } from '../../../projections/filter/ast.ts';
import {
  compareKeys,
  type ChangeKey,
  type ChangeReader,
} from '../../../projections/resources/change-reader.ts';
import { recordLook, type LookServices } from '../../audit-reads.ts';
import type { Authenticate } from '../../authenticate.ts';
import { ApiError, denied } from '../../errors.ts';
import type { Exchange } from '../../exchange.ts';
import { admitted, type Admission } from '../../limits/admission.ts';
import { RESOURCES_VIEW, type Positions } from '../../positions.ts';
import { mayCall } from '../authorization.ts';
import { compileFilter } from '../filter/compile.ts';
import { eventTarget } from '../filter/targets.ts';
import type { Surface } from '../messages.ts';
import type { Principal } from '../principal.ts';
import { readMetadata } from '../served.ts';
import { audienceOf, type Audience, type WatchedKind } from './audience.ts';
import { stopping } from './endings.ts';
import { createWatchHub, type WatchHub, type WatchSettings } from './hub.ts';
import { createRenderer, type Framing } from './rendered-change.ts';
import { createSessions, type SessionSettings } from './sessions.ts';
import { createWatchIds } from './watch-id.ts';
import type { Sink } from './watcher.ts';

export type WatchServices = {
  readonly changes: ChangeReader;
  readonly kinds: readonly WatchedKind[];
  readonly authenticate: Authenticate;
  /** Absent: everybody is let in. */
  readonly admission?: Admission;
  readonly positions: Positions;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  readonly ending?: AbortSignal;
  readonly settings?: Partial<WatchSettings & SessionSettings>;
  readonly looks: LookServices;
};

/** What a caller wants to be told, in whichever protocol it was said. */
export type Asked = {
  /** Empty: everything that the caller may see. */
  readonly filterText: string;
  /** What the watch begins behind, and the name that the caller knows it by. Absent: what there is now. */
  readonly from?: { readonly text: string; readonly name: string } | undefined;
  /** Only the head of the answer is wanted. */
  readonly headOnly?: boolean;
};

/** A watch that may begin, once the head of the answer has been sent. */
export type OpenedWatch = {
  /** Absent: nothing has changed yet, ever. */
  readonly startId?: string;
  readonly start: (framing: Framing, sink: Sink) => void;
};

export type Watches = {
  /**
   * Lets a caller in: token, rights, rates, filter, where to begin, a seat. Undefined: the caller has gone. Throws
   * ApiError 400, 401, 403, 410, 429 or 503. `read` is called once the caller is known.
   */
  readonly open: (
    exchange: Exchange,
    surface: Surface,
    read: () => Asked,
  ) => Promise<OpenedWatch | undefined>;
  readonly status: WatchHub['status'];
};

/** `Events/Watch` of both surfaces, without the protocol. */
export const createWatches = (services: WatchServices): Watches => {
  const { changes, kinds, positions, clock, timers, logger, ending, settings = {}, looks } = services;
  const ids = createWatchIds(positions);
  const render = createRenderer({
    kinds,
    formatId: ids.format,
    documentBefore: changes.documentBefore,
    nowMs: () => Date.parse(clock.now()),
  });
  const hub = createWatchHub({
    changes,
    render,
    formatId: ids.format,
    timers,
    monotonicMs: () => clock.monotonicMs(),
    logger,
    settings,
  });
  const sessions = createSessions({ authenticate: services.authenticate, timers, logger, settings });
  const filters = createFilterCache(kinds);
  ending?.addEventListener('abort', () => hub.endAll(stopping), { once: true });

  /** Where to begin: behind what the caller has, else behind what there is. */
  const startOf = async ({ from: given }: Asked): Promise<ChangeKey> => {
    if (given === undefined) return changes.newest();
    const from = ids.parse(given.text, given.name);
    await positions.waitForMinimum(positions.format(from.position), RESOURCES_VIEW);
    const pruned = changes.prunedTo();
    if (pruned === undefined || compareKeys(from, pruned) >= 0) return from;
    throw new ApiError(
      'OUT_OF_RANGE',
      `changes right after '${given.name}' are no longer kept: watch again without it, then list to see what is there now`,
      { reason: 'FROM_TOO_OLD', facts: { oldest_id: ids.format(pruned) } },
    );
  };

  /** Changes that were there before the watch are history: an admin who has them shown again looks at it. */
  const recordReplay = async (
    exchange: Exchange,
    principal: Principal,
    { after, filterText }: { readonly after: ChangeKey; readonly filterText: string },
  ): Promise<void> => {
    if (compareKeys(after, changes.newest()) >= 0) return;
    const filter =
      filterText === '' ? {} : { filter: { ...(await looks.conceal(principal.subjectId, filterText)) } };
    const look = { what: 'watch', query: { from: ids.format(after), ...filter }, tenants: undefined };
    await recordLook({ principal, metadata: readMetadata(exchange, exchange.route) }, look, looks);
  };

  const open: Watches['open'] = async (exchange, surface, read) => {
    const { request, response } = exchange;
    const { authorization } = request.headers;
    const rightsOf = (caller: Principal): Audience => audienceFor(caller, surface, kinds);
    const principal = await admitted(exchange, services, { listens: true });
    const audience = rightsOf(principal);
    const asked = read();
    const { filterText } = asked;
    const filter = filterText === '' ? undefined : filters(filterText, surface);
    await positions.waitForMinimum(request.headers['x-ledger-min-position'], RESOURCES_VIEW);
    const after = await startOf(asked);
    if (principal.admin && asked.headOnly !== true)
      await recordReplay(exchange, principal, { after, filterText });
    if (response.destroyed) return undefined;
    if (ending?.aborted === true) throw stopping(undefined);
    const seat = sessions.enter({
      principal,
      authorization,
      method: exchange.method,
      filter: filterText === '' ? '' : `${surface} ${filterText}`,
      rightsOf: (caller) => rightsOf(caller).key,
      rights: audience.key,
    });
    response.once('close', seat.leave);
    return {
      ...(after.position === '' ? {} : { startId: ids.format(after) }),
      start: (framing, sink) => {
        const watch = hub.open({ audience, filter, filterText, framing, after, sink });
        seat.take(watch);
        response.once('close', watch.forget);
      },
    };
  };
  return { open, status: hub.status };
};

/** Throws ApiError 403. */
const audienceFor = (principal: Principal, surface: Surface, kinds: readonly WatchedKind[]): Audience => {
  if (!mayCall(principal, surface, { service: 'Events' }, 'Watch')) throw denied();
  return audienceOf(principal, surface, kinds);
};

const KEPT_FILTERS = 1_000;

/** Equal texts give the same compiled filter, so that it is evaluated once for all who sent it. Throws ApiError 400. */
const createFilterCache = (
  kinds: readonly WatchedKind[],
): ((text: string, surface: Surface) => FilterNode) => {
  const kept = new LRUCache<string, FilterNode>({ max: KEPT_FILTERS });
  const targets = { public: eventTarget('public', kinds), private: eventTarget('private', kinds) };
  return (text, surface) => {
    const key = `${surface} ${text}`;
    const known = kept.get(key);
    if (known !== undefined) return known;
    const compiled = compileFilter(text, targets[surface]);
    kept.set(key, compiled);
    return compiled;
  };
};
