import { expect } from 'chai';
import { StoreUnavailable } from '../../../src/app/log/event-store.ts';
import { startUpkeep } from '../../../src/composition/upkeep.ts';
import { startTestService } from '../../support/http/service.ts';
import { manualTime } from '../../support/manual-time.ts';
import { recordingLogger } from '../../support/loggers.ts';
import { eventually } from '../../support/eventually.ts';

describe('upkeep of the service', () => {
  it('never fails a start; a round that failed is repeated after 5 s, then comes one every ten minutes', async () => {
    const service = await startTestService();
    const time = manualTime();
    const logger = recordingLogger();
    const stop = new AbortController();
    const told: number[] = [];
    let rounds = 0;
    const { runner, commands, models } = service;
    const running = startUpkeep(
      {
        runner,
        commands,
        resources: models.resources,
        clock: time.clock,
        timers: time.timers,
        logger,
        erasures: {
          finish: async () => {
            rounds += 1;
            if (rounds === 1) throw new StoreUnavailable('away');
            return 0;
          },
        },
        applied: (position) => models.waitFor('resources', position, { timeoutMs: 5_000 }),
        onDangling: (total) => void told.push(total),
      },
      stop.signal,
    );
    try {
      let started = false;
      void running.first.then(() => (started = true));
      await eventually('the first round is over', () => time.pass(0).then(() => started));
      expect([started, rounds, told]).to.deep.equal([true, 1, []]);
      expect(logger.lines.map(({ level }) => level)).to.deep.equal(['warn']);
      await time.pass(4_900);
      expect(rounds).to.equal(1);
      await time.pass(200);
      expect([rounds, told], 'what refers to nothing is told once all was made').to.deep.equal([2, [0]]);
      await time.pass(599_000);
      expect(rounds).to.equal(2);
      await time.pass(2_000);
      expect([rounds, told]).to.deep.equal([3, [0, 0]]);
    } finally {
      stop.abort();
      await time.pass(0);
      await running.ended;
      await service.close();
    }
    expect(logger.lines, 'it ends without a word').to.have.length(1);
  });
});
