import { reject, type DataOf, type Decider } from '../decider.ts';
import type { EventOf } from '../schemas.ts';
import type { NAME_SHAPES } from './event-types.ts';

/**
 * Events of `name-<hash of kind, tenant, project, name>`: the stream that owns one name. The same
 * mechanism serves tenant domains, version numbers and "one default version". The stream's id is a hash, so that no
 * stream name holds personal text; `holder` is the resource's id.
 */
export type NameEvent = EventOf<typeof NAME_SHAPES>;

/**
 * The stream that owns one name. A creation reserves first and creates then; a retry of the same command
 * reserves again, so that every attempt relies on a reservation of its own (`app/names.ts`); whoever comes second is
 * told
 * that the name is taken.
 */
export const NAME_CATEGORY = 'name';

type Reserved = DataOf<NameEvent, 'NameReserved'>;

export type NameCommand =
  | ({
      readonly type: 'ReserveName';
      /** True: what it holds already it gets again whichever command reserved it; else by the same command only. */
      readonly anyCommand: boolean;
      /** True: also from a living holder. */
      readonly takesOver: boolean;
    } & Omit<Reserved, 'takenFrom'>)
  /** Frees the name if `holder` has it; otherwise nothing happens. */
  | ({ readonly type: 'ReleaseName' } & DataOf<NameEvent, 'NameReleased'>);

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
    if (command.type === 'ReleaseName') {
      const { type: _, ...data } = command;
      return state.status === 'held' && state.holder === data.holder ? [{ type: 'NameReleased', data }] : [];
    }
    const { type: _, anyCommand, takesOver, ...data } = command;
    if (state.status === 'free') return [{ type: 'NameReserved', data }];
    const isOwn = state.stream === data.stream;
    if (isOwn && (anyCommand || state.commandId === data.commandId)) return [{ type: 'NameReserved', data }];
    if (takesOver && !isOwn) return [{ type: 'NameReserved', data: { ...data, takenFrom: state.stream } }];
    return reject('already-exists', 'NAME_TAKEN', 'this name is taken', {
      facts: { kind: state.kind, holder: state.holder },
    });
  },
};

const held = (state: NameState, { takenFrom, ...data }: Reserved): NameState => {
  const before = [...(state.displaced ?? []), ...(takenFrom === undefined ? [] : [takenFrom])];
  const displaced = before.filter((stream, i) => stream !== data.stream && before.lastIndexOf(stream) === i);
  return { status: 'held', ...data, ...displacing(displaced) };
};

const displacing = (displaced: readonly string[] = []): { displaced?: readonly string[] } =>
  displaced.length === 0 ? {} : { displaced };
