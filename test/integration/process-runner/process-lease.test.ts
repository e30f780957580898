import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import type { Lease } from '../../../src/app/deployment/ownership.ts';
import {
  OutcomeUnknown,
  StoreUnavailable,
  type EventStore,
  type RecordedEvent,
} from '../../../src/app/log/event-store.ts';
import type { LeaseData } from '../../../src/domain/bookkeeping/events.ts';
import { manualTime } from '../../support/manual-time.ts';
import { silentLogger } from '../../support/loggers.ts';
import { cases, checkAsync } from '../../support/property.ts';

const TTL = 15_000;
const LOOK = TTL / 15;
const ROLES = ['processes', 'publisher', 'auditor'] as const;

/** All that is ever written: trimmed streams would hide what happened. */
const wholeLog = (): EventStore => {
  const store = createMemoryEventStore({ singleWriter: false });
  return { ...store, setMaxCount: async () => undefined };
};
const eventsOf = async (store: EventStore): Promise<readonly RecordedEvent[]> => {
  const events: RecordedEvent[] = [];
  for await (const event of store.readAll({ limit: Infinity })) events.push(event);
  return events;
};

type MemberOptions = { readonly directory?: string; readonly roles?: readonly string[] };

/** A process that wants the roles, with a clock of its own: one that is paused does not notice it. */
const member = (log: EventStore, instance: string, options: MemberOptions = {}) => {
  const { directory = `of-${instance}`, roles = ROLES } = options;
  const time = manualTime();
  const line = { cut: false, losesAnswers: false };
  const store: EventStore = {
    ...log,
    append: async (...args) => {
      if (line.cut) throw new StoreUnavailable('cut off');
      const appended = await log.append(...args);
      if (line.losesAnswers) throw new OutcomeUnknown(args[0]);
      return appended;
    },
  };
  const leases = createLeases({
    store,
    instance,
    directory,
    clock: time.clock,
    timers: time.timers,
    logger: silentLogger,
    ttlMs: TTL,
  });
  const held = new Map<string, Lease>();
  const holding = roles.map((role) => {
    const stop = new AbortController();
    const ended = leases(role).hold(stop.signal, async (lease) => {
      held.set(role, lease);
      await new Promise<void>((resolve) => {
        if (lease.signal.aborted) resolve();
        else lease.signal.addEventListener('abort', () => resolve(), { once: true });
      });
    });
    return { role, stop, ended };
  });
  const owns = (role: string): boolean => {
    const lease = held.get(role);
    return lease !== undefined && !lease.signal.aborted && lease.isHeld?.() === true;
  };
  return {
    instance,
    directory,
    line,
    time,
    owns,
    owned: () => roles.filter(owns),
    epochOf: (role: string) => held.get(role)?.epoch,
    giveUp: async (...given: readonly string[]): Promise<void> => {
      const chosen = holding.filter(({ role }) => given.length === 0 || given.includes(role));
      for (const { stop } of chosen) stop.abort();
      await Promise.all(chosen.map(({ ended }) => ended));
    },
  };
};
type Member = ReturnType<typeof member>;

/** All clocks run, a look at a time. */
const pass = async (members: readonly Member[], ms: number): Promise<void> => {
  for (let passed = 0; passed < ms; passed += LOOK)
    for (const { time } of members) await time.pass(Math.min(LOOK, ms - passed));
};
const msUntil = async (members: readonly Member[], holds: () => boolean): Promise<number> => {
  for (let passed = 0; passed <= 4 * TTL; passed += LOOK) {
    if (holds()) return passed;
    await pass(members, LOOK);
  }
  throw new Error('not within four times the time of a lease');
};

describe('the lease of a process', () => {
  it('is all that is renewed, whatever the process owns', async () => {
    const log = wholeLog();
    const [first, second] = [member(log, 'a'), member(log, 'b')];
    await pass([first, second], TTL);
    expect([first.owned(), second.owned()]).to.deep.equal([ROLES, []]);
    const before = (await eventsOf(log)).length;
    await pass([first, second], 10 * TTL);
    const later = (await eventsOf(log)).slice(before);
    expect(new Set(later.map(({ type, stream }) => `${type} ${stream.slice(0, 12)}`))).to.deep.equal(
      new Set(['LeaseRenewed sys-process-']),
    );
    expect(new Set(later.map(({ stream }) => stream)).size).to.equal(1);
    expect(later.length, 'three in the time of a lease').to.be.within(29, 31);
    await Promise.all([first.giveUp(), second.giveUp()]);
  });

  it('ends with silence: all that it held goes over within a second of its time', async () => {
    const log = wholeLog();
    const [first, second] = [member(log, 'a'), member(log, 'b')];
    await pass([first, second], 2 * TTL);
    first.line.cut = true;
    const lostAt = await msUntil([first, second], () => first.owned().length === 0);
    expect(second.owned()).to.deep.equal([]);
    const moreMs = await msUntil([first, second], () => second.owned().length === ROLES.length);
    expect(lostAt).to.be.at.most(TTL);
    expect(lostAt + moreMs).to.be.at.most(1.2 * TTL + 2 * LOOK);
    first.line.cut = false;
    await pass([first, second], 2 * TTL);
    expect([first.owned(), second.owned()]).to.deep.equal([[], ROLES]);
    await Promise.all([first.giveUp(), second.giveUp()]);
  });

  it('stays while one of its roles is given up, which then goes over at once', async () => {
    const log = wholeLog();
    const [first, second] = [member(log, 'a'), member(log, 'b')];
    await pass([first, second], TTL);
    await first.giveUp('publisher');
    expect(await msUntil([first, second], () => second.owns('publisher'))).to.be.at.most(2 * LOOK);
    await pass([first, second], 4 * TTL);
    expect(first.owned()).to.deep.equal(['processes', 'auditor']);
    expect(second.owned()).to.deep.equal(['publisher']);
    expect(second.epochOf('publisher')).to.equal(2);
    await Promise.all([first.giveUp(), second.giveUp()]);
  });

  it('is not renewed by a process that was paused while another one took over', async () => {
    const log = wholeLog();
    const [first, second] = [member(log, 'a'), member(log, 'b')];
    await pass([first, second], TTL);
    await pass([second], 2 * TTL);
    expect(second.owned()).to.deep.equal(ROLES);
    expect(first.owned(), 'by its own clock, which stood still').to.deep.equal(ROLES);
    await pass([first, second], TTL / 3);
    expect([first.owned(), second.owned()]).to.deep.equal([[], ROLES]);
    await pass([first, second], 4 * TTL);
    expect([first.owned(), second.owned()]).to.deep.equal([[], ROLES]);
    const ofFirst = (await eventsOf(log)).filter(({ data }) => data['holder'] === 'a');
    expect(ofFirst.filter(({ type }) => type === 'LeaseExpired')).to.have.length(1);
    expect(ofFirst.at(-1)?.type).to.equal('LeaseExpired');
    await Promise.all([first.giveUp(), second.giveUp()]);
  });

  it('belongs to one of two processes that have the same name, on one directory or on two', async () => {
    for (const directory of ['one', 'two']) {
      const log = wholeLog();
      const first = member(log, 'same', { directory: 'one' });
      await pass([first], LOOK);
      const second = member(log, 'same', { directory });
      await pass([first, second], 4 * TTL);
      const owners = [first.owned(), second.owned()];
      expect(owners, directory).to.deep.equal(directory === 'one' ? [[], ROLES] : [ROLES, []]);
      const before = (await eventsOf(log)).length;
      await pass([first, second], 4 * TTL);
      const later = (await eventsOf(log)).slice(before);
      expect(new Set(later.map(({ type }) => type)), directory).to.deep.equal(new Set(['LeaseRenewed']));
      await Promise.all([first.giveUp(), second.giveUp()]);
    }
  });
});

type Step =
  | { readonly kind: 'pass'; readonly looks: number }
  | {
      readonly kind: 'cut' | 'heal' | 'lose' | 'answer' | 'kill' | 'restart' | 'pause' | 'wake';
      readonly who: number;
    };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('pass' as const), looks: fc.constantFrom(1, 4, 12, 20) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom('cut', 'heal', 'lose', 'answer', 'kill', 'restart', 'pause', 'wake'),
        who: fc.nat(3),
      }),
    },
  ),
  { minLength: 2, maxLength: 16 },
);

/** Of each stream of leases what it showed after each event; throws where somebody took what another one still held. */
const checkLog = (events: readonly RecordedEvent[]): void => {
  const shown = new Map<string, { readonly type: string; readonly data: LeaseData }>();
  for (const { stream, type, data: plain, revision } of events) {
    const data = plain as unknown as LeaseData;
    const before = shown.get(stream);
    const at = `${stream}@${revision} ${type}`;
    if (type === 'LeaseTaken') {
      expect(data.epoch, at).to.equal((before?.data.epoch ?? 0) + 1);
      const ground = before?.data.process;
      const its = ground === undefined ? undefined : shown.get(ground.stream);
      const isHeld =
        before?.type === 'LeaseTaken' &&
        ground?.stream !== data.process?.stream &&
        its?.data.epoch === ground?.epoch &&
        (its?.type === 'LeaseTaken' || its?.type === 'LeaseRenewed');
      expect(isHeld && stream.startsWith('sys-lease-'), `${at}, of a holder who was there`).to.equal(false);
    } else {
      expect(data.epoch, at).to.equal(before?.data.epoch);
      expect(data.holder, at).to.equal(before?.data.holder);
      expect(before?.type, `${at}, after the end`).to.be.oneOf(['LeaseTaken', 'LeaseRenewed']);
    }
    shown.set(stream, { type, data });
  }
};

describe('leases of several processes in any weather', function () {
  this.timeout(120_000);
  it('are taken only from those who are gone, are held by one at a time, and by one in the end', () =>
    checkAsync(
      fc.asyncProperty(steps, async (weather) => {
        const log = wholeLog();
        let born = 0;
        const start = (directory: string): Member => {
          born += 1;
          return member(log, `process-${born}`, { directory });
        };
        // The last is a clone of the one before it.
        const members = [start('one'), start('two'), start('three'), start('three')];
        const dead: Member[] = [];
        const paused = new Set<Member>();
        /** By whose clock nothing can be said: it stood still, or its directory has another process. */
        const odd = new Set<Member>(members.slice(2));
        const passOne = async (looks: number): Promise<void> => {
          for (let n = 0; n < looks; n += 1) {
            await pass(
              members.filter((each) => !paused.has(each)),
              LOOK,
            );
            for (const role of ROLES) {
              const owners = members.filter((each) => !odd.has(each) && each.owns(role));
              expect(owners.length, `owners of ${role}`).to.be.at.most(1);
            }
          }
        };
        const replace = (who: number, old: Member): void => {
          paused.delete(old);
          dead.push(old);
          members[who] = start(old.directory);
          if (odd.has(old)) odd.add(members[who]);
        };
        for (const step of weather) {
          if (step.kind === 'pass') {
            await passOne(step.looks);
            continue;
          }
          const each = members[step.who] as Member;
          if (step.kind === 'cut' || step.kind === 'heal') each.line.cut = step.kind === 'cut';
          else if (step.kind === 'lose' || step.kind === 'answer')
            each.line.losesAnswers = step.kind === 'lose';
          else if (step.kind === 'wake') paused.delete(each);
          else if (step.kind === 'pause') {
            paused.add(each);
            odd.add(each);
          } else {
            each.line.cut ||= step.kind === 'kill';
            await each.giveUp();
            replace(step.who, each);
          }
        }
        paused.clear();
        for (const { line } of members) Object.assign(line, { cut: false, losesAnswers: false });
        await pass(members, 6 * TTL);
        for (const role of ROLES)
          expect(members.filter((each) => each.owns(role)).length, `owners of ${role}`).to.equal(1);
        const before = (await eventsOf(log)).length;
        await pass(members, 2 * TTL);
        const later = (await eventsOf(log)).slice(before);
        expect(new Set(later.map(({ type }) => type))).to.deep.equal(new Set(['LeaseRenewed']));
        const owners = members.filter((each) => each.owned().length > 0).length;
        expect(later.length, 'renewals').to.be.at.most(owners * 7);
        checkLog(await eventsOf(log));
        await Promise.all(members.map((each) => each.giveUp()));
      }),
      { numRuns: cases(60) },
    ));
});
