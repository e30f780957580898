import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createHubEpochs, DRIVING_STREAM } from '../../../src/app/hubs/hub-epochs.ts';
import { createFakeIds } from '../../support/commands/fake-incarnation.ts';
import { manualTime } from '../../support/manual-time.ts';

const epochsOn = (store = createMemoryEventStore({ singleWriter: false })) => ({
  store,
  epochs: createHubEpochs({
    store,
    clock: manualTime().clock,
    ids: createFakeIds('epochs'),
    instance: 'one',
    holder: 'directory',
  }),
});

describe('driving epochs', () => {
  it('are known by number and nonce, and those to come are not', async () => {
    const { epochs } = epochsOn();
    const first = await epochs.begin();
    const second = await epochs.begin();
    expect([first.epoch, second.epoch]).to.deep.equal([1, 2]);
    expect(await epochs.knows(first)).to.equal(true);
    expect(await epochs.knows({ ...first, nonce: second.nonce })).to.equal(false);
    expect(await epochs.knows({ epoch: 3, nonce: second.nonce })).to.equal(false);
  });

  it('stay known when the log keeps them no longer: a hub that was away long is no stranger', async () => {
    const { epochs, store } = epochsOn();
    const first = await epochs.begin();
    await store.setMaxCount(DRIVING_STREAM, 2);
    for (let i = 0; i < 3; i += 1) await epochs.begin();
    expect(await epochs.knows(first)).to.equal(true);
  });

  for (const epoch of [0, -1, 1.5])
    it(`${epoch} is none`, async () => {
      const { epochs } = epochsOn();
      const { nonce } = await epochs.begin();
      expect(await epochs.knows({ epoch, nonce })).to.equal(false);
    });
});
