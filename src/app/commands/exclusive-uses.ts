import { isRejection, type Rejection } from '../../domain/decider.ts';
import type { UseCommand } from '../../domain/exclusive-use.ts';
import type { Holder, Use } from '../../domain/holder.ts';
import { defined } from '../../domain/json-tools.ts';
import { aggregateOf, kindOf, type AnyKind } from '../../domain/kinds.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import type { Clock } from '../ports.ts';
import type { CommandContext, CommandOutcome, CommandRunner } from './command.ts';

/** What an object is the only user of; nothing once it is archived. */
export const usesOf = (kind: Pick<ResourceKind, 'uses'>, view: ResourceView): readonly Use[] =>
  view.exists && !view.archived ? everyUseOf(kind, view) : [];

/** The same for one that is gone: what it used until then. */
export const everyUseOf = (
  { uses }: Pick<ResourceKind, 'uses'>,
  { document }: Extract<ResourceView, { exists: true }>,
): readonly Use[] => uses?.(document) ?? [];

export const isSameUse = (one: Use, other: Use): boolean =>
  one.kind === other.kind && one.id === other.id && one.part === other.part;

const usedKind = ({ kind }: Use): AnyKind => {
  const found = kindOf(kind);
  if (found === undefined) throw new TypeError(`nothing of kind ${kind} can be used`);
  return found;
};
const attaching = ({ part }: Use, holder: Holder, at: string): UseCommand =>
  defined({ type: 'AttachTo', at, holder, part });
const refusal = ({ field }: Use, rejection: Rejection): Rejection => ({ ...rejection, field });

/** Why a creation that is only tried out would be refused. */
export const refusedUse = async (
  runner: Pick<CommandRunner, 'load'>,
  holder: Holder,
  uses: readonly Use[],
): Promise<Rejection | undefined> => {
  for (const use of uses) {
    const kind = usedKind(use);
    const { state } = await runner.load(aggregateOf(kind), use.id);
    const decision = kind.decider.decide(state, attaching(use, holder, ''));
    if (isRejection(decision)) return refusal(use, decision);
  }
  return undefined;
};

export type Uses = ReturnType<typeof createUses>;

/** Claims of objects that serve one user at a time: each is decided in the stream of the object itself. */
export const createUses = ({
  runner,
  clock,
  step,
}: {
  readonly runner: CommandRunner;
  readonly clock: Clock;
  /** `Names.step`: a claim is a step of a command, with an id of its own. */
  readonly step: (context: CommandContext) => CommandContext;
}) => {
  const execute = async (
    use: Use,
    command: UseCommand,
    context: CommandContext,
  ): Promise<CommandOutcome<unknown>> => {
    const kind = usedKind(use);
    const view = kind.view((await runner.load(aggregateOf(kind), use.id)).state);
    // In the name of the tenant and the project that the used object belongs to.
    const owner = view.exists ? { tenant: view.tenant, project: view.project } : {};
    return runner.execute(aggregateOf(kind), use.id, command, { ...step(context), ...owner }, { step: true });
  };
  const release = async (uses: readonly Use[], holder: Holder, context: CommandContext): Promise<void> => {
    for (const use of uses) await execute(use, { type: 'DetachFrom', at: clock.now(), holder }, context);
  };
  return {
    release,
    /** What one attempt at one object takes and gives back. */
    ofHolder: (holder: Holder, context: CommandContext) => {
      const fresh: Use[] = [];
      return {
        holdsAny: (): boolean => fresh.length > 0,
        /** Why one of them cannot be had. */
        take: async (uses: readonly Use[]): Promise<Rejection | undefined> => {
          for (const use of uses) {
            const outcome = await execute(use, attaching(use, holder, clock.now()), context);
            if (outcome.outcome === 'rejected') return refusal(use, outcome.rejection);
            if (outcome.events.length > 0) fresh.push(use);
          }
          return undefined;
        },
        release: (uses: readonly Use[]): Promise<void> => release(uses, holder, context),
        /** After a refusal: what an earlier attempt had taken stays, for that may still be under way. */
        giveUp: (): Promise<void> => release(fresh, holder, context),
      };
    },
  };
};
