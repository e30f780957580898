import { reject, type DataOf, type Decider } from '../decider.ts';
import type { AuditGrantEvent } from './events.ts';

/** Somebody may read the history of tenants that are not its own, until it ends or is withdrawn. */
export const AUDIT_GRANT_CATEGORY = 'auditGrant';

export type AuditGrant = Omit<DataOf<AuditGrantEvent, 'AuditGrantGiven'>, 'at'>;

export type AuditGrantCommand =
  | ({ readonly type: 'GiveAuditGrant' } & DataOf<AuditGrantEvent, 'AuditGrantGiven'>)
  | ({ readonly type: 'WithdrawAuditGrant' } & DataOf<AuditGrantEvent, 'AuditGrantWithdrawn'>);

export type AuditGrantState =
  | { readonly status: 'none' }
  | ({ readonly status: 'given' | 'withdrawn' } & AuditGrant);

export const auditGrantDecider: Decider<AuditGrantState, AuditGrantCommand, AuditGrantEvent> = {
  initialState: () => ({ status: 'none' }),
  evolve: (state, event) => {
    switch (event.type) {
      case 'AuditGrantGiven': {
        const { at: _at, ...grant } = event.data;
        return { status: 'given', ...grant };
      }
      case 'AuditGrantWithdrawn':
        return state.status === 'none' ? state : { ...state, status: 'withdrawn' };
      default:
        return state;
    }
  },
  decide: (state, command) => {
    switch (command.type) {
      case 'GiveAuditGrant': {
        const { type: _type, ...grant } = command;
        if (state.status !== 'none')
          return reject('already-exists', 'GRANT_EXISTS', 'there is an audit grant with this id already');
        if (grant.tenants !== 'all' && grant.tenants.length === 0)
          return reject(
            'invalid',
            'NO_TENANTS',
            "field 'tenants' must name at least one tenant, or be 'all'",
            {
              field: 'tenants',
            },
          );
        if (grant.expiresAt !== undefined && grant.expiresAt <= grant.at)
          return reject('invalid', 'EXPIRED', "field 'expires_at' must be in the future", {
            field: 'expires_at',
          });
        return [{ type: 'AuditGrantGiven', data: grant }];
      }
      case 'WithdrawAuditGrant':
        if (state.status === 'none')
          return reject('not-found', 'GRANT_NOT_FOUND', 'no audit grant with this id');
        return state.status === 'withdrawn'
          ? []
          : [{ type: 'AuditGrantWithdrawn', data: { at: command.at, reason: command.reason } }];
    }
  },
};

/** Whether the grant lets its holder read a tenant's history (undefined: everybody's) at a time (ISO). */
export const grants = (state: AuditGrantState, tenant: string | undefined, at: string): boolean =>
  state.status === 'given' &&
  (state.expiresAt === undefined || at < state.expiresAt) &&
  (state.tenants === 'all' || (tenant !== undefined && state.tenants.includes(tenant)));
