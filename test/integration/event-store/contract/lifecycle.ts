import { expect } from 'chai';
import {
  OutcomeUnknown,
  StoreUnavailable,
  WrongExpectedRevision,
  type Appended,
  type EventStore,
} from '../../../../src/app/log/event-store.ts';
import {
  all,
  errorOf,
  event,
  follow,
  numbered,
  numberOf,
  within,
  type Contract,
  type Fault,
  type StoreUnderTest,
} from './fixture.ts';

const untilItWorks = async <T>(what: string, attempt: () => Promise<T>): Promise<T> => {
  const end = performance.now() + 10_000;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > end) throw new Error(`${what} did not work again`, { cause: error });
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
};

export const lifecycleContract = ({ store, underTest, stream, type }: Contract): void => {
  describe('identity and health', () => {
    it('names itself and answers a ping', async () => {
      expect(store().storeId).to.be.a('string').and.not.equal('');
      await store().ping();
    });
  });

  describe('close', () => {
    const operations: Record<string, (closed: EventStore) => Promise<unknown>> = {
      append: (closed) => closed.append(stream('closed'), 'no_stream', [event(type('Late'))]),
      readStream: (closed) => all(closed.readStream(stream('closed'))),
      readAll: (closed) => all(closed.readAll({ limit: 1 })),
      subscribe: (closed) => all(closed.subscribe({ signal: new AbortController().signal })),
      currentRevision: (closed) => closed.currentRevision(stream('closed')),
      lastPosition: (closed) => closed.lastPosition(),
      setMaxCount: (closed) => closed.setMaxCount(`sys-${stream('closed')}`, 1),
      ping: (closed) => closed.ping(),
    };
    it('refuses every later call as closed, and may be called twice', async () => {
      await store().close();
      await store().close();
      for (const [name, operation] of Object.entries(operations)) {
        const error = await errorOf(within(5000, name, operation(store())));
        expect(error, name).to.be.instanceOf(StoreUnavailable);
        expect(error, name).to.have.property('reason', 'closed');
      }
    });

    it('answers the appends that were under way', async () => {
      const appends = Array.from({ length: 10 }, (_, n) =>
        store().append(stream(String(n)), 'no_stream', [event(type('Last'))]),
      );
      const closed = store().close();
      const outcomes = await within(10_000, 'appends at close', Promise.allSettled(appends));
      await closed;
      for (const outcome of outcomes) {
        if (outcome.status === 'rejected') {
          const known =
            outcome.reason instanceof StoreUnavailable || outcome.reason instanceof OutcomeUnknown;
          expect(known, String(outcome.reason)).to.equal(true);
        } else expect(outcome.value).to.include({ revision: 0, duplicate: false });
      }
      // A log that goes with its store has nothing to compare the answers with.
      const again = await underTest().reopen?.();
      if (again === undefined) return;
      for (const [n, outcome] of outcomes.entries()) {
        const stored = await again.currentRevision(stream(String(n)));
        if (outcome.status === 'fulfilled') expect(stored, `answered: ${n}`).to.equal(0);
        else if (outcome.reason instanceof StoreUnavailable)
          expect(stored, `refused: ${n}`).to.equal('no_stream');
      }
    });

    it('ends an open subscription as closed', async () => {
      const mark = await store().append(stream('mark'), 'no_stream', [event(type('Mark'))]);
      const follower = follow(store(), { after: mark.position });
      await follower.untilCaughtUp();
      await store().close();
      const error = await within(5000, 'the end of the subscription', follower.ended);
      expect(error).to.be.instanceOf(StoreUnavailable);
      expect(error).to.have.property('reason', 'closed');
    });
  });
};

/** Faults and restarts. A test is there when the adapter says that it can play its fault. */
export const faultContract = (
  { store, underTest, stream, type }: Contract,
  faults: readonly Fault[],
): void => {
  const play = <F extends Fault>(fault: F): NonNullable<StoreUnderTest[F]> => {
    const found = underTest()[fault];
    if (found === undefined) throw new Error(`the fixture declares ${fault} but does not offer it`);
    return found;
  };

  if (faults.includes('reopen'))
    it('keeps id, events, revisions and limits over a restart', async () => {
      const id = store().storeId;
      const events = numbered(type('Kept'), 3);
      const first = await store().append(stream('kept'), 'no_stream', events);
      const sys = `sys-${stream('kept')}`;
      await store().setMaxCount(sys, 1);
      const again = await play('reopen')();
      expect(again.storeId).to.equal(id);
      expect((await all(again.readStream(stream('kept')))).map(numberOf)).to.deep.equal([0, 1, 2]);
      expect(await again.append(stream('kept'), 'no_stream', events)).to.deep.equal({
        ...first,
        duplicate: true,
      });
      const conflict = await errorOf(again.append(stream('kept'), 0, [event(type('Late'))]));
      expect(conflict).to.be.instanceOf(WrongExpectedRevision);
      const next = await again.append(stream('kept'), 2, [event(type('Next'))]);
      expect(next.position > first.position).to.equal(true);
      await again.append(sys, 'no_stream', numbered(type('Held'), 2));
      expect((await all(again.readStream(sys))).map(numberOf)).to.deep.equal([1]);
    });

  if (faults.includes('dropConnections'))
    it('resumes a subscription by itself after a drop, without loss or repetition', async () => {
      const events = numbered(type('Dropped'), 30);
      const mark = await store().append(stream('mark'), 'no_stream', [event(type('Mark'))]);
      const filter = { streamPrefixes: [stream('dropped')] };
      const follower = follow(store(), { after: mark.position, filter });
      const append = (n: number) =>
        untilItWorks('append', () =>
          store().append(stream('dropped'), n === 0 ? 'no_stream' : n - 1, [
            events[n] ?? event(type('None')),
          ]),
        );
      for (let n = 0; n < 30; n += 1) {
        await append(n);
        if (n === 4 || n === 15) await play('dropConnections')();
      }
      expect((await follower.untilEvents(30)).map(numberOf)).to.deep.equal(events.map((_, n) => n));
      await follower.stop();
    });

  if (faults.includes('unresponsive'))
    it('reports an unknown outcome at the deadline; the repeated append stores it once', async () => {
      const given = [event(type('Unsure'))];
      const restore = await play('unresponsive')();
      const started = performance.now();
      const call = store().append(stream('unsure'), 'no_stream', given, { deadlineMs: 300 });
      const error = await errorOf(within(5000, 'the deadline', call));
      expect(error).to.be.instanceOf(OutcomeUnknown);
      expect(error).to.have.property('stream', stream('unsure'));
      expect(performance.now() - started).to.be.at.least(290);
      await restore();
      const settled = await untilItWorks('append', () =>
        store().append(stream('unsure'), 'no_stream', given),
      );
      expect(settled.revision).to.equal(0);
      expect((await all(store().readStream(stream('unsure')))).map((e) => e.id)).to.deep.equal([
        given[0]?.id,
      ]);
    });

  if (faults.includes('unresponsive'))
    it('reports an unknown outcome when a sent append is aborted', async () => {
      const restore = await play('unresponsive')();
      const controller = new AbortController();
      const reason = new Error('the caller went away');
      const call = store().append(stream('gone'), 'no_stream', [event(type('Unsure'))], {
        signal: controller.signal,
      });
      await within(5000, 'sending', underTest().sent?.() ?? Promise.reject(new Error('sent is not offered')));
      controller.abort(reason);
      const error = await errorOf(within(5000, 'the abort', call));
      expect(error).to.be.instanceOf(OutcomeUnknown);
      expect(error).to.have.property('cause', reason);
      await restore();
    });

  if (faults.includes('loseNextAnswer'))
    it('settles an append whose answer was lost: stored once', async () => {
      const given = numbered(type('Answerless'), 2);
      await play('loseNextAnswer')();
      const attempt = (): Promise<Appended> =>
        store().append(stream('lost'), 'no_stream', given, { deadlineMs: 1000 });
      const first = await within(
        10_000,
        'the lost answer',
        attempt().catch((error: unknown) => error),
      );
      // The adapter may settle it by itself, and then says that its second try stored nothing.
      if (first instanceof Error) expect(first).to.be.instanceOf(OutcomeUnknown);
      else expect(first).to.include({ revision: 1, duplicate: true });
      expect(await untilItWorks('append', attempt)).to.include({ revision: 1, duplicate: true });
      expect((await all(store().readStream(stream('lost')))).map(numberOf)).to.deep.equal([0, 1]);
    });

  if (faults.includes('down'))
    it('says so when it cannot be reached, stores nothing, and recovers by itself', async () => {
      const restore = await play('down')();
      const refused = await errorOf(
        within(15_000, 'append', store().append(stream('down'), 'no_stream', [event(type('Refused'))])),
      );
      expect(refused).to.be.instanceOf(StoreUnavailable);
      expect(refused).to.have.property('reason', 'down');
      expect(refused).to.have.property('retryAfterMs').that.is.greaterThan(0);
      expect(await errorOf(within(15_000, 'ping', store().ping()))).to.be.instanceOf(StoreUnavailable);
      await restore();
      await untilItWorks('ping', () => store().ping());
      const stored = await untilItWorks('append', () =>
        store().append(stream('down'), 'no_stream', [event(type('Accepted'))]),
      );
      expect(stored.revision).to.equal(0);
      expect((await all(store().readStream(stream('down')))).map((e) => e.type)).to.deep.equal([
        type('Accepted'),
      ]);
    });
};
