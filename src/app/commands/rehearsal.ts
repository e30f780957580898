import { parseStreamName, streamName } from '../../domain/stream-name.ts';
import { isRejection, type DomainEvent, type Rejection } from '../../domain/decider.ts';
import type { ResourceKind } from '../../domain/resource.ts';
import type { CommandContext, CommandRunner } from './command.ts';
import { aggregateOf, nameAggregate } from '../../domain/kinds.ts';
import { claimsOf, type NameClaim } from '../names/names.ts';
import { staleRevision } from './refusals.ts';
import { takenRejection } from './resource-commands.ts';
import { takingRejection } from './takings.ts';

/** What a command would come to. */
export type Rehearsed<State> =
  | { readonly outcome: 'accepted'; readonly state: State; readonly events: readonly DomainEvent[] }
  | { readonly outcome: 'rejected'; readonly rejection: Rejection };

/**
 * Decides a command on a resource as `ResourceCommands.execute` would, and stops there: reads streams only. Nothing is
 * appended, reserved, recorded or remembered, so that a dry run leaves no trace (OSAC).
 */
export const rehearse = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  runner: Pick<CommandRunner, 'load'>,
  kind: ResourceKind<S, C, E>,
  id: string,
  command: C | ((abandonedBefore: number) => C),
  { ifRevision }: Pick<CommandContext, 'ifRevision'> = {},
): Promise<Rehearsed<S>> => {
  const { state, revision } = await runner.load(aggregateOf(kind), id);
  const { decider } = kind;
  const decide = (abandonedBefore: number) =>
    decider.decide(state, typeof command === 'function' ? command(abandonedBefore) : command);
  let decision = decide(0);
  if (isRejection(decision) && decision.code === 'CREATION_ABANDONED')
    decision = decide(Number(decision.facts?.['times'] ?? 0));
  const stale = staleRevision(ifRevision, revision);
  if (stale !== undefined && !(isRejection(decision) && decision.kind === 'not-found'))
    return { outcome: 'rejected', rejection: stale };
  if (isRejection(decision)) return { outcome: 'rejected', rejection: decision };
  const after = decision.reduce(decider.evolve, state);
  const had = new Set(claimsOf(kind, kind.view(state)).map((claim) => claim.id));
  const view = kind.view(after);
  for (const claim of claimsOf(kind, view)) {
    if (had.has(claim.id) || !(await isTaken(runner, kind, id, claim))) continue;
    const name = view.exists ? view.name : '';
    return { outcome: 'rejected', rejection: takenRejection(kind, claim, name) };
  }
  const before = kind.view(state);
  if (view.exists && (!before.exists || before.archived)) {
    const rejection = await takingRejection(runner, kind, view, view.creationTimestamp);
    if (rejection !== undefined) return { outcome: 'rejected', rejection };
  }
  return { outcome: 'accepted', state: after, events: decision };
};

/** Somebody else has it and keeps it: a slot would pass on, and what a gone resource still holds would be freed. */
const isTaken = async <S, C extends { readonly type: string }, E extends DomainEvent>(
  runner: Pick<CommandRunner, 'load'>,
  kind: ResourceKind<S, C, E>,
  id: string,
  claim: NameClaim,
): Promise<boolean> => {
  const { state } = await runner.load(nameAggregate, claim.id);
  if (state.status === 'free' || claim.slot === true || state.stream === streamName(kind.kind, id))
    return false;
  const owner = parseStreamName(state.stream);
  if (owner.category !== kind.kind) return true;
  const view = kind.view((await runner.load(aggregateOf(kind), owner.id)).state);
  return !(view.exists && view.archived);
};
