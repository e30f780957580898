import type { DomainEvent } from '../../domain/decider.ts';
import { aggregateOf, type AnyKind } from '../../domain/kinds.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { ResourceView } from '../../domain/resource.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { Checkpoint } from '../log/checkpoint.ts';
import type { Aggregate, CommandRunner } from '../commands/command.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  reachedBy,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../log/event-store.ts';
import { systemContext } from '../log/metadata.ts';
import { claimsOf, deciding, everyClaimOf, type Names, settleSlot } from './names.ts';
import type { Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';

/**
 * Finishes what a crash left half done with names: a reservation whose resource was never written is
 * released after a grace period, and what a gone resource still holds is released. Run by the owner of the processes;
 * two at once do no harm. See `names.ts` for why no name is ever lost or held twice.
 */
export type NameRepair = {
  /** Follows the log until the signal; resolves when it has stopped, and never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** Settles one reservation now, whatever its age. Returns what was done. */
  settle(nameId: string): Promise<'kept' | 'released' | 'free' | 'busy'>;
  /** Reservations whose resource has not been seen yet. */
  pending(): number;
  /** Events and reservations that were given up because something other than the store failed; each is logged. */
  skipped(): number;
};

export type NameRepairOptions = {
  readonly store: EventStore;
  readonly runner: CommandRunner;
  readonly names: Names;
  readonly kinds: readonly AnyKind[];
  /** Types of first events of resources (they complete a reservation) and of last ones (they end it). */
  readonly lifecycle: { readonly starts: readonly string[]; readonly ends: readonly string[] };
  readonly checkpoint: Checkpoint;
  /**
   * Milliseconds from a reservation until it counts as left behind; default 30,000. Too short costs a slow creation
   * another attempt, never its name.
   */
  readonly graceMs?: number;
} & Pick<Runtime, 'clock' | 'timers' | 'ids' | 'logger'>;

/** A reservation whose resource has not been seen. */
type Waiting = {
  readonly nameId: string;
  readonly stream: string;
  readonly dueMs: number;
  /** The command that made the reservation. */
  readonly commandId: string;
  /** A slot was taken over: the former holder has to yield even when this one was written. */
  readonly takenOver: boolean;
  /** Where to resume so that this reservation is seen again. */
  readonly before: Position | undefined;
};

/** Items between two saved checkpoints. */
const SAVE_EVERY = 1000;
const RETRY_MS = 1000;
/** Milliseconds that it may be late: nothing is repaired before its grace period, and each look costs the thread. */
const PATIENCE_MS = 250;
/** Tries before what fails for another reason than the store is given up: one bad event must not stop all others. */
const TRIES = 3;

export const createNameRepair = (options: NameRepairOptions): NameRepair => {
  const { store, runner, names, checkpoint, clock, timers, ids, logger } = options;
  const graceMs = options.graceMs ?? 30_000;
  const kinds = new Map(options.kinds.map((kind) => [kind.kind, kind]));
  const starts = new Set(options.lifecycle.starts);
  const ends = new Set(options.lifecycle.ends);
  /** By name id, oldest first: the grace period is the same for all. */
  const waiting = new Map<string, Waiting>();
  /** Name ids in `waiting` by the resource's stream. */
  const waitingFor = new Map<string, readonly string[]>();
  let skipped = 0;

  /**
   * Moves the resource's stream on, unless it owns the name after all: an append under way then fails. Returns what the
   * resource is now; undefined: others kept changing it, and nothing may be taken from it.
   */
  const fence = async (
    kind: AnyKind,
    id: string,
    nameId: string,
    commandId: string,
  ): Promise<ResourceView | undefined> => {
    const command: Fence = { type: 'FenceReservation', at: clock.now(), nameId, commandId };
    const context = systemContext(ids.uuidv7(), 'repair', { causationId: commandId });
    const fenced = await runner.execute(fenceOf(kind), id, command, context, { step: true });
    return fenced.outcome === 'accepted' ? kind.view(fenced.loaded.state) : undefined;
  };

  /** Who shows a slot, where the name is one. */
  const settleAt = async (kind: AnyKind, nameId: string, causationId: string): Promise<void> => {
    const context = systemContext(ids.uuidv7(), 'repair', { causationId });
    await settleSlot({ runner, names, clock }, kind, nameId, context);
  };

  const settle: NameRepair['settle'] = async (nameId) => {
    const found = await names.look(nameId);
    if (found === undefined || found.state.status === 'free') return 'free';
    const { holder, stream, commandId } = found.state;
    const { category: kindName, id } = parseStreamName(stream);
    const kind = kinds.get(kindName);
    if (kind === undefined) return 'kept';
    const view = await fence(kind, id, nameId, commandId);
    if (view === undefined) return 'busy';
    if (claimsOf(kind, view).some((claim) => claim.id === nameId)) {
      await settleAt(kind, nameId, commandId);
      return 'kept';
    }
    const why = view.exists ? 'deleted' : 'abandoned';
    const cause = { causationId: commandId };
    const context = systemContext(ids.uuidv7(), 'repair', cause);
    const released = await names.release(nameId, found.revision, holder, why, context);
    await settleAt(kind, nameId, commandId);
    return released ? 'released' : 'busy';
  };

  /** As the event left it: the next one under its id may exist by now, and own other names. */
  const viewAt = async (kind: AnyKind, id: string, revision: number): Promise<ResourceView> => {
    const now = await runner.load(aggregateOf(kind), id);
    if (now.revision === revision) return kind.view(now.state);
    return kind.view((await runner.load(aggregateOf(kind), id, { asOfRevision: revision })).state);
  };

  /**
   * What a gone resource still holds, and the next one under its id has not taken. Whoever is about to write that
   * one is
   * stopped first.
   */
  const releaseAllOf = async (event: RecordedEvent): Promise<void> => {
    const { category: kindName, id } = parseStreamName(event.stream);
    const kind = kinds.get(kindName);
    if (kind === undefined) return;
    const view = await viewAt(kind, id, event.revision);
    if (!view.exists || !view.archived) return;
    for (const claim of everyClaimOf(kind, view)) {
      const found = await names.look(claim.id);
      if (found?.state.status !== 'held' || found.state.stream !== event.stream) continue;
      const now = await fence(kind, id, claim.id, event.id);
      if (now === undefined) throw new Error(`${event.stream} keeps changing`);
      if (claimsOf(kind, now).some((owned) => owned.id === claim.id)) continue;
      const context = systemContext(ids.uuidv7(), 'repair', { causationId: event.id, tenant: view.tenant });
      await names.release(claim.id, found.revision, found.state.holder, 'deleted', context);
      if (claim.slot === true) await settleAt(kind, claim.id, event.id);
    }
  };

  const wait = (entry: Waiting): void => {
    forget(entry.nameId);
    waiting.set(entry.nameId, entry);
    waitingFor.set(entry.stream, [...(waitingFor.get(entry.stream) ?? []), entry.nameId]);
  };
  const forget = (nameId: string): void => {
    const entry = waiting.get(nameId);
    if (entry === undefined) return;
    waiting.delete(nameId);
    const others = waitingFor.get(entry.stream)?.filter((id) => id !== nameId) ?? [];
    if (others.length === 0) waitingFor.delete(entry.stream);
    else waitingFor.set(entry.stream, others);
  };

  const handle = async (event: RecordedEvent, before: Position | undefined): Promise<void> => {
    if (event.type === 'NameReserved') {
      const nameId = parseStreamName(event.stream).id;
      const stream = textOf(event.data['stream']);
      const commandId = textOf(event.data['commandId']);
      const takenOver = event.data['takenFrom'] !== undefined;
      wait({ nameId, stream, commandId, takenOver, before, dueMs: clock.monotonicMs() + graceMs });
    } else if (event.type === 'NameReleased') {
      forget(parseStreamName(event.stream).id);
    } else if (starts.has(event.type)) {
      // What the resource's own command reserved is in use; what another one reserved for it is not.
      for (const nameId of waitingFor.get(event.stream) ?? []) {
        const entry = waiting.get(nameId);
        if (entry?.takenOver === false && entry.commandId === event.metadata['commandId']) forget(nameId);
      }
    } else if (ends.has(event.type)) {
      await releaseAllOf(event);
    }
  };

  /** Until it succeeds, the signal comes (the log may be away for a while) or it cannot succeed: then undefined. */
  const insist = async <T>(
    what: string,
    signal: AbortSignal,
    task: () => Promise<T>,
  ): Promise<T | undefined> => {
    let tries = 0;
    while (!signal.aborted) {
      try {
        return await task();
      } catch (error) {
        if (signal.aborted) return undefined;
        if (!(error instanceof StoreUnavailable) && !(error instanceof OutcomeUnknown)) tries += 1;
        if (tries >= TRIES) {
          skipped += 1;
          logger.error({ err: error, what }, 'name repair skips an event that it cannot handle');
          return undefined;
        }
        logger.warn({ err: error, what }, 'name repair failed; retrying');
        await pause(timers, RETRY_MS, signal);
      }
    }
    return undefined;
  };

  /** False: somebody else has saved since the checkpoint was loaded. */
  const save = async (position: Position, signal: AbortSignal): Promise<boolean> => {
    const oldest: Waiting | undefined = waiting.values().next().value;
    const from = oldest === undefined ? position : oldest.before;
    if (from === undefined) return true;
    return (await insist('saving the checkpoint', signal, () => checkpoint.save(from))) !== false;
  };

  /** Returns on the signal, or when its checkpoint is no longer its own. */
  const follow = async (signal: AbortSignal): Promise<void> => {
    const after = await insist('loading the checkpoint', signal, () => checkpoint.load(signal));
    const typePrefixes = ['NameReserved', 'NameReleased', ...starts, ...ends];
    let position = after;
    let unsaved = 0;
    const items = store.subscribe({
      ...(after && { after }),
      filter: { typePrefixes },
      signal,
      patienceMs: PATIENCE_MS,
      name: 'name repair',
    });
    for await (const item of items) {
      if (signal.aborted) return;
      const before = position;
      if (item.kind === 'event') {
        const { type, stream, revision } = item.event;
        await insist(`${type} (${stream}@${revision})`, signal, () => handle(item.event, before));
        unsaved += 1;
      } else if (item.kind === 'unreadable') {
        const { stream, revision, reason } = item.event;
        skipped += 1;
        logger.error({ stream, revision, reason }, 'event unreadable; name repair skips it');
      }
      // The end that caught-up names is not stored: should an event come there all the same, it is read from in
      // front of it.
      if (item.kind !== 'caught-up') position = reachedBy(item) ?? position;
      if (position === undefined || unsaved === 0) continue;
      if (unsaved < SAVE_EVERY && item.kind !== 'caught-up') continue;
      unsaved = 0;
      if (!(await save(position, signal))) return;
    }
  };

  const settleDue = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      const oldest: Waiting | undefined = waiting.values().next().value;
      const dueIn = oldest === undefined ? graceMs : oldest.dueMs - clock.monotonicMs();
      if (oldest === undefined || dueIn > 0) {
        await pause(timers, Math.max(0, dueIn), signal);
        continue;
      }
      const done = await insist(`settling ${oldest.nameId}`, signal, () => settle(oldest.nameId));
      if (done === 'released')
        logger.info({ name: oldest.nameId, stream: oldest.stream }, 'abandoned name reservation released');
      // A reservation made meanwhile has an entry and a grace period of its own.
      if (waiting.get(oldest.nameId) === oldest) forget(oldest.nameId);
    }
  };

  /** From the checkpoint until the signal, or until it has to begin there once more. */
  const runOnce = async (signal: AbortSignal): Promise<void> => {
    waiting.clear();
    waitingFor.clear();
    const over = new AbortController();
    const both = AbortSignal.any([signal, over.signal]);
    const following = follow(both).finally(() => over.abort());
    await Promise.all([following, settleDue(both)]);
  };

  return {
    run: async (signal) => {
      while (!signal.aborted) {
        try {
          await runOnce(signal);
          if (!signal.aborted)
            logger.warn({}, 'another instance repaired names; continuing at its checkpoint');
        } catch (error) {
          if (signal.aborted) return;
          logger.error({ err: error }, 'name repair stopped; restarting at its checkpoint');
        }
        await pause(timers, RETRY_MS, signal);
      }
    },
    settle,
    pending: () => waiting.size,
    skipped: () => skipped,
  };
};

const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

type Fence = {
  readonly type: 'FenceReservation';
  readonly at: string;
  readonly nameId: string;
  /** The command whose reservation is about to be released. */
  readonly commandId: string;
};

/**
 * A resource that does not own the name (and is not gone for good) gets `CreationAbandoned`. On a resource that
 * exists the
 * event changes nothing but the revision, which is its purpose.
 */
const fenceOf = (kind: AnyKind): Aggregate<unknown, Fence, DomainEvent> =>
  deciding(kind, (state, { at, nameId, commandId }) => {
    const view = kind.view(state);
    const gone = view.exists && view.archived && kind.idOnce === true;
    if (gone || claimsOf(kind, view).some(({ id }) => id === nameId)) return [];
    return [{ type: 'CreationAbandoned', data: { at, commandId } }];
  });
