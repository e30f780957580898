import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { AuditReader } from '../../../src/projections/audit/audit-reader.ts';
import type { PersonPlace } from '../../../src/projections/audit/people.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';

const CIPHERTEXT = { alg: 'A256GCM', keyId: 's.1', nonce: 'n', ct: 'c', tag: 't' };

/** Who has acted in which tenant, and which events say who that is. */
describe('audit view: people', () => {
  let store: EventStore;
  let models: ReadModels;
  let reader: AuditReader;
  let leaves = 0;
  beforeEach(async () => {
    leaves = 0;
    store = createMemoryEventStore({ now: () => '2026-01-01T00:00:00.000Z' });
    models = await openAuditView(store);
    reader = audit(models);
  });
  afterEach(async () => {
    await models.close();
    await store.close();
  });
  /** One event of somebody in a tenant; its leaf. */
  const acts = async (tenant: string, subjectId: string, named = true): Promise<number> => {
    const actor = { subjectId, ...(named ? { personal: CIPHERTEXT } : {}) };
    const metadata = JSON.stringify({ tenant, actor });
    const event = { id: `e-${leaves}`, type: 'ClusterOrdered', data: '{}', metadata };
    await store.append(`cluster-${leaves}`, 'no_stream', [event]);
    leaves += 1;
    return leaves - 1;
  };
  const everybody = (tenants: 'all' | readonly string[], limit: number): string[] => {
    const seen: string[] = [];
    for (let after: PersonPlace | undefined; ; ) {
      const { people, next } = reader.people(tenants, { after, limit });
      expect(people.length).to.be.at.most(limit);
      seen.push(...people.map((each) => `${each.tenant} ${each.subject} ${each.leaves.join(',')}`));
      if (next === undefined) return seen;
      after = next;
    }
  };

  it('are listed by tenant, with the first event that names them and their last one', async () => {
    await acts('acme', 'anna', false);
    const [first, , last] = [
      await acts('acme', 'anna'),
      await acts('acme', 'anna'),
      await acts('acme', 'anna'),
    ];
    const bert = await acts('globex', 'bert');
    const abroad = await acts('acme', 'bert');
    await acts('', '', false);
    const nameless = await acts('acme', 'nameless', false);
    await followed(models, store);
    const inAcme = [`acme anna ${first},${last}`, `acme bert ${abroad}`, `acme nameless ${nameless}`];
    for (const limit of [1, 2, 100]) {
      expect(everybody(['acme'], limit)).to.have.members(inAcme);
      // The last event of all is elsewhere: only what is in the tenant counts.
      expect(everybody(['globex'], limit)).to.deep.equal([`globex bert ${bert}`]);
      expect(everybody('all', limit)).to.have.members([...inAcme, `globex bert ${bert}`]);
      expect(everybody(['globex', 'acme', 'acme', 'nowhere'], limit)).to.have.length(4);
    }
    expect(everybody([], 10)).to.deep.equal([]);
  });

  it('are known in the tenants in which they acted, and nowhere else', async () => {
    await acts('acme', 'anna');
    await acts('globex', '__proto__', false);
    await followed(models, store);
    const known = (tenants: 'all' | readonly string[], subject: string): boolean =>
      reader.hasActed(tenants, subject);
    expect(known(['acme'], 'anna')).to.equal(true);
    expect(known('all', 'anna')).to.equal(true);
    expect(known(['globex'], '__proto__')).to.equal(true);
    expect(known(['globex'], 'anna')).to.equal(false);
    expect(known(['acme', 'globex'], 'anna')).to.equal(true);
    expect(known([], 'anna')).to.equal(false);
    // Names of other things are no subjects.
    for (const other of ['acme', 'ClusterOrdered', 'nobody', ''])
      expect(known('all', other), other).to.equal(false);
  });
});
