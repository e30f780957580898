import { LRUCache } from 'lru-cache';
import type { Clock } from '../../app/ports.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { FilterNode, OrderTerm } from '../../projections/filter/ast.ts';
import { mentions } from '../../projections/filter/walk.ts';
import {
  ListRefused,
  type ListPage,
  type ListQuery,
  type ResourceReader,
} from '../../projections/read-models.ts';
import { indexedPaths } from '../../projections/resources/terms.ts';
import { ApiError } from '../errors.ts';
import type { Answer, Handler, ListMessage } from './call.ts';
import { compileFilter } from './filter/compile.ts';
import { compileOrder } from './filter/order.ts';
import { listTarget } from './filter/targets.ts';
import type { Surface } from './messages.ts';
import { payerOf } from './principal.ts';

export type ListedKind = Pick<
  ResourceKind,
  'kind' | 'message' | 'secrets' | 'event' | 'references' | 'publicList' | 'listed'
>;

/** A list of the past; `text`: the moment as the caller sent it. */
export type PastLists = (asked: { readonly text: string; readonly query: ListQuery }) => Promise<ListPage>;

/** Documents that are read and sent in one turn of the thread; more are sent in parts. Some 4 ms. */
const MAX_CHARACTERS_AT_ONCE = 512 * 1024;
/** Characters of such a part, but for its last document. */
const PART_CHARACTERS = 128 * 1024;

/** Compiled filters and orders that are kept per kind and surface; clients ask the same again and again. */
const KEPT_TEXTS = 100;

/** List of any kind: stored JSON texts, put together without being parsed. */
export const listHandler = (
  kind: ListedKind,
  surface: Surface,
  { resources, clock }: { readonly resources: ResourceReader; readonly clock: Clock },
  past: PastLists,
): Handler<ListMessage> => {
  const target = listTarget(kind, surface);
  if (target === undefined) throw new TypeError(`${kind.kind} has no message on the ${surface} surface`);
  const filters = kept((text) => compileFilter(text, target));
  const orders = kept((text) => compileOrder(text, target));
  const indexed = indexedPaths(kind);
  const defaults = surface === 'public' ? defaultPredicates(kind, filters) : () => ({});
  // What is listed by itself is marked in today's rows only.
  const shownByDefault =
    surface === 'public' ? defaultPredicates({ ...kind, listed: undefined }, filters) : () => ({});

  return async ({ principal, message, signal }) => {
    const filter = message.filter === undefined ? undefined : filters(message.filter);
    const order: readonly OrderTerm[] | undefined =
      message.order === undefined ? undefined : orders(message.order);
    const query = {
      kind: kind.kind,
      surface,
      visibility: principal.visibility,
      offset: message.offset,
      limit: message.limit,
      ...(filter === undefined ? {} : { filter }),
      ...(order === undefined ? {} : { order }),
      indexed,
      atOnce: MAX_CHARACTERS_AT_ONCE,
      nowMs: Date.parse(clock.now()),
      caller: payerOf(principal),
      signal,
    };
    if (message.asOf !== undefined) {
      const asOf = { text: message.asOf, query: { ...query, ...shownByDefault(filter) } };
      return pageAnswer(await readPage(() => past(asOf)));
    }
    const page = await readPage(() => resources.query({ ...query, ...defaults(filter) }));
    const { places, total } = page;
    if (places === undefined) return pageAnswer(page);
    const documents = (): Iterable<string> =>
      documentsAt(places, (place) => resources.documentAt(kind.kind, place, surface));
    return { body: '', parts: listParts(total, documents()), page: { total, documents: documents() } };
  };
};

const kept = <Compiled extends object>(compile: (text: string) => Compiled): ((text: string) => Compiled) => {
  const known = new LRUCache<string, Compiled>({ max: KEPT_TEXTS });
  return (text) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const compiled = compile(text);
    known.set(text, compiled);
    return compiled;
  };
};

type Defaults = { readonly filter?: FilterNode; readonly listedOnly?: true };

/** What a public list leaves out by itself, each part unless the caller's filter asks about it (OSAC). */
const defaultPredicates = (
  { publicList = [], listed }: Pick<ListedKind, 'publicList'> & { listed?: ListedKind['listed'] | undefined },
  compile: (text: string) => FilterNode,
): ((filter: FilterNode | undefined) => Defaults) => {
  if (publicList.length === 0) return () => ({});
  const compiled = (): { node: FilterNode; when: (typeof publicList)[number]['when'] }[] =>
    publicList.map(({ filter, when }) => ({ node: compile(filter), when }));
  // At the first list of the kind: a start does not wait for those of all kinds.
  let known: ReturnType<typeof compiled> | undefined;
  return (filter) => {
    const predicates = (known ??= compiled());
    const applying = predicates.filter(
      ({ when }) => when === 'always' || filter === undefined || !mentions(filter, when.unlessMentioned),
    );
    if (applying.length === predicates.length && listed !== undefined) return { listedOnly: true };
    const all = [...applying.map(({ node }) => node), ...(filter === undefined ? [] : [filter])];
    return all.length === 0 ? {} : { filter: all.reduce((left, right) => ({ op: 'and', left, right })) };
  };
};

const readPage = async (read: () => ListPage | Promise<ListPage>): Promise<ListPage> => {
  try {
    return await read();
  } catch (error) {
    throw error instanceof ListRefused ? refusal(error) : error;
  }
};

const refusal = (error: ListRefused): ApiError => {
  const cause = { cause: error };
  switch (error.reason) {
    case 'cancelled':
      return new ApiError('CANCELLED', 'the caller went away', cause);
    case 'busy':
      return new ApiError(
        'UNAVAILABLE',
        'too many lists are read at this moment that no index answers; filter by id, name, label, state or reference, or try again',
        { reason: 'LISTS_BUSY', retryAfterSeconds: 1, ...cause },
      );
    case 'too-long':
      return new ApiError(
        'UNAVAILABLE',
        'reading this list takes too long; narrow it by id, name, label, state or reference',
        { reason: 'LIST_TOO_LONG', retryAfterSeconds: 10, ...cause },
      );
  }
};

const pageAnswer = (page: ListPage): Answer => ({ body: listText(page), page });

/** Those that are still there when their turn comes. */
function* documentsAt(
  places: readonly string[],
  documentAt: (place: string) => string | undefined,
): Generator<string> {
  for (const place of places) {
    const document = documentAt(place);
    if (document !== undefined) yield document;
  }
}

/** `size`, `total` and `items` as the list message renders: zero and empty are left out (OSAC). */
const listText = ({ documents, total }: ListPage): string => {
  if (documents.length === 0) return total === 0 ? '{}' : `{"total":${total}}`;
  return `{"size":${documents.length},"total":${total},"items":[${documents.join(',')}]}`;
};

/**
 * A page of long documents, each as it is when its turn comes. One that is deleted meanwhile is missing, so that the
 * size is known at the end only.
 */
function* listParts(total: number, documents: Iterable<string>): Generator<string> {
  let size = 0;
  let part = `{"total":${total},"items":[`;
  for (const document of documents) {
    part += size === 0 ? document : `,${document}`;
    size += 1;
    if (part.length < PART_CHARACTERS) continue;
    yield part;
    part = '';
  }
  yield `${part}],"size":${size}}`;
}
