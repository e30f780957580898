import { statusBody, type StatusBody } from '../errors.ts';
import { cause, invalid } from '../errors.ts';
import type { Change, Store } from '../store.ts';
import { apiVersionOf, type Kind, type KubeObject } from '../types.ts';
import { checkVersion } from './list.ts';
import { fieldSelector, labelSelector, type Selector } from './selectors.ts';

/** Where the lines of a watch go: one connection. */
export type WatchSink = {
  /** Resolves when the connection takes more. */
  send(line: string): Promise<void>;
  readonly closed: AbortSignal;
};

export type WatchSettings = {
  /** How often an idle watch says how far it is, milliseconds. */
  readonly bookmarkMs: number;
  /** When the server ends a watch whose caller named no `timeoutSeconds`, milliseconds. */
  readonly timeoutMs: number;
};

/** A watch that runs: what tests do to it. */
export type LiveWatch = {
  readonly kind: Kind;
  readonly namespace: string | undefined;
  readonly user: string;
  /** Nothing more is sent, and the connection stays: a dead peer behind a live TCP connection. */
  silence(): void;
  /** Ends the stream with an ERROR event. */
  fail(status: StatusBody): void;
};

export type WatchRequest = {
  readonly kind: Kind;
  readonly namespace: string | undefined;
  readonly query: URLSearchParams;
  readonly user: string;
};

export const GONE = (from: number | string, oldest: number | string): StatusBody =>
  statusBody(410, 'Expired', `too old resource version: ${from} (${oldest})`);

export type Watches = ReturnType<typeof createWatches>;

export const createWatches = (store: Store, settings: WatchSettings) => {
  const live = new Set<LiveWatch>();
  return {
    live: (): readonly LiveWatch[] => [...live],
    /** Checks a request before the stream begins: what is wrong here is an HTTP error. */
    plan: (request: WatchRequest): WatchPlan => planWatch(store, request),
    /** Streams until the caller leaves, the time is over or the watch fails. */
    run: async (request: WatchRequest, plan: WatchPlan, sink: WatchSink): Promise<void> => {
      const stream = watchStream(store, request, plan, sink, settings);
      live.add(stream.handle);
      try {
        await stream.run();
      } finally {
        live.delete(stream.handle);
      }
    },
  };
};

export type WatchPlan = {
  readonly selected: Selector;
  readonly from: number;
  readonly initial: boolean;
  readonly initialEnd: boolean;
  readonly bookmarks: boolean;
  readonly timeoutMs?: number;
};

const planWatch = (store: Store, { kind, namespace, query }: WatchRequest): WatchPlan => {
  const labels = labelSelector(query.get('labelSelector') ?? undefined);
  const fields = fieldSelector(kind, query.get('fieldSelector') ?? undefined);
  const streaming = query.get('sendInitialEvents') === 'true';
  checkStreaming(query, streaming);
  const version = query.get('resourceVersion') ?? '';
  checkVersion(store, query);
  const initial =
    streaming || ((version === '' || version === '0') && query.get('sendInitialEvents') !== 'false');
  const seconds = Number(query.get('timeoutSeconds') ?? '0');
  return {
    selected: (object) =>
      (namespace === undefined || object.metadata.namespace === namespace) &&
      labels(object) &&
      fields(object),
    from: initial || version === '' ? store.version() : Number(version),
    initial,
    initialEnd: streaming,
    bookmarks: query.get('allowWatchBookmarks') === 'true',
    ...(seconds > 0 ? { timeoutMs: seconds * 1000 } : {}),
  };
};

const checkStreaming = (query: URLSearchParams, streaming: boolean): void => {
  if (!streaming || query.get('resourceVersionMatch') === 'NotOlderThan') return;
  const message = 'Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan';
  const fault = cause('resourceVersionMatch', 'FieldValueForbidden', message);
  throw invalid('ListOptions', 'meta.k8s.io', '', [fault]);
};

const BATCH = 200;

const watchStream = (
  store: Store,
  { kind, namespace, user }: WatchRequest,
  plan: WatchPlan,
  sink: WatchSink,
  settings: WatchSettings,
) => {
  let wake: () => void = () => {};
  let silent = false;
  let failure: StatusBody | undefined;
  const end = performance.now() + (plan.timeoutMs ?? settings.timeoutMs);

  const idle = (): Promise<void> =>
    new Promise((resolve) => {
      const left = Math.max(0, end - performance.now());
      const timer = setTimeout(resolve, Math.min(left, plan.bookmarks ? settings.bookmarkMs : left));
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const event = (type: string, object: object): Promise<void> =>
    sink.send(`${JSON.stringify({ type, object })}\n`);

  const bookmark = (version: number, last: boolean): Promise<void> =>
    event('BOOKMARK', {
      kind: kind.kind,
      apiVersion: apiVersionOf(kind),
      metadata: {
        resourceVersion: String(version),
        creationTimestamp: null,
        ...(last ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
      },
    });

  const sendInitial = async (): Promise<void> => {
    for (const object of store.list(kind, namespace)) {
      if (sink.closed.aborted) return;
      if (plan.selected(object)) await event('ADDED', object);
    }
    if (plan.initialEnd && plan.bookmarks) await bookmark(plan.from, true);
  };

  const follow = async (): Promise<void> => {
    let cursor = plan.from;
    while (!sink.closed.aborted && failure === undefined && performance.now() < end) {
      const changes = store.changesAfter(kind, cursor, BATCH);
      if (changes === undefined) {
        failure = GONE(cursor, store.version());
        return;
      }
      for (const change of changes) {
        const shown = shownAs(change, plan.selected);
        if (shown !== undefined && !silent) await event(shown.type, shown.object);
        cursor = change.version;
      }
      if (changes.length > 0) continue;
      const before = performance.now();
      await idle();
      const quiet = performance.now() - before >= settings.bookmarkMs - 1 || performance.now() >= end;
      const pending = store.changesAfter(kind, cursor, 1)?.length !== 0;
      if (plan.bookmarks && quiet && !silent && !pending) {
        cursor = Math.max(cursor, store.version());
        await bookmark(cursor, false);
      }
    }
  };

  const run = async (): Promise<void> => {
    const leave = store.listen(kind, () => wake());
    const closed = (): void => wake();
    sink.closed.addEventListener('abort', closed);
    try {
      if (plan.initial) await sendInitial();
      await follow();
      if (failure !== undefined && !sink.closed.aborted) await event('ERROR', failure);
    } finally {
      leave();
      sink.closed.removeEventListener('abort', closed);
    }
  };

  const handle: LiveWatch = {
    kind,
    namespace,
    user,
    silence: () => void (silent = true),
    fail: (status) => {
      failure = status;
      wake();
    },
  };
  return { run, handle };
};

/** How a change looks to a watch with a selector: what leaves the selection is gone for it. */
const shownAs = (
  { type, object, before }: Change,
  selected: Selector,
): { type: Change['type']; object: KubeObject } | undefined => {
  const is = selected(object);
  const was = before !== undefined && selected(before);
  if (type === 'DELETED') return is || was ? { type, object } : undefined;
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object };
  return was ? { type: 'DELETED', object } : undefined;
};
