import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { claimsOf, nameStreamId } from '../../../src/app/names/names.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { aggregateOf, kinds, nameAggregate, tenant } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { collect, fakeContext } from '../../support/commands/fake-context.ts';
import { crashing, createIncarnation } from '../../support/commands/fake-incarnation.ts';

const settings = {
  codec: createEventCodec(eventTypes),
  kinds,
  lifecycle: { starts: ['TenantOnboarded'], ends: ['TenantOffboarded'] },
};
const start = (store: EventStore, name: string) => createIncarnation(store, name, settings);
type Incarnation = ReturnType<typeof start>;

const at = '2026-11-21T10:00:00.000Z';
const onboard = (on: Incarnation, name: string, domains: readonly string[]) =>
  on.resources.execute(
    tenant,
    name,
    (abandonedBefore: number): DocumentCommand => ({
      type: 'CreateDocument',
      at,
      id: name,
      tenant: name,
      project: '',
      name,
      creator: 'system',
      document: { metadata: {}, spec: { domains: [...domains] } },
      abandonedBefore,
    }),
    fakeContext(`onboard ${name}`),
  );
const setDomains = (on: Incarnation, name: string, domains: readonly string[]) =>
  on.resources.execute(
    tenant,
    name,
    { type: 'ReviseDocument', at, document: { spec: { domains: [...domains] } }, paths: ['spec.domains'] },
    fakeContext(`domains ${name} ${domains.join()}`),
  );
const domainHolder = async (on: Incarnation, domain: string): Promise<string | undefined> => {
  const { state } = await on.runner.load(nameAggregate, nameStreamId('tenant.domain', '', '', domain));
  return state.status === 'held' ? state.holder : undefined;
};

describe('names of the real kinds', () => {
  it('a tenant owns its name everywhere and each of its domains', async () => {
    const one = start(createMemoryEventStore(), 'one');
    await onboard(one, 'acme', ['acme.com', 'ACME.org']);
    const again = await onboard(one, 'globex', ['acme.org']);
    expect(again.outcome === 'rejected' && again.rejection).to.include({
      code: 'ALREADY_EXISTS',
      field: 'spec.domains',
    });
    await setDomains(one, 'acme', ['acme.com']);
    expect((await onboard(one, 'globex', ['acme.org'])).outcome).to.equal('accepted');
    expect([await domainHolder(one, 'acme.com'), await domainHolder(one, 'acme.org')]).to.deep.equal([
      'acme',
      'globex',
    ]);
  });

  it('a domain reserved for a change that never came is free after the repair, and the tenant unchanged', async () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const one = start(store, 'one');
    await onboard(one, 'acme', ['acme.com']);
    const before = await one.runner.load(aggregateOf(tenant), 'acme');
    const dying = start(crashing(store, { at: 2, when: 'before' }), 'dying');
    await setDomains(dying, 'acme', ['acme.com', 'acme.org']).catch(() => undefined);
    expect(await domainHolder(one, 'acme.org')).to.equal('acme');
    const settled = await one.repair.settle(nameStreamId('tenant.domain', '', '', 'acme.org'));
    expect(settled).to.equal('released');
    const after = await one.runner.load(aggregateOf(tenant), 'acme');
    expect(after.state).to.deep.equal(before.state);
    expect(after.version).to.equal(before.version);
    expect((await onboard(one, 'globex', ['acme.org'])).outcome).to.equal('accepted');
  });

  it('every kind folds an abandonment of its stream without harm', () => {
    for (const kind of kinds) {
      const abandoned = { type: 'CreationAbandoned', data: { at, commandId: 'c' } };
      const state = kind.decider.evolve(kind.decider.initialState(), abandoned);
      expect(kind.view(state), kind.kind).to.deep.equal({ exists: false });
      expect(claimsOf(kind, kind.view(state))).to.deep.equal([]);
    }
  });

  it('reservations say nothing of the name', async () => {
    const store = createMemoryEventStore();
    await onboard(start(store, 'one'), 'acme', ['acme.com']);
    const reservations = (await collect(store.readAll({ limit: 10 }))).filter(
      ({ type }) => type === 'NameReserved',
    );
    expect(reservations).to.have.length(2);
    expect(JSON.stringify(reservations)).not.to.include('acme.com');
  });
});
