import type { AuditGrantNoticeEvent } from '../../../../src/domain/audit/events.ts';
import { auditGrantNoticeDecider } from '../../../../src/domain/audit/grant-notice.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const AT = '2026-11-21T12:00:00.000Z';
const LATER = '2026-11-22T12:00:00.000Z';

describe('what a tenant is told of an audit grant', () => {
  const { given } = specify(auditGrantNoticeDecider);
  const told = { grantId: 'g1', subjectId: 'carol', expiresAt: LATER } as const;
  const noticed: AuditGrantNoticeEvent = { type: 'AuditGrantNoticed', data: { at: AT, ...told } };
  const ended: AuditGrantNoticeEvent = { type: 'AuditGrantEndNoticed', data: { at: LATER, grantId: 'g1' } };
  const notice = { type: 'NoticeAuditGrant', at: AT, ...told } as const;
  const end = { type: 'NoticeAuditGrantEnd', at: LATER } as const;

  it('is told once that it was given, and once that it was withdrawn', () => {
    given().when(notice).thenEvents(noticed);
    given(noticed)
      .when({ ...notice, at: LATER })
      .thenNothing();
    given(noticed).when(end).thenEvents(ended);
    given(noticed, ended).when(end).thenNothing();
    given(noticed, ended).when(notice).thenNothing();
  });
  it('is told of no end of what it was not told of: nobody has used it', () => {
    given().when(end).thenNothing();
  });
});
