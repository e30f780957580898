import { expect } from 'chai';
import {
  callerOf,
  PUBLIC,
  seedCatalogue,
  startTestService,
  type Caller,
  type TestService,
} from '../../support/http/service.ts';

/** Malformed writes are refused before anybody asks who calls (OSAC); their record says who it was. */
describe('refusals before authentication', () => {
  let service: TestService;
  let alice: Caller;
  const start = async (options: Parameters<typeof startTestService>[0] = {}): Promise<void> => {
    service = await startTestService(options);
    await seedCatalogue(callerOf(service, await service.token({ user: 'root', admin: true })));
    alice = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
  };
  afterEach(() => service.close());

  const path = `${PUBLIC}/clusters`;
  const malformed: readonly [string, (caller: Caller) => ReturnType<Caller>][] = [
    ['a body', (caller) => caller('POST', path, { nonsense: 1 })],
    ['the body of a change', (caller) => caller('PATCH', `${path}/c1`, { nonsense: 1 })],
    ['a header of an order', (caller) => caller('POST', path, {}, { 'idempotency-key': 'x'.repeat(300) })],
    [
      'a header of a deletion',
      (caller) => caller('DELETE', `${path}/c1`, undefined, { 'x-ledger-ticket': 'x'.repeat(200) }),
    ],
    ['an update mask', (caller) => caller('PATCH', `${path}/c1?lock=maybe`, {})],
  ];

  for (const [what, call] of malformed)
    it(`of ${what} are recorded with who called, in the own tenant`, async () => {
      await start();
      const refused = await call(alice);
      expect(refused.status, refused.text).to.equal(400);
      const record = service.rejections.at(-1);
      expect(record).to.include({ tenant: 't1', outcome: 'rejected' });
      expect(record?.subjectId).to.match(/^[0-9a-f-]{36}$/);
      const forged = callerOf(service, 'not-a-token');
      for (const stranger of [callerOf(service), forged]) {
        const answer = await call(stranger);
        expect({ status: answer.status, json: answer.json }).to.deep.equal({
          status: 400,
          json: refused.json,
        });
        expect(service.rejections.at(-1)).to.include({ tenant: '', subjectId: '', outcome: 'rejected' });
      }
      expect(service.rejections).to.have.length(3);
    });

  it('of a token whose tenant is not there name who called, in nobody’s history', async () => {
    await start();
    const lost = callerOf(service, await service.token({ user: 'alice', tenants: ['nowhere'] }));
    for (const [name, call] of [
      ['a write', () => lost('POST', path, { metadata: { name: 'x' } })],
      ['a malformed one', () => lost('POST', path, { nonsense: 1 })],
    ] as const) {
      expect((await call()).status, name).to.equal(400);
      const record = service.rejections.at(-1);
      expect(record, name).to.include({ tenant: '', outcome: 'rejected' });
      expect(record?.subjectId, name).to.match(/^[0-9a-f-]{36}$/);
      expect(record?.actor, name).to.include({ subjectId: record?.subjectId, authMethod: 'jwt' });
    }
  });

  it('make nobody a User', async () => {
    await start({ provisionUsers: true });
    const before = await service.store.lastPosition();
    for (const [, call] of malformed) expect((await call(alice)).status).to.equal(400);
    expect(await service.store.lastPosition()).to.equal(before);
    expect(service.rejections.map(({ tenant }) => tenant)).to.deep.equal(malformed.map(() => 't1'));
  });
});
