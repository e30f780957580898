import { expect } from 'chai';
import { StoreUnavailable } from '../../../src/app/log/event-store.ts';
import { startUpkeep } from '../../../src/composition/upkeep.ts';
import { callerOf, PRIVATE, startTestService } from '../../support/http/service.ts';
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

  it('looks at a tenant that something else holds less and less often, and goes on doing so', async () => {
    const service = await startTestService();
    const admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    const metadata = { name: 'held', finalizers: ['somebody'] };
    expect((await admin('POST', `${PRIVATE}/tenants`, { metadata })).status).to.equal(200);
    expect((await admin('DELETE', `${PRIVATE}/tenants/held`)).status).to.equal(200);
    const time = manualTime();
    const stop = new AbortController();
    const { runner, commands, models } = service;
    let looks = 0;
    const counting: typeof runner = {
      ...runner,
      load: (aggregate, id, options) => {
        if (id === 'held') looks += 1;
        return runner.load(aggregate, id, options);
      },
    };
    const logger = recordingLogger();
    const running = startUpkeep(
      {
        runner: counting,
        commands,
        resources: models.resources,
        clock: time.clock,
        timers: time.timers,
        logger,
        erasures: { finish: () => Promise.resolve(0) },
        applied: (position) => models.waitFor('resources', position, { timeoutMs: 5_000 }),
      },
      stop.signal,
    );
    const looksIn = async (seconds: number): Promise<number> => {
      const before = looks;
      for (let second = 0; second < seconds; second += 1) await time.pass(1_000);
      return looks - before;
    };
    try {
      let started = false;
      void running.first.then(() => (started = true));
      await eventually('the first round is over', () => time.pass(0).then(() => started));
      const first = await looksIn(8);
      expect(first).to.be.greaterThan(0);
      const later = await looksIn(120);
      expect(later).to.be.greaterThan(0);
      expect(later).to.be.lessThan(4 * first);
    } finally {
      stop.abort();
      await time.pass(0);
      await running.ended;
      await service.close();
    }
  });
});
