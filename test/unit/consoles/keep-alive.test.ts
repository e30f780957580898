import { expect } from 'chai';
import { EventEmitter } from 'node:events';
import { keepAlive } from '../../../src/app/consoles/keep-alive.ts';
import { manualTime } from '../../support/manual-time.ts';

describe('keeping a WebSocket alive', () => {
  const begin = () => {
    const time = manualTime();
    const calls: string[] = [];
    const peer = Object.assign(new EventEmitter(), {
      isPaused: false,
      ping: () => void calls.push('ping'),
      terminate: () => void calls.push('terminate'),
    });
    const end = keepAlive(peer, time.timers);
    return { time, calls, peer, end };
  };

  it('cuts off a peer that answers nothing', async () => {
    const { time, calls } = begin();
    await time.pass(60_000);
    expect(calls).to.deep.equal(['ping', 'terminate']);
    expect(time.waiting()).to.equal(0);
  });

  for (const sign of ['pong', 'message'])
    it(`takes a ${sign} for an answer`, async () => {
      const { time, calls, peer, end } = begin();
      await time.pass(30_000);
      peer.emit(sign);
      await time.pass(30_000);
      expect(calls).to.deep.equal(['ping', 'ping']);
      end();
      expect(time.waiting()).to.equal(0);
    });

  it('waits for no answer of a peer that is held back', async () => {
    const { time, calls, peer } = begin();
    await time.pass(30_000);
    peer.isPaused = true;
    await time.pass(300_000);
    expect(calls).to.deep.equal(['ping']);
    peer.isPaused = false;
    peer.emit('message');
    await time.pass(30_000);
    expect(calls).to.deep.equal(['ping', 'ping']);
  });
});
