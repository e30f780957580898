import type { AnyKind } from '../../../domain/kinds.ts';
import { mayCall } from '../authorization.ts';
import type { Surface } from '../messages.ts';
import type { Principal } from '../principal.ts';

/** Who sees which changes: everybody of one audience sees the same ones. */
export type Audience = {
  /** Equal for equal audiences. */
  readonly key: string;
  readonly surface: Surface;
  /** Undefined: of all tenants. */
  readonly tenants: ReadonlySet<string> | undefined;
  readonly kinds: ReadonlySet<string>;
};

/** What a watch must know of a kind; every ResourceKind has it. */
export type WatchedKind = Pick<AnyKind, 'kind' | 'message' | 'service' | 'privateOnly' | 'secrets' | 'event'>;

/**
 * The caller's tenants and `shared` (admins: all), and of the kinds that events of this surface can carry those whose
 * objects the caller may list or get: a watch shows nothing that the table of rights forbids to read. OSAC shows its
 * watchers every kind of their tenants, and of kinds without a payload empty events (osac-api.md §8); ours sends none.
 */
export const audienceOf = (
  principal: Pick<Principal, 'admin' | 'roles' | 'visibility'>,
  surface: Surface,
  kinds: readonly WatchedKind[],
): Audience => {
  const shown = kinds
    .filter(
      (kind) =>
        kind.event !== undefined &&
        (surface === 'private' || kind.event.public) &&
        (mayCall(principal, surface, kind, 'List') || mayCall(principal, surface, kind, 'Get')),
    )
    .map(({ kind }) => kind);
  const { visibility } = principal;
  const tenants = 'all' in visibility ? undefined : [...new Set(visibility.tenants)].toSorted();
  return {
    key: JSON.stringify([surface, tenants ?? null, shown]),
    surface,
    tenants: tenants === undefined ? undefined : new Set(tenants),
    kinds: new Set(shown),
  };
};
