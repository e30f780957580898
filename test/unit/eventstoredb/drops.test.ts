import { expect } from 'chai';
import { createDrops } from '../../../src/adapters/event-store/eventstoredb/subscription.ts';
import type { Logger } from '../../../src/app/ports.ts';
import { eventually } from '../../support/eventually.ts';

describe('EventStoreDB adapter: what is logged of drops', () => {
  const recorded = () => {
    const lines: { level: string; fields: object; message: string }[] = [];
    const at = (level: string) => (fields: object, message: string) =>
      void lines.push({ level, fields, message });
    const logger: Logger = {
      debug: at('debug'),
      info: at('info'),
      warn: at('warn'),
      error: at('error'),
      child: () => logger,
    };
    return { lines, logger };
  };

  it('a subscription that stays away is a warning, once, with the newest reason, and its return is told', async () => {
    const { lines, logger } = recorded();
    const drops = createDrops(logger, 'audit', 20);
    drops.dropped('7', new Error('first'));
    drops.dropped('7', new Error('second'));
    await eventually('the warning', () => lines.length === 2);
    drops.dropped('7', new Error('third'));
    drops.back();
    drops.back();
    drops.end();
    expect(lines).to.deep.equal([
      {
        level: 'info',
        fields: { subscriber: 'audit', drops: 1, after: '7', reason: 'first' },
        message: 'subscription dropped; subscribing again',
      },
      {
        level: 'warn',
        fields: { subscriber: 'audit', drops: 2, after: '7', reason: 'second', seconds: 0.02 },
        message: 'subscription is still away',
      },
      { level: 'info', fields: { subscriber: 'audit', drops: 3 }, message: 'subscription is back' },
    ]);
  });

  it('one that comes back in time is a line at info, each time', () => {
    const { lines, logger } = recorded();
    const drops = createDrops(logger, undefined);
    for (let n = 0; n < 2; n += 1) {
      drops.dropped(undefined, undefined);
      drops.back();
    }
    drops.end();
    expect(lines.map(({ level, fields }) => [level, fields])).to.deep.equal([
      ['info', { drops: 1, after: undefined, reason: 'the server ended it' }],
      ['info', { drops: 2, after: undefined, reason: 'the server ended it' }],
    ]);
  });
});
