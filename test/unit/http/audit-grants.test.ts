import { expect } from 'chai';
import { ApiError } from '../../../src/http/errors.ts';
import { auditGrantRoutes } from '../../../src/http/audit/grants.ts';
import type { AuditServices } from '../../../src/http/audit/services.ts';
import type { LedgerCall } from '../../../src/http/ledger/serve.ts';

const SUBJECT = '5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1';

/** An instance whose view of the history is behind, and does not catch up in time. */
const behind = (written: string[]): AuditServices =>
  ({
    store: { lastPosition: async () => '0000000000000007' },
    waitFor: async () => false,
    clock: { now: () => '2026-11-22T00:00:00.000Z', monotonicMs: () => 0 },
    ids: { uuidv7: () => '019ab000-0000-7000-8000-000000000001' },
    requestHash: () => 'hash',
    personal: { personal: async () => undefined, source: async () => undefined },
    positions: { format: (position: string) => position },
    grants: { tell: async () => undefined },
    runner: {
      execute: async (_aggregate: unknown, id: string) => {
        written.push(id);
        const state = { status: 'given', subjectId: SUBJECT, tenants: 'all', reason: 'r' };
        return { outcome: 'accepted', loaded: { state, position: '0000000000000008', revision: 0 } };
      },
    },
    reader: { hasActed: () => false },
  }) as unknown as AuditServices;

describe('POST /api/audit/v1/grants', () => {
  it('has given nothing where it answers 503: repeated without a key it would be given twice', async () => {
    const written: string[] = [];
    const route = auditGrantRoutes(behind(written)).find(({ verb }) => verb === 'POST');
    const call = {
      principal: { admin: true, subjectId: SUBJECT, roles: ['admin'], tokenIdHash: '', authMethod: 'jwt' },
      path: {},
      body: { subject: SUBJECT, tenants: 'all', reason: 'audit 2026' },
      verb: 'POST',
      route: 'grants',
      requestId: 'r-1',
      signal: new AbortController().signal,
    } as unknown as LedgerCall;
    let refused: unknown;
    try {
      await route?.handler(call);
    } catch (error) {
      refused = error;
    }
    expect(refused).to.be.instanceOf(ApiError);
    expect([(refused as ApiError).status, (refused as ApiError).reason]).to.deep.equal([
      503,
      'POSITION_NOT_REACHED',
    ]);
    expect(written).to.deep.equal([]);
  });
});
