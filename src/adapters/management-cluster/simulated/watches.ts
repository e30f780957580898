import type { HubObjectEvent, OwnedShown } from '../../../domain/hubs/hub-object.ts';
import type { Behaviour, Life, Living } from './behaviours/behaviour.ts';
import type { HubFile } from './hub-file.ts';
import type { WatchPoll } from './protocol.ts';
import type { ObjectRecord } from './record.ts';

/** What one watch knows of one living object. */
type Known = {
  /** Goes on from the last look; kept only while the object moves by itself. */
  live: Living | undefined;
  lastVersion: number;
  nextAt: number | undefined;
  /** States that became visible since they were told last. */
  found: Timed[];
};
type Timed = { readonly version: number; readonly name: string; readonly event: HubObjectEvent };
type Watch = {
  readonly behaviour: Behaviour;
  readonly namespace: string;
  /** By uid. */
  readonly known: Map<string, Known>;
  /** Those that will change by themselves, by uid: few, while `known` may be many. */
  readonly moving: Map<string, Known>;
  lastChange: number;
  listed: boolean;
};

const PAGE = 500;

/**
 * Watches of one instance. A poll tells what became visible since the last one: every state in between, in the
 * order of time, as an API server would. Nothing is written, so watching costs the hub no transaction.
 */
export const createWatches = (
  file: HubFile,
  behaviours: readonly Behaviour[],
  timeOf: (now: number) => number,
  isDown: (now: number) => boolean,
) => {
  const watches = new Map<number, Watch>();
  let opened = 0;

  const follows = (watch: Watch, entry: Known, record: ObjectRecord): Living =>
    watch.behaviour.live(record, (version, shown) => {
      if (version.resourceVersion <= entry.lastVersion) return;
      entry.lastVersion = version.resourceVersion;
      const type = version.gone ? 'deleted' : 'applied';
      const event = { type, object: shown() } as const;
      entry.found.push({ version: version.resourceVersion, name: record.name, event });
    });

  const kept = (watch: Watch, uid: string, entry: Known, live: Living, life: Life): void => {
    entry.nextAt = life.nextAt;
    entry.live = life.nextAt === undefined ? undefined : live;
    if (life.nextAt === undefined) watch.moving.delete(uid);
    else watch.moving.set(uid, entry);
    if (life.goneAt !== undefined) watch.known.delete(uid);
  };

  const changedRecords = function* (watch: Watch): Generator<ObjectRecord> {
    for (let full = file.lastChange() > watch.lastChange; full; ) {
      const page = file.objectsChangedAfter(watch.lastChange, watch.listed, PAGE);
      for (const { record, changed } of page) {
        watch.lastChange = changed;
        if (record.kind === watch.behaviour.kind.kind && record.namespace === watch.namespace) yield record;
      }
      full = page.length === PAGE;
    }
  };

  const list = (watch: Watch, now: number): HubObjectEvent[] => {
    const objects: OwnedShown[] = [];
    // Read before: what is written meanwhile is followed. Objects that are gone are not listed, and not followed either.
    const listedTo = file.lastChange();
    for (const record of changedRecords(watch)) {
      const entry: Known = { live: undefined, lastVersion: Infinity, nextAt: undefined, found: [] };
      const live = follows(watch, entry, record);
      const life = live(now);
      if (life.object === undefined) continue;
      objects.push(life.object);
      entry.lastVersion = Number(life.object.resourceVersion);
      watch.known.set(record.uid, entry);
      kept(watch, record.uid, entry, live, life);
    }
    watch.lastChange = Math.max(watch.lastChange, listedTo);
    watch.listed = true;
    return [
      ...objects.map((object) => ({ type: 'applied' as const, object })),
      { type: 'synced', names: objects.map(({ name }) => name), resourceVersion: String(now * 1000) },
    ];
  };

  const follow = (watch: Watch, now: number): HubObjectEvent[] => {
    const due = new Map<string, Known>();
    for (const [uid, entry] of watch.moving)
      if (entry.nextAt !== undefined && entry.nextAt <= now) due.set(uid, entry);
    for (const record of changedRecords(watch)) {
      const entry = watch.known.get(record.uid) ?? {
        live: undefined,
        lastVersion: 0,
        nextAt: undefined,
        found: [],
      };
      entry.live = follows(watch, entry, record);
      watch.known.set(record.uid, entry);
      due.set(record.uid, entry);
    }
    return [...due]
      .flatMap(([uid, entry]) => {
        if (entry.live !== undefined) kept(watch, uid, entry, entry.live, entry.live(now));
        return entry.found.splice(0);
      })
      .sort((a, b) => a.version - b.version || (a.name < b.name ? -1 : 1))
      .map(({ event }) => event);
  };

  const nextOf = (watch: Watch): number | undefined => {
    let next: number | undefined;
    for (const { nextAt: at } of watch.moving.values())
      if (at !== undefined && (next === undefined || at < next)) next = at;
    return next;
  };

  return {
    /** Throws RangeError for a kind that this hub does not know. */
    open: (kind: string, namespace: string): number => {
      const behaviour = behaviours.find((one) => one.kind.kind === kind);
      if (behaviour === undefined) throw new RangeError(`no kind is called ${kind}`);
      opened += 1;
      watches.set(opened, {
        behaviour,
        namespace,
        known: new Map(),
        moving: new Map(),
        lastChange: 0,
        listed: false,
      });
      return opened;
    },
    /** Throws when the watch is not (or no longer) open here: the caller opens another and lists again. */
    poll: (id: number, wallNow: number): WatchPoll => {
      const watch = watches.get(id);
      if (watch === undefined) throw new Error(`watch ${id} is not open`);
      const now = timeOf(wallNow);
      if (isDown(now)) return { now, events: [], down: true };
      const events = watch.listed ? follow(watch, now) : list(watch, now);
      const nextAt = nextOf(watch);
      return { now, events, down: false, ...(nextAt === undefined ? {} : { nextAt }) };
    },
    close: (id: number): void => {
      watches.delete(id);
    },
  };
};
