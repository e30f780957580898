import { expect } from 'chai';
import type { AuditExportEvent, AuditGrantEvent } from '../../../../src/domain/audit/events.ts';
import { auditExportDecider } from '../../../../src/domain/audit/export.ts';
import { auditGrantDecider, grants } from '../../../../src/domain/audit/grant.ts';
import { specify } from '../../../support/domain/decider-spec.ts';

const AT = '2026-11-21T12:00:00.000Z';
const LATER = '2026-11-22T12:00:00.000Z';

describe('audit grants', () => {
  const { given } = specify(auditGrantDecider);
  const grant = { subjectId: 'carol', tenants: ['acme'], reason: 'yearly audit', expiresAt: LATER } as const;
  const granted: AuditGrantEvent = { type: 'AuditGrantGiven', data: { at: AT, ...grant } };
  const withdrawn: AuditGrantEvent = { type: 'AuditGrantWithdrawn', data: { at: AT, reason: 'over' } };
  const give = { type: 'GiveAuditGrant', at: AT, ...grant } as const;

  it('is given once, names tenants, and ends in the future', () => {
    given().when(give).thenEvents(granted);
    given(granted).when(give).thenRejected('GRANT_EXISTS');
    given()
      .when({ ...give, tenants: [] })
      .thenRejected('NO_TENANTS', { field: 'tenants' });
    given()
      .when({ ...give, expiresAt: AT })
      .thenRejected('EXPIRED', { field: 'expires_at' });
  });
  it('is withdrawn once', () => {
    given(granted).when({ type: 'WithdrawAuditGrant', at: AT, reason: 'over' }).thenEvents(withdrawn);
    given(granted, withdrawn).when({ type: 'WithdrawAuditGrant', at: AT, reason: 'over' }).thenNothing();
    given().when({ type: 'WithdrawAuditGrant', at: AT, reason: 'over' }).thenRejected('GRANT_NOT_FOUND');
  });
  it('counts for the tenants that it names, until it ends or is withdrawn', () => {
    const state = given(granted).state();
    expect(grants(state, 'acme', AT)).to.equal(true);
    expect(grants(state, 'globex', AT)).to.equal(false);
    expect(grants(state, undefined, AT), 'everybody').to.equal(false);
    expect(grants(state, 'acme', LATER), 'after its end').to.equal(false);
    expect(grants(given(granted, withdrawn).state(), 'acme', AT)).to.equal(false);
    expect(grants(given().state(), 'acme', AT)).to.equal(false);
    const all = given({ type: 'AuditGrantGiven', data: { ...granted.data, tenants: 'all' } }).state();
    expect(grants(all, 'globex', AT)).to.equal(true);
    expect(grants(all, undefined, AT)).to.equal(true);
  });
});

describe('audit exports', () => {
  const { given } = specify(auditExportDecider);
  const request = { format: 'native', tenant: 'acme', filter: {} } as const;
  const asked: AuditExportEvent = {
    type: 'AuditExportRequested',
    data: { at: AT, subjectId: 'carol', request },
  };
  const result = { events: 3, bytes: 100, digest: 'ab', treeSize: 9 };
  const done: AuditExportEvent = { type: 'AuditExportCompleted', data: { at: LATER, ...result } };
  const failed: AuditExportEvent = { type: 'AuditExportFailed', data: { at: LATER, reason: 'no space' } };
  const fetch = { type: 'RecordAuditDownload', at: LATER, subjectId: 'carol' } as const;

  it('is asked for once and completed once', () => {
    const ask = { type: 'RequestAuditExport', at: AT, subjectId: 'carol', request } as const;
    given().when(ask).thenEvents(asked);
    given(asked).when(ask).thenRejected('EXPORT_EXISTS');
    const complete = { type: 'CompleteAuditExport', at: LATER, ...result } as const;
    given(asked).when(complete).thenEvents(done);
    given(asked, done).when(complete).thenNothing();
    given(asked, failed).when(complete).thenNothing();
    given().when(complete).thenRejected('EXPORT_NOT_FOUND');
  });
  it('fails only while it is made', () => {
    const fail = { type: 'FailAuditExport', at: LATER, reason: 'no space' } as const;
    given(asked).when(fail).thenEvents(failed);
    given(asked, done).when(fail).thenNothing();
  });
  it('is fetched when it is complete, each time on record', () => {
    const fetched: AuditExportEvent = {
      type: 'AuditExportDownloaded',
      data: { at: LATER, subjectId: 'carol' },
    };
    given(asked, done).when(fetch).thenEvents(fetched);
    given(asked, done, fetched).when(fetch).thenEvents(fetched);
    given(asked).when(fetch).thenRejected('EXPORT_NOT_COMPLETE');
    given(asked, failed).when(fetch).thenRejected('EXPORT_NOT_COMPLETE');
  });
  it('is discarded once, and then not fetched any more', () => {
    const discard = { type: 'DiscardAuditExport', at: LATER, reason: 'old' } as const;
    const discarded: AuditExportEvent = {
      type: 'AuditExportDiscarded',
      data: { at: LATER, reason: 'old' },
    };
    given(asked, done).when(discard).thenEvents(discarded);
    given(asked, done, discarded).when(discard).thenNothing();
    given(asked, done, discarded).when(fetch).thenRejected('EXPORT_NOT_COMPLETE');
    given(asked, failed).when(discard).thenNothing();
  });
});
