import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { rehearse } from '../../../src/app/commands/rehearsal.ts';
import { aggregateOf, clusterVersion, kinds, tenant } from '../../../src/domain/kinds.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import { createIncarnation } from '../../support/commands/fake-incarnation.ts';

const at = '2026-11-21T10:00:00.000Z';
const start = (store: EventStore) =>
  createIncarnation(store, 'one', {
    codec: createEventCodec(eventTypes),
    kinds,
    lifecycle: { starts: ['TenantOnboarded'], ends: ['TenantOffboarded'] },
  });

const creation =
  (id: string, name: string, document: JsonObject) =>
  (abandonedBefore: number): DocumentCommand => ({
    type: 'CreateDocument',
    at,
    id,
    tenant: 'shared',
    project: '',
    name,
    creator: 'system',
    document,
    abandonedBefore,
  });
const onboarding =
  (name: string, domains: string[]) =>
  (abandonedBefore: number): DocumentCommand => ({
    ...(creation(name, name, { spec: { domains } })(abandonedBefore) as Extract<
      DocumentCommand,
      { type: 'CreateDocument' }
    >),
    tenant: name,
  });
const version = (id: string, number: string, isDefault: boolean) =>
  creation(id, id, {
    spec: { version: number, image: `quay.example/r:${number}`, ...(isDefault ? { is_default: true } : {}) },
  });

/** Dry run: what would be decided is what is decided, and trying it leaves no trace. */
describe('a rehearsed command', () => {
  let store: EventStore;
  let one: ReturnType<typeof start>;
  beforeEach(() => {
    store = createMemoryEventStore();
    one = start(store);
  });

  it('comes to what the command then comes to', async () => {
    const command = onboarding('acme', ['acme.com']);
    const tried = await rehearse(one.runner, tenant, 'acme', command);
    expect(await store.lastPosition()).to.equal(undefined);
    const done = await one.resources.execute(tenant, 'acme', command, fakeContext('onboard'));
    expect(tried.outcome === 'accepted' && tried.state).to.deep.equal(done.loaded.state);
  });

  it('is refused for a name or value that somebody has, and not for one that a gone resource left behind', async () => {
    await one.resources.execute(tenant, 'acme', onboarding('acme', ['acme.com']), fakeContext('a'));
    const before = await store.lastPosition();
    const taken = await rehearse(one.runner, tenant, 'globex', onboarding('globex', ['ACME.com']));
    expect(taken.outcome === 'rejected' && taken.rejection).to.include({
      kind: 'already-exists',
      field: 'spec.domains',
    });
    const again = await rehearse(one.runner, tenant, 'acme', onboarding('acme', []));
    expect(again.outcome === 'rejected' && again.rejection.message).to.equal("tenant 'acme' already exists");
    expect(await store.lastPosition()).to.equal(before);
    // A workflow ends it without giving its names back: whoever asks for one gets it.
    await one.runner.execute(aggregateOf(tenant), 'acme', { type: 'DeleteDocument', at }, fakeContext('d'));
    const free = await rehearse(one.runner, tenant, 'globex', onboarding('globex', ['acme.com']));
    expect(free.outcome).to.equal('accepted');
  });

  it('takes no slot from whoever has it', async () => {
    const first = version('v1', '4.17.0', true);
    await one.resources.execute(clusterVersion, 'v1', first, fakeContext('v1'));
    const before = await store.lastPosition();
    const tried = await rehearse(one.runner, clusterVersion, 'v2', version('v2', '4.18.0', true));
    expect(tried.outcome).to.equal('accepted');
    expect(await store.lastPosition()).to.equal(before);
    const { state } = await one.runner.load(aggregateOf(clusterVersion), 'v1');
    const view = clusterVersion.view(state);
    expect(view.exists && view.document).to.have.nested.property('spec.is_default', true);
  });

  it('knows of creations that were given up before', async () => {
    const abandon = { type: 'AbandonCreation', at, commandId: 'lost' } as const;
    await one.runner.execute(aggregateOf(tenant), 'acme', abandon, fakeContext('abandon'));
    expect((await rehearse(one.runner, tenant, 'acme', onboarding('acme', []))).outcome).to.equal('accepted');
  });

  it('is refused at another revision than the one it was meant for; absence comes first', async () => {
    await one.resources.execute(tenant, 'acme', onboarding('acme', []), fakeContext('a'));
    const remove: DocumentCommand = { type: 'DeleteDocument', at };
    const stale = await rehearse(one.runner, tenant, 'acme', remove, { ifRevision: 7 });
    expect(stale.outcome === 'rejected' && stale.rejection.code).to.equal('VERSION_MISMATCH');
    const fits = await rehearse(one.runner, tenant, 'acme', remove, { ifRevision: 0 });
    expect(fits.outcome).to.equal('accepted');
    const absent = await rehearse(one.runner, tenant, 'nobody', remove, { ifRevision: 7 });
    expect(absent.outcome === 'rejected' && absent.rejection.kind).to.equal('not-found');
  });
});
