import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { openRunIndex, type RunIndex, type RunRow } from '../../../src/app/process-runner/run-index.ts';

const ANCHOR = { position: '0007', id: 'e7' };

const row = (key: string, more: Partial<RunRow> = {}): RunRow => ({
  key,
  workflow: 'toyRun',
  runId: key,
  revision: 0,
  subjectRevision: 2,
  closed: false,
  work: false,
  memory: '{}',
  ...more,
});

describe('index of runs', () => {
  const open: RunIndex[] = [];
  const memory = (): RunIndex => {
    const index = openRunIndex(':memory:', 'x');
    open.push(index);
    return index;
  };
  afterEach(() => {
    for (const index of open.splice(0)) index.close();
  });

  it('keeps runs and counts the open and the closed ones', () => {
    const index = memory();
    index.save(row('a', { work: true }));
    index.save(row('b'));
    index.save(row('a', { revision: 4, closed: true, memory: '' }));
    expect(index.load('a')).to.deep.equal(row('a', { revision: 4, closed: true, memory: '' }));
    expect(index.revisionsOf('a')).to.include({ revision: 4, subjectRevision: 2 });
    expect(index.revisionsOf('c')).to.equal(undefined);
    expect(index.load('c')).to.equal(undefined);
    expect(index.counts()).to.deep.equal({ open: 1, closed: 1 });
  });

  it('finds runs with outstanding work page by page', () => {
    const index = memory();
    for (const key of ['a', 'b', 'c', 'd']) index.save(row(key, { work: key !== 'b' }));
    expect(index.withWork('', 2)).to.deep.equal(['a', 'c']);
    expect(index.withWork('c', 2)).to.deep.equal(['d']);
  });

  it('keeps the monotonic time of an alarm that stays, and replaces one whose time changed', () => {
    const index = memory();
    index.setAlarms('a', [{ key: 't:x', due: 1000, dueMono: 10 }]);
    index.setAlarms('a', [{ key: 't:x', due: 1000, dueMono: 99 }]);
    expect(index.nextAlarm()).to.equal(10);
    index.setAlarms('a', [{ key: 't:x', due: 2000, dueMono: 50 }]);
    expect(index.nextAlarm()).to.equal(50);
    index.setAlarms('a', []);
    expect(index.nextAlarm()).to.equal(undefined);
  });

  it('fires due alarms in order of their time, a bounded number at once', () => {
    const index = memory();
    index.setAlarms('a', [{ key: 't:x', due: 0, dueMono: 30 }]);
    index.setAlarms('b', [{ key: 't:x', due: 0, dueMono: 10 }]);
    index.setAlarms('c', [{ key: 't:x', due: 0, dueMono: 20 }]);
    index.setAlarms('d', [{ key: 't:x', due: 0, dueMono: 31 }]);
    expect(index.countDue(30)).to.equal(3);
    expect(index.takeDue(30, 2).map(({ run }) => run)).to.deep.equal(['b', 'c']);
    expect(index.takeDue(30, 2).map(({ run }) => run)).to.deep.equal(['a']);
    expect(index.takeDue(30, 2)).to.deep.equal([]);
  });

  it('fires a timer that its run keeps again, but less and less often', () => {
    const index = memory();
    index.setAlarms('a', [{ key: 't:x', due: 0, dueMono: 0 }]);
    const fired: number[] = [];
    for (let now = 0; now <= 200_000; now += 500) {
      if (index.takeDue(now, 10).length > 0) fired.push(now);
    }
    const gaps = fired.slice(1).map((at, i) => at - (fired[i] ?? 0));
    expect(gaps).to.deep.equal([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
  });

  it('wakes a timer of every run that keeps it; its own time still stands', () => {
    const index = memory();
    index.setAlarms('a', [{ key: 't:x', due: 0, dueMono: 5000 }]);
    index.setAlarms('b', [{ key: 't:y', due: 0, dueMono: 5000 }]);
    expect(index.wake('t:x', 100, 10)).to.equal(1);
    expect(index.takeDue(100, 10)).to.deep.equal([{ run: 'a', key: 't:x' }]);
    expect(index.takeDue(4999, 10)).to.deep.equal([]);
    expect(index.takeDue(5000, 10)).to.have.length(2);
  });

  it('wakes a bounded number, the first ones, and others with the next news', () => {
    const index = memory();
    for (const run of ['c', 'a', 'd', 'b', 'e'])
      index.setAlarms(run, [{ key: 't:x', due: 0, dueMono: 5000 }]);
    expect(index.wake('t:x', 100, 2)).to.equal(2);
    expect(index.wake('t:x', 100, 2), 'those that are awake already count no more').to.equal(2);
    expect(index.takeDue(100, 10).map(({ run }) => run)).to.have.members(['a', 'b', 'c', 'd']);
    expect(index.wake('t:x', 200, 2), 'awake again, for their own time still stands').to.equal(2);
    expect(index.takeDue(200, 10).map(({ run }) => run)).to.deep.equal(['a', 'b']);
  });

  it('wakes the oldest runs first, whatever they are called and however often they asked', () => {
    const index = memory();
    const runs = ['c', 'a', 'd', 'b'];
    for (const key of runs) index.save(row(key));
    const ask = (run: string, due: number) => index.setAlarms(run, [{ key: 't:x', due, dueMono: due }]);
    for (const run of runs.toReversed()) ask(run, 5_000);
    index.save(row('c', { revision: 7 }));
    index.setAlarms('c', []);
    ask('c', 9_000);
    index.wake('t:x', 100, 2);
    expect(
      index
        .takeDue(100, 10)
        .map(({ run }) => run)
        .toSorted(),
    ).to.deep.equal(['a', 'c']);
  });

  it('lets the wall clock count after a restart, a bounded number of alarms at once', () => {
    const index = memory();
    const runs = ['a', 'b', 'c', 'd', 'e'];
    for (const run of runs) index.setAlarms(run, [{ key: 't:x', due: 1_000_000, dueMono: 1 }]);
    let slices = 1;
    while (index.reanchor(999_000, 2, 1_000)) slices += 1;
    expect(slices).to.equal(3);
    expect(runs.map((run) => index.alarmsOf(run)[0]?.dueMono)).to.deep.equal(runs.map(() => 1000));
  });

  it('lets the wall clock count after a restart, also for what was woken or fired', () => {
    const index = memory();
    index.setAlarms('a', [{ key: 't:x', due: 1_000_000, dueMono: 1 }]);
    expect(index.reanchor(999_000, 10, 1_000)).to.equal(false);
    expect(index.nextAlarm()).to.equal(1000);
  });

  it('lets an alarm sleep until the next start, and rings it within ten seconds then', () => {
    const index = memory();
    index.setAlarms('a', [{ key: 'r:x', due: 1_000_000, dueMono: Infinity }]);
    expect(index.takeDue(Number.MAX_SAFE_INTEGER, 10)).to.deep.equal([]);
    expect(index.countDue(Number.MAX_SAFE_INTEGER)).to.equal(0);
    expect(index.nextAlarm()).to.equal(Infinity);
    expect(index.reanchor(2_000_000, 10, 500)).to.equal(false);
    expect(index.nextAlarm()).to.be.within(500, 10_500);
    expect(index.reanchor(2_000_000, 10, 500)).to.equal(false);
  });

  it('sends an alarm to sleep and wakes it, also where it stays due at the same time', () => {
    const index = memory();
    const at = (dueMono: number) => index.setAlarms('a', [{ key: 'r:x', due: 1_000_000, dueMono }]);
    at(10);
    at(Infinity);
    expect(index.nextAlarm()).to.equal(Infinity);
    at(20);
    expect(index.nextAlarm()).to.equal(20);
  });

  it('keeps why a run is parked', () => {
    const index = memory();
    index.park('a', 'first');
    index.park('a', 'second');
    expect(index.parked()).to.deep.equal([{ run: 'a', error: 'second' }]);
    index.unpark('a');
    expect(index.parked()).to.deep.equal([]);
  });

  describe('in a file', () => {
    let folder = '';
    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'run-index-'));
    });
    afterEach(() => rmSync(folder, { recursive: true }));

    it('counts open and closed runs without looking at them, and keeps the counts with what it commits', () => {
      const file = join(folder, 'counts.sqlite');
      const first = openRunIndex(file, 'one');
      for (const key of ['a', 'b', 'c']) first.save(row(key));
      first.save(row('a', { closed: true, memory: '' }));
      first.commit();
      first.save(row('d'));
      expect(first.counts()).to.deep.equal({ open: 3, closed: 1 });
      first.close();
      const second = openRunIndex(file, 'one');
      open.push(second);
      expect(second.counts(), 'what was not committed is lost').to.deep.equal({ open: 2, closed: 1 });
    });

    it('survives when it was committed, and starts anew for another store or workflow', () => {
      const file = join(folder, 'x.sqlite');
      const first = openRunIndex(file, 'one');
      first.save(row('a'));
      first.setAnchor(ANCHOR);
      first.commit();
      first.close();
      const second = openRunIndex(file, 'one');
      expect(second.anchor()).to.deep.equal(ANCHOR);
      expect(second.counts()).to.deep.equal({ open: 1, closed: 0 });
      second.close();
      const third = openRunIndex(file, 'two');
      expect(third.anchor()).to.equal(undefined);
      expect(third.counts()).to.deep.equal({ open: 0, closed: 0 });
      third.close();
    });

    it('holds nothing that was not committed', () => {
      const file = join(folder, 'x.sqlite');
      const first = openRunIndex(file, 'one');
      first.setAnchor(ANCHOR);
      const other = openRunIndex(file, 'one');
      expect(other.anchor()).to.equal(undefined);
      other.close();
      first.close();
    });
  });
});
