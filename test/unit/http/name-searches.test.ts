import { expect } from 'chai';
import { createNameSearches } from '../../../src/http/audit/name-searches.ts';

describe('searches of people by name', () => {
  const going = new AbortController().signal;

  it('are made one after another, also after one that failed', async () => {
    const searches = createNameSearches();
    const story: string[] = [];
    const one = async (name: string): Promise<string> => {
      story.push(`${name} begins`);
      await Promise.resolve();
      story.push(`${name} ends`);
      if (name === 'b') throw new Error('no log');
      return name;
    };
    const all = ['a', 'b', 'c'].map((name) => searches.run(() => one(name), going));
    const ended = await Promise.allSettled(all);
    expect(ended.map(({ status }) => status)).to.deep.equal(['fulfilled', 'rejected', 'fulfilled']);
    expect(story).to.deep.equal(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('are refused when too many wait, and taken again later', async () => {
    const searches = createNameSearches(1);
    const held = Promise.withResolvers<void>();
    const first = searches.run(() => held.promise, going);
    const second = searches.run(() => held.promise, going);
    const refused: unknown = await searches.run(() => held.promise, going).catch((error: unknown) => error);
    expect(refused).to.include({ reason: 'SEARCHES_BUSY' });
    held.resolve();
    await Promise.all([first, second]);
    expect(await searches.run(async () => 'found', going)).to.equal('found');
  });

  it('are not begun for who has gone', async () => {
    const searches = createNameSearches();
    const gone = new AbortController();
    const held = Promise.withResolvers<void>();
    const first = searches.run(() => held.promise, going);
    let begun = false;
    const second = searches.run(async () => {
      begun = true;
    }, gone.signal);
    gone.abort(new Error('gone'));
    held.resolve();
    await first;
    expect(await second.catch((error: unknown) => (error as Error).message)).to.equal('gone');
    expect(begun).to.equal(false);
  });

  it('keep nobody out for those who have gone while they waited', async () => {
    const searches = createNameSearches(1);
    const gone = new AbortController();
    const held = Promise.withResolvers<string>();
    const first = searches.run(() => held.promise, going);
    const second = searches.run(async () => 'second', gone.signal).catch(() => 'gone');
    gone.abort();
    const third = searches.run(async () => 'third', going);
    const refused: unknown = await searches.run(async () => 'fourth', going).catch((error: unknown) => error);
    expect(refused).to.include({ reason: 'SEARCHES_BUSY' });
    held.resolve('first');
    expect(await Promise.all([first, second, third])).to.deep.equal(['first', 'gone', 'third']);
    // Each place was given back once.
    const again = [1, 2].map(() => searches.run(() => Promise.resolve('again'), going));
    expect(await searches.run(async () => 'x', going).catch((error: unknown) => error)).to.include({
      reason: 'SEARCHES_BUSY',
    });
    expect(await Promise.all(again)).to.deep.equal(['again', 'again']);
  });

  it('count until they end, also for who goes once they have begun', async () => {
    const searches = createNameSearches(1);
    const gone = new AbortController();
    const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<string>()];
    const first = searches.run(() => {
      begun.resolve();
      return held.promise;
    }, gone.signal);
    const second = searches.run(async () => 'second', going);
    await begun.promise;
    gone.abort();
    const third: unknown = await searches.run(async () => 'third', going).catch((error: unknown) => error);
    expect(third).to.include({ reason: 'SEARCHES_BUSY' });
    held.resolve('first');
    expect(await Promise.all([first, second])).to.deep.equal(['first', 'second']);
  });
});
