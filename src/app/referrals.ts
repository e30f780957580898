import { reject, type DomainEvent, type Rejection } from '../domain/decider.ts';
import { hub, kindOf, kinds, project, tenant, type AnyKind } from '../domain/kinds.ts';
import type { ResourceKind, ResourceView } from '../domain/resource.ts';
import { isAboutToGo, type Announced, type Announcements, type Pointer } from './announcements.ts';
import type { CommandContext, CommandOutcome, CommandRunner, Loaded } from './command.ts';
import { OutcomeUnknown, StoreUnavailable, type ExpectedRevision, type Position } from './event-store.ts';
import { aggregateOf, streamOf } from './names.ts';
import type { Timers } from './ports.ts';
import { ReferencesBusy, type ReferenceGuard } from './reference-guard.ts';
import { TOO_MANY_CONFLICTS } from './refusals.ts';

/**
 * How nothing that is referred to disappears, nor a tenant under its objects. Within one instance:
 * 1. Whatever comes to refer to an object shares it (`ReferenceGuard`), then asks the object's stream whether it is
 *    still there, then appends, then leaves.
 * 2. A deletion closes the object, waits until the read model knows all that the log holds, looks at who refers to it,
 *    appends, then opens it again.
 *
 * On a log with other writers the guard sees only those of its own instance. There both sides announce in their own
 * streams what they are about to do, and rely on the order of the log and on exact revisions alone:
 * 1. The object that will refer stores `ReferencesAnnounced` at position r, then reads each target's stream anew, then
 *    appends its change at exactly the revision behind its announcement. A target whose last event is
 *    `DeletionAnnounced` is waited for; after a while that is withdrawn, in case its writer has died.
 * 2. A deletion stores `DeletionAnnounced` at position d, waits for the read model, withdraws every announcement of a
 *    reference that is older than d and still the last event of its stream, waits again, looks at who refers to the object,
 *    and appends at exactly the revision behind its announcement.
 * Either r < d: the deletion sees the reference, or its announcement, which it then makes impossible to carry out. Or
 * d < r: the reference sees the deletion or that it is announced, and goes on only when it cannot come any more. Whoever
 * dies on the way, or is answered late, leaves an announcement that the others withdraw.
 *
 * Hubs and named projects have ways of their own (`CloseCapacity`, `project-entries.ts`) and are left out here.
 */
export type Referrals = {
  /** One attempt at one command, to be carried out by `run`. */
  begin<S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    id: string,
    context: CommandContext,
    how: ReferralOptions,
  ): Referral;
};

export type ReferralOptions = {
  /** Of a deletion that is refused while something refers to the object. */
  readonly unreferenced?: Unreferenced | undefined;
  /** Tenant in which a target was when the reference to it was resolved; an id may have passed on since. */
  readonly resolvedIn?: ((target: Pointer) => string | undefined) | undefined;
};

export type Referral = {
  /**
   * Carries the command out with the context that it gives, more than once where it has to. Throws ReferencesBusy, and
   * what `execute` throws.
   */
  run<S>(execute: (context: CommandContext) => Promise<CommandOutcome<S>>): Promise<CommandOutcome<S>>;
  /**
   * Before each append, with the revision it is for: undefined when the targets of what is new are there and stay, and
   * nothing refers to what is deleted. Else why not. Throws ReferencesBusy.
   */
  take(before: ResourceView, after: ResourceView, revision: ExpectedRevision): Promise<Rejection | undefined>;
};

/**
 * Asked while nobody can come to refer to the object, with a read model that knows of all who do: why it cannot be
 * deleted.
 */
export type Unreferenced = () => Rejection | undefined;

export type ReferralsOptions = {
  readonly runner: CommandRunner;
  readonly guard: ReferenceGuard;
  readonly announcements: Announcements;
  /** Resolves true once the read model has applied all that the log held at the call; false: not in time. */
  readonly caughtUp: (signal?: AbortSignal) => Promise<boolean>;
  /** Of the read model: announced references to an object before a position, at most some of them. */
  readonly announcedTo: (kind: string, id: string, before: Position) => readonly Announced[];
  readonly timers: Timers;
  /** No other process writes to the log. */
  readonly alone: boolean;
};

const keyOf = ({ kind, id }: Pointer): string => `${kind} ${id}`;
const nothing = (): void => undefined;

/** How often an object is announced anew because its stream moved on meanwhile. */
const MAX_ANNOUNCEMENTS = 6;
/** Pages of announcements that a deletion withdraws. */
const MAX_PAGES = 20;
/** Milliseconds after which a deletion that was announced and does not come is withdrawn. */
const DELETION_WAIT_MS = 4_000;
/** Milliseconds that a reference waits for deletions of its targets altogether. */
const WAIT_MS = 10_000;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

type Standing = { readonly isGone: boolean; readonly tenant: string | undefined };
type Looking = {
  readonly signal: AbortSignal | undefined;
  readonly resolvedIn: ReferralOptions['resolvedIn'];
};
/** `goes`: revision at which its deletion is announced. */
type Look = { readonly gone: boolean; readonly goes: number | undefined };

/** Tells `run` to announce what is wanted, and is never shown. */
const ANNOUNCE_FIRST = reject('conflict', 'REFERENCES_NOT_ANNOUNCED', 'the references are announced first');

export const createReferrals = (options: ReferralsOptions): Referrals => {
  const { runner, guard, announcements, caughtUp, announcedTo, timers, alone } = options;
  const declared = new Map<string, AnyKind>(kinds.map((kind) => [kind.kind, kind]));
  /**
   * Of the only writer: streams whose last append may still be stored, with what it would refer to. They are moved on
   * before anybody relies on what they show.
   */
  const doubts = new Map<string, { readonly object: Pointer; readonly targets: readonly Pointer[] }>();

  /** Work on streams of others: when it fails, nothing has become of the command itself. */
  const onOthers = async (work: () => Promise<void>): Promise<void> => {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof OutcomeUnknown || error instanceof StoreUnavailable)) throw error;
      throw new ReferencesBusy('what refers to an object cannot be settled now', { cause: error });
    }
  };
  const settle = (stream: string, { kind: name, id }: Pointer): Promise<void> =>
    onOthers(async () => {
      const kind = declared.get(name);
      if (kind !== undefined) await announcements.settle(kind, id);
      doubts.delete(stream);
    });

  /** What was found of a state: everything refers to the same few objects. */
  const seen = new WeakMap<object, Standing>();
  const standingOf = (kind: AnyKind, state: unknown): Standing => {
    const known = seen.get(state as object);
    if (known !== undefined) return known;
    const view = kind.view(state);
    const isGone = view.exists && (view.archived || view.deletionTimestamp !== undefined);
    const standing = { isGone, tenant: view.exists ? view.tenant : undefined };
    seen.set(state as object, standing);
    return standing;
  };

  /** What never was counts as there: built-in tenants have no stream, and references were resolved before. */
  const look = async (
    { kind: name, id }: Pointer,
    remembered: boolean,
    { signal, resolvedIn }: Looking,
  ): Promise<Look> => {
    const kind = declared.get(name);
    if (kind === undefined || id === '') return { gone: false, goes: undefined };
    const doubt = doubts.get(streamOf(kind, id));
    if (doubt !== undefined) await settle(streamOf(kind, id), doubt.object);
    const loaded: Loaded<unknown> = await runner.peek(aggregateOf(kind), id, { remembered, signal });
    const { isGone, tenant: lies } = standingOf(kind, loaded.state);
    const was = resolvedIn?.({ kind: name, id });
    const gone = isGone || (was !== undefined && lies !== undefined && lies !== was);
    return { gone, goes: isAboutToGo(loaded) ? Number(loaded.revision) : undefined };
  };

  const begin: Referrals['begin'] = (kind, id, context, { unreferenced, resolvedIn }) => {
    const { signal } = context;
    const own = declared.get(kind.kind);
    const stream = streamOf(kind, id);
    const view = { signal, resolvedIn };
    let held: readonly Pointer[] = [];
    let release = nothing;
    /** What the append that is being tried needs, and the revision at which it was announced that it comes. */
    let wanted: { readonly targets: readonly Pointer[]; readonly at: ExpectedRevision } | undefined;
    let announced: { readonly targets: readonly Pointer[]; readonly at: number } | undefined;
    /** Of a deletion: what came of looking who refers to the object, valid for one revision. */
    let looked: { readonly refused: Rejection | undefined; readonly at: number | undefined } | undefined;

    const end = (): void => {
      release();
      release = nothing;
      held = [];
    };
    /** Holds exactly these: whoever waits for more holds nothing meanwhile. */
    const hold = async (targets: readonly Pointer[]): Promise<void> => {
      if (without(targets, held).length === 0) return;
      end();
      release = await guard.share(targets.map(keyOf), signal);
      held = targets;
    };

    const goneAmong = async (
      targets: readonly Pointer[],
      remembered: boolean,
    ): Promise<Rejection | undefined> => {
      const looks = await Promise.all(targets.map((target) => look(target, remembered, view)));
      const gone = targets[looks.findIndex((found) => found.gone)];
      return gone === undefined ? undefined : goneRejection(gone);
    };

    /** Waits until it is certain whether the target stays; a deletion that does not come is withdrawn. */
    const stays = async (target: Pointer): Promise<boolean> => {
      let [seen, since, waited] = [-1, 0, 0];
      for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, LONGEST_PAUSE_MS)) {
        const { gone, goes } = await look(target, false, view);
        if (gone) return false;
        if (goes === undefined) return true;
        if (goes !== seen) [seen, since] = [goes, waited];
        const targetKind = declared.get(target.kind);
        if (waited - since >= DELETION_WAIT_MS && targetKind !== undefined)
          await onOthers(() => announcements.withdraw(targetKind, target.id, goes));
        if (waited >= WAIT_MS) throw new ReferencesBusy();
        signal?.throwIfAborted();
        await new Promise<void>((resolve) => void timers.after(ms, resolve));
        waited += ms;
      }
    };

    /** Step 1 up to the append. Why it is refused otherwise. */
    const announce = async ({ targets, at }: NonNullable<typeof wanted>): Promise<Rejection | undefined> => {
      if (own === undefined) return undefined;
      await hold(targets);
      // What is gone already is refused without a trace in the log; from memory only when it is certain.
      const known = await goneAmong(targets, true);
      const certain = known === undefined ? undefined : await goneAmong(targets, false);
      if (certain !== undefined) return certain;
      const revision = await announcements.references({ kind: own, id, revision: at }, targets, context);
      if (revision === undefined) return undefined;
      const stay = await Promise.all(targets.map(stays));
      const gone = targets[stay.indexOf(false)];
      if (gone !== undefined) return goneRejection(gone);
      announced = { targets, at: revision };
      return undefined;
    };

    const referring = async <S>(
      execute: (context: CommandContext) => Promise<CommandOutcome<S>>,
    ): Promise<CommandOutcome<S>> => {
      let exact = context;
      for (let times = 0; ; times += 1) {
        const outcome = await execute(exact);
        if (outcome.outcome === 'accepted') return outcome;
        if (outcome.rejection !== ANNOUNCE_FIRST || wanted === undefined)
          return told(outcome, exact, context);
        const refused = times < MAX_ANNOUNCEMENTS ? await announce(wanted) : TOO_MANY_CONFLICTS;
        if (refused !== undefined) return { ...outcome, rejection: refused };
        // The caller's revision is the one before the announcement, which changed nothing.
        const moved = announced !== undefined && exact.ifRevision !== undefined;
        if (moved && exact.ifRevision === wanted.at) exact = { ...exact, ifRevision: announced?.at ?? 0 };
      }
    };

    /** Why the object cannot be deleted; afterwards nothing that was announced before can come to refer to it. */
    const lookForUsers = async (before: Position | undefined): Promise<Rejection | undefined> => {
      for (let page = 0; page < MAX_PAGES; page += 1) {
        if (!(await caughtUp(signal)))
          throw new ReferencesBusy('this instance does not know yet what refers to the object');
        const doubtful = [...doubts].filter(([, { targets }]) => holds(targets, { kind: kind.kind, id }));
        const open = before === undefined ? [] : announcedTo(kind.kind, id, before);
        // After the look at what is announced: what was carried out in between is seen here.
        const refused = unreferenced?.();
        if (refused !== undefined) return refused;
        if (doubtful.length === 0 && open.length === 0) return undefined;
        for (const [about, { object }] of doubtful) await settle(about, object);
        for (const { kind: name, id: from, revision } of open) {
          const fromKind = declared.get(name);
          if (fromKind !== undefined) await onOthers(() => announcements.withdraw(fromKind, from, revision));
        }
      }
      throw new ReferencesBusy('too much is about to refer to the object');
    };

    const deleting = async <S>(
      execute: (context: CommandContext) => Promise<CommandOutcome<S>>,
    ): Promise<CommandOutcome<S>> => {
      release = await guard.close(keyOf({ kind: kind.kind, id }), signal);
      if (alone || own === undefined) {
        looked = { refused: await lookForUsers(undefined), at: undefined };
        return execute(context);
      }
      const past = await runner.find(aggregateOf(own), id, context.commandId, { ...(signal && { signal }) });
      const intent = past === undefined ? await announcements.deletion(own, id, context) : undefined;
      if (intent === undefined) return execute(context);
      let carriedOut = false;
      try {
        looked = { refused: await lookForUsers(intent.position), at: intent.revision };
        const outcome = await execute({ ...context, ifRevision: intent.revision });
        carriedOut = outcome.outcome === 'accepted';
        return told(outcome, { ifRevision: intent.revision }, context);
      } finally {
        // Else whoever comes to refer to it does that, later.
        if (!carriedOut) await announcements.withdraw(own, id, intent.revision).catch(nothing);
      }
    };

    return {
      run: async (execute) => {
        try {
          const outcome = await (unreferenced === undefined ? referring(execute) : deleting(execute));
          if (outcome.outcome === 'accepted') doubts.delete(stream);
          return outcome;
        } catch (error) {
          const doubtful = error instanceof OutcomeUnknown && error.stream === stream;
          if (alone && doubtful) doubts.set(stream, { object: { kind: kind.kind, id }, targets: held });
          throw error;
        } finally {
          end();
        }
      },
      take: async (before, after, revision) => {
        if (unreferenced !== undefined) {
          const valid = looked !== undefined && (alone || looked.at === revision);
          return valid ? looked?.refused : TOO_MANY_CONFLICTS;
        }
        const targets = newTargets(kind, before, after);
        if (targets.length === 0) return undefined;
        if (!alone) {
          if (announced?.at === revision && without(targets, announced.targets).length === 0)
            return undefined;
          wanted = { targets, at: revision };
          return ANNOUNCE_FIRST;
        }
        await hold(targets);
        return goneAmong(targets, true);
      },
    };
  };
  return { begin };
};

/** Kinds that are kept in ways of their own; a tenant is no target of itself. */
const KEPT_OTHERWISE: readonly string[] = [hub.kind, project.kind];

/** What the object refers to after the events and did not before; of a new one its tenant too. */
const newTargets = (
  kind: Pick<ResourceKind, 'kind' | 'pointsAt'>,
  before: ResourceView,
  after: ResourceView,
): readonly Pointer[] => {
  if (!after.exists || after.archived) return [];
  const had = before.exists && !before.archived ? kind.pointsAt(before.document) : undefined;
  const has = without(kind.pointsAt(after.document), had ?? []).filter(
    (pointer) => !KEPT_OTHERWISE.includes(pointer.kind),
  );
  return had === undefined && kind.kind !== tenant.kind
    ? [...has, { kind: tenant.kind, id: after.tenant }]
    : has;
};

/** The caller knows nothing of the revision of an announcement. */
const told = <S>(
  outcome: CommandOutcome<S>,
  tried: Pick<CommandContext, 'ifRevision'>,
  { ifRevision }: CommandContext,
): CommandOutcome<S> =>
  outcome.outcome === 'rejected' &&
  outcome.rejection.code === 'VERSION_MISMATCH' &&
  tried.ifRevision !== ifRevision
    ? { ...outcome, rejection: TOO_MANY_CONFLICTS }
    : outcome;

const holds = (pointers: readonly Pointer[], { kind, id }: Pointer): boolean =>
  pointers.some((other) => other.kind === kind && other.id === id);

const without = (pointers: readonly Pointer[], others: readonly Pointer[]): readonly Pointer[] =>
  pointers.filter((pointer) => !holds(others, pointer));

/** Ids of people are not repeated (design §4). */
const goneRejection = ({ kind: name, id }: Pointer): Rejection => {
  if (name === tenant.kind)
    return reject(
      'failed-precondition',
      'TENANT_DELETING',
      `tenant '${id}' is being deleted: nothing can be created in it any more`,
    );
  const kind = kindOf(name);
  const shown = kind?.personal === undefined ? ` "${id}"` : '';
  return reject(
    'invalid',
    'REFERENCE_NOT_FOUND',
    `reference validation failed: ${kind?.message ?? name}${shown} has just been deleted: refer to another one`,
  );
};
