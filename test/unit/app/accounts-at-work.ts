import type { CommandOutcome } from '../../../src/app/commands/command.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { Account } from '../../support/commands/fake-account.ts';

export const deposit = (name: string, amount = 1) => ({ type: 'Deposit', amount, deposit: name }) as const;
export const open = { type: 'OpenAccount', owner: 'ann' } as const;

export const balance = (outcome: CommandOutcome<Account>): number | string =>
  outcome.loaded.state.status === 'open' ? outcome.loaded.state.balance : outcome.loaded.state.status;

/** A store that counts what is asked of it. */
export const counting = (store: EventStore) => {
  const calls = { append: 0, readStream: 0, currentRevision: 0 };
  const counted: EventStore = {
    ...store,
    append: (...args) => {
      calls.append += 1;
      return store.append(...args);
    },
    readStream: (...args) => {
      calls.readStream += 1;
      return store.readStream(...args);
    },
    currentRevision: (...args) => {
      calls.currentRevision += 1;
      return store.currentRevision(...args);
    },
  };
  return { store: counted, calls };
};
