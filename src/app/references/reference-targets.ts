import { reject, type Rejection } from '../../domain/decider.ts';
import { aggregateOf, kinds, type AnyKind, hub, kindOf, project, tenant } from '../../domain/kinds.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import { BUILT_IN_TENANTS } from '../../domain/tenancy/tenant.resource.ts';
import type { CommandRunner, Loaded } from '../commands/command.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  type ExpectedRevision,
  type Position,
} from '../log/event-store.ts';
import type { Timers } from '../ports.ts';
import {
  isAboutToGo,
  type Announced,
  type Announcements,
  type Pointer,
  ReferencesBusy,
} from './reference-guard.ts';

/**
 * False: the caller's references do not reach objects of this kind in that tenant. An id may have passed on to a tenant
 * since the reference was resolved.
 */
export type Reaches = (kind: string, tenant: string) => boolean;

type How = {
  readonly signal: AbortSignal | undefined;
  /** Default: everywhere. */
  readonly reaches: Reaches | undefined;
  /** Only what is in the log up to here counts. Default: up to the end. */
  readonly asOf?: Position | undefined;
};

/**
 * What is known of objects that others come to refer to, from their own streams (`referrals.ts`). Everything that it does to
 * streams of others fails with ReferencesBusy: nothing has become of the command itself then.
 */
export type ReferenceTargets = {
  /** The first that is gone, if one is. With `remembered`, what is in memory is good enough. */
  gone(
    targets: readonly Pointer[],
    how: How & { readonly remembered: boolean },
  ): Promise<Pointer | undefined>;
  /** The same as of now, when it is certain: waits for announced deletions, and withdraws those that do not come. */
  goneAfterAll(targets: readonly Pointer[], how: How): Promise<Pointer | undefined>;
  /** Waits until the object's stream no longer stands at this revision, for a while at most. */
  movedOn(object: Pointer, revision: ExpectedRevision, signal: AbortSignal | undefined): Promise<void>;
  /** Makes an announced reference impossible to carry out. */
  withdraw(announced: Announced): Promise<void>;
  /** Of the only writer: the last append to the object's stream may still be stored. It would refer to these. */
  doubt(object: Pointer, targets: readonly Pointer[]): void;
  certain(object: Pointer): void;
  /** Objects in doubt that would refer to this one. */
  inDoubtOf(target: Pointer): readonly Pointer[];
  /** Ends the doubt: the append is stored now or never. */
  settle(object: Pointer): Promise<void>;
};

/** Milliseconds after which a deletion that was announced and does not come is withdrawn. */
const DELETION_WAIT_MS = 4_000;
/** Milliseconds that a reference waits for deletions of its targets altogether. */
const WAIT_MS = 10_000;
/** Milliseconds that one announcement leaves another one alone: many times what carrying it out takes. */
const TURN_MS = 1_000;
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 100;

type Standing = { readonly isGone: boolean; readonly tenant: string | undefined };

export const keyOf = ({ kind, id }: Pointer): string => `${kind} ${id}`;

export const createReferenceTargets = ({
  runner,
  announcements,
  timers,
}: {
  readonly runner: CommandRunner;
  readonly announcements: Announcements;
  readonly timers: Timers;
}): ReferenceTargets => {
  const declared = new Map<string, AnyKind>(kinds.map((kind) => [kind.kind, kind]));
  const doubts = new Map<string, { readonly object: Pointer; readonly targets: readonly Pointer[] }>();

  const onStreamOf = async (
    { kind: name }: Pointer,
    work: (kind: AnyKind) => Promise<void>,
  ): Promise<void> => {
    const kind = declared.get(name);
    if (kind === undefined) return;
    try {
      await work(kind);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown || error instanceof StoreUnavailable)) throw error;
      throw new ReferencesBusy('references to an object cannot be settled now', { cause: error });
    }
  };
  const settle = async (object: Pointer): Promise<void> => {
    await onStreamOf(object, (kind) => announcements.settle(kind, object.id));
    doubts.delete(keyOf(object));
  };
  const withdraw = (announced: Announced): Promise<void> =>
    onStreamOf(announced, (kind) => announcements.withdraw(kind, announced.id, announced.revision));

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

  /**
   * `goes`: revision at which its deletion is announced. What never was counts as there: built-in tenants have no stream,
   * and references were resolved before.
   */
  const look = async (
    target: Pointer,
    how: How & { readonly remembered: boolean },
  ): Promise<{ readonly gone: boolean; readonly goes: number | undefined }> => {
    const kind = declared.get(target.kind);
    if (kind === undefined || target.id === '') return { gone: false, goes: undefined };
    if (doubts.has(keyOf(target))) await settle(target);
    const loaded: Loaded<unknown> = await runner.peek(aggregateOf(kind), target.id, how);
    const { isGone, tenant } = standingOf(kind, loaded.state);
    const gone = isGone || (tenant !== undefined && how.reaches?.(target.kind, tenant) === false);
    return { gone, goes: isAboutToGo(loaded) ? Number(loaded.revision) : undefined };
  };

  const pause = (ms: number): Promise<void> => new Promise<void>((resolve) => void timers.after(ms, resolve));

  /** Waits until it is certain whether the target stays. */
  const stays = async (target: Pointer, how: How): Promise<boolean> => {
    let [seenAt, since, waited] = [-1, 0, 0];
    for (let ms = FIRST_PAUSE_MS; ; ms = Math.min(2 * ms, LONGEST_PAUSE_MS)) {
      // Whoever has waited wants to know what came since.
      const asOf = waited === 0 ? how.asOf : undefined;
      const { gone, goes } = await look(target, { ...how, asOf, remembered: false });
      if (gone) return false;
      if (goes === undefined) return true;
      if (goes !== seenAt) [seenAt, since] = [goes, waited];
      if (waited - since >= DELETION_WAIT_MS) await withdraw({ ...target, revision: goes });
      if (waited >= WAIT_MS) throw new ReferencesBusy();
      how.signal?.throwIfAborted();
      await pause(ms);
      waited += ms;
    }
  };

  return {
    gone: async (targets, how) => {
      const looks = await Promise.all(targets.map((target) => look(target, how)));
      return targets[looks.findIndex(({ gone }) => gone)];
    },
    goneAfterAll: async (targets, how) => {
      const stay = await Promise.all(targets.map((target) => stays(target, how)));
      return targets[stay.indexOf(false)];
    },
    movedOn: async (object, revision, signal) => {
      const kind = declared.get(object.kind);
      if (kind === undefined) return;
      let ms = FIRST_PAUSE_MS;
      for (let waited = 0; waited < TURN_MS; waited += ms) {
        ms = Math.min(2 * ms, LONGEST_PAUSE_MS);
        await pause(ms);
        signal?.throwIfAborted();
        if ((await runner.peek(aggregateOf(kind), object.id, { signal })).revision !== revision) return;
      }
    },
    withdraw,
    doubt: (object, targets) => void doubts.set(keyOf(object), { object, targets }),
    certain: (object) => void doubts.delete(keyOf(object)),
    inDoubtOf: (target) =>
      [...doubts.values()].filter(({ targets }) => holds(targets, target)).map(({ object }) => object),
    settle,
  };
};

export const holds = (pointers: readonly Pointer[], { kind, id }: Pointer): boolean =>
  pointers.some((other) => other.kind === kind && other.id === id);

/** What a command is told that wants to refer to what is gone. */
export const refusalOf = (gone: Pointer | undefined): Rejection | undefined =>
  gone === undefined ? undefined : goneRejection(gone);

/** Kinds that are kept in ways of their own; a tenant is no target of itself. */
const KEPT_OTHERWISE: readonly string[] = [hub.kind, project.kind];

/** Tenants that nobody can delete. */
const ALWAYS_THERE: readonly string[] = BUILT_IN_TENANTS;

/** What the object refers to after the events and did not before; of a new one its tenant too. */
export const newTargets = (
  kind: Pick<ResourceKind, 'kind' | 'pointsAt'>,
  before: ResourceView,
  after: ResourceView,
): readonly Pointer[] => {
  if (!after.exists || after.archived) return [];
  const had = before.exists && !before.archived ? kind.pointsAt(before.document) : undefined;
  const has = without(kind.pointsAt(after.document), had ?? []).filter(
    (pointer) => !KEPT_OTHERWISE.includes(pointer.kind),
  );
  const comesIntoTenant = had === undefined && kind.kind !== tenant.kind;
  return comesIntoTenant && !ALWAYS_THERE.includes(after.tenant)
    ? [...has, { kind: tenant.kind, id: after.tenant }]
    : has;
};

/** Those that are not among the others. */
export const without = (pointers: readonly Pointer[], others: readonly Pointer[]): readonly Pointer[] =>
  pointers.filter((pointer) => !holds(others, pointer));

/** Ids of people are not repeated. */
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
