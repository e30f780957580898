import { expect } from 'chai';
import { createTenantSpaces } from '../../../src/app/hubs/tenant-spaces.ts';
import { tenantSpaceDecider, type TenantSpaceCommand } from '../../../src/domain/tenancy/tenant-space.ts';
import { isRejection } from '../../../src/domain/decider.ts';

type Ports = Parameters<typeof createTenantSpaces>[0];
const at = '2026-11-23T09:00:00.000Z';

/** One space, decided as it is stored. */
const oneSpace = () => {
  const { decide, evolve, initialState } = tenantSpaceDecider;
  let state = initialState();
  const tell = (command: TenantSpaceCommand) => {
    const events = decide(state, command);
    if (isRejection(events)) return { outcome: 'rejected', rejection: events, loaded: { state } };
    state = events.reduce(evolve, state);
    return { outcome: 'accepted', loaded: { state } };
  };
  const hub = {
    facts: { id: 'h', namespace: 'osac', namespaces: {}, simulated: true, controller: 'operator' },
  };
  const spaces = createTenantSpaces({
    registry: { ready: async () => undefined, get: () => hub } as unknown as Ports['registry'],
    commandRunner: {
      peek: async () => ({ state }),
      execute: async (_of: unknown, _id: unknown, command: TenantSpaceCommand) => tell(command),
    } as unknown as Ports['commandRunner'],
    clock: { now: () => at },
  });
  const call = { tenant: 'kube-team', effectId: 'e', attempt: 1, signal: new AbortController().signal };
  return { tell, settle: () => spaces.settle('h', call as unknown as Parameters<typeof spaces.settle>[1]) };
};

describe('what a tenant needs on a hub', () => {
  it('is said to be on its way, or to need its provider; only the provider is told why', async () => {
    const { tell, settle } = oneSpace();
    expect(await settle()).to.deep.equal({
      waiting: 'TenantNotReady: what your tenant needs first is still being made',
    });
    tell({ type: 'RecordSpaceFailure', at, reason: 'Forbidden', message: 'namespace kube-team is reserved' });
    expect(await settle()).to.deep.equal({
      waiting: 'TenantNotReady: what your tenant needs first cannot be made at the moment: ask your provider',
      detail: 'hub h, tenant kube-team: Forbidden: namespace kube-team is reserved',
    });
    tell({ type: 'RecordSpaceReady', at });
    expect(await settle()).to.equal(undefined);
  });
});
