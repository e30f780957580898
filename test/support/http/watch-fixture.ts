import type { Logger } from '../../../src/app/ports.ts';
import type { FilterNode } from '../../../src/projections/filter/ast.ts';
import {
  BEFORE_ALL_CHANGES,
  compareKeys,
  type Change,
  type ChangeKey,
  type ChangeReader,
} from '../../../src/projections/resources/change-reader.ts';
import type { Audience } from '../../../src/http/osac/watch/audience.ts';
import {
  createWatchHub,
  type OpenWatch,
  type WatchHub,
  type WatchSettings,
} from '../../../src/http/osac/watch/hub.ts';
import { endFrame } from '../../../src/http/osac/watch/http-sink.ts';
import { createRenderer, type Framing } from '../../../src/http/osac/watch/rendered-change.ts';
import type { Sink } from '../../../src/http/osac/watch/watcher.ts';
import { manualTime, type ManualTime } from '../manual-time.ts';

/** Changes without a read model: whatever is put in is there at once. */
export type FakeChanges = ChangeReader & {
  readonly put: (...changes: readonly Partial<Change>[]) => void;
  readonly prune: (to: ChangeKey) => void;
  readonly forgetAfter: (position: string) => void;
  /** Makes every read throw. */
  broken: boolean;
  reads: number;
};

export const at = (n: number): ChangeKey => ({ position: String(n).padStart(4, '0'), n: 0 });

export const fakeChanges = (): FakeChanges => {
  let rows: Change[] = [];
  let pruned: ChangeKey | undefined;
  let count = 0;
  const listeners = new Set<() => void>();
  const tell = (): void => {
    for (const listener of listeners) listener();
  };
  const changes: FakeChanges = {
    broken: false,
    reads: 0,
    after: (key, { rows: most, characters, tenants }) => {
      if (changes.broken) throw new Error('disk I/O error');
      changes.reads += 1;
      const page: Change[] = [];
      let size = 0;
      for (const row of rows) {
        if (compareKeys(row, key) <= 0 || tenants?.includes(row.tenant) === false) continue;
        page.push(row);
        size += row.document.length;
        if (page.length >= most || size >= characters) break;
      }
      return page;
    },
    newest: () => {
      const last = rows.at(-1);
      return last === undefined ? (pruned ?? BEFORE_ALL_CHANGES) : { position: last.position, n: last.n };
    },
    documentBefore: ({ kind, id, ...key }) =>
      rows.findLast((row) => row.kind === kind && row.id === id && compareKeys(row, key) < 0)?.document,
    prunedTo: () => pruned,
    onAdvance: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    put: (...added) => {
      for (const change of added) {
        count += 1;
        const id = change.id ?? `c${count}`;
        rows.push({
          ...at(count),
          kind: 'cluster',
          id,
          tenant: 't1',
          type: 'updated',
          document: `{"id":"${id}"}`,
          ...change,
        });
      }
      tell();
    },
    prune: (to) => {
      pruned = to;
      rows = rows.filter((row) => compareKeys(row, to) > 0);
    },
    forgetAfter: (position) => {
      rows = rows.filter((row) => row.position <= position);
      tell();
    },
  };
  return changes;
};

/** A far side whose network takes at most `takes` bytes at a time, and everything once `drain` is called. */
export type FakeSink = Sink & {
  readonly text: () => string;
  readonly ended: () => boolean;
  readonly drain: () => void;
  /** Bytes that its network takes without being read. */
  room: number;
  /** The most that was ever kept for it. */
  most: number;
};

export const fakeSink = (room = Number.POSITIVE_INFINITY): FakeSink => {
  let text = '';
  let kept = 0;
  let over = false;
  let listener: (() => void) | undefined;
  const sink: FakeSink = {
    room,
    most: 0,
    backlog: () => kept,
    write: (chunks) => {
      const chunk = Buffer.concat(chunks);
      text += chunk.toString();
      kept += chunk.byteLength;
      const fits = Math.min(kept, sink.room);
      kept -= fits;
      sink.room -= fits;
      sink.most = Math.max(sink.most, kept);
      return kept === 0;
    },
    onDrain: (listen) => {
      listener = listen;
    },
    end: (error) => {
      text += endFrame(error, 'ndjson');
      over = true;
    },
    text: () => text,
    ended: () => over,
    drain: () => {
      kept = 0;
      const listen = listener;
      listener = undefined;
      listen?.();
    },
  };
  return sink;
};

export type HubFixture = {
  readonly hub: WatchHub;
  readonly changes: FakeChanges;
  readonly time: ManualTime;
  readonly logged: object[];
  readonly watch: (options?: WatchOptions) => FakeSink & Pick<OpenWatch, 'forget'>;
  /** Lets everything happen that needs no time. */
  readonly settle: () => Promise<void>;
};
export type WatchOptions = {
  readonly tenants?: readonly string[];
  readonly filter?: FilterNode;
  readonly framing?: Framing;
  readonly after?: ChangeKey;
  readonly sink?: FakeSink;
};

export const hubFixture = (settings: Partial<WatchSettings> = {}): HubFixture => {
  const changes = fakeChanges();
  const time = manualTime();
  const logged: object[] = [];
  const logger: Logger = {
    debug() {},
    info() {},
    warn: (fields) => void logged.push(fields),
    error: (fields) => void logged.push(fields),
    child: () => logger,
  };
  const kind = {
    kind: 'cluster',
    message: 'Cluster',
    service: 'Clusters',
    privateOnly: ['status.hub'],
    secrets: [],
  };
  const formatId = ({ position, n }: ChangeKey): string => `${position}.${n}`;
  const hub = createWatchHub({
    changes,
    render: createRenderer({
      kinds: [{ ...kind, event: { field: 'cluster', public: true } }],
      formatId,
      documentBefore: changes.documentBefore,
      nowMs: () => Date.parse(time.clock.now()),
    }),
    formatId,
    timers: time.timers,
    monotonicMs: () => time.clock.monotonicMs(),
    logger,
    settings,
  });
  return {
    hub,
    changes,
    time,
    logged,
    watch: ({ tenants, filter, framing = 'ndjson', after = changes.newest(), sink = fakeSink() } = {}) => {
      const audience: Audience = {
        key: JSON.stringify(tenants ?? null),
        surface: 'public',
        tenants: tenants === undefined ? undefined : new Set(tenants),
        kinds: new Set(['cluster']),
      };
      const opened = hub.open({
        audience,
        filter,
        filterText: filter === undefined ? '' : 'a filter',
        framing,
        after,
        sink,
      });
      return Object.assign(sink, { forget: opened.forget });
    },
    settle: () => time.pass(0),
  };
};

/** Ids of the objects in what a watcher was sent, and the reason of its end when it was ended. */
export const toldOf = (sink: FakeSink): string[] =>
  sink
    .text()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => {
      const { result, error } = JSON.parse(line);
      return result === undefined
        ? `${error.details?.[0]?.reason ?? error.code} ${error.details?.[0]?.metadata?.last_id ?? ''}`.trim()
        : result.event.cluster.id;
    });
