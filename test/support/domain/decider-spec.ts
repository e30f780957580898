import { expect } from 'chai';
import { isRejection, type Decider, type DomainEvent, type Rejection } from '../../../src/domain/decider.ts';

/** What the stream of a kind may hold. */
export type EventOf<Kind> = Kind extends { readonly decider: Decider<infer _S, infer _C, infer Event> }
  ? Event
  : never;

/** given these events, when this command, then these events (or this rejection) — the form of every rule's spec. */
export const specify = <State, Command, Event extends DomainEvent>(
  decider: Decider<State, Command, Event>,
) => ({
  given: (...history: Event[]) => ({
    when: (command: Command) => {
      const state = history.reduce(decider.evolve, decider.initialState());
      const decision = decider.decide(state, command);
      return {
        thenEvents: (...events: Event[]) => expect(decision).to.deep.equal(events),
        thenNothing: () => expect(decision).to.deep.equal([]),
        thenRejected: (code: string, more: Partial<Rejection> = {}) => {
          if (!isRejection(decision)) throw new Error(`expected ${code}, got ${JSON.stringify(decision)}`);
          expect(decision.code, decision.message).to.equal(code);
          expect(decision).to.include(more);
        },
        decision,
      };
    },
    state: () => history.reduce(decider.evolve, decider.initialState()),
  }),
});
