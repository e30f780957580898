import type { DataOf, Decider } from '../decider.ts';
import type { AuditGrantNoticeEvent } from './events.ts';

/**
 * What a tenant is told of a grant over its history, in its own history: one stream for each grant and tenant, so that none
 * learns of the others that the grant names. A grant counts for a tenant only once the tenant was told (app/audit/grants.ts).
 */
export const AUDIT_GRANT_NOTICE_CATEGORY = 'auditGrantNotice';

export const auditGrantNoticeId = (grantId: string, tenant: string): string => `${grantId}.${tenant}`;

export type AuditGrantNoticeCommand =
  | ({ readonly type: 'NoticeAuditGrant' } & DataOf<AuditGrantNoticeEvent, 'AuditGrantNoticed'>)
  | { readonly type: 'NoticeAuditGrantEnd'; readonly at: string };

/** `ended` by withdrawal; that a grant runs out was said when it was given. */
export type AuditGrantNoticeState =
  | { readonly status: 'none' }
  | { readonly status: 'given' | 'ended'; readonly grantId: string };

export const auditGrantNoticeDecider: Decider<
  AuditGrantNoticeState,
  AuditGrantNoticeCommand,
  AuditGrantNoticeEvent
> = {
  initialState: () => ({ status: 'none' }),
  evolve: (state, event) => {
    switch (event.type) {
      case 'AuditGrantNoticed':
        return { status: 'given', grantId: event.data.grantId };
      case 'AuditGrantEndNoticed':
        return { status: 'ended', grantId: event.data.grantId };
      default:
        return state;
    }
  },
  decide: (state, command) => {
    switch (command.type) {
      case 'NoticeAuditGrant': {
        const { type: _type, ...data } = command;
        return state.status === 'none' ? [{ type: 'AuditGrantNoticed', data }] : [];
      }
      case 'NoticeAuditGrantEnd':
        // Nobody has used a grant of which the tenant was not told.
        return state.status === 'given'
          ? [{ type: 'AuditGrantEndNoticed', data: { at: command.at, grantId: state.grantId } }]
          : [];
    }
  },
};
