import type { AnyKind } from '../../../domain/kinds.ts';
import type { Visibility } from '../../../projections/visibility.ts';
import { mayCall, visibilityFor } from '../authorization.ts';
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
  /** Of kinds that are not seen in all of these tenants: where they are. */
  readonly limits?: ReadonlyMap<string, Visibility>;
};

/** What a watch must know of a kind; every ResourceKind has it. */
export type WatchedKind = Pick<AnyKind, 'kind' | 'message' | 'service' | 'privateOnly' | 'secrets' | 'event'>;

/**
 * The caller's tenants and `shared` (admins: all), and of the kinds that events of this surface can carry those whose
 * objects the caller may list or get: a watch shows nothing that the table of rights forbids to read. OSAC shows its
 * watchers every kind of their tenants, and of kinds without a payload empty events (OSAC); ours sends none.
 */
export const audienceOf = (
  principal: Pick<Principal, 'admin' | 'roles' | 'visibility'> &
    Partial<Pick<Principal, 'projects' | 'tenants'>>,
  surface: Surface,
  kinds: readonly WatchedKind[],
): Audience => {
  const shown = kinds
    .filter(
      (kind) =>
        kind.event !== undefined &&
        // The CSI driver reads volumes there, and watches nothing.
        (surface === 'private' ? principal.admin : kind.event.public) &&
        (mayCall(principal, surface, kind, 'List') || mayCall(principal, surface, kind, 'Get')),
    )
    .map(({ kind }) => kind);
  const { visibility } = principal;
  const limits = limitsOf(
    principal,
    surface,
    kinds.filter(({ kind }) => shown.includes(kind)),
  );
  const tenants = 'all' in visibility ? undefined : [...new Set(visibility.tenants)].toSorted();
  return {
    key: JSON.stringify([surface, tenants ?? null, shown, [...limits]]),
    surface,
    tenants: tenants === undefined ? undefined : new Set(tenants),
    kinds: new Set(shown),
    ...(limits.size === 0 ? {} : { limits }),
  };
};

/** What the right to list a kind is limited to, where it is. */
const limitsOf = (
  { tenants = [], ...principal }: Parameters<typeof audienceOf>[0],
  surface: Surface,
  kinds: readonly WatchedKind[],
): ReadonlyMap<string, Visibility> => {
  const limits = new Map<string, Visibility>();
  for (const kind of kinds) {
    const visibility = visibilityFor({ ...principal, tenants }, surface, kind, 'List');
    if ('within' in visibility) limits.set(kind.kind, visibility);
  }
  return limits;
};
