import { expect } from 'chai';
import type { Ownership } from '../../../src/app/deployment/ownership.ts';
import type { Timers } from '../../../src/app/ports.ts';
import { createFakeClock } from '../../support/commands/fake-context.ts';
import { startToyRunner, toyStore } from '../../support/process-runner/toy-workflow.ts';
import { createWorkshop } from '../../support/process-runner/toy-workshop.ts';
import { eventually } from '../../support/eventually.ts';

describe('process runner: breakdowns', () => {
  it('are waited out longer each time, until it worked for a while', async () => {
    const clock = createFakeClock();
    const waits: number[] = [];
    const timers: Timers = {
      after: (ms, run) => {
        waits.push(ms);
        setImmediate(run);
        return () => undefined;
      },
    };
    let holds = 0;
    const ownership = {
      hold: async () => {
        holds += 1;
        if (holds === 5) clock.advance(60_000);
        throw new Error('broken');
      },
    } as unknown as Ownership;
    const more = { ownership, clock, timers };
    const runner = startToyRunner({ store: toyStore(), workshop: createWorkshop(), instance: 'a', more });
    await eventually('seven breakdowns', () => waits.length >= 7);
    await runner.stop();
    expect(waits.slice(0, 7)).to.deep.equal([1_000, 2_000, 4_000, 8_000, 1_000, 2_000, 4_000]);
  });
});
