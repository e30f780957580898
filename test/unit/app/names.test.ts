import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { nameAggregate } from '../../../src/domain/kinds.ts';
import { everyClaimOf, nameStreamId, type NameClaim } from '../../../src/app/names/names.ts';
import type { NameState } from '../../../src/domain/naming/name.ts';
import { fakeContext } from '../../support/commands/fake-context.ts';
import { createIncarnation } from '../../support/commands/fake-incarnation.ts';

const PLAIN: NameClaim = {
  id: nameStreamId('gadget', 't1', '', 'drill'),
  field: 'metadata.name',
  value: 'drill',
};
const SLOT: NameClaim = { ...PLAIN, slot: true };
const holderCalled = (id: string, exists = false) => ({ kind: 'gadget', id, stream: `gadget-${id}`, exists });
const start = () => createIncarnation(createMemoryEventStore(), 'one');

describe('a claim to a name', () => {
  const view = {
    exists: true,
    archived: false,
    id: 'u1',
    tenant: 't1',
    project: 'p1',
    name: 'alice',
    creationTimestamp: '2026-11-21T10:00:00.000Z',
    document: {},
  } as const;
  const kind = { kind: 'user', nameScope: 'tenant', words: 'user' } as const;

  it('of personal data is to the keyed hash, and its refusal does not tell the name', () => {
    const [claim] = everyClaimOf(kind, { ...view, claimedName: 'p0123' });
    expect(claim).to.deep.equal({
      id: nameStreamId('user', 't1', '', 'p0123'),
      field: 'metadata.name',
      value: 'p0123',
      taken: 'user with this name already exists',
    });
    expect(everyClaimOf(kind, view)).to.deep.equal([
      { id: nameStreamId('user', 't1', '', 'alice'), field: 'metadata.name', value: 'alice' },
    ]);
  });

  it('is refused with the sentence of its kind where the kind has one', () => {
    const taken = 'this domain belongs to another tenant';
    const values = [{ scope: 'domain', value: 'a.example', field: 'spec.domains', taken }];
    const [, domain] = everyClaimOf({ ...kind, uniqueValues: () => values }, view);
    expect(domain).to.deep.equal({
      id: nameStreamId('domain', '', '', 'a.example'),
      field: 'spec.domains',
      value: 'a.example',
      taken,
    });
  });
});

describe('a reservation', () => {
  it('of the own command is made again, so that each attempt relies on one of its own', async () => {
    const { names } = start();
    const context = fakeContext('create g1');
    const first = await names.reserve(PLAIN, holderCalled('g1'), context);
    const again = await names.reserve(PLAIN, holderCalled('g1'), context);
    expect(first).to.deep.equal({ claim: PLAIN, revision: 0, fresh: true });
    expect(again).to.deep.equal({ claim: PLAIN, revision: 1, fresh: false });
  });

  it('by another command for the same object is refused until the object exists', async () => {
    const { names } = start();
    await names.reserve(PLAIN, holderCalled('g1'), fakeContext('create g1'));
    expect(await names.reserve(PLAIN, holderCalled('g1'), fakeContext('another'))).to.equal(undefined);
    expect(await names.reserve(PLAIN, holderCalled('g1', true), fakeContext('rename g1'))).to.deep.equal({
      claim: PLAIN,
      revision: 1,
      fresh: false,
    });
  });

  it('of what another holds is refused, however often', async () => {
    const { names, runner } = start();
    await names.reserve(PLAIN, holderCalled('g1'), fakeContext('create g1'));
    for (const exists of [false, true])
      expect(await names.reserve(PLAIN, holderCalled('g2', exists), fakeContext('create g2'))).to.equal(
        undefined,
      );
    const { state, revision } = await runner.load(nameAggregate, PLAIN.id);
    expect([revision, (state as Extract<NameState, { status: 'held' }>).holder]).to.deep.equal([0, 'g1']);
  });

  it('of a slot passes to who comes next, and is new to that one', async () => {
    const { names, runner } = start();
    await names.reserve(SLOT, holderCalled('g1'), fakeContext('create g1'));
    expect(await names.reserve(SLOT, holderCalled('g2'), fakeContext('create g2'))).to.deep.equal({
      claim: SLOT,
      revision: 1,
      fresh: true,
    });
    const { state } = await runner.load(nameAggregate, SLOT.id);
    expect(state)
      .to.include({ status: 'held', holder: 'g2' })
      .and.to.have.deep.property('displaced', ['gadget-g1']);
  });

  it('of a slot is not taken by an object from itself', async () => {
    const { names, runner } = start();
    await names.reserve(SLOT, holderCalled('g1'), fakeContext('create g1'));
    expect(await names.reserve(SLOT, holderCalled('g1'), fakeContext('another'))).to.equal(undefined);
    const { state } = await runner.load(nameAggregate, SLOT.id);
    expect(state).not.to.have.property('displaced');
  });

  it('of a slot at a revision is given back, and takes nothing from who has come since', async () => {
    const { names, runner } = start();
    await names.reserve(SLOT, holderCalled('g1'), fakeContext('create g1'));
    const back = fakeContext('give back');
    expect(await names.reserve(SLOT, holderCalled('g2'), back, { ifRevision: 0 })).to.equal(undefined);
    const { state } = await runner.load(nameAggregate, SLOT.id);
    expect(state).to.include({ status: 'held', holder: 'g1' });
  });

  it('is new again once the name was given back', async () => {
    const { names } = start();
    await names.reserve(PLAIN, holderCalled('g1'), fakeContext('create g1'));
    expect(await names.release(PLAIN.id, 0, 'g1', 'deleted', fakeContext('delete g1'))).to.equal(true);
    expect(await names.reserve(PLAIN, holderCalled('g1', true), fakeContext('rename g1'))).to.include({
      revision: 2,
      fresh: true,
    });
  });

  it('is given back at exactly the revision that was read', async () => {
    const { names } = start();
    const context = fakeContext('create g1');
    await names.reserve(PLAIN, holderCalled('g1'), context);
    await names.reserve(PLAIN, holderCalled('g1'), context);
    expect(await names.release(PLAIN.id, 0, 'g1', 'abandoned', context)).to.equal(false);
    expect(await names.look(PLAIN.id)).to.have.nested.property('state.holder', 'g1');
    expect(await names.look(nameStreamId('gadget', 't1', '', 'never'))).to.equal(undefined);
  });
});
