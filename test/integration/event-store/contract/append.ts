import { expect } from 'chai';
import {
  EventTooLarge,
  MAX_APPEND_BYTES,
  OutcomeUnknown,
  WrongExpectedRevision,
  type Appended,
  type ExpectedRevision,
} from '../../../../src/app/log/event-store.ts';
import { all, errorOf, event, numbered, numberOf, type Contract } from './fixture.ts';

const expectConflict = (error: unknown, expected: ExpectedRevision, actual: ExpectedRevision): void => {
  expect(error).to.be.instanceOf(WrongExpectedRevision);
  expect(error).to.include({ expected, actual });
};

export const appendContract = ({ store, stream, type }: Contract): void => {
  describe('append', () => {
    it('starts a stream at revision 0 and goes on from the last revision', async () => {
      const name = stream('one');
      const first = await store().append(name, 'no_stream', [event(type('Begun'))]);
      const second = await store().append(name, 0, [event(type('Continued'))]);
      expect(first).to.include({ revision: 0, duplicate: false });
      expect(second).to.include({ revision: 1, duplicate: false });
      expect(second.position > first.position, 'positions grow').to.equal(true);
      expect(second.position).to.match(/^\d+$/).and.to.have.lengthOf(first.position.length);
    });

    it('keeps everything that was given, and adds position, revision and time', async () => {
      const name = stream('full');
      const data = {
        text: 'Größe "1" \u{1F600} \u2028',
        deep: { list: [1, -0.5, null, true, ''] },
        big: '18446744073709551615',
      };
      const given = event(type('Kept'), data, { tenant: 'acme', schemaVersion: 1 });
      const appended = await store().append(name, 'no_stream', [given]);
      const [read] = await all(store().readStream(name));
      expect(read).to.include({ stream: name, revision: 0, id: given.id, type: given.type });
      expect(read?.data).to.deep.equal(data);
      expect(read?.metadata).to.include({ tenant: 'acme', schemaVersion: 1 });
      expect(read?.position).to.equal(appended.position);
      expect(new Date(read?.recordedAt ?? '').toISOString()).to.equal(read?.recordedAt);
    });

    it('stores several events in one append, all under the answer of the last', async () => {
      const name = stream('several');
      const appended = await store().append(name, 'no_stream', numbered(type('Counted'), 5));
      const read = await all(store().readStream(name));
      expect(appended.revision).to.equal(4);
      expect(read.map(numberOf)).to.deep.equal([0, 1, 2, 3, 4]);
      expect(read.map((e) => e.revision)).to.deep.equal([0, 1, 2, 3, 4]);
      expect(read.at(-1)?.position).to.equal(appended.position);
    });

    it('takes an empty list for the programming error that it is', async () => {
      expect(await errorOf(store().append(stream('empty'), 'no_stream', []))).to.be.instanceOf(TypeError);
    });

    describe('with a wrong expected revision', () => {
      const cases: { given: number; expected: ExpectedRevision; actual: ExpectedRevision }[] = [
        { given: 0, expected: 0, actual: 'no_stream' },
        { given: 2, expected: 'no_stream', actual: 1 },
        { given: 2, expected: 0, actual: 1 },
        { given: 2, expected: 7, actual: 1 },
      ];
      for (const { given, expected, actual } of cases) {
        it(`${expected} where the stream has ${given} events: refused with the actual one, ${actual}`, async () => {
          const name = stream('conflict');
          if (given > 0) await store().append(name, 'no_stream', numbered(type('Given'), given));
          const error = await errorOf(store().append(name, expected, numbered(type('Refused'), 2)));
          expectConflict(error, expected, actual);
          expect(await all(store().readStream(name))).to.have.lengthOf(given);
        });
      }
    });

    describe('repeated with the same ids at the same expected revision', () => {
      it('succeeds with the first revision and position and stores nothing', async () => {
        const name = stream('again');
        const events = numbered(type('Repeated'), 3);
        const first = await store().append(name, 'no_stream', events);
        const again = await store().append(name, 'no_stream', events);
        expect(again).to.deep.equal({ ...first, duplicate: true });
        expect(await all(store().readStream(name))).to.have.lengthOf(3);
      });

      it('succeeds also when the stream has moved on', async () => {
        const name = stream('later');
        await store().append(name, 'no_stream', numbered(type('Given'), 2));
        const events = numbered(type('Repeated'), 2);
        const first = await store().append(name, 1, events);
        await store().append(name, 3, numbered(type('MovedOn'), 2));
        expect(await store().append(name, 1, events)).to.deep.equal({ ...first, duplicate: true });
        expect(await all(store().readStream(name))).to.have.lengthOf(6);
      });

      it('is a conflict when the ids are only partly the same', async () => {
        const name = stream('partly');
        const events = numbered(type('First'), 2);
        await store().append(name, 'no_stream', events);
        const [same] = events;
        if (same === undefined) throw new Error('two events were made');
        const mixed = [same, event(type('Other'))];
        expectConflict(await errorOf(store().append(name, 'no_stream', mixed)), 'no_stream', 1);
        const longer = [...events, event(type('Other'))];
        expectConflict(await errorOf(store().append(name, 'no_stream', longer)), 'no_stream', 1);
        expect(await all(store().readStream(name))).to.have.lengthOf(2);
      });

      it('is a conflict when the same ids stand at another revision', async () => {
        const name = stream('elsewhere');
        const events = numbered(type('First'), 1);
        await store().append(name, 'no_stream', numbered(type('Given'), 1));
        await store().append(name, 0, events);
        expectConflict(await errorOf(store().append(name, 'no_stream', events)), 'no_stream', 1);
      });
    });

    describe('concurrently', () => {
      it('lets exactly one of many writers at the same revision win', async () => {
        const name = stream('race');
        await store().append(name, 'no_stream', [event(type('Given'))]);
        const outcomes = await Promise.allSettled(
          Array.from({ length: 20 }, (_, n) => store().append(name, 0, [event(type('Raced'), { n })])),
        );
        expect(outcomes.filter((o) => o.status === 'fulfilled')).to.have.lengthOf(1);
        for (const outcome of outcomes) {
          if (outcome.status === 'rejected') expectConflict(outcome.reason, 0, 1);
        }
        expect(await all(store().readStream(name))).to.have.lengthOf(2);
      });

      it('never takes neighbours down with a conflict', async () => {
        const conflicting = stream('conflicting');
        await store().append(conflicting, 'no_stream', [event(type('Given'))]);
        const appends: Promise<Appended>[] = [];
        const conflicts: Promise<unknown>[] = [];
        for (let n = 0; n < 30; n += 1) {
          appends.push(store().append(stream(`neighbour${n}`), 'no_stream', numbered(type('Stored'), 2)));
          conflicts.push(errorOf(store().append(conflicting, 'no_stream', [event(type('Refused'))])));
        }
        for (const error of await Promise.all(conflicts)) expectConflict(error, 'no_stream', 0);
        const stored = await Promise.all(appends);
        expect(stored.map((a) => a.revision)).to.deep.equal(stored.map(() => 1));
        expect(new Set(stored.map((a) => a.position))).to.have.property('size', 30);
        for (let n = 0; n < 30; n += 1)
          expect(await all(store().readStream(stream(`neighbour${n}`)))).to.have.lengthOf(2);
      });

      it('answers two simultaneous attempts of the same append as one', async () => {
        const name = stream('twins');
        const events = numbered(type('Once'), 2);
        const twins = await Promise.all([
          store().append(name, 'no_stream', events),
          store().append(name, 'no_stream', events),
        ]);
        expect(twins.map((a) => a.revision)).to.deep.equal([1, 1]);
        expect(twins[0].position).to.equal(twins[1].position);
        expect(twins.filter((a) => a.duplicate)).to.have.lengthOf(1);
        expect(await all(store().readStream(name))).to.have.lengthOf(2);
      });

      it('keeps the order in which one writer appended without waiting for answers', async () => {
        const name = stream('pipelined');
        const appends = Array.from({ length: 20 }, (_, n) =>
          store().append(name, n === 0 ? 'no_stream' : n - 1, [event(type('Piped'), { n })]),
        );
        expect((await Promise.all(appends)).map((a) => a.revision)).to.deep.equal(appends.map((_, n) => n));
      });
    });

    describe('sizes', () => {
      it('stores an event close to the limit unchanged', async () => {
        const name = stream('large');
        const text = 'x'.repeat(900 * 1024);
        await store().append(name, 'no_stream', [event(type('Large'), { text })]);
        const [read] = await all(store().readStream(name));
        expect(read?.data['text'] === text, 'the text came back unchanged').to.equal(true);
      });

      it('refuses an event above 1 MiB, counted in bytes, and everything appended with it', async () => {
        const name = stream('tooLarge');
        const letters = Math.ceil(MAX_APPEND_BYTES / 2);
        const large = event(type('TooLarge'), { text: 'é'.repeat(letters) });
        const error = await errorOf(store().append(name, 'no_stream', [event(type('Small')), large]));
        expect(error).to.be.instanceOf(EventTooLarge);
        expect(error).to.have.property('bytes').that.is.greaterThan(MAX_APPEND_BYTES);
        expect((error as Error).message)
          .to.include(type('TooLarge'))
          .and.to.include(String(MAX_APPEND_BYTES));
        expect(await store().currentRevision(name)).to.equal('no_stream');
      });

      it('counts metadata too', async () => {
        const name = stream('metadata');
        const half = 'x'.repeat(MAX_APPEND_BYTES / 2);
        const large = event(type('TooLarge'), { half }, { half });
        expect(await errorOf(store().append(name, 'no_stream', [large]))).to.be.instanceOf(EventTooLarge);
      });
    });

    describe('after another append', () => {
      it('is stored behind it', async () => {
        const [name, other] = [stream('behind'), stream('ahead')];
        const ahead = store().append(other, 'no_stream', numbered(type('Ahead'), 2));
        const behind = store().append(name, 'no_stream', [event(type('Behind'))], { after: ahead });
        const [one, two] = await Promise.all([ahead, behind]);
        expect([one.revision, two.revision]).to.deep.equal([1, 0]);
        expect(one.position < two.position, 'in this order').to.equal(true);
      });

      it('is stored behind it when it comes later', async () => {
        const [name, other] = [stream('behindLater'), stream('aheadEarlier')];
        const ahead = store().append(other, 'no_stream', [event(type('Ahead'))]);
        await ahead;
        const behind = await store().append(name, 'no_stream', [event(type('Behind'))], { after: ahead });
        expect(behind).to.include({ revision: 0, duplicate: false });
      });

      it('is not stored when that one finds a conflict, and says so', async () => {
        const [name, other] = [stream('notBehind'), stream('refused')];
        await store().append(other, 'no_stream', [event(type('Taken'))]);
        const ahead = store().append(other, 'no_stream', [event(type('Ahead'))]);
        const given = event(type('Behind'));
        const behind = store().append(name, 'no_stream', [given], { after: ahead });
        for (const error of await Promise.all([errorOf(ahead), errorOf(behind)])) {
          expectConflict(error, 'no_stream', 0);
          expect(error).to.include({ stream: other });
        }
        expect(await store().currentRevision(name)).to.equal('no_stream');
        expect(await store().append(name, 'no_stream', [given])).to.include({ duplicate: false });
      });

      it('finds its own conflict without undoing that one', async () => {
        const [name, other] = [stream('conflict'), stream('kept')];
        await store().append(name, 'no_stream', [event(type('Taken'))]);
        const ahead = store().append(other, 'no_stream', [event(type('Ahead'))]);
        const behind = store().append(name, 'no_stream', [event(type('Behind'))], { after: ahead });
        const [one, error] = await Promise.all([ahead, errorOf(behind)]);
        expectConflict(error, 'no_stream', 0);
        expect(one).to.include({ revision: 0, duplicate: false });
      });

      it('repeats as any append does: the same ids are stored once', async () => {
        const [name, other] = [stream('twice'), stream('twiceAhead')];
        const [one, two] = [event(type('Ahead')), event(type('Behind'))];
        for (const duplicate of [false, true]) {
          const ahead = store().append(other, 'no_stream', [one]);
          const behind = store().append(name, 'no_stream', [two], { after: ahead });
          for (const appended of await Promise.all([ahead, behind]))
            expect(appended).to.include({ revision: 0, duplicate });
        }
      });
    });

    it('stores nothing when its signal was aborted before', async () => {
      const name = stream('aborted');
      const reason = new Error('the caller went away');
      const error = await errorOf(
        store().append(name, 'no_stream', [event(type('Never'))], { signal: AbortSignal.abort(reason) }),
      );
      expect(error).to.equal(reason);
      expect(await store().currentRevision(name)).to.equal('no_stream');
    });

    it('tells what became of it when its signal is aborted under way', async () => {
      const name = stream('abortedUnderWay');
      const controller = new AbortController();
      const reason = new Error('the caller went away');
      const given = event(type('Kept'));
      const call = store().append(name, 'no_stream', [given], { signal: controller.signal });
      controller.abort(reason);
      const outcome: unknown = await call.catch((error: unknown) => error);
      // The same append again tells whether the first one was stored.
      const again = await store().append(name, 'no_stream', [given]);
      if (outcome instanceof OutcomeUnknown) expect(outcome).to.have.property('cause', reason);
      else if (outcome instanceof Error) {
        expect(outcome).to.equal(reason);
        expect(again).to.include({ revision: 0, duplicate: false });
      } else expect(again).to.deep.equal({ ...(outcome as Appended), duplicate: true });
      expect((await all(store().readStream(name))).map((e) => e.id)).to.deep.equal([given.id]);
    });
  });
};
