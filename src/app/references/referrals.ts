import { streamName } from '../../domain/stream-name.ts';
import type { Rejection } from '../../domain/decider.ts';
import { aggregateOf, kindOf, type AnyKind } from '../../domain/kinds.ts';
import type { ResourceView } from '../../domain/resource.ts';
import {
  createAnnouncements,
  isAnnounced,
  type Announced,
  type Announcements,
  type Pointer,
  createReferenceGuard,
  ReferencesBusy,
  type ReferenceGuard,
} from './reference-guard.ts';
import type { CommandContext, CommandOutcome, Loaded, Withheld } from '../commands/command.ts';
import { OutcomeUnknown, type ExpectedRevision, type Position } from '../log/event-store.ts';
import {
  newTargets,
  refusalOf,
  without,
  createReferenceTargets,
  keyOf,
  type Reaches,
  type ReferenceTargets,
} from './reference-targets.ts';
import type { Timers } from '../ports.ts';
import { TOO_MANY_CONFLICTS } from '../commands/refusals.ts';
import { createStreamQueue, type StreamQueue } from '../commands/stream-queue.ts';

/**
 * How nothing that is referred to disappears, nor a tenant under its objects. Within one instance:
 * 1. Whatever comes to refer to an object shares it (`ReferenceGuard`), then asks the object's stream whether it is
 *    still there, then appends, then leaves.
 * 2. A deletion closes the object, waits until the read model knows all that the log holds, looks at who refers to it,
 *    appends, then opens it again.
 *
 * On a log with other writers the guard sees only those of its own instance. There both sides announce in their own
 * streams what they are about to do, and rely on the order of the log and on exact revisions alone:
 * 1. The object that will refer stores `ReferencesAnnounced` at position r, then makes sure that it knows each
 *    target's stream up to r, then appends its change at exactly the revision behind. A target whose last event is
 *    `DeletionAnnounced` is waited for; after a while that is withdrawn, in case its writer has died.
 * 2. A deletion stores `DeletionAnnounced` at position d, waits for the read model, withdraws every announcement of a
 *    reference that is older than d and still the last event of its stream, waits again, looks at who refers to the object,
 *    and appends at exactly the revision behind its announcement.
 * Either r < d: the deletion sees the reference, or its announcement, which it then makes impossible to carry out. Or
 * d < r: the reference sees the deletion or that it is announced, and goes on only when it cannot come any more. Whoever
 * dies on the way, or is answered late, leaves an announcement that the others withdraw. Whoever finds one on his own object
 * gives it a moment: two that announce over each other would do so until both give up. Who is refused withdraws his own.
 *
 * Hubs and named projects have ways of their own (`CloseCapacity`, `project-entries.ts`) and are left out here.
 */
export type Referrals = {
  /**
   * Carries a command out by `attempt`, more than once where it has to. Throws ReferencesBusy, and what
   * `attempt` throws.
   */
  carryOut(
    kind: AnyKind,
    id: string,
    context: CommandContext,
    how: ReferralOptions,
    attempt: Attempt,
  ): Promise<CommandOutcome<unknown>>;
};

export type ReferralOptions = {
  /** Of a deletion that is refused while something refers to the object. */
  readonly unreferenced?: Unreferenced | undefined;
  readonly reaches?: Reaches | undefined;
};

/** Runs the command once with this context, and asks `check` before its append. */
type Attempt = <B extends Checked>(
  context: CommandContext,
  check: ReferenceCheck<B>,
) => Promise<CommandOutcome<unknown> | NoInfer<Extract<B, Withheld>>>;

/**
 * Undefined: the targets of what is new are there and stay, and nothing refers to what is deleted. Else why
 * the command is refused, or what withholds it. Throws ReferencesBusy.
 */
export type ReferenceCheck<B extends Checked> = (
  before: ResourceView,
  after: ResourceView,
  loaded: Loaded<unknown>,
) => Promise<B>;
export type Checked = Rejection | Withheld | undefined;

/** These have to be shared or announced first, outside of the turn of the command's stream. */
type NotYet = Withheld & { readonly targets: readonly Pointer[]; readonly loaded: Loaded<unknown> };

/**
 * Asked while nobody can come to refer to the object, with a read model that knows of all who do: why it cannot be
 * deleted.
 */
export type Unreferenced = () => Rejection | undefined;

export type ReferralsOptions = Parameters<typeof createAnnouncements>[0] & {
  /** Resolves true once the read model has applied all that the log held at the call; false: not in time. */
  readonly caughtUp: (signal?: AbortSignal) => Promise<boolean>;
  /** Of the read model: announced references to an object before a position, at most some of them. */
  readonly announcedTo: (kind: string, id: string, before: Position) => readonly Announced[];
  readonly timers: Timers;
  /** No other process writes to the log. */
  readonly alone: boolean;
};

const nothing = (): void => undefined;

/** How often a command begins again because its object's stream moved on, or wants to refer to others now. */
const MAX_BEGINNINGS = 12;
/** Pages of announcements that a deletion withdraws. */
const MAX_PAGES = 20;

export const createReferrals = (options: ReferralsOptions): Referrals => {
  const announcements = createAnnouncements(options);
  const parts: Parts = {
    ...options,
    announcements,
    guard: createReferenceGuard(options),
    targets: createReferenceTargets({ ...options, announcements }),
    turns: createStreamQueue(),
  };
  return {
    carryOut: (kind, id, context, { unreferenced, reaches }, attempt) => {
      const command: Command = { kind, id, context, reaches };
      // Nothing refers to what is no kind of this service.
      const announces = !options.alone && kindOf(kind.kind) !== undefined;
      if (unreferenced !== undefined) return deletion(parts, command, unreferenced, announces, attempt);
      if (!announces) return sharedReference(parts, command, attempt);
      // Nothing is held yet, so that nobody waits in a circle.
      return parts.turns.run(keyOf({ kind: kind.kind, id }), () =>
        announcedReference(parts, command, attempt),
      );
    },
  };
};

type Parts = ReferralsOptions & {
  readonly announcements: Announcements;
  readonly guard: ReferenceGuard;
  readonly targets: ReferenceTargets;
  /**
   * Of one object, within this instance: an announcement makes every other append to its stream start again, so that
   * several at once (one order posted twice, say) would do nothing but overtake each other.
   */
  readonly turns: StreamQueue;
};
type Command = {
  readonly kind: AnyKind;
  readonly id: string;
  readonly context: CommandContext;
  readonly reaches: Reaches | undefined;
};

/** The keys that one command shares; at most one set of them at a time. */
const sharing = (guard: ReferenceGuard, signal: AbortSignal | undefined) => {
  let held: readonly Pointer[] = [];
  let release = nothing;
  const end = (): void => {
    release();
    release = nothing;
    held = [];
  };
  return {
    held: (): readonly Pointer[] => held,
    end,
    /** The same as `share` where nobody may wait; false: somebody closes one of them. */
    shareNow: (targets: readonly Pointer[]): boolean => {
      if (without(targets, held).length === 0) return true;
      end();
      const left = guard.shareNow(targets.map(keyOf));
      if (left === undefined) return false;
      [release, held] = [left, targets];
      return true;
    },
    /** Holds exactly these: whoever waits for more holds nothing meanwhile. */
    share: async (targets: readonly Pointer[]): Promise<void> => {
      if (without(targets, held).length === 0) return;
      end();
      release = await guard.share(targets.map(keyOf), signal);
      held = targets;
    },
  };
};

/** On a log with one writer: the guard is all that it takes. */
const sharedReference = async (
  { guard, targets, alone }: Parts,
  { kind, id, context, reaches }: Command,
  attempt: Attempt,
): Promise<CommandOutcome<unknown>> => {
  const { signal } = context;
  const keys = sharing(guard, signal);
  // In the turn of the object's stream: a deletion may have to append to it before it opens the key.
  const check: ReferenceCheck<Rejection | NotYet | undefined> = async (before, after, loaded) => {
    const wanted = newTargets(kind, before, after);
    if (wanted.length === 0) return undefined;
    if (!keys.shareNow(wanted)) return { outcome: 'withheld', targets: wanted, loaded };
    return refusalOf(await targets.gone(wanted, { signal, reaches, remembered: alone }));
  };
  const object = { kind: kind.kind, id };
  try {
    for (let times = 0; ; times += 1) {
      const outcome = await inDoubt(targets, object, keys.held, () => attempt(context, check));
      if (outcome.outcome !== 'withheld') return outcome;
      if (times === MAX_BEGINNINGS) return refused(outcome, TOO_MANY_CONFLICTS);
      await keys.share(outcome.targets);
    }
  } finally {
    keys.end();
  }
};

/** Step 1 on a log with other writers. */
const announcedReference = async (
  { guard, targets, announcements }: Parts,
  { kind, id, context, reaches }: Command,
  attempt: Attempt,
): Promise<CommandOutcome<unknown>> => {
  const { signal } = context;
  const keys = sharing(guard, signal);
  /** Where this command's announcement is; `holds`: its targets are there and stay. */
  let announced: { readonly revision: number; readonly holds: boolean } | undefined;
  /** Where another instance was given its turn. */
  let leftAlone: ExpectedRevision | undefined;

  const check: ReferenceCheck<Rejection | NotYet | undefined> = async (before, after, loaded) => {
    const wanted = newTargets(kind, before, after);
    // The same command refers to the same from the same state.
    const isAhead = announced?.holds === true && announced.revision === loaded.revision;
    return wanted.length === 0 || isAhead ? undefined : { outcome: 'withheld', targets: wanted, loaded };
  };

  /** Everything up to the append, without waiting on the object's own stream. Why it is refused. */
  const announce = async ({ targets: to, loaded }: NotYet): Promise<Rejection | undefined> => {
    const at = loaded.revision;
    if (isAnnounced(loaded.lastType) && leftAlone !== at) {
      // Two that announce over each other would do so until both give up.
      leftAlone = at;
      keys.end();
      await targets.movedOn({ kind: kind.kind, id }, at, signal);
      return undefined;
    }
    await keys.share(to);
    // What is gone already is refused without a trace in the log; from memory only when it is certain.
    const maybe = await targets.gone(to, { signal, reaches, remembered: true });
    const known = maybe && (await targets.gone(to, { signal, reaches, remembered: false }));
    if (known !== undefined) return refusalOf(known);
    const stored = await announcements.references({ kind, id, revision: at }, to, context);
    if (stored === undefined) return undefined;
    announced = { revision: stored.revision, holds: false };
    const gone = await targets.goneAfterAll(to, { signal, reaches, asOf: stored.position });
    announced = { revision: stored.revision, holds: gone === undefined };
    return refusalOf(gone);
  };

  const carryOut = async (): Promise<CommandOutcome<unknown>> => {
    let exact = context;
    for (let times = 0; ; times += 1) {
      const outcome = await attempt(exact, check);
      if (outcome.outcome !== 'withheld') return told(outcome, exact, context);
      const refusal = times < MAX_BEGINNINGS ? await announce(outcome) : TOO_MANY_CONFLICTS;
      if (refusal !== undefined) return refused(outcome, refusal);
      // The caller's revision is the one before the announcement, which changed nothing.
      if (announced?.holds === true && exact.ifRevision === outcome.loaded.revision)
        exact = { ...exact, ifRevision: announced.revision };
    }
  };

  /** Who comes next need not wait for what does not come, nor a deletion look for it. */
  const takeBack = async (): Promise<void> => {
    if (announced !== undefined) await announcements.withdraw(kind, id, announced.revision).catch(nothing);
  };

  try {
    const outcome = await carryOut();
    if (outcome.outcome === 'rejected') await takeBack();
    return outcome;
  } catch (error) {
    if (error instanceof ReferencesBusy) await takeBack();
    throw error;
  } finally {
    keys.end();
  }
};

/** Step 2. */
const deletion = async (
  parts: Parts,
  command: Command,
  unreferenced: Unreferenced,
  announces: boolean,
  attempt: Attempt,
): Promise<CommandOutcome<unknown>> => {
  const { context } = command;
  const object = { kind: command.kind.kind, id: command.id };
  const open = await parts.guard.close(keyOf(object), context.signal);
  try {
    if (announces) return await announcedDeletion(parts, command, unreferenced, attempt);
    const refusal = await lookForUsers(parts, object, unreferenced, context.signal);
    return await inDoubt(
      parts.targets,
      object,
      () => [],
      () => attempt(context, async () => refusal),
    );
  } finally {
    open();
  }
};

const announcedDeletion = async (
  parts: Parts,
  { kind, id, context }: Command,
  unreferenced: Unreferenced,
  attempt: Attempt,
): Promise<CommandOutcome<unknown>> => {
  const { targets, announcements, runner } = parts;
  const { signal } = context;
  const object = { kind: kind.kind, id };
  // What was not there to delete has been made since: nobody has looked who refers to it.
  const unannounced = async (): Promise<Rejection> => TOO_MANY_CONFLICTS;
  const past = await runner.find(aggregateOf(kind), id, context.commandId, { ...(signal && { signal }) });
  if (past !== undefined) return attempt(context, unannounced);
  // Else two instances would announce their deletions over each other until both give up.
  await targets.goneAfterAll([object], { signal, reaches: undefined });
  const intent = await announcements.deletion(kind, id, context);
  // There is nothing to delete: the decider says so.
  if (intent === undefined) return attempt(context, unannounced);
  try {
    const refusal = await lookForUsers(parts, object, unreferenced, signal, intent.position);
    const exact = { ...context, ifRevision: intent.revision };
    return told(await attempt(exact, async () => refusal), exact, context);
  } finally {
    // Changes nothing once the deletion is stored. Else whoever refers to the object later does it.
    await announcements.withdraw(kind, id, intent.revision).catch(nothing);
  }
};

/** Why the object cannot be deleted; afterwards nothing that was announced before can come to refer to it. */
const lookForUsers = async (
  { targets, caughtUp, announcedTo }: Parts,
  object: Pointer,
  unreferenced: Unreferenced,
  signal: AbortSignal | undefined,
  announcedBefore?: Position,
): Promise<Rejection | undefined> => {
  for (let page = 0; page < MAX_PAGES; page += 1) {
    if (!(await caughtUp(signal)))
      throw new ReferencesBusy('this instance does not know yet what refers to the object');
    const doubtful = targets.inDoubtOf(object);
    const open = announcedBefore === undefined ? [] : announcedTo(object.kind, object.id, announcedBefore);
    // After the look at what is announced: what was carried out in between is seen here.
    const refused = unreferenced();
    if (refused !== undefined || (doubtful.length === 0 && open.length === 0)) return refused;
    for (const other of doubtful) await targets.settle(other);
    for (const other of open) await targets.withdraw(other);
  }
  throw new ReferencesBusy('too much is about to refer to the object');
};

/** Of the only writer: remembers an object whose append may still be stored, until one that came later is. */
const inDoubt = async <O extends { readonly outcome: string }>(
  targets: ReferenceTargets,
  object: Pointer,
  wanted: () => readonly Pointer[],
  attempt: () => Promise<O>,
): Promise<O> => {
  try {
    const outcome = await attempt();
    if (outcome.outcome === 'accepted') targets.certain(object);
    return outcome;
  } catch (error) {
    // Nothing of the object is on its way where it is another stream's append, of its name say.
    if (error instanceof OutcomeUnknown && error.stream === streamName(object.kind, object.id))
      targets.doubt(object, wanted());
    throw error;
  }
};

const refused = ({ loaded }: NotYet, rejection: Rejection): CommandOutcome<unknown> => ({
  outcome: 'rejected',
  rejection,
  loaded,
});

/** The caller knows nothing of the revision of an announcement. */
const told = (
  outcome: CommandOutcome<unknown>,
  tried: Pick<CommandContext, 'ifRevision'>,
  { ifRevision }: CommandContext,
): CommandOutcome<unknown> =>
  outcome.outcome === 'rejected' &&
  outcome.rejection.code === 'VERSION_MISMATCH' &&
  tried.ifRevision !== ifRevision
    ? { ...outcome, rejection: TOO_MANY_CONFLICTS }
    : outcome;
