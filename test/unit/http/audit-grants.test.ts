import { expect } from 'chai';
import { ApiError } from '../../../src/http/errors.ts';
import { OutcomeUnknown, StoreUnavailable } from '../../../src/app/log/event-store.ts';
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

/** An instance that gives and withdraws grants; `tell` says what becomes of telling the tenants. */
const granting = (tell: () => Promise<void>, written: string[]): AuditServices =>
  ({ ...behind(written), waitFor: async () => true, grants: { tell } }) as unknown as AuditServices;

const callOf = (verb: 'POST' | 'DELETE', headers: object = {}): LedgerCall =>
  ({
    principal: { admin: true, subjectId: SUBJECT, roles: ['admin'], tokenIdHash: '', authMethod: 'jwt' },
    path: verb === 'DELETE' ? { id: 'g1' } : {},
    query: new URLSearchParams({ reason: 'over' }),
    body: verb === 'DELETE' ? {} : { subject: SUBJECT, tenants: 'all', reason: 'audit 2026' },
    verb,
    route: verb === 'DELETE' ? 'grants/g1' : 'grants',
    requestId: 'r-1',
    headers,
    signal: new AbortController().signal,
  }) as unknown as LedgerCall;

const asked = async (
  verb: 'POST' | 'DELETE',
  services: AuditServices,
  headers?: object,
): Promise<unknown> => {
  try {
    return await auditGrantRoutes(services)
      .find((route) => route.verb === verb)
      ?.handler(callOf(verb, headers));
  } catch (error) {
    return error;
  }
};

describe('grants whose tenants cannot be told', () => {
  for (const verb of ['POST', 'DELETE'] as const)
    for (const fault of [new StoreUnavailable('down'), new OutcomeUnknown('auditGrantNotice-g1.t1')])
      it(`given a ${verb} that was stored, when telling ends with ${fault.name}, then it is not said that nothing was`, async () => {
        const written: string[] = [];
        let failing = true;
        const services = granting(async () => {
          if (failing) throw fault;
        }, written);
        const refused = (await asked(verb, services)) as ApiError;
        expect(refused).to.be.instanceOf(ApiError);
        expect([refused.status, refused.reason]).to.deep.equal([504, 'OUTCOME_UNKNOWN']);
        const repeat = refused.options.headers?.['x-ledger-command-id'] ?? '';
        expect(repeat).to.match(/^[0-9a-f-]{36}$/);
        // Repeated as the answer says, it is the same one, and everybody is told.
        failing = false;
        const answer = await asked(verb, services, { 'x-ledger-command-id': repeat });
        expect(answer).to.have.nested.property('json.id', written[0]);
        expect(new Set(written).size).to.equal(1);
      });
});

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
