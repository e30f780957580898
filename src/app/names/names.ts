import { hash } from 'node:crypto';
import type { Decision, DomainEvent } from '../../domain/decider.ts';
import { defined } from '../../domain/json-tools.ts';
import { nameAggregate, type AnyKind, aggregateOf } from '../../domain/kinds.ts';
import type { NameState } from '../../domain/naming/name.ts';
import type { ResourceKind, ResourceView } from '../../domain/resource.ts';
import { parseStreamName, streamName } from '../../domain/stream-name.ts';
import type { Aggregate, CommandContext, CommandRunner, SentAppend } from '../commands/command.ts';
import type { Position } from '../log/event-store.ts';
import type { Runtime, Clock } from '../ports.ts';

/**
 * Names and other values that only one resource may have. Each is owned by a stream of its own.
 *
 * How a reservation stays safe without multi-stream transactions:
 * 1. Every attempt to write a resource first reads the resource's stream, then appends a reservation of its own (also
 *    when an earlier attempt of the same command holds the name), then appends to the resource at exactly the
 *    revision that it read. So it relies on no reservation but its own. The second append may be sent before the
 * first is
 *    answered, on condition that the first is stored (`AppendOptions.after`).
 * 2. Whoever takes a reservation away from a resource that may still be written first moves that resource's stream
 *    on (`CreationAbandoned`), so that the append of step 1 fails, and releases exactly the reservation it had read.
 */
export type NameClaim = {
  /** Id of the stream `name-<id>` that owns it. */
  readonly id: string;
  /** `name`, or the path of the field that holds the unique value. */
  readonly field: string;
  readonly value: string;
  /** Passes from one resource to the next. */
  readonly slot?: true;
  /** The sentence for whoever comes too late, when the kind has one of its own. */
  readonly taken?: string;
};

/** SHA-256 of the parts: no stream name holds personal text. */
export const nameStreamId = (scope: string, tenant: string, project: string, value: string): string =>
  hash('sha256', JSON.stringify([scope, tenant, project, value]), 'hex');

/** What a resource in this shape must own; nothing once it is archived (or was never there). */
export const claimsOf = (kind: NamedKind, view: ResourceView): readonly NameClaim[] =>
  view.exists && !view.archived ? everyClaimOf(kind, view) : [];

/** The same for a resource that is gone: what it owned until then. */
export const everyClaimOf = (
  kind: NamedKind,
  view: Extract<ResourceView, { exists: true }>,
): readonly NameClaim[] => {
  const tenant = kind.nameScope === 'global' ? '' : view.tenant;
  const project = kind.nameScope === 'project' ? view.project : '';
  const claimed = view.claimedName ?? view.name;
  const name: NameClaim = {
    id: nameStreamId(kind.kind, tenant, project, claimed),
    field: 'metadata.name',
    value: claimed,
    // The sentence is recorded and logged: it must not tell a name that is personal data.
    ...(view.claimedName === undefined ? {} : { taken: nameTakenText(kind.words) }),
  };
  const values = kind.uniqueValues?.(view.document) ?? [];
  return [
    name,
    ...values.map(({ scope, value, field, slot, taken }) => ({
      id: nameStreamId(scope, '', '', value),
      field,
      value,
      ...defined({ slot, taken }),
    })),
  ];
};

/** What is said of a taken name that must not be told. */
export const nameTakenText = (words: string): string => `${words} with this name already exists`;

type NamedKind = Pick<ResourceKind, 'kind' | 'nameScope' | 'uniqueValues' | 'words'>;

/** A reservation that this attempt made. `fresh`: it was free before, or, of a slot, somebody else's. */
export type Reservation = { readonly claim: NameClaim; readonly revision: number; readonly fresh: boolean };

export type Names = {
  /** Undefined: somebody else holds it. */
  reserve(
    claim: NameClaim,
    holder: { readonly kind: string; readonly id: string; readonly stream: string; readonly exists: boolean },
    context: CommandContext,
    options?: { readonly ifRevision?: number; readonly onSent?: (sent: SentAppend) => void },
  ): Promise<Reservation | undefined>;
  /** Who holds it now, and the revision to release it at. */
  look(id: string): Promise<{ readonly state: NameState; readonly revision: number } | undefined>;
  /** Frees it if the stream still stands at `revision`; false when somebody moved it on. */
  release(
    id: string,
    revision: number,
    holder: string,
    why: 'deleted' | 'abandoned',
    context: CommandContext,
  ): Promise<boolean>;
  /** The context of one step of a command: the step has an id of its own. */
  step(context: CommandContext): CommandContext;
};

export const createNames = ({
  runner,
  clock,
  ids,
}: {
  runner: CommandRunner;
} & Pick<Runtime, 'clock' | 'ids'>): Names => {
  /** Reservations are appends of their own: a command may have to repeat one, so each has an id of its own. */
  const stepOf = ({ ifVersion: _v, ifRevision: _r, ...context }: CommandContext): CommandContext => ({
    ...context,
    commandId: ids.uuidv7(),
    causationId: context.commandId,
  });

  return {
    step: stepOf,
    reserve: async (claim, { kind, id: holder, stream, exists }, context, { onSent, ...only } = {}) => {
      const { commandId } = context;
      const at = clock.now();
      const takesOver = claim.slot === true && only.ifRevision === undefined;
      let fresh = false;
      const outcome = await runner.execute(
        nameAggregate,
        claim.id,
        { type: 'ReserveName', at, kind, holder, commandId, stream, anyCommand: exists, takesOver },
        { ...stepOf(context), ...only },
        {
          step: true,
          likelyNew: true,
          ...(onSent !== undefined && { onSent }),
          beforeAppend: async ({ state }) => {
            fresh = state.status === 'free' || state.stream !== stream;
            return undefined;
          },
        },
      );
      const { revision } = outcome.loaded;
      if (outcome.outcome === 'rejected' || revision === 'no_stream') return undefined;
      return { claim, revision, fresh };
    },
    look: async (id) => {
      const { state, revision } = await runner.load(nameAggregate, id);
      return revision === 'no_stream' ? undefined : { state, revision };
    },
    release: async (id, revision, holder, why, context) => {
      const command = { type: 'ReleaseName', at: clock.now(), holder, why } as const;
      const step = { ...stepOf(context), ifRevision: revision };
      const outcome = await runner.execute(nameAggregate, id, command, step, { step: true });
      return outcome.outcome === 'accepted';
    },
  };
};

/** The kind's own fold with one decision, which is none of its commands. */
export const deciding = <C extends { readonly type: string }>(
  kind: Pick<AnyKind, 'kind' | 'decider' | 'stateVersion'>,
  decide: (state: unknown, command: C) => Decision<DomainEvent>,
): Aggregate<unknown, C, DomainEvent> => ({
  category: kind.kind,
  decider: { ...kind.decider, decide },
  stateVersion: kind.stateVersion,
});

/**
 * A slot is a name that passes from one resource to the next, for example "the default version". Whoever
 * wants it takes it over in the slot's stream, then writes its own first event or change, and only then do the former
 * ones cease to show it. So a command that is refused or dies half-way leaves the former one as it was:
 *
 * - The owner shows the slot: all displaced ones that still show it are told to yield.
 * - The owner does not show it yet: its command is under way, or the name repair will take the slot away from it.
 * - The slot is free again: the last displaced one that still shows it gets it back.
 *
 * Run after every change of a slot and by the name repair; repeating it does no harm.
 */
export type SlotParts = {
  readonly runner: CommandRunner;
  readonly names: Names;
  readonly clock: Clock;
};

const MAX_ROUNDS = 5;

/** Returns the position of the last event that it wrote, if it wrote any. */
export const settleSlot = async (
  { runner, names, clock }: SlotParts,
  kind: AnyKind,
  slotId: string,
  context: CommandContext,
): Promise<Position | undefined> => {
  if (kind.yieldSlot === undefined) return undefined;
  const shows = async (stream: string): Promise<Shown | undefined> => {
    const { id } = parseStreamName(stream);
    const { state, revision } = await runner.load(aggregateOf(kind), id);
    const claim = claimsOf(kind, kind.view(state)).find((candidate) => candidate.id === slotId);
    return claim === undefined || revision === 'no_stream' ? undefined : { id, revision, claim };
  };
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const slot = await names.look(slotId);
    const displaced = slot?.state.displaced ?? [];
    if (slot === undefined || displaced.length === 0) return undefined;
    const former = (await Promise.all(displaced.map(shows))).filter((one) => one !== undefined);
    const last = former.at(-1);
    if (last === undefined) return undefined;
    if (slot.state.status === 'held' && (await shows(slot.state.stream)) === undefined) return undefined;
    // The former ones were read before the owner: one that gets the slot back meanwhile has moved on and is left alone.
    if ((await names.look(slotId))?.revision !== slot.revision) continue;
    if (slot.state.status === 'held') {
      let position: Position | undefined;
      for (const { id, revision } of former) {
        const step = { ...names.step(context), ifRevision: revision };
        const command = kind.yieldSlot(clock.now());
        const outcome = await runner.execute(aggregateOf(kind), id, command, step, { step: true });
        if (outcome.outcome === 'accepted') position = outcome.loaded.position ?? position;
      }
      return position;
    }
    const holder = { kind: kind.kind, id: last.id, stream: streamName(kind.kind, last.id), exists: true };
    await names.reserve(last.claim, holder, context, { ifRevision: slot.revision });
  }
  return undefined;
};

type Shown = {
  readonly id: string;
  readonly revision: number;
  readonly claim: ReturnType<typeof claimsOf>[number];
};
