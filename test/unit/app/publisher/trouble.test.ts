import { expect } from 'chai';
import { createTrouble } from '../../../../src/app/publisher/trouble.ts';
import { manualTime } from '../../../support/manual-time.ts';
import { recordingLogger } from '../../../support/loggers.ts';

describe('what is said of topics that are held up', () => {
  const set = () => {
    const log = recordingLogger();
    const time = manualTime();
    const trouble = createTrouble(log, time.clock);
    const has = (topic: string, reason: 'unreachable' | 'full' | 'topic-missing'): void =>
      trouble.has(topic, { reason, message: `of ${topic}`, at: time.clock.now() });
    /** Level, reason and what else is told of it, of the lines since the last call. */
    const told = (): unknown[] =>
      log.lines.splice(0).map(({ level, fields }) => {
        const { reason, topic, seconds } = fields as Record<string, unknown>;
        return [level, reason, topic ?? seconds];
      });
    return { time, trouble, has, told };
  };

  it('is one line for a reason, however many they are, and one when the last of them goes on', async () => {
    const { time, trouble, has, told } = set();
    has('a', 'unreachable');
    has('b', 'unreachable');
    has('a', 'unreachable');
    expect(told()).to.deep.equal([
      ['warn', 'unreachable', 'a'],
      ['debug', 'unreachable', 'b'],
    ]);
    trouble.over('a');
    expect(told()).to.deep.equal([]);
    await time.pass(7_000);
    trouble.over('b');
    trouble.over('b');
    expect(told()).to.deep.equal([['info', 'unreachable', 7]]);
  });

  it('ends one reason where another one takes its place', async () => {
    const { time, trouble, has, told } = set();
    has('a', 'unreachable');
    has('b', 'unreachable');
    told();
    await time.pass(3_000);
    has('a', 'full');
    expect(told(), 'b still waits for the brokers').to.deep.equal([['warn', 'full', 'a']]);
    has('b', 'full');
    expect(told()).to.deep.equal([
      ['info', 'unreachable', 3],
      ['debug', 'full', 'b'],
    ]);
    trouble.over('a');
    trouble.over('b');
    expect(told()).to.deep.equal([['info', 'full', 0]]);
    has('a', 'unreachable');
    expect(told(), 'the same again is told again').to.deep.equal([['warn', 'unreachable', 'a']]);
  });

  it('is for debugging where the check of topics has a line that names all of them', () => {
    const { trouble, has, told } = set();
    has('a', 'topic-missing');
    trouble.over('a');
    expect(told()).to.deep.equal([
      ['debug', 'topic-missing', 'a'],
      ['debug', 'topic-missing', 0],
    ]);
  });
});
