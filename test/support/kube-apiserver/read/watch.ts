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
const CHUNK = 65_536;

const watchStream = (
  store: Store,
  { kind, namespace, user }: WatchRequest,
  plan: WatchPlan,
  sink: WatchSink,
  settings: WatchSettings,
) => {
  let wakeSleeper: () => void = () => {};
  /** Something happened since it was last looked: sleeping then would miss it. */
  let stirred = false;
  let silent = false;
  let failure: StatusBody | undefined;
  const end = performance.now() + (plan.timeoutMs ?? settings.timeoutMs);

  const wake = (): void => {
    stirred = true;
    wakeSleeper();
  };

  /** Until something happens, or it is time for a bookmark or the end. True: nothing happened. */
  const idle = async (): Promise<boolean> => {
    if (stirred) return false;
    await new Promise<void>((resolve) => {
      const left = Math.max(0, end - performance.now());
      const timer = setTimeout(resolve, Math.min(left, plan.bookmarks ? settings.bookmarkMs : left));
      wakeSleeper = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    if (!stirred) return true;
    // What other requests of this turn change goes out with it.
    await new Promise((resolve) => setImmediate(resolve));
    return false;
  };

  let buffered = '';
  const flush = async (): Promise<void> => {
    const text = buffered;
    buffered = '';
    if (text !== '') await sink.send(text);
  };

  /** Lines go out together, as far as they come together. */
  const event = async (type: string, object: object): Promise<void> => {
    buffered += `${JSON.stringify({ type, object })}\n`;
    if (buffered.length >= CHUNK) await flush();
  };

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
    await flush();
  };

  const follow = async (): Promise<void> => {
    let cursor = plan.from;
    while (!sink.closed.aborted && failure === undefined && performance.now() < end) {
      stirred = false;
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
      await flush();
      if (changes.length > 0 || !(await idle()) || stirred || !plan.bookmarks || silent) continue;
      // Nothing of this kind is pending, so all that happened elsewhere is known to the caller, too.
      cursor = Math.max(cursor, store.version());
      await bookmark(cursor, false);
      await flush();
    }
  };

  const run = async (): Promise<void> => {
    const leave = store.listen(kind, wake);
    sink.closed.addEventListener('abort', wake);
    try {
      if (plan.initial) await sendInitial();
      await follow();
      if (failure !== undefined && !sink.closed.aborted) await event('ERROR', failure);
      await flush();
    } finally {
      leave();
      sink.closed.removeEventListener('abort', wake);
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
