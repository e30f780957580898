import { expect } from 'chai';
import { createBrokerWatch } from '../../../../src/app/publisher/publisher.ts';
import { manualTime } from '../../../support/manual-time.ts';

const AWAY = { reason: 'unreachable', message: 'away', since: '2026-01-01T00:00:00.000Z' } as const;

describe('what becomes of the trouble of brokers', () => {
  /** Who writes it down, and what. */
  const written = () => {
    const lines: string[] = [];
    return {
      lines,
      trouble: {
        has: (what: string, { reason }: { reason: string }) =>
          void lines.push(`${what} ${reason === 'unreachable' ? 'are away' : `are ${reason}`}`),
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

  it('is told anew when it is of another kind by now, without another wait', async () => {
    const time = manualTime();
    const watch = createBrokerWatch(time);
    const { lines, trouble } = written();
    watch.tellTo(trouble);
    watch.heard(AWAY);
    await time.pass(6_000);
    watch.heard({ ...AWAY, reason: 'unauthorized', message: 'no' });
    expect(lines).to.deep.equal(['the brokers are away', 'the brokers are unauthorized']);
  });

  it('is as long as it lasts: one that is over soon and comes again is another one', async () => {
    const time = manualTime();
    const watch = createBrokerWatch(time);
    const { lines, trouble } = written();
    watch.tellTo(trouble);
    watch.heard(AWAY);
    await time.pass(3_000);
    watch.heard(undefined);
    await time.pass(1_000);
    watch.heard(AWAY);
    await time.pass(4_000);
    expect(lines).to.deep.equal([]);
    await time.pass(1_000);
    expect(lines).to.deep.equal(['the brokers are away']);
  });

  it('has them looked at once, a moment after it began', async () => {
    const time = manualTime();
    const watch = createBrokerWatch(time);
    const begun = watch.begun();
    watch.heard(AWAY);
    const next = watch.begun();
    expect(next).to.not.equal(begun);
    await time.pass(1_000);
    watch.heard({ ...AWAY, message: 'still away' });
    expect(watch.begun(), 'the same trouble').to.equal(next);
    expect(begun.aborted).to.equal(false);
    await time.pass(1_000);
    expect(begun.aborted).to.equal(true);
    await time.pass(10_000);
    expect(next.aborted).to.equal(false);
    watch.heard(undefined);
    watch.heard(AWAY);
    await time.pass(2_000);
    expect(next.aborted).to.equal(true);
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
