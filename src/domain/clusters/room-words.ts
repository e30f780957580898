import { own } from '../json-tools.ts';
import type { NodeSet } from './state.ts';

/** What an order waits for, for its tenant: names neither hubs nor how many there are. */
type Sets = { readonly [name: string]: Pick<NodeSet, 'hostType' | 'size'> };

/**
 * `waiting for 2 × h100 in zone east`, followed by `why` where more than room is missing. `held`: nodes by host type that
 * it has already.
 */
export const waitingWords = (
  nodeSets: Sets,
  {
    zone,
    held = {},
    why = '',
  }: {
    readonly zone?: string | undefined;
    readonly held?: { readonly [hostType: string]: number };
    readonly why?: string;
  } = {},
): string => {
  const counts = new Map<string, { readonly name: string; readonly count: number }>();
  for (const { hostType, size } of Object.values(nodeSets)) {
    const { count } = counts.get(hostType.id) ?? { count: -(own(held, hostType.id) ?? 0) };
    counts.set(hostType.id, { name: hostType.name, count: count + size });
  }
  const nodes = [...counts.values()].filter(({ count }) => count > 0);
  const what =
    nodes.length === 0 ? 'a place' : nodes.map(({ name, count }) => `${count} × ${name}`).join(', ');
  return `waiting for ${what}${zone === undefined ? '' : ` in zone ${zone}`}${why === '' ? '' : `: ${why}`}`;
};
