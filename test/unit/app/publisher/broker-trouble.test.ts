import { expect } from 'chai';
import { createBrokerWatch } from '../../../../src/app/publisher/broker-trouble.ts';
import { manualTime } from '../../../support/manual-time.ts';

const AWAY = { reason: 'unreachable', message: 'away', since: '2026-01-01T00:00:00.000Z' } as const;

describe('what becomes of the trouble of brokers', () => {
  /** Who writes it down, and what. */
  const written = () => {
    const lines: string[] = [];
    return {
      lines,
      trouble: {
        has: (what: string) => void lines.push(`${what} are away`),
        over: (what: string) => void lines.push(`${what} answer again`),
      },
    };
  };

  it('is told when it lasts, and once when it is over', async () => {
    const time = manualTime();
    const watch = createBrokerWatch(time);
    const { lines, trouble } = written();
    watch.tellTo(trouble);
    watch.heard(AWAY);
    await time.pass(4_000);
    expect(lines).to.deep.equal([]);
    await time.pass(2_000);
    watch.heard(undefined);
    watch.heard(undefined);
    expect(lines).to.deep.equal(['the brokers are away', 'the brokers answer again']);
  });

  it('is not over because somebody stops publishing, and is told anew by whoever begins', async () => {
    const time = manualTime();
    const watch = createBrokerWatch(time);
    const [first, second] = [written(), written()];
    watch.tellTo(first.trouble);
    watch.heard(AWAY);
    await time.pass(6_000);
    watch.tellTo(undefined);
    await time.pass(60_000);
    expect(first.lines).to.deep.equal(['the brokers are away']);
    watch.tellTo(second.trouble);
    await time.pass(6_000);
    watch.heard(undefined);
    expect(first.lines).to.deep.equal(['the brokers are away']);
    expect(second.lines).to.deep.equal(['the brokers are away', 'the brokers answer again']);
  });
});
