import { grants as grantAllows, type AuditGrantState } from '../../domain/audit/grant.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { auditGrantAggregate } from '../../domain/kinds.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { CommandRunner } from '../command.ts';
import type { EventStore } from '../event-store.ts';
import type { Clock } from '../ports.ts';
import { followEvents, type FindLeaves } from './followed.ts';
import type { Rest } from './tenant-heads.ts';

export type GrantedReach = { readonly all: boolean; readonly tenants: readonly string[] };
export type ListedGrant = { readonly id: string; readonly state: AuditGrantState; readonly givenAt: string };

/** Who may read the history of tenants that are not its own. */
export type AuditGrants = {
  /** What a subject's grants allow now. That one was withdrawn counts at once, wherever that was done. */
  reachOf(subjectId: string, signal?: AbortSignal): Promise<GrantedReach>;
  /** All that were ever given, oldest first. */
  list(signal?: AbortSignal): Promise<readonly ListedGrant[]>;
};

type Given = { readonly id: string; readonly subjectId: string; readonly at: string };

export const createAuditGrants = ({
  store,
  runner,
  find,
  clock,
  rest,
}: {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly runner: Pick<CommandRunner, 'load'>;
  readonly find: FindLeaves;
  readonly clock: Pick<Clock, 'now'>;
  readonly rest: Rest;
}): AuditGrants => {
  const given: Given[] = [];
  const followed = followEvents({
    store,
    find,
    rest,
    types: ['AuditGrantGiven'],
    see: ({ stream, data }) =>
      given.push({
        id: parseStreamName(stream).id,
        subjectId: stringAt(data, 'subjectId'),
        at: stringAt(data, 'at'),
      }),
  });
  const stateOf = async (id: string): Promise<AuditGrantState> =>
    (await runner.load(auditGrantAggregate, id)).state;

  return {
    reachOf: async (subjectId, signal) => {
      await followed.catchUp(signal);
      const now = clock.now();
      const tenants = new Set<string>();
      let all = false;
      for (const { id } of given.filter((each) => each.subjectId === subjectId)) {
        const state = await stateOf(id);
        if (state.status === 'none') continue;
        if (grantAllows(state, undefined, now)) all = true;
        if (state.tenants === 'all') continue;
        for (const tenant of state.tenants) if (grantAllows(state, tenant, now)) tenants.add(tenant);
      }
      return { all, tenants: [...tenants] };
    },
    list: async (signal) => {
      await followed.catchUp(signal);
      const listed: ListedGrant[] = [];
      for (const { id, at } of given) listed.push({ id, state: await stateOf(id), givenAt: at });
      return listed;
    },
  };
};
