import { auditGrantNoticeId, type AuditGrantNoticeCommand } from '../../domain/audit/grant-notice.ts';
import { grants as grantAllows, type AuditGrantState } from '../../domain/audit/grant.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { auditGrantAggregate, auditGrantNoticeAggregate } from '../../domain/kinds.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { CommandRunner } from '../command.ts';
import type { EventStore } from '../event-store.ts';
import { derivedCommandId } from '../identifiers.ts';
import { systemContext } from '../metadata.ts';
import type { Clock } from '../ports.ts';
import { followEvents, type FindLeaves } from './followed.ts';
import type { Rest } from './tenant-heads.ts';

export type GrantedReach = { readonly all: boolean; readonly tenants: readonly string[] };
export type ListedGrant = { readonly id: string; readonly state: AuditGrantState; readonly givenAt: string };

/** Who may read the history of tenants that are not its own. */
export type AuditGrants = {
  /**
   * What a subject's grants allow now. That one was withdrawn counts at once, wherever that was done; one that names tenants
   * counts only after they were told.
   */
  reachOf(subjectId: string, signal?: AbortSignal): Promise<GrantedReach>;
  /** All that were ever given, oldest first. */
  list(signal?: AbortSignal): Promise<readonly ListedGrant[]>;
  /**
   * Tells the tenants that a grant names, each in its own history, that it was given, or that it was withdrawn. Repeating it
   * does no harm: what a crash left is made up for when the grant is next used or listed.
   */
  tell(id: string, signal?: AbortSignal): Promise<void>;
};

type Given = { readonly id: string; readonly subjectId: string; readonly at: string };

/** Tenants that are told at once. */
const AT_ONCE = 50;

export const createAuditGrants = ({
  store,
  runner,
  find,
  clock,
  rest,
}: {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly runner: Pick<CommandRunner, 'load' | 'execute'>;
  readonly find: FindLeaves;
  readonly clock: Pick<Clock, 'now'>;
  readonly rest: Rest;
}): AuditGrants => {
  const given: Given[] = [];
  /** Grants of which this instance knows that everybody was told, by what became of them. */
  const told = new Map<string, AuditGrantState['status']>();
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

  const tellOne = async (id: string, tenant: string, command: AuditGrantNoticeCommand): Promise<void> => {
    const noticeId = auditGrantNoticeId(id, tenant);
    const commandId = derivedCommandId(id, tenant, command.type);
    const context = systemContext(commandId, 'audit-grant', { tenant, causationId: id });
    await runner.execute(auditGrantNoticeAggregate, noticeId, command, context);
  };
  const tellOf = async (id: string, state: AuditGrantState, signal?: AbortSignal): Promise<void> => {
    if (state.status === 'none' || state.tenants === 'all' || told.get(id) === state.status) return;
    const { subjectId, expiresAt, tenants } = state;
    const at = clock.now();
    // It is over, and nobody used it: who would have told them.
    if (state.status === 'given' && expiresAt !== undefined && expiresAt <= at) return;
    const command: AuditGrantNoticeCommand =
      state.status === 'withdrawn'
        ? { type: 'NoticeAuditGrantEnd', at }
        : {
            type: 'NoticeAuditGrant',
            at,
            grantId: id,
            subjectId,
            ...(expiresAt === undefined ? {} : { expiresAt }),
          };
    for (let from = 0; from < tenants.length; from += AT_ONCE) {
      signal?.throwIfAborted();
      await Promise.all(tenants.slice(from, from + AT_ONCE).map((tenant) => tellOne(id, tenant, command)));
    }
    told.set(id, state.status);
  };

  return {
    reachOf: async (subjectId, signal) => {
      await followed.catchUp(signal);
      const now = clock.now();
      const tenants = new Set<string>();
      let all = false;
      for (const { id } of given.filter((each) => each.subjectId === subjectId)) {
        const state = await stateOf(id);
        if (state.status === 'none') continue;
        await tellOf(id, state, signal);
        if (grantAllows(state, undefined, now)) all = true;
        if (state.tenants === 'all') continue;
        for (const tenant of state.tenants) if (grantAllows(state, tenant, now)) tenants.add(tenant);
      }
      return { all, tenants: [...tenants] };
    },
    list: async (signal) => {
      await followed.catchUp(signal);
      const listed: ListedGrant[] = [];
      for (const { id, at } of given) {
        const state = await stateOf(id);
        await tellOf(id, state, signal);
        listed.push({ id, state, givenAt: at });
      }
      return listed;
    },
    tell: async (id, signal) => tellOf(id, await stateOf(id), signal),
  };
};
