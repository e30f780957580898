import { parseStreamName, streamName } from '../../domain/stream-name.ts';
import { aggregateOf, type AnyKind } from '../../domain/kinds.ts';
import { reject, type DomainEvent, type Rejection } from '../../domain/decider.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type {
  AppendAhead,
  CommandContext,
  CommandOutcome,
  CommandRunner,
  Loaded,
  SentAppend,
} from './command.ts';
import { OutcomeUnknown, StoreUnavailable, type Position } from '../log/event-store.ts';
import {
  claimsOf,
  type NameClaim,
  type Names,
  type Reservation,
  settleSlot,
  type SlotParts,
} from '../names/names.ts';
import type { Clock, RecordRejection, Timers } from '../ports.ts';
import { createProjectEntries, type ProjectEntries } from '../tenancy/project-entries.ts';
import { ReferencesBusy } from '../references/reference-guard.ts';
import {
  createReferrals,
  type Checked,
  type ReferenceCheck,
  type ReferralOptions,
  type ReferralsOptions,
} from '../references/referrals.ts';
import { createStreamQueue } from './stream-queue.ts';
import { createTakings, type Taking } from './takings.ts';
import { refusedCommand } from './refusals.ts';

/** Runs commands on resources together with the names and unique values that they take and give back. */
export type ResourceCommands = {
  /**
   * Like `CommandRunner.execute`, and throws the same. A creation reserves its names first; a change of unique values
   * reserves the new ones before and gives the old ones back after it; an object that is gone gives back all.
   *
   * `command` may be a function of how often this creation had been abandoned before (see `AbandonCreation` of the
   * deciders): only a command that knows of it is accepted then. `likelyNew`: the id belongs to this command alone,
   * so that reading the stream first would mostly be wasted.
   */
  execute<S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    id: string,
    command: C | ((abandonedBefore: number) => C),
    context: CommandContext,
    options?: ResourceOptions,
  ): Promise<CommandOutcome<S>>;
  /** Runs tasks on one object one after another: those that would overtake each other again and again. */
  inTurn<T>(kind: string, id: string, task: () => Promise<T>): Promise<T>;
};

export type ResourceOptions = ReferralOptions & { readonly likelyNew?: boolean };

export type ResourceCommandsOptions = {
  readonly runner: CommandRunner;
  readonly names: Names;
  readonly clock: Clock;
  readonly recordRejection: RecordRejection;
  /** Called when names could not be given back at once; the repair loop does it later. */
  readonly onLeftBehind?: (error: unknown) => void;
  /** Bounds how long a creation and a deletion wait for each other. */
  readonly timers: Timers;
  /** `ReferralsOptions.caughtUp`. Default: there is no read model to wait for. */
  readonly caughtUp?: ReferralsOptions['caughtUp'];
  /** `ReferralsOptions.announcedTo`. Default: nothing is announced. */
  readonly announcedTo?: ReferralsOptions['announcedTo'];
  /** `EventStore.singleWriter`. Default true. */
  readonly singleWriter?: boolean;
};

type Command = { readonly type: string };

/** How often a command is repeated because it was abandoned while it ran, or because a gone resource held a name. */
const MAX_REPEATS = 5;

export const createResourceCommands = ({
  runner,
  names,
  clock,
  recordRejection,
  onLeftBehind = () => undefined,
  timers,
  caughtUp = async () => true,
  announcedTo = () => [],
  singleWriter = true,
}: ResourceCommandsOptions): ResourceCommands => {
  const entries = createProjectEntries({ runner, names, clock });
  const takings = createTakings({ runner, names, clock });
  const referrals = createReferrals({
    runner,
    clock,
    step: names.step,
    caughtUp,
    announcedTo,
    timers,
    alone: singleWriter,
  });
  const turns = createStreamQueue();

  const executeOnce = async (
    kind: AnyKind,
    id: string,
    command: Command,
    context: CommandContext,
    { likelyNew = false, ...references }: ResourceOptions,
  ): Promise<{ readonly outcome: CommandOutcome<unknown>; readonly obstacle: NameClaim | undefined }> => {
    const held = holdingsOf({ runner, names, clock, entries, takings, singleWriter }, kind, id, context);
    let outcome: CommandOutcome<unknown>;
    try {
      outcome = await referrals.carryOut(kind, id, context, references, (exact, check) =>
        runner.execute(aggregateOf(kind), id, command, exact, {
          likelyNew,
          step: true,
          beforeAppend: (loaded, events) => held.take(loaded, events, check),
        }),
      );
    } catch (error) {
      if (error instanceof ReferencesBusy) await held.giveUp().catch(onLeftBehind);
      // A reservation is stored: "nothing happened" would be wrong, and the retry finishes what was begun.
      if (error instanceof StoreUnavailable && (await held.holdsAny()))
        throw new OutcomeUnknown(streamName(kind.kind, id), { cause: error });
      throw error;
    }
    if (outcome.outcome === 'accepted') entries.leave(streamName(kind.kind, id));
    // A replayed outcome shows the past; who holds what now was settled then, or is by the repair loop.
    if (outcome.outcome === 'accepted' && outcome.replayed) return { outcome, obstacle: undefined };
    const release = outcome.outcome === 'rejected' ? held.giveUp() : held.giveBack(outcome);
    // The command has its outcome; what is left behind here is released by the repair loop.
    const settled = await release.catch(onLeftBehind);
    return { outcome: withPosition(outcome, settled ?? undefined), obstacle: held.obstacle() };
  };

  /**
   * A workflow that ends a resource does not give its names back itself. Whoever wants one need not wait for the
   * repair loop to do it. False: its holder is alive and keeps it. Not done while a stream is being worked on: two
   * resources could wait for each other.
   */
  const makeFree = async (kind: AnyKind, claim: NameClaim, context: CommandContext): Promise<boolean> => {
    const found = await names.look(claim.id);
    if (found?.state.status !== 'held') return true;
    const { holder, stream } = found.state;
    const owner = parseStreamName(stream);
    if (owner.category !== kind.kind) return false;
    const aggregate = aggregateOf(kind);
    // Reserved by what was never written: the next one under this id may be on its way, and only the repair loop, which
    // stops it first, takes its name. Asked before the state is read, which would else miss that it was written
    // meanwhile.
    const left = kind.idOnce === true || (await runner.find(aggregate, owner.id, found.state.commandId));
    if (left === undefined) return false;
    const view = kind.view((await runner.load(aggregate, owner.id)).state);
    if (!view.exists || !view.archived) return false;
    // Not released by us: the repair loop or another instance was faster, and whoever has it now is looked at anew.
    await names.release(claim.id, found.revision, holder, 'deleted', context);
    return true;
  };

  const execute = async (
    kind: AnyKind,
    id: string,
    command: Command | ((abandonedBefore: number) => Command),
    context: CommandContext,
    options: ResourceOptions = {},
  ): Promise<CommandOutcome<unknown>> => {
    let abandonedBefore = 0;
    for (let repeats = 0; ; repeats += 1) {
      const concrete = typeof command === 'function' ? command(abandonedBefore) : command;
      const { outcome, obstacle } = await executeOnce(kind, id, concrete, context, options);
      if (outcome.outcome === 'accepted') return outcome;
      if (repeats < MAX_REPEATS) {
        const times = outcome.rejection.facts?.['times'];
        const abandoned = outcome.rejection.code === 'CREATION_ABANDONED' && typeof times === 'number';
        if (abandoned && typeof command === 'function') {
          abandonedBefore = times;
          continue;
        }
        // What was taken for new may be a repeat: then its first call is what counts.
        if (options.likelyNew && (await runner.find(aggregateOf(kind), id, context.commandId))) continue;
        if (obstacle !== undefined && (await makeFree(kind, obstacle, context))) continue;
      }
      const about = { category: kind.kind, id };
      recordRejection(refusedCommand(concrete.type, outcome.rejection, context, clock.now(), about));
      return outcome;
    }
  };

  return {
    inTurn: (kind, id, task) => turns.run(`${kind} ${id}`, task),
    // The command and the state are of the kind that was given; nothing in between looks into them.
    execute: execute as unknown as ResourceCommands['execute'],
  };
};

/** What the caller is told of a name or value that somebody else has (OSAC). */
export const takenRejection = (
  kind: Pick<ResourceKind, 'words' | 'ids'>,
  claim: NameClaim,
  name: string,
): Rejection => {
  const message =
    claim.taken ??
    (claim.field !== 'metadata.name'
      ? `${kind.words} with ${claim.field} '${claim.value}' already exists`
      : kind.ids === 'equals-name'
        ? `${kind.words} '${name}' already exists`
        : `${kind.words} with name '${name}' already exists`);
  return reject('already-exists', 'ALREADY_EXISTS', message, { field: claim.field });
};

/** What one attempt at one resource holds and owes. */
const holdingsOf = (
  parts: SlotParts & {
    readonly entries: ProjectEntries;
    readonly takings: ReturnType<typeof createTakings>;
    readonly singleWriter: boolean;
  },
  kind: AnyKind,
  id: string,
  context: CommandContext,
) => {
  const { names, entries, takings, singleWriter } = parts;
  const reserved = new Map<string, Reservation>();
  /** What its last attempt claimed of others, by the one that lends. */
  const taken = new Map<string, Taking>();
  const giveBackTaken = async (): Promise<void> => {
    await takings.giveBack({ kind: kind.kind, id }, [...taken.values()], context);
    taken.clear();
  };
  let obstacle: NameClaim | undefined;
  let removed: readonly { readonly id: string; readonly revision: number }[] = [];
  const slots = new Set<string>();

  /** Who shows a slot that this command moved, at last. Position of the last event it took. */
  const settleSlots = async (): Promise<Position | undefined> => {
    let position: Position | undefined;
    for (const slot of slots) position = (await settleSlot(parts, kind, slot, context)) ?? position;
    return position;
  };
  /** What the resource owns after the events that were last to be appended. */
  let planned: { readonly events: readonly DomainEvent[]; readonly has: readonly NameClaim[] } | undefined;
  /** The reservation that was sent last; false: somebody else has the name. */
  let last: Promise<boolean> = Promise.resolve(true);
  /** It is not known whether one that was sent is stored. */
  let mayHold = false;

  const note = (claim: NameClaim, reservation: Reservation | undefined): boolean => {
    if (reservation === undefined) {
      obstacle = claim;
      return false;
    }
    const earlier = reserved.get(claim.id);
    const still = earlier?.fresh === true && earlier.revision + 1 === reservation.revision;
    reserved.set(claim.id, { ...reservation, fresh: reservation.fresh || still });
    return true;
  };
  /** Resolves once the reservation was sent, or is refused. */
  const send = (claim: NameClaim, holder: Parameters<Names['reserve']>[1]): Promise<SentAppend | undefined> =>
    new Promise((resolve, reject) => {
      last = names
        .reserve(claim, holder, context, { onSent: resolve })
        .then((reservation) => note(claim, reservation));
      last.then(() => resolve(undefined), reject);
    });
  /** What was sent is stored and noted, or never will be, or nobody knows. */
  const settled = (): Promise<unknown> =>
    last.catch((error: unknown) => {
      mayHold ||= error instanceof OutcomeUnknown;
    });

  /** Where the streams of names stand that the resource is about to lose: released later only from there. */
  const lookAt = async (claims: readonly NameClaim[]): Promise<typeof removed> => {
    const found = await Promise.all(claims.map(({ id: name }) => names.look(name)));
    return claims.flatMap((claim, i) => {
      const revision = found[i]?.revision;
      return revision === undefined ? [] : [{ id: claim.id, revision }];
    });
  };

  return {
    holdsAny: async (): Promise<boolean> => {
      await settled();
      return mayHold || reserved.size > 0 || taken.size > 0;
    },
    /** What somebody else holds, so that the command was refused. */
    obstacle: (): NameClaim | undefined => obstacle,

    /** Reserves what the resource takes with these events, and notes what it will give back. */
    take: async <B extends Checked>(
      loaded: Loaded<unknown>,
      events: readonly DomainEvent[],
      check: ReferenceCheck<B>,
    ): Promise<Rejection | AppendAhead | B | undefined> => {
      await settled();
      obstacle = undefined;
      const before = kind.view(loaded.state);
      const after = kind.view(events.reduce(kind.decider.evolve, loaded.state));
      // Before anything is reserved: whoever waits here is in nobody's way.
      const held = await check(before, after, loaded);
      if (held !== undefined) return held;
      const had = claimsOf(kind, before);
      const has = claimsOf(kind, after);
      planned = { events, has };
      removed = await lookAt(without(had, has));
      for (const claim of [...without(has, had), ...without(had, has)])
        if (claim.slot === true) slots.add(claim.id);
      const holder = { kind: kind.kind, id, stream: streamName(kind.kind, id), exists: before.exists };
      const enters = comesInto(before, after);
      const takes = kind.takes !== undefined && comesToBe(before, after);
      const wanted = without(has, had);
      for (const claim of wanted) {
        const sent = await send(claim, holder);
        const outcome = async (): Promise<Rejection | undefined> =>
          (await last) ? undefined : takenRejection(kind, claim, after.exists ? after.name : '');
        // Both go into one commit. A store with other writers takes them one after the other anyway.
        const isLast = claim === wanted.at(-1) && !enters && !takes && claim.slot !== true;
        if (singleWriter && isLast && sent !== undefined) return { ...sent, outcome };
        const refusal = await outcome();
        if (refusal !== undefined) return refusal;
      }
      if (comesToBe(before, after)) {
        const note = (one: Taking): void => void taken.set(`${one.lender.kind}/${one.id}`, one);
        const refusal = await takings.take(kind, after, context, note);
        if (refusal !== undefined) return refusal;
      }
      return enters ? entries.enter({ kind: kind.kind, stream: holder.stream }, after, context) : undefined;
    },

    /** After the append: what the resource no longer has, or did not take after all, is free. */
    giveBack: async ({
      loaded,
      events,
    }: Extract<CommandOutcome<unknown>, { outcome: 'accepted' }>): Promise<Position | undefined> => {
      await settled();
      const has = planned?.events === events ? planned.has : claimsOf(kind, kind.view(loaded.state));
      for (const name of removed) await names.release(name.id, name.revision, id, 'deleted', context);
      for (const { claim, revision, fresh } of reserved.values()) {
        if (fresh && without([claim], has).length > 0)
          await names.release(claim.id, revision, id, 'abandoned', context);
      }
      // It was never on a hub, or its workflow would have given this back. What a death left is for the repair.
      const view = kind.view(loaded.state);
      if (events.length > 0 && view.exists && view.archived)
        await takings.giveBack({ kind: kind.kind, id }, await takings.heldBy(kind, view), context);
      return settleSlots();
    },

    /**
     * After a refusal: frees what this attempt alone had taken. What an earlier attempt held before stays, for that
     * attempt may still be under way; the repair loop settles it.
     */
    giveUp: async (): Promise<Position | undefined> => {
      await settled();
      for (const { claim, revision, fresh } of reserved.values())
        if (fresh) await names.release(claim.id, revision, id, 'abandoned', context);
      await giveBackTaken();
      return settleSlots();
    },
  };
};

const comesToBe = (
  before: ResourceView,
  after: ResourceView,
): after is Extract<ResourceView, { exists: true }> =>
  (!before.exists || before.archived) && after.exists && !after.archived;

/** The events bring the object into being, in a project that has a name. */
const comesInto = (
  before: ResourceView,
  after: ResourceView,
): after is Extract<ResourceView, { exists: true }> => comesToBe(before, after) && after.project !== '';

/** A command's last event may be one on a resource that had to yield. */
const withPosition = (
  outcome: CommandOutcome<unknown>,
  last: Position | undefined,
): CommandOutcome<unknown> =>
  last === undefined || outcome.outcome === 'rejected'
    ? outcome
    : { ...outcome, loaded: { ...outcome.loaded, position: last } };

const without = (claims: readonly NameClaim[], others: readonly NameClaim[]): readonly NameClaim[] =>
  claims.filter((claim) => !others.some(({ id }) => id === claim.id));
