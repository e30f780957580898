import { expect } from 'chai';
import { createRunMemory, gateAlarm } from '../../../src/app/process-runner/run-memory.ts';
import { newRun } from '../../../src/app/process-runner/run.ts';
import { openRunIndex } from '../../../src/app/process-runner/run-index.ts';
import { createSteadyClock } from '../../../src/app/process-runner/steady-clock.ts';
import type { AnyWorkflow } from '../../../src/app/process-runner/types.ts';
import type { PendingEffect } from '../../../src/domain/workflow.ts';
import { manualTime } from '../../support/manual-time.ts';
import { toyWorkflow } from '../../support/toy-workflow.ts';

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
});
