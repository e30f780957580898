import { expect } from 'chai';
import fc from 'fast-check';
import { StoreUnavailable } from '../../../src/app/log/event-store.ts';
import type { Timers } from '../../../src/app/ports.ts';
import type { LogReader } from '../../../src/projections/log-reader.ts';
import {
  changed,
  createTestLog,
  deletionRequested,
  linked,
  marked,
  poisoned,
  removed,
  touched,
  written,
} from '../../support/projections/log.ts';
import { openNotes, settle, temporaryFolders } from '../../support/projections/open-notes.ts';
import { cases, checkAsync } from '../../support/property.ts';
import { eventually } from '../../support/eventually.ts';

const EVERYONE = { all: true } as const;

describe('projection runner', function () {
  this.timeout(60_000);
  const folders = temporaryFolders();
  afterEach(() => folders.clean());

  it('gives the same digest however the history was applied', async () => {
    const step = fc.record({
      stream: fc.constantFrom('note-a', 'note-b', 'memo-a', 'counter-x', 'other-y'),
      tenant: fc.constantFrom('t1', 't2'),
      pause: fc.boolean(),
      days: fc.constantFrom(0, 0, 3, 40),
      events: fc.array(
        fc.constantFrom('write', 'change', 'mark', 'link', 'touch', 'ask', 'remove', 'poison'),
        { minLength: 1, maxLength: 4 },
      ),
    });
    const eventOf = { write: written, change: changed, mark: marked, link: linked } as const;
    const make = (name: string, { stream, tenant }: { stream: string; tenant: string }) => {
      switch (name) {
        case 'write':
          return written(stream.slice(-1), { tenant });
        case 'touch':
          return touched;
        case 'ask':
          return deletionRequested;
        case 'remove':
          return removed;
        case 'poison':
          return poisoned();
        default:
          return eventOf[name as 'change' | 'mark' | 'link'](tenant);
      }
    };
    await checkAsync(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), fc.boolean(), async (steps, poison) => {
        const log = createTestLog();
        const live = await openNotes(log, { poison: () => poison });
        for (const { pause, days, ...rest } of steps) {
          log.passDays(days);
          await log.append(rest.stream, ...rest.events.map((name) => make(name, rest)));
          if (pause) await settle(live, log);
        }
        await settle(live, log);
        const digest = await live.digest('resources');

        const clean = await openNotes(log, { poison: () => poison });
        await settle(clean, log);
        expect(await clean.digest('resources')).to.deep.equal(digest);
        expect(clean.status()[0]?.parkedStreams).to.deep.equal(live.status()[0]?.parkedStreams);

        expect((await live.rebuild('resources')).outcome).to.equal('switched');
        expect(await live.digest('resources')).to.deep.equal(digest);
        await clean.close();
        await live.close();
      }),
      { numRuns: cases(120) },
    );
  });

  it('waits for a position for as long as it is told, no longer', async () => {
    const log = createTestLog();
    const models = await openNotes(log);
    const position = await log.append('note-a', written('a'));
    expect(await models.waitFor('resources', position, { timeoutMs: 5000 })).to.equal(true);
    expect(await models.waitFor('resources', '9999999999999999', { timeoutMs: 5 })).to.equal(false);
    const controller = new AbortController();
    const waiting = models.waitFor('resources', '9999999999999999', {
      timeoutMs: 60_000,
      signal: controller.signal,
    });
    controller.abort();
    expect(await waiting).to.equal(false);
    const other = await log.append('other-x', { type: 'Unseen', data: {} });
    expect(await models.waitFor('resources', other, { timeoutMs: 5000 }), 'filtered out').to.equal(true);
    await models.close();
    expect(await models.waitFor('resources', '9999999999999999', { timeoutMs: 60_000 })).to.equal(false);
  });

  it('numbers a kind anew when its rows may have changed, and no other', async () => {
    const log = createTestLog();
    const models = await openNotes(log);
    const numbers = (): number[] => ['note', 'memo'].map((kind) => models.resources.generation(kind));
    await log.append('note-a', written('a'));
    await settle(models, log);
    const [note = 0, memo = 0] = numbers();
    await log.append('note-b', written('b'));
    await settle(models, log);
    expect(numbers()).to.deep.equal([note + 1, memo]);
    await models.rebuild('resources');
    expect(models.resources.generation('note'), 'another file').to.be.greaterThan(note + 1);
    expect(models.resources.generation('memo'), 'another file').to.be.greaterThan(memo);
    await models.close();
  });

  it('refuses to name a view that is not there', async () => {
    const log = createTestLog();
    const models = await openNotes(log);
    expect(() => models.timeline).to.throw('unknown view timeline');
    await models.close();
  });

  it('is failed while the log cannot be read, tries again with growing pauses, and recovers', async () => {
    const log = createTestLog();
    await log.append('note-a', written('a'));
    let down = true;
    const reader: LogReader = {
      ...log.store,
      subscribe: async function* (options) {
        if (down) throw new StoreUnavailable('the log is away');
        yield* log.store.subscribe(options);
      },
    };
    const pauses: number[] = [];
    let again = (): void => {};
    const timers: Timers = {
      after: (ms, run) => {
        pauses.push(ms);
        again = run;
        return () => {};
      },
    };
    const models = await openNotes(log, { reader, timers });
    for (let failures = 1; failures <= 9; failures += 1) {
      await eventually('failed', () => pauses.length === failures);
      expect(models.status()[0]).to.deep.include({
        state: 'failed',
        error: 'the log is away',
        caughtUp: false,
      });
      if (failures === 9) down = false;
      again();
    }
    expect(pauses).to.deep.equal([200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000]);
    await eventually('recovered', () => models.status()[0]?.state === 'live');
    expect(models.resources.get('note', 'a', EVERYONE)?.id).to.equal('a');
    expect(models.status()[0]).not.to.have.property('error');
    await models.close();
  });

  it('says how far behind it is', async () => {
    const log = createTestLog();
    const dir = folders.make();
    await log.append('note-a', written('a'));
    const before = await openNotes(log, { dir });
    await settle(before, log);
    await before.close();

    await log.append('note-a', changed('recorded at 00:00:02'));
    const arrival = Promise.withResolvers<void>();
    const slow: LogReader = {
      ...log.store,
      subscribe: async function* (options) {
        for await (const item of log.store.subscribe(options)) {
          if (item.kind === 'caught-up') await arrival.promise;
          yield item;
        }
      },
    };
    const lags: number[] = [];
    const models = await openNotes(log, {
      dir,
      reader: slow,
      nowMs: () => Date.parse('2026-01-01T00:01:02.000Z'),
      hooks: { applied: ({ lagSeconds }) => lags.push(lagSeconds) },
    });
    expect(models.status()[0]).to.include({ lagSeconds: 61, caughtUp: false });
    await settle(models, log);
    expect(models.status()[0]).to.include({ lagSeconds: 60, caughtUp: false });
    arrival.resolve();
    await eventually('caught up', () => models.status()[0]?.caughtUp === true);
    expect(models.status()[0]).to.include({ lagSeconds: 0 });
    expect(lags).to.deep.equal([60, 0]);
    await models.close();
  });

  it('tries again to build a first copy, by itself and when it is told to', async () => {
    const log = createTestLog();
    await log.append('note-a', written('a'));
    let down = true;
    const reader: LogReader = {
      ...log.store,
      lastPosition: async () => {
        if (down) throw new StoreUnavailable('the log is away');
        return log.store.lastPosition();
      },
    };
    const scheduled = new Set<() => void>();
    const timers: Timers = {
      after: (_ms, run) => {
        scheduled.add(run);
        return () => scheduled.delete(run);
      },
    };
    const models = await openNotes(log, { dir: folders.make(), reader, timers });
    await eventually('failed', () => models.status()[0]?.state === 'failed');
    expect(models.resources.list('note', EVERYONE, { offset: 0, limit: 10 }).total).to.equal(0);
    const digest = await models.digest('resources').catch((error: Error) => error.message);
    expect(digest).to.equal('view resources is not built yet');

    const told = await models.rebuild('resources').catch((error: Error) => error.message);
    expect(told).to.equal('the log is away');
    expect(scheduled.size, 'one more try').to.equal(1);
    down = false;
    expect((await models.rebuild('resources')).outcome).to.equal('switched');
    expect(scheduled.size, 'no other try beside it').to.equal(0);
    expect(models.status()[0]?.state).to.equal('live');
    expect(models.resources.get('note', 'a', EVERYONE)?.id).to.equal('a');
    await models.close();
  });
});
