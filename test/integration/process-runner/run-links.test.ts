import { createBench } from '../../support/eventstoredb-peer/fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { isDone, orderToy, startToyRunner } from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';

describe('a run in whose stream an EventStoreDB holds records of its own', function () {
  this.timeout(30_000);
  const bench = createBench();
  afterEach(() => bench.clean());

  it('goes on behind them, as the stream of what it is about does', async () => {
    const peer = await bench.peer();
    const store = await bench.store(peer);
    const workshop = createWorkshop();
    workshop.mood('a', 'dead');
    const runner = startToyRunner({
      store,
      workshop,
      instance: 'one',
      more: { settings: { effectDeadlineMs: 60, breakerHalfOpenMs: 30, stopGraceMs: 300 } },
    });
    try {
      await orderToy(store, { id: 't', shop: 'a', parts: ['body', 'wheel'] });
      await eventually('the first call', () => workshop.calls.length > 0);
      for (const stream of ['toyRun-t', 'toy-t'])
        peer.log.inject(stream, { type: '$>', contentType: 'text/plain', data: Buffer.from('0@toy-other') });
      workshop.mood('a', 'well');
      await eventually('it is done', () => isDone(store, 't'), 15_000);
    } finally {
      await runner.stop();
    }
  });
});
