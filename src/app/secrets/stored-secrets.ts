import { aggregateOf } from '../../domain/kinds.ts';
import { actingKindOf, actingKinds } from '../../domain/acting-kinds.ts';
import type { ActingKind } from '../../domain/acting-kind.ts';
import type { DomainEvent } from '../../domain/decider.ts';
import type { JsonValue } from '../../domain/json.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import type { CommandRunner } from '../commands/command.ts';
import { StoreUnavailable } from '../log/event-store.ts';
import type { SecretStore } from '../ports.ts';

/**
 * What becomes of secret values in the store. A value is stored before its event, which says who has
 * it, so that a crash leaves values whose event was never written; rotation, clearing and deletion leave others. The
 * states
 * of those who may use a value are asked, not the log, where most of them stay named for ever. Its id says who they
 * are.
 */
export type StoredValue = Pick<SecretRef, 'id' | 'version'>;

/**
 * `used`: something alive refers to it. `unused`: nothing does, nor can any more. `left`: nothing does, but what was
 * decided before may still come to; so it goes only once it was seen like this twice.
 */
export type SecretUse = 'used' | 'unused' | 'left';

/** Kinds whose values others take over: orders take what they refer to, and their runs go on with what orders had. */
const TAKEN_OVER: ReadonlySet<string> = new Set(
  actingKinds
    .filter(({ secretsOf }) => secretsOf !== undefined)
    .flatMap(({ kind, references }) => [kind, ...references.map((reference) => reference.kind)]),
);

/** True when only the object itself ever reads its values: what it no longer has may go at once. */
export const isOnlyItsOwn = (kind: string): boolean => !TAKEN_OVER.has(kind);

/** Where the values of an object lie: the id says whose they are. */
export const secretIdOf = (kind: string, objectId: string, path: string): string =>
  `${kind}.${objectId}.${path}`;

type Owner = { readonly kind: string; readonly id: string };

/** Every object that a value of this id may belong to: ids of objects may hold dots and paths themselves. */
export const ownersOf = (
  kinds: readonly Pick<ResourceKind, 'kind' | 'secrets'>[],
  secretId: string,
): readonly Owner[] =>
  kinds.flatMap(({ kind, secrets }) => {
    if (!secretId.startsWith(`${kind}.`)) return [];
    const rest = secretId.slice(kind.length + 1);
    return secrets
      .flatMap(({ path }) =>
        path.endsWith('.*') ? beforeEach(rest, `.${path.slice(0, -1)}`) : beforeLast(rest, `.${path}`),
      )
      .map((id) => ({ kind, id }));
  });

const beforeLast = (text: string, end: string): readonly string[] =>
  text.endsWith(end) ? [text.slice(0, -end.length)] : [];

const beforeEach = (text: string, part: string): readonly string[] => {
  const found: string[] = [];
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + 1)) found.push(text.slice(0, at));
  return found;
};

/** A kind whose state and commands are of no interest here; only those with secrets are asked. */
export type SecretiveKind = ResourceKind<unknown, { readonly type: string }, DomainEvent>;

export type SecretUsesOptions = {
  readonly runner: Pick<CommandRunner, 'load'>;
  readonly kinds: readonly SecretiveKind[];
  /** Live objects that point at one; at most `limit` of them. */
  readonly referencedBy: (kind: string, id: string, page: { readonly limit: number }) => readonly Owner[];
  /** What the run of an order still means to hand to a hub, until it is closed. */
  readonly refsOfRun: (kind: ActingKind, id: string) => Promise<readonly StoredValue[]>;
};

/** More users than this are not looked through: their value stays. */
const MAX_USERS = 10_000;

/**
 * Whether anything alive refers to a stored value. Undefined for ids of other forms: another release may know whose.
 * `rest`
 * lets other work have its turn, between the users of a value.
 */
export const createSecretUses = ({ runner, kinds, referencedBy, refsOfRun }: SecretUsesOptions) => {
  const byName = new Map(kinds.map((kind) => [kind.kind, kind]));

  const refsIn = async ({ kind, id }: Owner): Promise<readonly StoredValue[]> => {
    const declared = byName.get(kind) ?? actingKindOf(kind);
    if (declared === undefined) return [];
    const { state } = await runner.load(aggregateOf(declared), id);
    return [...refsOf(declared.view(state)), ...(actingKindOf(kind)?.secretsOf?.(state) ?? [])];
  };

  const usedByOrder = async (kind: ActingKind, id: string, value: StoredValue): Promise<boolean> =>
    holds(await refsIn({ kind: kind.kind, id }), value) || holds(await refsOfRun(kind, id), value);

  return async (
    value: StoredValue,
    rest = async (): Promise<unknown> => undefined,
  ): Promise<SecretUse | undefined> => {
    const owners = ownersOf(kinds, value.id);
    if (owners.length === 0) return undefined;
    for (const owner of owners) {
      if (holds(await refsIn(owner), value)) return 'used';
      if (isOnlyItsOwn(owner.kind)) continue;
      const order = actingKindOf(owner.kind);
      if (order !== undefined) {
        if (await usedByOrder(order, owner.id, value)) return 'used';
        continue;
      }
      const users = referencedBy(owner.kind, owner.id, { limit: MAX_USERS });
      if (users.length >= MAX_USERS) return 'used';
      for (const user of users) {
        const taker = actingKindOf(user.kind);
        if (taker === undefined) continue;
        // Its history and its run's are read and folded on this thread.
        await rest();
        if (await usedByOrder(taker, user.id, value)) return 'used';
      }
    }
    return owners.every(({ kind }) => isOnlyItsOwn(kind)) ? 'unused' : 'left';
  };
};

/** The values that an object has; none once it is gone. */
export const refsOf = (view: ResourceView): readonly SecretRef[] =>
  view.exists && !view.archived ? Object.values(view.secrets ?? {}) : [];

/** Every reference to a value anywhere in JSON, for example in the state of a run. */
export function* secretRefsIn(value: JsonValue): Generator<StoredValue> {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) yield* secretRefsIn(item);
    return;
  }
  const { id, version, fingerprint, kind } = value;
  if (
    typeof id === 'string' &&
    typeof version === 'string' &&
    typeof fingerprint === 'string' &&
    typeof kind === 'string'
  ) {
    yield { id, version };
    return;
  }
  for (const item of Object.values(value)) yield* secretRefsIn(item);
}

const holds = (refs: readonly StoredValue[], { id, version }: StoredValue): boolean =>
  refs.some((ref) => ref.id === id && ref.version === version);

export type SecretSweeper = {
  /**
   * `now` is ISO time. Throws what the stores throw; the next sweep then does the work of this one too. A value
   * whose users
   * cannot be read stays, and keeps no other one from going: what was wrong is thrown at the end.
   */
  sweep(now: string, signal: AbortSignal): Promise<{ readonly examined: number; readonly removed: number }>;
};

/**
 * Removes the values that nothing uses, wherever a crash left them: before their event, or between an event and the
 * removal. Only values older than `olderThanMs` (at least the longest time a request may take) are looked at: a
 * value is stored before its
 * event. What was used until a moment ago, and may have been taken over meanwhile, goes once it has been unused for
 * that long.
 */
export const createSecretSweeper = ({
  secrets,
  use,
  olderThanMs,
  rest,
}: {
  secrets: Pick<SecretStore, 'list' | 'remove'>;
  use: (value: StoredValue, rest: () => Promise<unknown>) => Promise<SecretUse | undefined>;
  /** Milliseconds. */
  olderThanMs: number;
  /** Lets other work have its turn. */
  rest: (signal: AbortSignal) => Promise<unknown>;
}): SecretSweeper => {
  /** Since when (epoch milliseconds) a value was seen to be left. */
  let leftSince: ReadonlyMap<string, number> = new Map();
  return {
    sweep: async (now, signal) => {
      const at = Date.parse(now);
      const left = new Map<string, number>();
      let [examined, removed] = [0, 0];
      let fault: { readonly error: unknown } | undefined;
      const between = async (): Promise<void> => {
        await rest(signal);
        signal.throwIfAborted();
      };
      for await (const { id, version, storedAt } of secrets.list()) {
        signal.throwIfAborted();
        if (Date.parse(storedAt) > at - olderThanMs) continue;
        examined += 1;
        await between();
        const used = await use({ id, version }, between).catch((error: unknown): undefined => {
          if (signal.aborted || error instanceof StoreUnavailable) throw error;
          fault ??= { error };
        });
        if (used === undefined || used === 'used') continue;
        const key = JSON.stringify([id, version]);
        const since = leftSince.get(key) ?? at;
        if (used === 'left' && since > at - olderThanMs) {
          left.set(key, since);
          continue;
        }
        await secrets.remove({ id, version });
        removed += 1;
      }
      leftSince = left;
      if (fault !== undefined) throw fault.error;
      return { examined, removed };
    },
  };
};
