import { expect } from 'chai';
import { createProcessPort, type Processes } from '../../../src/app/process-runner/process-port.ts';

describe('the port of the process runner', () => {
  it('answers as one that owns nothing until the runner is plugged in, and then as the runner', () => {
    const port = createProcessPort();
    const { probeLane, laneBlocked } = port;
    probeLane('hub:a');
    expect([port.observe('w', 'r', {}), port.isClosed('w', 'r'), port.isUnknown('w', 'r')]).to.deep.equal([
      false,
      false,
      false,
    ]);
    expect([laneBlocked('hub:a', 'r'), port.laneCalls('hub:a')]).to.deep.equal([false, undefined]);
    const probed: string[] = [];
    const runner: Processes = {
      observe: () => true,
      isClosed: (_workflow, id) => id === 'over',
      isUnknown: (_workflow, id) => id === 'new',
      laneBlocked: (lane, order) => lane === 'hub:a' && order === 'r',
      laneCalls: () => ({ attempts: 2, failures: 1 }),
      probeLane: (lane) => void probed.push(lane),
    };
    expect(port.plugIn(runner)).to.equal(runner);
    probeLane('hub:a');
    expect(probed).to.deep.equal(['hub:a']);
    expect([port.observe('w', 'r', {}), port.isClosed('w', 'over'), port.isUnknown('w', 'r')]).to.deep.equal([
      true,
      true,
      false,
    ]);
    expect([laneBlocked('hub:a', 'r'), laneBlocked('hub:a')]).to.deep.equal([true, false]);
    expect(port.laneCalls('hub:a')).to.deep.equal({ attempts: 2, failures: 1 });
  });
});
