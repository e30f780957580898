import { expect } from 'chai';
import { OutcomeUnknown } from '../../../src/app/log/event-store.ts';
import { nameStreamId } from '../../../src/app/names/names.ts';
import { fakeContext, collect } from '../../support/commands/fake-context.ts';
import { createGadget, deleteGadget, gadget, reviseGadget } from '../../support/commands/fake-gadget.ts';
import { crashing, createIncarnation } from '../../support/commands/fake-incarnation.ts';
import { codeHolderOf, create, holderOf, shared, types, type Incarnation } from './holding-names.ts';

describe('names of resources', () => {
  it('are reserved before the resource is written', async () => {
    const store = shared();
    const one = createIncarnation(store, 'one');
    const outcome = await create(one, 'g1', 'drill');
    expect(outcome.outcome).to.equal('accepted');
    expect(await types(store)).to.deep.equal(['NameReserved', 'GadgetDefined']);
    expect(await holderOf(one, 'drill')).to.equal('g1');
  });

  it('refuse a second holder with the identifier the new object would have had', async () => {
    const one = createIncarnation(shared(), 'one');
    await create(one, 'g1', 'drill');
    const outcome = await create(one, 'g2', 'drill');
    expect(outcome.outcome === 'rejected' && outcome.rejection).to.include({
      kind: 'already-exists',
      code: 'ALREADY_EXISTS',
      message: "gadget with name 'drill' already exists",
    });
    expect(one.rejections).to.have.length(1);
  });

  it('hold nothing of the text in stream names', async () => {
    const store = shared();
    await create(createIncarnation(store, 'one'), 'g1', 'secretname', ['secretcode']);
    const streams = (await collect(store.readAll({ limit: 100 }))).map((event) => event.stream);
    expect(streams.join()).not.to.match(/secret/);
  });

  it('give the same answer for a taken id, and free the name that was reserved for it', async () => {
    const one = createIncarnation(shared(), 'one');
    await create(one, 'g1', 'drill');
    const outcome = await create(one, 'g1', 'saw', [], 'other');
    expect(outcome.outcome === 'rejected' && outcome.rejection.message).to.equal(
      "gadget with identifier 'g1' already exists",
    );
    expect(await holderOf(one, 'saw')).to.equal(undefined);
  });

  it('are free again when the resource is gone', async () => {
    const one = createIncarnation(shared(), 'one');
    await create(one, 'g1', 'drill', ['c1']);
    await one.resources.execute(gadget, 'g1', deleteGadget, fakeContext('delete'));
    expect([await holderOf(one, 'drill'), await codeHolderOf(one, 'c1')]).to.deep.equal([
      undefined,
      undefined,
    ]);
    expect((await create(one, 'g2', 'drill', ['c1'])).outcome).to.equal('accepted');
  });

  it('that have passed on do not refuse a repeat that is taken for new: its first call counts', async () => {
    const store = shared();
    const one = createIncarnation(store, 'one');
    const repeatable = (on: Incarnation) =>
      on.resources.execute(gadget, 'g1', createGadget('g1', 'drill'), fakeContext('keyed'), {
        likelyNew: true,
      });
    const first = await repeatable(one);
    await one.resources.execute(gadget, 'g1', deleteGadget, fakeContext('delete'));
    expect((await create(one, 'g2', 'drill')).outcome).to.equal('accepted');
    expect(await repeatable(createIncarnation(store, 'two'))).to.deep.equal({ ...first, replayed: true });
    expect(await holderOf(one, 'drill')).to.equal('g2');
  });

  it('are free as soon as their holder is gone, also before anybody has given them back', async () => {
    const one = createIncarnation(shared(), 'one');
    await create(one, 'g1', 'drill', ['c1']);
    await one.runner.execute(
      { category: 'gadget', decider: gadget.decider, stateVersion: 1 },
      'g1',
      deleteGadget,
      fakeContext('delete as a workflow does'),
    );
    expect(await holderOf(one, 'drill')).to.equal('g1');
    expect((await create(one, 'g2', 'drill', ['c1'])).outcome).to.equal('accepted');
    expect([await holderOf(one, 'drill'), await codeHolderOf(one, 'c1')]).to.deep.equal(['g2', 'g2']);
    expect(one.rejections).to.deep.equal([]);
  });

  it('are free for who wants one while another one gives it back (repair loop, second instance)', async () => {
    const store = shared();
    const other = createIncarnation(store, 'other');
    await create(other, 'g1', 'drill');
    await other.runner.execute(
      { category: 'gadget', decider: gadget.decider, stateVersion: 1 },
      'g1',
      deleteGadget,
      fakeContext('delete as a workflow does'),
    );
    let overtaken = false;
    const one = createIncarnation(
      {
        ...store,
        append: async (stream, expected, events, options) => {
          if (!overtaken && events[0]?.type === 'NameReleased') {
            overtaken = true;
            const id = nameStreamId('gadget', 'acme', '', 'drill');
            await other.names.release(id, Number(expected), 'g1', 'deleted', fakeContext('give back'));
          }
          return store.append(stream, expected, events, options);
        },
      },
      'one',
    );
    expect((await create(one, 'g2', 'drill')).outcome).to.equal('accepted');
    expect(overtaken).to.equal(true);
    expect(await holderOf(one, 'drill')).to.equal('g2');
    expect(one.rejections).to.deep.equal([]);
  });

  it('do not block each other when two resources want what the other has', async () => {
    const one = createIncarnation(shared(), 'one');
    await create(one, 'g1', 'drill', ['c1']);
    await create(one, 'g2', 'saw', ['c2']);
    const outcomes = await Promise.all([
      one.resources.execute(gadget, 'g1', reviseGadget(['c1', 'c2']), fakeContext('swap 1')),
      one.resources.execute(gadget, 'g2', reviseGadget(['c1', 'c2']), fakeContext('swap 2')),
    ]);
    expect(outcomes.map(({ outcome }) => outcome)).to.deep.equal(['rejected', 'rejected']);
  });

  it('are replayed, not reserved again, by a repeated creation', async () => {
    const store = shared();
    const one = createIncarnation(store, 'one');
    const first = await create(one, 'g1', 'drill');
    const again = await create(one, 'g1', 'drill');
    expect(again).to.deep.equal({ ...first, replayed: true });
    expect(await types(store)).to.have.length(2);
  });

  it('leave nothing reserved when another unique value is taken', async () => {
    const one = createIncarnation(shared(), 'one');
    await create(one, 'g1', 'drill', ['c1']);
    const outcome = await create(one, 'g2', 'saw', ['c1']);
    expect(outcome.outcome === 'rejected' && outcome.rejection).to.include({
      message: "gadget with spec.codes 'c1' already exists",
      field: 'spec.codes',
    });
    expect(await holderOf(one, 'saw')).to.equal(undefined);
    expect((await create(one, 'g3', 'saw')).outcome).to.equal('accepted');
  });

  it('follow a change of unique values', async () => {
    const one = createIncarnation(shared(), 'one');
    await create(one, 'g1', 'drill', ['c1', 'c2']);
    await one.resources.execute(gadget, 'g1', reviseGadget(['c2', 'c3']), fakeContext('revise'));
    expect(await codeHolderOf(one, 'c1')).to.equal(undefined);
    expect(await codeHolderOf(one, 'c2')).to.equal('g1');
    expect(await codeHolderOf(one, 'c3')).to.equal('g1');
  });

  it('go to exactly one of many creators at once', async () => {
    const store = shared();
    const incarnations = [createIncarnation(store, 'one'), createIncarnation(store, 'two')];
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => {
        const on = incarnations[i % 2] as Incarnation;
        return create(on, `g${i}`, 'drill');
      }),
    );
    expect(outcomes.filter(({ outcome }) => outcome === 'accepted')).to.have.length(1);
    expect((await types(store)).filter((type) => type === 'GadgetDefined')).to.have.length(1);
  });

  it('turn an outage after the reservation into an unknown outcome, which the retry settles', async () => {
    const store = shared();
    const dying = createIncarnation(crashing(store, { at: 2, when: 'before' }), 'dying');
    const failure: unknown = await create(dying, 'g1', 'drill').catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(OutcomeUnknown);
    const next = createIncarnation(store, 'next');
    expect((await create(next, 'g1', 'drill')).outcome).to.equal('accepted');
    expect(await holderOf(next, 'drill')).to.equal('g1');
  });
});
