import { reject, type DomainEvent, type Rejection } from '../domain/decider.ts';
import { hub, kindOf, kinds, project, tenant } from '../domain/kinds.ts';
import type { ResourceKind, ResourceView } from '../domain/resource.ts';
import { aggregateOf } from './names.ts';
import type { CommandContext, CommandRunner } from './command.ts';
import { ReferencesBusy, type ReferenceGuard } from './reference-guard.ts';

/**
 * How nothing that is referred to disappears, nor a tenant under its objects:
 * 1. Whatever comes to refer to an object shares it (`ReferenceGuard`), then asks the object's stream whether it is
 *    still there, then appends, then leaves.
 * 2. A deletion closes the object, waits until the read model knows all that the log holds, looks at who refers to it,
 *    appends, then opens it again.
 * Hubs and named projects have ways of their own (`CloseCapacity`, `project-entries.ts`) and are left out here.
 *
 * On a log with other writers the guard sees only those of its own instance; there `lost` asks once more after the
 * append.
 */
export type Referrals = {
  /** One attempt at one command. `end` must be called, whatever came of it. */
  begin<S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    id: string,
    context: CommandContext,
    unreferenced: Unreferenced | undefined,
  ): Referral;
};

export type Referral = {
  /**
   * Before the append: the targets of what is new are there, and stay until `end`. Why it is refused otherwise.
   * Throws ReferencesBusy.
   */
  take(before: ResourceView, after: ResourceView): Promise<Rejection | undefined>;
  /** After the append: what it refers to that another instance has deleted meanwhile, as a refusal. */
  lost(): Promise<Rejection | undefined>;
  end(): void;
};

/**
 * Asked while nobody can come to refer to the object, with a read model that knows of all who do: why it cannot be
 * deleted.
 */
export type Unreferenced = () => Rejection | undefined;

export type ReferralsOptions = {
  readonly runner: CommandRunner;
  readonly guard: ReferenceGuard;
  /** Resolves true once the read model has applied all that the log held at the call; false: not in time. */
  readonly caughtUp: (signal?: AbortSignal) => Promise<boolean>;
  /** No other process writes to the log. */
  readonly alone: boolean;
};

type Pointer = { readonly kind: string; readonly id: string };
const keyOf = ({ kind, id }: Pointer): string => `${kind} ${id}`;
const nothing = (): void => undefined;

export const createReferrals = ({ runner, guard, caughtUp, alone }: ReferralsOptions): Referrals => {
  const declared = new Map(kinds.map((kind) => [kind.kind, kind]));
  /** What was found of a state: everything refers to the same few objects. */
  const seen = new WeakMap<object, boolean>();

  /** What never was counts as there: built-in tenants have no stream, and references were resolved before. */
  const isGone = async (
    { kind: name, id }: Pointer,
    remembered: boolean,
    signal: AbortSignal | undefined,
  ): Promise<boolean> => {
    const kind = declared.get(name);
    if (kind === undefined || id === '') return false;
    const { state } = await runner.peek(aggregateOf(kind), id, { remembered, signal });
    const found = seen.get(state as object);
    if (found !== undefined) return found;
    const view = kind.view(state);
    const gone = view.exists && (view.archived || view.deletionTimestamp !== undefined);
    seen.set(state as object, gone);
    return gone;
  };

  const goneAmong = async (
    pointers: readonly Pointer[],
    remembered: boolean,
    signal: AbortSignal | undefined,
  ): Promise<Rejection | undefined> => {
    const looks = pointers.map((pointer) => isGone(pointer, remembered, signal));
    const at = (await Promise.all(looks)).indexOf(true);
    const gone = pointers[at];
    return gone === undefined ? undefined : goneRejection(gone);
  };

  return {
    begin: (kind, id, { signal }, unreferenced) => {
      let held: readonly Pointer[] = [];
      let release = nothing;
      const end = (): void => {
        release();
        release = nothing;
        held = [];
      };
      /** Holds exactly these: whoever waits for more holds nothing meanwhile. */
      const hold = async (wanted: readonly Pointer[]): Promise<void> => {
        if (without(wanted, held).length === 0) return;
        end();
        release = await guard.share(wanted.map(keyOf), signal);
        held = wanted;
      };
      return {
        end,
        take: async (before, after) => {
          if (unreferenced !== undefined) {
            end();
            release = await guard.close(keyOf({ kind: kind.kind, id }), signal);
            if (!(await caughtUp(signal)))
              throw new ReferencesBusy('this instance does not know yet what refers to the object');
            return unreferenced();
          }
          const wanted = newTargets(kind, before, after);
          if (wanted.length === 0) return undefined;
          await hold(wanted);
          return goneAmong(wanted, !alone, signal);
        },
        lost: async () => (alone || held.length === 0 ? undefined : goneAmong(held, false, signal)),
      };
    },
  };
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

const without = (pointers: readonly Pointer[], others: readonly Pointer[]): readonly Pointer[] =>
  pointers.filter(({ kind, id }) => !others.some((other) => other.kind === kind && other.id === id));

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
