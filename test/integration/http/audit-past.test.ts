import { expect } from 'chai';
import fc from 'fast-check';
import { AUDIT, detailOf, reasonOf, startAuditStage, type AuditStage } from '../../support/audit/stage.ts';
import { PRIVATE, textAt, type Json } from '../../support/http/service.ts';
import { checkAsync } from '../../support/property.ts';

/** Objects as they were, over `/api/audit/v1`. */
describe('audit API: the past', () => {
  let stage: AuditStage;
  beforeEach(async () => {
    stage = await startAuditStage();
  });
  afterEach(() => stage.service.close());

  const documentAt = async (id: string, asOf: string): Promise<Json | undefined> => {
    const reply = await stage.admin(
      'GET',
      `${AUDIT}/resources/host_types/${id}?as_of=${encodeURIComponent(asOf)}`,
    );
    if (reply.status === 404) return undefined;
    expect(reply.status, reply.text).to.equal(200);
    return reply.json['document'];
  };
  /** The later document, made of the earlier one and the changes between. */
  const patched = (document: Json, changes: Json | undefined): object => {
    const made = structuredClone(document) as unknown as Record<string, unknown>;
    for (const { path, op, after } of (changes ?? []) as unknown as {
      path: string;
      op: string;
      after: unknown;
    }[]) {
      const keys = path
        .split('/')
        .slice(1)
        .map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
      const last = keys.pop() ?? '';
      const place = keys.reduce((node, key) => node[key] as Record<string, unknown>, made);
      if (op === 'remove') delete place[last];
      else place[last] = after;
    }
    return made;
  };

  it('shows at every position of a random history what GET showed then, and differences that lead there', async () => {
    let count = 0;
    await checkAsync(
      fc.asyncProperty(
        fc.array(
          fc.oneof(
            fc.record({ description: fc.string({ maxLength: 5 }) }),
            fc.record({
              metadata: fc.record({
                labels: fc.dictionary(fc.constantFrom('a', 'b~/c', 'team'), fc.constantFrom('x', 'y')),
              }),
            }),
          ),
          { minLength: 1, maxLength: 6 },
        ),
        async (steps) => {
          const { admin } = stage;
          const id = `past-${(count += 1)}`;
          const path = `${PRIVATE}/host_types/${id}`;
          const moments: { position: string; shown: Json }[] = [];
          const made = await admin('POST', `${PRIVATE}/host_types`, {
            id,
            metadata: { name: id },
            title: id,
          });
          const keep = async (position: string | null): Promise<void> => {
            if (position !== null) moments.push({ position, shown: (await admin('GET', path)).json });
          };
          await keep(made.headers.get('x-ledger-position'));
          for (const step of steps)
            await keep((await admin('PATCH', path, step)).headers.get('x-ledger-position'));
          for (const { position, shown } of moments)
            expect(await documentAt(id, position)).to.deep.equal(shown);
          for (const [i, { position: to, shown }] of moments.entries()) {
            const { position: from, shown: before } = moments[Math.floor(i / 2)] ?? { position: to, shown };
            const query = new URLSearchParams({ from, to }).toString();
            const diff = await admin('GET', `${AUDIT}/resources/host_type/${id}/diff?${query}`);
            expect(diff.status, diff.text).to.equal(200);
            expect(patched(before, diff.json['changes'])).to.deep.equal(shown);
          }
        },
      ),
      { numRuns: 8 },
    );
  });

  it('answers exactly before the first event, in the future and for positions of other stores', async () => {
    const { admin } = stage;
    const path = `${AUDIT}/resources/host_type`;
    const at = (id: string, asOf: string) => admin('GET', `${path}/${id}?as_of=${encodeURIComponent(asOf)}`);
    const before = await at('fc430', '2020-01-01T00:00:00Z');
    const never = await at('nothing', '2020-01-01T00:00:00Z');
    expect([reasonOf(before), reasonOf(never)]).to.deep.equal(['404 NOT_FOUND', '404 NOT_FOUND']);
    expect(detailOf(before).replace('fc430', 'nothing')).to.equal(detailOf(never));
    expect(reasonOf(await at('fc430', '2999-01-01T00:00:00Z'))).to.equal('400 IN_THE_FUTURE');
    expect(reasonOf(await at('fc430', '0190fdc2-bf52-71b8-8c36-977f348f4436.0000000000000001'))).to.equal(
      '400 FOREIGN_POSITION',
    );
    expect(detailOf(await at('fc430', '2020-02-31T00:00:00Z'))).to.match(/^'as_of' must be an existing time/);
    expect(reasonOf(await at('fc430', 'yesterday'))).to.equal('400 INVALID_ARGUMENT');
    expect(reasonOf(await admin('GET', `${path}/fc430/diff`))).to.equal('400 INVALID_ARGUMENT');
    // Also where both lie before everything, and so are the same moment.
    for (const from of [new Date().toISOString(), '2020-01-01T00:00:01Z', '2020-01-01T00:30:00+00:00'])
      for (const to of ['2020-01-01T00:00:00Z', '2020-01-01T01:00:00+01:00']) {
        const backwards = `${path}/fc430/diff?from=${encodeURIComponent(from)}&to=${encodeURIComponent(to)}`;
        expect(detailOf(await admin('GET', backwards)), backwards).to.match(
          /^query parameter 'from' must not be later than 'to'/,
        );
      }
    const forwards = `${path}/fc430/diff?from=2020-01-01T00:00:00Z&to=2020-01-01T00:00:00Z`;
    expect(reasonOf(await admin('GET', forwards))).to.equal('404 NOT_FOUND');
    expect(reasonOf(await admin('GET', `${AUDIT}/resources/nonsense/fc430`))).to.equal('404 NOT_FOUND');
  });

  it('shows tenants what tenants see, and nothing of others', async () => {
    const { auditor, admin, alice, order, callerFor } = stage;
    const mine = await order(alice, 'mine');
    const theirs = await order(await callerFor({ user: 'bob', tenants: ['t2'] }), 'theirs');
    const of = (caller: typeof admin, kind: string, id: string) =>
      caller('GET', `${AUDIT}/resources/${kind}/${id}`);
    const shown = await of(auditor, 'cluster', mine);
    expect(textAt(shown.json, 'document', 'metadata', 'name')).to.equal('mine');
    expect(shown.json['document']?.['status']?.['hub']).to.equal(undefined);
    const [foreign, absent, hub] = await Promise.all([
      of(auditor, 'cluster', theirs),
      of(auditor, 'cluster', theirs.replace(/.$/, 'x')),
      of(auditor, 'hub', 'sim-1'),
    ]);
    expect([foreign, absent, hub].map(reasonOf)).to.deep.equal(Array(3).fill('404 NOT_FOUND'));
    expect((await of(admin, 'hub', 'sim-1')).status).to.equal(200);
  });
});
