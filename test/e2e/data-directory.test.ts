import { expect } from 'chai';
import { runMain } from '../support/e2e-process.ts';
import { E2E_STORES, createStack, until, type Stack } from '../support/e2e-stack.ts';

/** One process at a time works in a data directory, whichever store holds the log. */
for (const store of E2E_STORES)
  describe(`the data directory (${store})`, function () {
    this.timeout(180_000);
    let stack: Stack;
    beforeEach(async () => {
      stack = await createStack(store);
    });
    afterEach(() => stack.dispose());

    it('is refused to a second service, which says who has it and what to do', async () => {
      const first = await stack.start();
      const second = await runMain(['serve'], stack.environment);
      expect(second.code, second.err).to.equal(1);
      expect(second.err)
        .to.include(`the data directory ${stack.dataDir} is in use by process ${first.pid}: `)
        .and.to.include('LEDGER_DATA_DIR')
        .and.not.to.match(/\n\s+at /);
      expect(second.out).not.to.include('lease taken');
    });

    it('is free after kill -9, and the next start has its leases back at once', async () => {
      const isLive = (log: readonly string[]) => log.some((line) => line.includes('process runner is live'));
      const first = await stack.start();
      await until('the first one works', async () => isLive(first.log));
      await stack.stop('SIGKILL');
      const next = await stack.start();
      const ready = performance.now();
      await until('the next one works', async () => isLive(next.log));
      // The time of a lease is 15 s, and whoever waits for its end waits 18.
      expect(performance.now() - ready).to.be.below(14_000);
    });
  });
