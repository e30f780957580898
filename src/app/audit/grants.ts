import { auditGrantNoticeId, type AuditGrantNoticeCommand } from '../../domain/audit/grant-notice.ts';
import { grants as grantAllows, type AuditGrantState } from '../../domain/audit/grant.ts';
import { stringAt } from '../../domain/json-tools.ts';
import { auditGrantAggregate, auditGrantNoticeAggregate } from '../../domain/kinds.ts';
import { parseStreamName } from '../../domain/stream-name.ts';
import type { CommandRunner } from '../commands/command.ts';
import type { EventStore } from '../log/event-store.ts';
import { derivedCommandId } from '../log/identifiers.ts';
import { systemContext } from '../log/metadata.ts';
import type { Clock, Logger } from '../ports.ts';
import { eachAtOnce } from './bounded-parallel.ts';
import { followEvents, type FindLeaves } from './rare-events.ts';
import type { Rest } from './tenant-heads.ts';

export type GrantedReach = { readonly all: boolean; readonly tenants: readonly string[] };
export type ListedGrant = { readonly id: string; readonly state: AuditGrantState; readonly givenAt: string };

/** Who may read the history of tenants that are not its own. */
export type AuditGrants = {
  /**
   * What a subject's grants allow now. That one was withdrawn counts at once, wherever that was done; one that names tenants
   * counts only after all of them were told: where that fails it is left out, and the others count.
   */
  reachOf(subjectId: string, signal?: AbortSignal): Promise<GrantedReach>;
  /** All that were ever given, oldest first. */
  list(signal?: AbortSignal): Promise<readonly ListedGrant[]>;
  /**
   * Tells the tenants that a grant names, each in its own history, that it was given, or that it was withdrawn. Repeating it
   * does no harm: what a crash left is made up for when the grant is next used or listed. Throws when one cannot be told.
   */
  tell(id: string, signal?: AbortSignal): Promise<void>;
};

type Given = { readonly id: string; readonly subjectId: string; readonly at: string };

/** Tenants that are told at once. */
const AT_ONCE = 16;

export const createAuditGrants = ({
  store,
  runner,
  find,
  clock,
  rest,
  logger,
}: {
  readonly store: Pick<EventStore, 'readStream'>;
  readonly runner: Pick<CommandRunner, 'load' | 'execute'>;
  readonly find: FindLeaves;
  readonly clock: Pick<Clock, 'now'>;
  readonly rest: Rest;
  readonly logger: Pick<Logger, 'warn'>;
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
  const noticeOf = (
    id: string,
    { status, subjectId, expiresAt }: Exclude<AuditGrantState, { status: 'none' }>,
  ): AuditGrantNoticeCommand | undefined => {
    const at = clock.now();
    if (status === 'withdrawn') return { type: 'NoticeAuditGrantEnd', at };
    // It is over, and nobody used it: who would have told them.
    if (expiresAt !== undefined && expiresAt <= at) return undefined;
    const until = expiresAt === undefined ? {} : { expiresAt };
    return { type: 'NoticeAuditGrant', at, grantId: id, subjectId, ...until };
  };
  /** Returns the grant as it is once everybody was told of it. */
  const tellOf = async (
    id: string,
    state: AuditGrantState,
    signal?: AbortSignal,
  ): Promise<AuditGrantState> => {
    if (state.status === 'none' || state.tenants === 'all' || told.get(id) === state.status) return state;
    const notice = noticeOf(id, state);
    if (notice === undefined) return state;
    await eachAtOnce(state.tenants, AT_ONCE, (tenant) => {
      signal?.throwIfAborted();
      return tellOne(id, tenant, notice);
    });
    told.set(id, state.status);
    // Who withdrew it in the meantime found nobody who had been told that it was given, and told nobody of its end.
    const now = await stateOf(id);
    return now.status === state.status ? now : tellOf(id, now, signal);
  };
  /** Undefined: somebody cannot be told. */
  const toldOf = async (
    id: string,
    state: AuditGrantState,
    signal: AbortSignal | undefined,
  ): Promise<AuditGrantState | undefined> => {
    try {
      return await tellOf(id, state, signal);
    } catch (error) {
      signal?.throwIfAborted();
      logger.warn({ grant: id, err: error }, 'audit grant not told to every tenant; it does not count yet');
      return undefined;
    }
  };

  return {
    reachOf: async (subjectId, signal) => {
      await followed.catchUp(signal);
      const now = clock.now();
      const tenants = new Set<string>();
      let all = false;
      for (const { id } of given.filter((each) => each.subjectId === subjectId)) {
        const state = await toldOf(id, await stateOf(id), signal);
        if (state === undefined || state.status === 'none') continue;
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
        listed.push({ id, state: (await toldOf(id, state, signal)) ?? state, givenAt: at });
      }
      return listed;
    },
    tell: async (id, signal) => {
      await tellOf(id, await stateOf(id), signal);
    },
  };
};
