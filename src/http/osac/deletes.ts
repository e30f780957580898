import { hubCapacity } from '../../app/hubs/scheduler.ts';
import { derivedCommandId } from '../../app/log/identifiers.ts';
import type { CommandContext, CommandOutcome } from '../../app/commands/command.ts';
import { rehearse, type Rehearsed } from '../../app/commands/rehearsal.ts';
import { isRejection, reject, type DomainEvent, type Rejection } from '../../domain/decider.ts';
import { claimedBy } from '../../domain/hubs/capacity.ts';
import { isGivenUp } from '../../domain/hubs/hub.resource.ts';
import { defined } from '../../domain/json-tools.ts';
import { aggregateOf, hub, kindOf } from '../../domain/kinds.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { ResourceRow } from '../../projections/read-models.ts';
import { objectNotFound, rejected, unfit, type ApiError } from '../errors.ts';
import type { Answer, Call, Handler, IdMessage } from './call.ts';
import { forgetFormer } from './secrets.ts';
import {
  assertUnchanged,
  assertWritable,
  beginWrite,
  commandContext,
  onceOnly,
  settledBefore,
  settling,
  type Write,
  type WriteServices,
} from './write-context.ts';

export type Removal<C> = {
  readonly command: (at: string) => C;
  /** Why it cannot be deleted now, beyond what points at it. */
  readonly blocked?: (id: string) => string | undefined;
  /**
   * Makes sure that what `blocked` found out holds for a deletion at exactly this revision, and says why it does not.
   * Not asked by a dry run.
   */
  readonly secure?: (id: string, revision: number, commandId: string) => Promise<string | undefined>;
};

/** Delete (OSAC): `{}`; refused while something points at it. */
export const deleteHandler =
  <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    removal: Removal<C>,
    services: WriteServices,
  ): Handler<IdMessage> =>
  (call) => {
    const write = beginWrite(call, {}, services);
    const look = async (): Promise<Answer | undefined> => {
      const settled = await settledBefore(kind, call.message.id, write, call.principal, services, {
        exists: true,
      });
      return settled === undefined ? undefined : deleted(settled.position);
    };
    const run = (): Promise<Answer> => onceOnly(look, () => remove(kind, removal, services, call, write));
    return settling(write, () =>
      write.dryRun === true ? run() : services.commands.inTurn(kind.kind, call.message.id, run),
    );
  };

/** How often a deletion starts over because its object changed between the look and the deletion. */
const MAX_ROUNDS = 5;

const remove = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  removal: Removal<C>,
  services: WriteServices,
  call: Call<IdMessage>,
  write: Write,
): Promise<Answer> => {
  const { id } = call.message;
  for (let round = 1; ; round += 1) {
    const outcome = await removeOnce(kind, removal, services, call, write);
    if (outcome.outcome === 'accepted')
      return deleted('loaded' in outcome ? outcome.loaded.position : undefined);
    const { rejection } = outcome;
    if (rejection.kind === 'not-found') throw objectNotFound(id);
    const changed = rejection.kind === 'conflict' && call.metadata.ifRevision === undefined;
    if (!changed || round === MAX_ROUNDS) throw rejected(rejection);
  }
};

const removeOnce = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  { command, blocked, secure }: Removal<C>,
  services: WriteServices,
  call: Call<IdMessage>,
  write: Write,
): Promise<CommandOutcome<S> | Rehearsed<S>> => {
  const { message, principal, metadata } = call;
  const { id } = message;
  const loaded = await services.runner.load(aggregateOf(kind), id);
  const live = assertWritable(kind.kind, principal, kind.view(loaded.state), id);
  const revision = Number(loaded.revision);
  assertUnchanged(
    { kind: kind.kind, id },
    { revision, version: loaded.version },
    { ifRevision: metadata.ifRevision },
  );
  // It was decided then; a second deletion moves nothing, other than in the original (head of, OSAC).
  const pending = live.deletionTimestamp !== undefined;
  // Who gives a hub up knows that orders are on it: they stay to be seen, and the hub with them.
  const givenUp = kind.kind === hub.kind && isGivenUp(live.document);
  const refuse = (reason: string | undefined): void => {
    if (reason !== undefined) throw unfit(reason, 'STILL_IN_USE');
  };
  // First: what would stay anyway is not to be freed of its users.
  const holds = givenUp ? undefined : blocked?.(id);
  if (!pending) refuse(holds);
  const users =
    kind.protectedWhileReferenced && !pending && !givenUp
      ? services.resources.referencedBy(kind.kind, id, { limit: MOST_USERS })
      : [];
  const whyInUse = (by: readonly User[]): string =>
    (kind.countsUsers === true ? countedUsers(kind.message, id, by) : inUse(kind.words, live.name, by)) +
    namesOf(by, (user) => services.resources.get(user.kind, user.id, principal.visibility));
  const inUseBy = async (by: readonly User[]): Promise<ApiError> =>
    unfit(whyInUse(by) + (kind.kind === hub.kind ? await ordersOn(id, services) : ''), 'STILL_REFERENCED');
  if (users.length > 0) throw await inUseBy(users);
  if (write.dryRun === true) {
    if (kind.kind === hub.kind && !pending && !givenUp && !(await tryToCloseHub(id, revision, services)))
      throw await inUseBy([]);
    return rehearse(services.runner, kind, id, command(services.clock.now()), { ifRevision: revision });
  }
  const context = await commandContext(call, write, { tenant: live.tenant, project: live.project }, services);
  const closed = kind.kind === hub.kind && !pending && !givenUp;
  if (closed && !(await closeHub(id, revision, context, services))) throw await inUseBy([]);
  const secured = secure !== undefined && !pending;
  if (secured) refuse(await secure(id, revision, context.commandId));
  // The looks above refuse nearly all; what is on its way is known only once nothing more can come.
  const unreferenced = (): Rejection | undefined => {
    const late = services.resources.referencedBy(kind.kind, id, { limit: MOST_USERS });
    if (late.length > 0) return stillIn('STILL_REFERENCED', whyInUse(late));
    const reason = givenUp ? undefined : blocked?.(id);
    return reason === undefined ? undefined : stillIn('STILL_IN_USE', reason);
  };
  const exact = {
    ...context,
    // What was closed for this revision opens again with the next one; and the next object under this id is another.
    ...(closed || secured || kind.idOnce !== true ? { ifRevision: revision } : {}),
    ...defined({ ifRevision: metadata.ifRevision }),
  };
  const guarded = kind.protectedWhileReferenced && !pending && !closed && !secured && !givenUp;
  const how = guarded ? { unreferenced } : {};
  const outcome = await services.commands.execute(kind, id, command(services.clock.now()), exact, how);
  if (outcome.outcome === 'accepted' && !outcome.replayed)
    await forgetFormer(services.secrets, kind.kind, live, kind.view(outcome.loaded.state));
  return outcome;
};

const stillIn = (code: string, message: string): Rejection => reject('failed-precondition', code, message);

/**
 * Read models lag, and a document may not show all that is reserved: only the stream that owns a hub's capacity knows
 * that nothing is left on it, and makes sure that nothing comes. A repetition after a crash finds it closed already.
 */
const closeHub = async (
  id: string,
  hubRevision: number,
  context: CommandContext,
  { runner, clock }: Pick<WriteServices, 'runner' | 'clock'>,
): Promise<boolean> => {
  const commandId = derivedCommandId(context.commandId, 'CloseCapacity', id, hubRevision);
  const by = { ...context, commandId, requestHash: commandId, causationId: context.commandId, hub: id };
  const closing = closeAt(id, hubRevision, clock.now());
  return (await runner.execute(hubCapacity, id, closing, by, { step: true })).outcome === 'accepted';
};

const closeAt = (hub: string, hubRevision: number, at: string) =>
  ({ type: 'CloseCapacity', at, hub, hubRevision }) as const;

/** How many orders are on a hub and what to do about it, as the end of a sentence. */
const ordersOn = async (id: string, { runner }: Pick<WriteServices, 'runner'>): Promise<string> => {
  const { state } = await runner.load(hubCapacity, id);
  const count = claimedBy(state).length;
  const orders = count === 1 ? '1 order has' : `${count} orders have`;
  return `; ${orders} a place on it, which \`ledgerctl hubs orders ${id}\` lists and \`ledgerctl hubs remove ${id} --force\` gives up`;
};

/** The same question without closing anything. */
const tryToCloseHub = async (
  id: string,
  hubRevision: number,
  { runner, clock }: Pick<WriteServices, 'runner' | 'clock'>,
): Promise<boolean> => {
  const { state } = await runner.load(hubCapacity, id);
  return !isRejection(hubCapacity.decider.decide(state, closeAt(id, hubRevision, clock.now())));
};

type User = { readonly kind: string; readonly id: string };
const NAMED_USERS = 5;
const MOST_USERS = 1_000;
/** For names, of callers who may not see all. */
const LOOKED_AT = 100;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const countedUsers = (message: string, id: string, users: readonly User[]): string => {
  const counts = Map.groupBy(users, ({ kind }) => kindOf(kind)?.message ?? kind);
  const all = [...counts].map(([of, some]) => `${some.length} ${of}(s)`).join(', ');
  return `cannot delete ${message} '${id}': ${all} still reference it`;
};

/** Everybody is told of which kinds they are. */
const inUse = (words: string, name: string, users: readonly User[]): string => {
  const kinds = [...new Set(users.map(({ kind }) => `one ${wordsOf(kind)}`))].join(' and ');
  return `cannot delete ${words} '${name}': it is in use by at least ${kinds || 'one other object'}`;
};
const wordsOf = (kind: string): string => kindOf(kind)?.words ?? kind;

/** As the end of a sentence, those that the caller may see: by id where somebody chose it. */
const namesOf = (
  users: readonly User[],
  rowOf: (user: User) => Pick<ResourceRow, 'name'> | undefined,
): string => {
  const looked = users.slice(0, LOOKED_AT);
  const seen = looked.flatMap((user) => {
    const row = rowOf(user);
    const shown = UUID.test(user.id) ? row?.name || user.id : user.id;
    return row === undefined ? [] : [`${wordsOf(user.kind)} '${shown}'`];
  });
  if (seen.length === 0) return '';
  const others =
    seen.length - NAMED_USERS + (seen.length === looked.length ? users.length - looked.length : 0);
  const more = others > 0 ? ` and ${others} more` : '';
  return `: ${seen.slice(0, NAMED_USERS).join(', ')}${more}`;
};

const deleted = (position: string | undefined): Answer => ({ body: '{}', ...defined({ position }) });
