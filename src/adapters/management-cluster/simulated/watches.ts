import type { HubObjectEvent, OwnedShown } from '../../../domain/hubs/hub-object.ts';
import type { Behaviour } from './behaviours/behaviour.ts';
import type { HubFile } from './hub-file.ts';
import type { WatchPoll } from './protocol.ts';
import type { ObjectRecord } from './record.ts';

/** What one watch knows of one living object. */
type Known = {
  /** Kept only while the object moves by itself. */
  record: ObjectRecord | undefined;
  lastVersion: number;
  nextAt: number | undefined;
};
type Watch = {
  readonly behaviour: Behaviour;
  readonly namespace: string;
  /** By uid. */
  readonly known: Map<string, Known>;
  /** Those that will change by themselves, by uid: few, while `known` may be many. */
  readonly moving: Set<string>;
  lastChange: number;
  listed: boolean;
};
type Timed = { readonly version: number; readonly name: string; readonly event: HubObjectEvent };

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

  /** New states of one object since the watch last looked. */
  const advance = (watch: Watch, entry: Known, record: ObjectRecord, now: number): Timed[] => {
    const found: Timed[] = [];
    const life = watch.behaviour.replay(record, now, (version, shown) => {
      if (version.resourceVersion <= entry.lastVersion) return;
      entry.lastVersion = version.resourceVersion;
      const type = version.gone ? 'deleted' : 'applied';
      found.push({ version: version.resourceVersion, name: record.name, event: { type, object: shown() } });
    });
    entry.nextAt = life.nextAt;
    entry.record = life.nextAt === undefined ? undefined : record;
    if (life.goneAt !== undefined) {
      watch.known.delete(record.uid);
      watch.moving.delete(record.uid);
    } else if (life.nextAt === undefined) watch.moving.delete(record.uid);
    else watch.moving.add(record.uid);
    return found;
  };

  const changedRecords = function* (watch: Watch): Generator<ObjectRecord> {
    for (let full = true; full; ) {
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
      const life = watch.behaviour.replay(record, now);
      if (life.object === undefined) continue;
      objects.push(life.object);
      const lastVersion = Number(life.object.resourceVersion);
      const { nextAt } = life;
      watch.known.set(record.uid, {
        record: nextAt === undefined ? undefined : record,
        lastVersion,
        nextAt,
      });
      if (nextAt !== undefined) watch.moving.add(record.uid);
    }
    watch.lastChange = Math.max(watch.lastChange, listedTo);
    watch.listed = true;
    return [
      ...objects.map((object) => ({ type: 'applied' as const, object })),
      { type: 'synced', names: objects.map(({ name }) => name), resourceVersion: String(now * 1000) },
    ];
  };

  const follow = (watch: Watch, now: number): HubObjectEvent[] => {
    const due = new Map<string, ObjectRecord>();
    for (const uid of watch.moving) {
      const entry = watch.known.get(uid);
      if (entry?.record !== undefined && entry.nextAt !== undefined && entry.nextAt <= now) {
        due.set(uid, entry.record);
      }
    }
    for (const record of changedRecords(watch)) due.set(record.uid, record);
    return [...due.values()]
      .flatMap((record) => {
        const entry = watch.known.get(record.uid) ?? { record, lastVersion: 0, nextAt: undefined };
        watch.known.set(record.uid, entry);
        return advance(watch, entry, record, now);
      })
      .sort((a, b) => a.version - b.version || (a.name < b.name ? -1 : 1))
      .map(({ event }) => event);
  };

  const nextOf = (watch: Watch): number | undefined => {
    let next: number | undefined;
    for (const uid of watch.moving) {
      const at = watch.known.get(uid)?.nextAt;
      if (at !== undefined && (next === undefined || at < next)) next = at;
    }
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
        moving: new Set(),
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
