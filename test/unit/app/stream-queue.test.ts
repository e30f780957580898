import { expect } from 'chai';
import fc from 'fast-check';
import { createStreamQueue } from '../../../src/app/commands/stream-queue.ts';
import { countVersion, NO_VERSION } from '../../../src/domain/document-version.ts';
import { check } from '../../support/property.ts';

const deferred = () => Promise.withResolvers<void>();

describe('stream queue', () => {
  it('runs tasks of one key one after another, in order', async () => {
    const queue = createStreamQueue();
    const seen: string[] = [];
    const first = deferred();
    const one = queue.run('a', async () => {
      seen.push('one begins');
      await first.promise;
      seen.push('one ends');
    });
    const two = queue.run('a', async () => void seen.push('two'));
    const three = queue.run('a', async () => void seen.push('three'));
    first.resolve();
    await Promise.all([one, two, three]);
    expect(seen).to.deep.equal(['one begins', 'one ends', 'two', 'three']);
  });

  it('runs tasks of different keys side by side', async () => {
    const queue = createStreamQueue();
    const never = deferred();
    void queue.run('a', () => never.promise);
    expect(await queue.run('b', async () => 'done')).to.equal('done');
    never.resolve();
    await queue.idle();
  });

  it('goes on after a task that failed, and hands its error to its own caller only', async () => {
    const queue = createStreamQueue();
    const failing = queue.run('a', () => Promise.reject(new Error('broken')));
    const next = queue.run('a', async () => 'fine');
    const error: unknown = await failing.catch((caught: unknown) => caught);
    expect(error).to.be.instanceOf(Error);
    expect(await next).to.equal('fine');
  });

  it('is idle when nothing runs or waits, also what was added meanwhile', async () => {
    const queue = createStreamQueue();
    await queue.idle();
    const seen: string[] = [];
    const gate = deferred();
    void queue.run('a', async () => {
      await gate.promise;
      void queue.run('b', async () => void seen.push('added'));
    });
    const idle = queue.idle();
    gate.resolve();
    await idle;
    expect(seen).to.deep.equal(['added']);
  });
});

describe('document version', () => {
  it('is the number of appends that changed the document, minus one', () => {
    const append = fc.array(fc.boolean(), { minLength: 1, maxLength: 4 });
    check(
      fc.property(fc.array(append, { maxLength: 20 }), (appends) => {
        let folded = NO_VERSION;
        for (const [index, events] of appends.entries())
          for (const changesDocument of events)
            folded = countVersion(folded, `command ${index}`, { changesDocument });
        expect(folded.version).to.equal(appends.filter((events) => events.includes(true)).length - 1);
      }),
    );
  });
  it('counts from 0 again where a document begins, whatever came before it', () => {
    const append = fc.array(fc.boolean(), { minLength: 1, maxLength: 4 });
    check(
      fc.property(fc.array(append, { maxLength: 9 }), fc.array(append, { maxLength: 9 }), (before, after) => {
        let folded = NO_VERSION;
        const fold = (command: string, events: readonly boolean[]): void => {
          for (const changesDocument of events) folded = countVersion(folded, command, { changesDocument });
        };
        for (const [index, events] of before.entries()) fold(`before ${index}`, events);
        folded = countVersion(folded, 'create', { begins: true });
        fold('create', [true, false]);
        expect(folded.version).to.equal(0);
        for (const [index, events] of after.entries()) fold(`after ${index}`, events);
        expect(folded.version).to.equal(after.filter((events) => events.includes(true)).length);
      }),
    );
  });
});
