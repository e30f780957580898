import { parseStreamName, streamName } from '../../domain/stream-name.ts';
import { aggregateOf, type AnyKind } from '../../domain/kinds.ts';
import type { CommandContext, CommandRunner } from '../commands/command.ts';
import type { Position } from '../log/event-store.ts';
import { claimsOf, type Names } from './names.ts';
import type { Clock } from '../ports.ts';

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
