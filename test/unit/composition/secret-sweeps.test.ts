import { expect } from 'chai';
import { FIRST_SWEEP_MS, SWEEP_EVERY_MS, sweepSecrets } from '../../../src/composition/system.ts';
import { silentLogger } from '../../support/loggers.ts';
import { manualTime } from '../../support/manual-time.ts';

describe('sweeps of secrets that nothing uses', () => {
  it('rest while another service drives a hub of this log: its secrets may be in the same directory', async () => {
    const time = manualTime();
    const stop = new AbortController();
    let sweeps = 0;
    const sweeper = {
      sweep: async () => {
        sweeps += 1;
        return { examined: 0, removed: 0 };
      },
    };
    const state = { live: true, heldBack: true };
    const guards = { isLive: () => state.live, isHeldBack: () => state.heldBack };
    const running = sweepSecrets({ ...time, logger: silentLogger }, sweeper, guards, stop.signal);
    await time.pass(FIRST_SWEEP_MS + 2 * SWEEP_EVERY_MS);
    expect(sweeps).to.equal(0);
    state.heldBack = false;
    await time.pass(SWEEP_EVERY_MS);
    expect(sweeps).to.equal(1);
    state.live = false;
    await time.pass(SWEEP_EVERY_MS);
    expect(sweeps).to.equal(1);
    stop.abort();
    await time.pass(0);
    await running;
  });
});
