import type { EventCodec } from '../../../src/app/log/event-codec.ts';
import { createCommandRunner } from '../../../src/app/commands/command-runner.ts';
import type { Checkpoint } from '../../../src/app/log/checkpoint.ts';
import { StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import { createNameRepair, type NameRepairOptions } from '../../../src/app/names/name-repair.ts';
import { createNames } from '../../../src/app/names/names.ts';
import type { Ids, RejectionRecord, Timers } from '../../../src/app/ports.ts';
import {
  createResourceCommands,
  type ResourceCommandsOptions,
} from '../../../src/app/commands/resource-commands.ts';
import type { AnyKind } from '../../../src/domain/kinds.ts';
import { createFakeClock } from './fake-context.ts';
import { GADGET_LIFECYCLE, gadget, gadgetCodec } from './fake-gadget.ts';
import { silentLogger } from '../loggers.ts';

/** Ids that count up, different for each prefix. */
export const createFakeIds = (prefix: string): Ids => {
  let next = 0;
  return {
    uuidv7: () => {
      next += 1;
      return `${prefix}-${next}`;
    },
  };
};

/** Timers that fire only when told to. */
export const createFakeTimers = (): Timers & { fire(): void } => {
  let waiting = new Set<() => void>();
  return {
    after: (_ms, run) => {
      waiting.add(run);
      return () => waiting.delete(run);
    },
    fire: () => {
      const due = waiting;
      waiting = new Set();
      for (const run of due) run();
    },
  };
};

/** Streams that an incarnation remembers. */
const REMEMBERED = 100;

const noCheckpoint: Checkpoint = { load: async () => undefined, save: async () => true };

type Settings = {
  readonly graceMs?: number;
  readonly codec?: EventCodec;
  readonly kinds?: readonly AnyKind[];
  readonly lifecycle?: NameRepairOptions['lifecycle'];
  readonly checkpoint?: Checkpoint;
  /** Of the resource commands; default: there is no read model. */
  readonly caughtUp?: () => Promise<boolean>;
  readonly announcedTo?: ResourceCommandsOptions['announcedTo'];
  /** Of the resource commands; default: those that fire only when told to. */
  readonly waits?: Timers;
};
// Repair only folds and looks: the kind's own commands never reach it.
const gadgets = [gadget as unknown as AnyKind];

/** One incarnation of the application core on a store that others may share. */
export const createIncarnation = (
  store: EventStore,
  name: string,
  {
    graceMs = 1000,
    codec = gadgetCodec,
    kinds = gadgets,
    lifecycle = GADGET_LIFECYCLE,
    checkpoint = noCheckpoint,
    caughtUp,
    announcedTo,
    waits,
  }: Settings = {},
) => {
  const clock = createFakeClock();
  const timers = createFakeTimers();
  const ids = createFakeIds(name);
  const rejections: RejectionRecord[] = [];
  const recordRejection = (record: RejectionRecord): void => void rejections.push(record);
  const runner = createCommandRunner({
    store,
    codec,
    clock,
    instance: name,
    recordRejection,
    cacheSize: REMEMBERED,
  });
  const names = createNames({ runner, clock, ids });
  const resources = createResourceCommands({
    runner,
    names,
    clock,
    recordRejection,
    timers: waits ?? timers,
    singleWriter: store.singleWriter,
    ...(caughtUp === undefined ? {} : { caughtUp }),
    ...(announcedTo === undefined ? {} : { announcedTo }),
  });
  const repair = createNameRepair({
    store,
    runner,
    names,
    kinds,
    lifecycle,
    checkpoint,
    clock,
    timers,
    ids,
    logger: silentLogger,
    graceMs,
  });
  return { runner, names, resources, repair, clock, timers, rejections };
};

/** The process dies at its `at`-th append (counted from 1), before or after that is stored; then nothing answers. */
export const crashing = (
  store: EventStore,
  plan: { readonly at: number; readonly when: 'before' | 'after' },
): EventStore => {
  let appends = 0;
  let dead = false;
  const refuse = (): void => {
    if (dead) throw new StoreUnavailable('this incarnation is dead', 'closed');
  };
  return {
    ...store,
    append: async (...args) => {
      refuse();
      appends += 1;
      if (appends < plan.at) return store.append(...args);
      if (plan.when === 'after') await store.append(...args);
      dead = true;
      throw new StoreUnavailable('this incarnation died', 'closed');
    },
    readStream: (...args) => {
      refuse();
      return store.readStream(...args);
    },
    currentRevision: async (...args) => {
      refuse();
      return store.currentRevision(...args);
    },
  };
};
