import type { Timers } from '../app/ports.ts';
import { pause } from '../app/process-runner/pause.ts';
import type { ResourceReader } from '../projections/read-models.ts';

/** A live object whose target or tenant is not there. */
export type Dangling = {
  readonly from: { readonly kind: string; readonly id?: string; readonly tenant?: string };
  readonly to: { readonly kind: string; readonly id: string };
};

/** Targets that are looked at before other work gets its turn. */
const PAGE = 100;
/** Objects that are named; a log line should not hold more. */
const NAMED = 10;
const ALL = { all: true } as const;
/** Kept in ways of their own: a reported hub need not be registered, and a project is pointed at by its path. */
const KEPT_OTHERWISE = ['hub', 'project'];
/** Go with their tenant, a little later. */
const GO_ALONG = ['tenant', 'user', 'project'];
const BUILT_IN = ['shared', 'system'];

/**
 * Looks for what should never be (`app/referrals.ts` says why), so that a bug does not stay unseen. One indexed step
 * per target, pages of them with pauses. `total` counts targets and tenants that are missing.
 */
export const findDangling = async (
  resources: Pick<ResourceReader, 'get' | 'referencedBy' | 'nextReferred' | 'nextOwner'>,
  timers: Timers,
  signal: AbortSignal,
): Promise<{ readonly total: number; readonly named: readonly Dangling[] }> => {
  const named: Dangling[] = [];
  let total = 0;
  const note = (found: Dangling): void => {
    total += 1;
    if (named.length < NAMED) named.push(found);
  };
  let looks = 0;
  const look = async (): Promise<boolean> => {
    looks += 1;
    if (looks % PAGE === 0) await pause(timers, 0, signal);
    return !signal.aborted;
  };
  for (let to = resources.nextReferred({ kind: '', id: '' }); to !== undefined; ) {
    if (!(await look())) break;
    if (!KEPT_OTHERWISE.includes(to.kind) && resources.get(to.kind, to.id, ALL) === undefined) {
      const [from] = resources.referencedBy(to.kind, to.id, { limit: 1 });
      if (from !== undefined) note({ from, to });
    }
    to = resources.nextReferred(to);
  }
  for (let owner = resources.nextOwner({ kind: '', tenant: '' }); owner !== undefined; ) {
    if (!(await look())) break;
    const { kind, tenant } = owner;
    const checked = !GO_ALONG.includes(kind) && !BUILT_IN.includes(tenant);
    if (checked && resources.get('tenant', tenant, ALL) === undefined)
      note({ from: owner, to: { kind: 'tenant', id: tenant } });
    owner = resources.nextOwner(owner);
  }
  return { total, named };
};
