import { expect } from 'chai';
import { createRunMemory, gateAlarm } from '../../../src/app/process-runner/run-memory.ts';
import { newRun } from '../../../src/app/process-runner/run.ts';
import { openRunIndex } from '../../../src/app/process-runner/run-index.ts';
import { createSteadyClock } from '../../../src/app/process-runner/steady-clock.ts';
import type { AnyWorkflow } from '../../../src/app/process-runner/types.ts';
import type { PendingEffect } from '../../../src/domain/workflow.ts';
import { manualTime } from '../../support/manual-time.ts';
import { toyWorkflow } from '../../support/process-runner/toy-workflow.ts';

describe('what is kept of runs', () => {
  it('a run that is written in the middle of something keeps the moments that it waits for, fired or not', () => {
    const { clock } = manualTime();
    const index = openRunIndex(':memory:', 'x');
    const effect = (effectId: string): PendingEffect => ({
      effectId,
      port: 'p',
      operation: 'o',
      args: {},
      attempt: 2,
      mode: 'observe',
      lane: 'l',
      notBefore: '2026-01-01T00:00:10.000Z',
    });
    const workflow = {
      ...toyWorkflow,
      isClosed: () => false,
      pending: () => ({ commands: [], effects: [effect('fired'), effect('later')], timers: [] }),
    } as unknown as AnyWorkflow;
    const memory = createRunMemory({
      index,
      workflows: [workflow],
      cachedRuns: 10,
      steady: createSteadyClock(clock, 5_000),
      alarmSet: () => undefined,
      broken: (_key, error) => expect.fail(String(error)),
    });
    const run = newRun(workflow, 'a');
    run.revision = 0;
    const [fired, later, over] = [gateAlarm('fired', 2), gateAlarm('later', 2), gateAlarm('fired', 1)];
    index.setAlarms(run.key, [
      { key: fired, due: 1, dueMono: 1 },
      { key: later, due: 1_000, dueMono: 1_000 },
      { key: over, due: 1_000, dueMono: 1_000 },
    ]);
    expect(index.takeDue(1, 10)).to.deep.equal([{ run: run.key, key: fired }]);
    const kept = () => index.alarmsOf(run.key).filter(({ key }) => key !== over);
    const before = kept();
    memory.touch(run);
    memory.flush();
    expect(kept()).to.deep.equal(before);
    expect(before.map((alarm) => alarm.fired)).to.deep.equal([1, 0]);
    expect(index.alarmsOf(run.key)).to.have.length(2);
    index.close();
  });

  describe('and when', () => {
    const workflow = {
      ...toyWorkflow,
      isClosed: (state: unknown) => state === 'over',
      pending: () => ({ commands: [], effects: [], timers: [] }),
    } as unknown as AnyWorkflow;
    const opened = (cachedRuns: number) => {
      const { clock } = manualTime();
      const index = openRunIndex(':memory:', 'x');
      const memory = createRunMemory({
        index,
        workflows: [workflow],
        cachedRuns,
        steady: createSteadyClock(clock, 5_000),
        alarmSet: () => undefined,
        broken: (_key, error) => expect.fail(String(error)),
      });
      const keptAt = (id: string, ...revisions: readonly number[]) => {
        const run = newRun(workflow, id);
        for (const revision of revisions) {
          run.revision = revision;
          memory.keep(run, [{ key: 't:x', due: revision, dueMono: revision }]);
        }
        return run;
      };
      const written = (key: string) => index.load(key)?.revision;
      return { index, memory, keptAt, written };
    };

    it('a run is written once at first, which gives it its age, and then with the next flush; its alarms at once', () => {
      const { index, memory, keptAt, written } = opened(10);
      const run = keptAt('a', 0, 1, 2);
      expect(written(run.key)).to.equal(0);
      expect(memory.revisionsOf(run.key)?.revision).to.equal(2);
      expect(index.alarmsOf(run.key).map(({ due }) => due)).to.deep.equal([2]);
      memory.flush();
      expect(written(run.key)).to.equal(2);
      index.close();
    });

    it('many are written a few at a time, each once', () => {
      const { index, memory, keptAt, written } = opened(10);
      const runs = ['a', 'b', 'c'].map((id) => keptAt(id, 0, 1));
      const newest = () => runs.filter(({ key }) => written(key) === 1).length;
      expect([memory.flush(2), newest()]).to.deep.equal([false, 2]);
      expect([memory.flush(2), newest()]).to.deep.equal([true, 3]);
      index.close();
    });

    it('one that leaves memory is written before', () => {
      const { index, memory, keptAt, written } = opened(1);
      const run = keptAt('a', 0, 1);
      keptAt('b', 0);
      expect(written(run.key)).to.equal(1);
      expect(memory.get(run.key)).to.include({ revision: 1 });
      index.close();
    });

    it('one that is over is written at once, without alarms', () => {
      const { index, memory, keptAt } = opened(10);
      const run = keptAt('a', 0);
      run.state = 'over';
      run.revision = 1;
      memory.keep(run, [{ key: 't:x', due: 1, dueMono: 1 }]);
      expect(index.load(run.key)).to.include({ revision: 1, closed: true });
      expect(memory.isClosed(run.key)).to.equal(true);
      expect(index.alarmsOf(run.key)).to.deep.equal([]);
      index.close();
    });
  });
});
