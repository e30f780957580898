import { createTasks, TASK_SLICE_MS } from '../../../app/fairness/slicer.ts';
import type { Logger, Timers } from '../../../app/ports.ts';
import {
  BEFORE_ALL_CHANGES,
  compareKeys,
  type ChangeKey,
  type ChangeReader,
} from '../../../projections/resources/change-reader.ts';
import { fellOutOfRetention, logReplaced, readFailed, tooSlow, type Ending } from './endings.ts';
import { createGroups, type GroupRequest } from './groups.ts';
import type { RenderedChange, Renderer } from './rendered-change.ts';
import { chunkFor, endOf, type Sink, type Watcher } from './watcher.ts';

/**
 * All watchers of this instance. A change is read once, rendered once per surface, and a filter evaluated once per
 * distinct text; then it is written to the groups that it concerns. One who does not take what it is sent reads on from
 * the table at its own pace, a page at a time, and is closed when it takes nothing: nobody ever waits for it, and what
 * is kept of it in memory is bounded.
 */
export type WatchHub = {
  /** Begins behind `after`, which the caller has checked against retention. */
  readonly open: (request: WatchRequest) => OpenWatch;
  readonly status: () => WatchStatus;
  readonly endAll: (ending: Ending) => void;
};

export type WatchRequest = GroupRequest & { readonly after: ChangeKey; readonly sink: Sink };

export type OpenWatch = {
  /** Ends it with a last line that gives the reason. */
  readonly end: (ending: Ending) => void;
  readonly forget: () => void;
};

export type WatchStatus = {
  readonly watchers: number;
  readonly groups: number;
  /** Watchers that do not take what they were sent. */
  readonly waiting: number;
};

export type WatchHubOptions = {
  readonly changes: ChangeReader;
  readonly render: Renderer;
  readonly formatId: (key: ChangeKey) => string;
  readonly timers: Timers;
  readonly monotonicMs: () => number;
  readonly logger: Logger;
  readonly settings?: Partial<WatchSettings>;
};

export type WatchSettings = {
  /** Rows, and characters of documents, that are read and sent at once. */
  readonly pageRows: number;
  readonly pageCharacters: number;
  /** Bytes waiting for one watcher beyond which it no longer gets what comes, but reads on at its own pace. */
  readonly backlogBytes: number;
  /** Milliseconds in which a watcher must take what it was sent. */
  readonly stallMs: number;
  /** Milliseconds of silence after which Server-Sent Events get a comment line. */
  readonly heartbeatMs: number;
  /** Milliseconds between two looks at all watchers. */
  readonly sweepMs: number;
};

export const WATCH_SETTINGS: WatchSettings = {
  pageRows: 100,
  pageCharacters: 128 * 1024,
  backlogBytes: 64 * 1024,
  stallMs: 10_000,
  heartbeatMs: 15_000,
  sweepMs: 1_000,
};

export const createWatchHub = (options: WatchHubOptions): WatchHub => {
  const { changes, render, formatId, timers, monotonicMs, logger } = options;
  const settings = { ...WATCH_SETTINGS, ...options.settings };
  const page = { rows: settings.pageRows, characters: settings.pageCharacters };
  // Two, so that what comes is not behind thousands who read what was.
  const forAll = createTasks(monotonicMs);
  const forSingle = createTasks(monotonicMs, REST_MS);
  const groups = createGroups();
  const all = new Set<Watcher>();
  /** What live watchers have been given, and whether more is being given now. */
  const tail = { reached: BEFORE_ALL_CHANGES, busy: false, again: false };
  let stopFollowing = (): void => {};
  let cancelSweep = (): void => {};

  const forget = (watcher: Watcher): void => {
    if (watcher.state === 'ended') return;
    watcher.state = 'ended';
    all.delete(watcher);
    groups.leave(watcher);
    if (all.size > 0) return;
    stopFollowing();
    cancelSweep();
  };
  const end = (watcher: Watcher, ending: Ending): void => {
    if (watcher.state === 'ended') return;
    forget(watcher);
    watcher.sink.end(endOf(watcher, ending, formatId));
  };
  function* endEach(ending: Ending): Generator<void, void> {
    for (const watcher of all) {
      end(watcher, ending);
      yield;
    }
  }
  const endAll = (ending: Ending): void =>
    forSingle(endEach(ending), (error) => logger.error({ err: error }, 'watches not ended in order'));

  const give = (watcher: Watcher, chunks: readonly Uint8Array[], last: ChangeKey): void => {
    watcher.last = last;
    watcher.lastWriteMs = monotonicMs();
    const taken = watcher.sink.write(chunks);
    if (!taken && watcher.state === 'reading') wait(watcher);
  };
  const wait = (watcher: Watcher): void => {
    watcher.state = 'waiting';
    watcher.lastWriteMs = monotonicMs();
    watcher.group.live.delete(watcher);
    watcher.sink.onDrain(() => {
      if (watcher.state === 'waiting') read(watcher);
    });
  };
  const read = (watcher: Watcher): void => {
    watcher.state = 'reading';
    forSingle(readOn(watcher), (error) => {
      logger.error({ err: error }, 'changes for a watch unreadable');
      end(watcher, readFailed);
    });
  };

  /** One watcher's way from where it is to what comes, a page at a time. */
  function* readOn(watcher: Watcher): Generator<void, void> {
    const tenants = watcher.group.audience.tenants;
    const own = { ...page, tenants: tenants === undefined ? undefined : [...tenants] };
    while (watcher.state === 'reading') {
      const pruned = changes.prunedTo();
      if (pruned !== undefined && compareKeys(watcher.after, pruned) < 0)
        return end(watcher, fellOutOfRetention);
      const rows = changes.after(watcher.after, own);
      const last = rows.at(-1);
      if (last === undefined) {
        const newest = changes.newest();
        if (compareKeys(newest, watcher.after) > 0) watcher.after = newest;
        watcher.state = 'live';
        watcher.group.live.add(watcher);
        return;
      }
      const chunk = chunkFor(watcher.group, rows.map(render));
      watcher.after = { position: last.position, n: last.n };
      if (chunk !== undefined) give(watcher, chunk.chunks, chunk.last);
      yield;
    }
  }

  /** Gives what came to all live watchers, until there is nothing more. */
  function* follow(): Generator<void, void> {
    while (tail.again && all.size > 0) {
      tail.again = false;
      for (let rows = changes.after(tail.reached, page); ; rows = changes.after(tail.reached, page)) {
        const last = rows.at(-1);
        if (last === undefined || all.size === 0) break;
        yield* deliver(rows.map(render), tail.reached);
        if (compareKeys(last, tail.reached) > 0) tail.reached = { position: last.position, n: last.n };
      }
      if (wentBack()) yield* endEach(logReplaced);
    }
    tail.busy = false;
  }
  function* deliver(rows: readonly RenderedChange[], before: ChangeKey): Generator<void, void> {
    for (const group of groups.concernedBy(rows)) {
      const chunk = chunkFor(group, rows);
      yield;
      if (chunk === undefined) continue;
      for (const watcher of group.live) {
        // One who came while this page was under way may have had a part of it.
        const joined = compareKeys(watcher.after, before) > 0;
        if (!joined) watcher.after = before;
        const own = joined
          ? chunkFor(
              group,
              rows.filter((row) => compareKeys(row, watcher.after) > 0),
            )
          : chunk;
        if (watcher.sink.backlog() > settings.backlogBytes) wait(watcher);
        else if (own !== undefined) give(watcher, own.chunks, own.last);
        yield;
      }
    }
  }
  /** The newest change lies before what was given: the log is another one than it was. */
  const wentBack = (): boolean => {
    const newest = changes.newest();
    if (newest === BEFORE_ALL_CHANGES || compareKeys(newest, tail.reached) >= 0) return false;
    tail.reached = newest;
    return true;
  };
  const advance = (): void => {
    tail.again = true;
    if (tail.busy || all.size === 0) return;
    tail.busy = true;
    forAll(follow(), (error) => {
      tail.busy = false;
      logger.error({ err: error }, 'changes for all watches unreadable');
      endAll(readFailed);
    });
  };

  /** Comment lines carry how far the tail is: nothing up to there concerned the watcher, it may resume behind it. */
  function* sweep(): Generator<void, void> {
    const { reached } = tail;
    const heartbeat =
      reached === BEFORE_ALL_CHANGES ? COMMENT : Buffer.from(`:\nid: ${formatId(reached)}\n\n`);
    for (const watcher of all) {
      const silentMs = monotonicMs() - watcher.lastWriteMs;
      if (silentMs >= settings.stallMs && (watcher.state === 'waiting' || watcher.sink.backlog() > 0))
        end(watcher, tooSlow);
      else if (
        silentMs >= settings.heartbeatMs &&
        watcher.group.framing === 'sse' &&
        watcher.state === 'live'
      )
        beat(watcher, compareKeys(watcher.last, reached) < 0 ? heartbeat : COMMENT);
      yield;
    }
  }
  const beat = (watcher: Watcher, bytes: Uint8Array): void => {
    watcher.lastWriteMs = monotonicMs();
    watcher.sink.write([bytes]);
  };
  const sweepLater = (): void => {
    cancelSweep = timers.after(settings.sweepMs, () => {
      forSingle(sweep(), (error) => logger.error({ err: error }, 'watch upkeep failed'));
      sweepLater();
    });
  };

  return {
    open: ({ after, sink, ...request }) => {
      if (all.size === 0) {
        tail.reached = changes.newest();
        stopFollowing = changes.onAdvance(advance);
        sweepLater();
      }
      const group = groups.join(request);
      const lastWriteMs = monotonicMs();
      const watcher: Watcher = { group, sink, after, last: after, lastWriteMs, state: 'reading' };
      all.add(watcher);
      read(watcher);
      return { end: (ending) => end(watcher, ending), forget: () => forget(watcher) };
    },
    status: () => {
      let waiting = 0;
      for (const { state } of all) if (state === 'waiting') waiting += 1;
      return { watchers: all.size, groups: groups.count(), waiting };
    },
    endAll,
  };
};

/** Reading what was takes a third of the thread at most, however many do it and however far back they begin. */
const REST_MS = 2 * TASK_SLICE_MS;
/** A comment of Server-Sent Events: proxies see that the answer lives, clients ignore it. */
const COMMENT = Buffer.from(':\n\n');
