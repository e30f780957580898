import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { TenantBelonging } from '../../../src/app/tenancy/belonging.ts';
import { createTenantBelongings } from '../../../src/app/tenancy/tenant-belongings.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { kinds, tenant, user } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { collect, fakeContext } from '../../support/commands/fake-context.ts';
import { createIncarnation } from '../../support/commands/fake-incarnation.ts';

/** What every tenant has from its creation until it is gone (OSAC). */
const settings = {
  codec: createEventCodec(eventTypes),
  kinds,
  lifecycle: { starts: ['TenantOnboarded', 'ProjectOpened'], ends: ['TenantOffboarded', 'ProjectClosed'] },
};
const at = '2026-11-21T10:00:00.000Z';

describe('belongings of tenants', () => {
  const open = () => {
    const store = createMemoryEventStore({ singleWriter: false });
    const on = createIncarnation(store, 'one', settings);
    const users: string[] = [];
    const services = {
      runner: on.runner,
      commands: on.resources,
      clock: on.clock,
      idsOf: (_kind: string, _tenant: string, limit: number) => users.slice(0, limit),
    };
    const make = (id: string, name: string, tenantId: string) => (abandonedBefore: number) =>
      ({
        type: 'CreateDocument',
        at,
        id,
        tenant: tenantId,
        project: '',
        name,
        creator: 'system',
        document: {},
        abandonedBefore,
      }) satisfies DocumentCommand;
    let lives = 0;
    const onboard = () => {
      lives += 1;
      return on.resources.execute(tenant, 't1', make('t1', 't1', 't1'), fakeContext(`onboard ${lives}`));
    };
    const offboard = () =>
      on.resources.execute(tenant, 't1', { type: 'DeleteDocument', at }, fakeContext(`offboard ${lives}`));
    const admit = async (id: string) => {
      await on.resources.execute(user, id, make(id, id, 't1'), fakeContext(`admit ${id}`));
      users.push(id);
    };
    const types = async (): Promise<string[]> =>
      (await collect(store.readAll({ limit: 10_000 })))
        .map(({ type }) => type)
        .filter((type) => !/^Name|Announce/.test(type));
    return { services, users, onboard, offboard, admit, types };
  };

  it('are given once while the tenant lives, and taken once when it is gone', async () => {
    const { services, onboard, offboard, types } = open();
    const belongings = createTenantBelongings(services);
    expect(await belongings.settle('t1')).to.equal(undefined);
    expect(await types()).to.deep.equal([]);
    await onboard();
    expect(await belongings.settle('t1')).to.be.a('string');
    expect(await belongings.settle('t1')).to.equal(undefined);
    expect(await types()).to.deep.equal(['TenantOnboarded', 'ProjectOpened']);
    await offboard();
    expect(await belongings.settle('t1')).to.be.a('string');
    expect(await belongings.settle('t1')).to.equal(undefined);
    expect((await types()).slice(2)).to.deep.equal(['TenantOffboarded', 'ProjectClosed']);
  });

  it('`shared` has its default project without having been onboarded', async () => {
    const { services, types } = open();
    const belongings = createTenantBelongings(services);
    await belongings.settle('shared');
    await belongings.settle('shared');
    await belongings.settle('system');
    expect(await types()).to.deep.equal(['ProjectOpened']);
  });

  it('are given again to a tenant that comes back, also while they are being taken', async () => {
    const { services, onboard, offboard, types } = open();
    const belongings = createTenantBelongings(services);
    await onboard();
    await belongings.settle('t1');
    await offboard();
    await belongings.settle('t1');
    await onboard();
    await belongings.settle('t1');
    expect((await types()).slice(-2)).to.deep.equal(['TenantOnboarded', 'ProjectOpened']);
    await offboard();
    const calls: string[] = [];
    const slow: TenantBelonging = {
      give: async () => {
        calls.push('given');
        return { position: undefined };
      },
      take: async () => {
        await onboard();
        calls.push('taken');
        return { position: undefined };
      },
    };
    await createTenantBelongings(services, [slow]).settle('t1');
    expect(calls).to.deep.equal(['taken', 'given']);
  });

  it('two instances that settle at once make one project', async () => {
    const { services, onboard, types } = open();
    await onboard();
    const both = [createTenantBelongings(services), createTenantBelongings(services)];
    await Promise.all(both.map((one) => one.settle('t1')));
    expect(await types()).to.deep.equal(['TenantOnboarded', 'ProjectOpened']);
  });

  it('more users than one request removes keep the default project, so that the rest is found again', async () => {
    const { services, users, onboard, offboard, admit, types } = open();
    const belongings = createTenantBelongings(services);
    await onboard();
    await belongings.settle('t1');
    for (let i = 0; i < 130; i += 1) await admit(`u${i}`);
    await offboard();
    await belongings.settle('t1');
    const removed = async () => (await types()).filter((type) => type === 'UserRemoved').length;
    expect(await removed()).to.equal(100);
    expect(await types()).to.not.include('ProjectClosed');
    users.splice(0, 100);
    await belongings.settle('t1');
    expect(await removed()).to.equal(130);
    expect((await types()).at(-1)).to.equal('ProjectClosed');
  });

  it('are a list: whatever else a tenant is to have adds an entry', async () => {
    const { services, onboard, offboard } = open();
    const calls: string[] = [];
    const network: TenantBelonging = {
      give: async (id) => {
        calls.push(`give ${id}`);
        return { position: '7' };
      },
      take: async (id) => {
        calls.push(`take ${id}`);
        return { position: undefined };
      },
    };
    const belongings = createTenantBelongings(services, [network]);
    await onboard();
    expect(await belongings.settle('t1')).to.equal('7');
    await offboard();
    expect(await belongings.settle('t1')).to.equal(undefined);
    expect(calls).to.deep.equal(['give t1', 'take t1']);
  });
});
