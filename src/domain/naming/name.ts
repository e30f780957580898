import { reject, type DataOf, type Decider } from '../decider.ts';
import type { NameEvent } from './events.ts';

/**
 * The stream that owns one name (design §4). A creation reserves first and creates then; a retry of the same command
 * finds its own reservation; whoever comes second is told that the name is taken.
 */
export const NAME_CATEGORY = 'name';

type Reserved = DataOf<NameEvent, 'NameReserved'>;

export type NameCommand =
  | ({ readonly type: 'ReserveName' } & Omit<Reserved, 'takenFrom'>)
  /** Frees the name if `holder` has it (and, when given, by this command); otherwise nothing happens. */
  | ({
      readonly type: 'ReleaseName';
      /** Releases only the reservation that this command made: a failed second creation must not free a live name. */
      readonly commandId?: string;
    } & DataOf<NameEvent, 'NameReleased'>);

/** `displaced`: streams of resources that a slot was taken from and that may still show it, latest last. */
export type NameState =
  | { readonly status: 'free'; readonly displaced?: readonly string[] }
  | ({ readonly status: 'held'; readonly displaced?: readonly string[] } & Omit<Reserved, 'takenFrom'>);

export const nameDecider: Decider<NameState, NameCommand, NameEvent> = {
  initialState: () => ({ status: 'free' }),
  evolve: (state, event) => {
    switch (event.type) {
      case 'NameReserved':
        return held(state, event.data);
      case 'NameReleased':
        return state.status === 'held' && state.holder === event.data.holder
          ? { status: 'free', ...displacing(state.displaced) }
          : state;
      default:
        return state;
    }
  },
  decide: (state, command) => {
    switch (command.type) {
      case 'ReserveName':
        if (state.status === 'free') return [reserved(command)];
        if (state.holder === command.holder && state.commandId === command.commandId) return [];
        return reject('already-exists', 'NAME_TAKEN', 'this name is taken', {
          facts: { kind: state.kind, holder: state.holder },
        });
      case 'ReleaseName':
        if (state.status === 'free' || state.holder !== command.holder) return [];
        if (command.commandId !== undefined && command.commandId !== state.commandId) return [];
        return [
          {
            type: 'NameReleased',
            data: { at: command.at, holder: command.holder, why: command.why },
          },
        ];
    }
  },
};

const reserved = (
  command: Extract<NameCommand, { type: 'ReserveName' }>,
): Extract<NameEvent, { type: 'NameReserved' }> => {
  const { at, kind, holder, commandId, stream } = command;
  return { type: 'NameReserved', data: { at, kind, holder, commandId, stream } };
};

const held = (state: NameState, { takenFrom, ...data }: Reserved): NameState => {
  const before = [...(state.displaced ?? []), ...(takenFrom === undefined ? [] : [takenFrom])];
  const displaced = before.filter((stream, i) => stream !== data.stream && before.lastIndexOf(stream) === i);
  return { status: 'held', ...data, ...displacing(displaced) };
};

const displacing = (displaced: readonly string[] = []): { displaced?: readonly string[] } =>
  displaced.length === 0 ? {} : { displaced };
