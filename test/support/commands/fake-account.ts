import { z } from 'zod';
import type { Aggregate } from '../../../src/app/commands/command.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import { reject, type Decider, type DomainEvent } from '../../../src/domain/decider.ts';
import type { EventType } from '../../../src/domain/event-type.ts';

/** A small aggregate with everything the command runner has to deal with: rejections, no-ops, silent events. */
export type AccountEvent =
  | DomainEvent<'AccountOpened', { readonly owner: string }>
  | DomainEvent<'MoneyDeposited', { readonly amount: number; readonly deposit: string }>
  | DomainEvent<'NoteTaken', { readonly text: string }>
  | DomainEvent<'AccountClosed', { readonly at: string }>;

export type AccountCommand =
  | { readonly type: 'OpenAccount'; readonly owner: string }
  | { readonly type: 'Deposit'; readonly amount: number; readonly deposit: string }
  | { readonly type: 'TakeNote'; readonly text: string }
  | { readonly type: 'DepositAndNote'; readonly amount: number; readonly deposit: string }
  | { readonly type: 'CloseAccount'; readonly at: string };

export type Account =
  | { readonly status: 'absent' }
  | {
      readonly status: 'open';
      readonly owner: string;
      readonly balance: number;
      readonly deposits: readonly string[];
    }
  | { readonly status: 'closed' };

export const account: Decider<Account, AccountCommand, AccountEvent> = {
  initialState: () => ({ status: 'absent' }),
  evolve: (state, event) => {
    switch (event.type) {
      case 'AccountOpened':
        return { status: 'open', owner: event.data.owner, balance: 0, deposits: [] };
      case 'MoneyDeposited':
        return state.status === 'open'
          ? {
              ...state,
              balance: state.balance + event.data.amount,
              deposits: [...state.deposits, event.data.deposit],
            }
          : state;
      case 'AccountClosed':
        return { status: 'closed' };
      default:
        return state;
    }
  },
  decide: (state, command) => {
    if (command.type === 'OpenAccount') {
      if (state.status === 'absent') return [{ type: 'AccountOpened', data: { owner: command.owner } }];
      return reject('already-exists', 'ACCOUNT_EXISTS', 'there is such an account already');
    }
    if (state.status === 'absent') return reject('not-found', 'NO_ACCOUNT', 'there is no such account');
    if (state.status === 'closed')
      return command.type === 'CloseAccount'
        ? []
        : reject('failed-precondition', 'ACCOUNT_CLOSED', 'the account is closed');
    switch (command.type) {
      case 'Deposit':
        if (command.amount < 0) return reject('invalid', 'NEGATIVE', 'an amount is at least 0');
        if (command.amount === 0) return [];
        return [deposited(command)];
      case 'TakeNote':
        return [{ type: 'NoteTaken', data: { text: command.text } }];
      case 'DepositAndNote':
        return [deposited(command), { type: 'NoteTaken', data: { text: 'deposited' } }];
      case 'CloseAccount':
        return [{ type: 'AccountClosed', data: { at: command.at } }];
    }
  },
};

const deposited = ({ amount, deposit }: { amount: number; deposit: string }): AccountEvent => ({
  type: 'MoneyDeposited',
  data: { amount, deposit },
});

const registered = (type: string, schema: z.ZodType, changesDocument = true): EventType => ({
  type,
  version: 1,
  context: 'accounts',
  audience: 'tenant',
  resource: 'account',
  changesDocument,
  schema,
});

export const accountEventTypes: readonly EventType[] = [
  registered('AccountOpened', z.strictObject({ owner: z.string() })),
  registered('MoneyDeposited', z.strictObject({ amount: z.number(), deposit: z.string() })),
  registered('NoteTaken', z.strictObject({ text: z.string() }), false),
  registered('AccountClosed', z.strictObject({ at: z.string() })),
];

export const accountCodec = createEventCodec(accountEventTypes);

export const accounts: Aggregate<Account, AccountCommand, AccountEvent> = {
  category: 'account',
  decider: account,
  stateVersion: 1,
};
