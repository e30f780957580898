import type { DomainEvent } from '../../domain/decider.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import { ApiError, objectNotFound, rejected } from '../errors.ts';
import type { Answer, Call, Handler, IdMessage } from './call.ts';
import {
  assertUnchanged,
  assertWritable,
  beginWrite,
  commandContext,
  settledBefore,
  settling,
  type Write,
  type WriteServices,
} from './write-context.ts';

/** How one kind is deleted: the part that differs. */
export type Removal<C> = {
  readonly command: (at: string) => C;
  /** Why it cannot be deleted now, beyond what points at it. */
  readonly blocked?: (id: string) => string | undefined;
};

/** Delete (osac-api.md §5): `{}`; refused while something points at it. */
export const deleteHandler =
  <S, C extends { readonly type: string }, E extends DomainEvent>(
    kind: ResourceKind<S, C, E>,
    removal: Removal<C>,
    services: WriteServices,
  ): Handler<IdMessage> =>
  (call) => {
    const write = beginWrite(call, {}, services);
    return settling(write, () => remove(kind, removal, services, call, write));
  };

const remove = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  kind: ResourceKind<S, C, E>,
  { command, blocked }: Removal<C>,
  services: WriteServices,
  call: Call<IdMessage>,
  write: Write,
): Promise<Answer> => {
  const { message, principal, metadata } = call;
  const { id } = message;
  const settled = await settledBefore(kind, id, write, services);
  if (settled !== undefined) return deleted(settled.position);
  const aggregate = { category: kind.kind, decider: kind.decider, stateVersion: kind.stateVersion };
  const loaded = await services.runner.load(aggregate, id);
  const live = assertWritable(principal, kind.view(loaded.state), id);
  assertUnchanged(
    id,
    { revision: Number(loaded.revision), version: loaded.version },
    {
      ifRevision: metadata.ifRevision,
    },
  );
  if (kind.protectedWhileReferenced && services.resources.isReferenced(kind.kind, id))
    throw new ApiError(
      'FAILED_PRECONDITION',
      `cannot delete ${kind.words} '${live.name}': it is in use by at least one other object`,
      { reason: 'STILL_REFERENCED' },
    );
  const reason = blocked?.(id);
  if (reason !== undefined) throw new ApiError('FAILED_PRECONDITION', reason, { reason: 'STILL_IN_USE' });
  const context = await commandContext(call, write, { tenant: live.tenant, project: live.project }, services);
  const outcome = await services.commands.execute(kind, id, command(services.clock.now()), {
    ...context,
    ...(metadata.ifRevision === undefined ? {} : { ifRevision: metadata.ifRevision }),
  });
  if (outcome.outcome === 'accepted') return deleted(outcome.loaded.position);
  if (outcome.rejection.kind === 'not-found') throw objectNotFound(id);
  throw rejected(outcome.rejection);
};

const deleted = (position: string | undefined): Answer => ({
  body: '{}',
  ...(position === undefined ? {} : { position }),
});
