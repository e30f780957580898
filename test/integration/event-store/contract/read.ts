import { expect } from 'chai';
import { all, errorOf, event, numbered, numberOf, type Contract } from './fixture.ts';

export const readContract = ({ store, stream, type }: Contract): void => {
  describe('readStream', () => {
    const ten = async (): Promise<string> => {
      const name = stream('ten');
      await store().append(name, 'no_stream', numbered(type('Numbered'), 10));
      return name;
    };

    it('reads forward from the first event', async () => {
      const name = await ten();
      const read = await all(store().readStream(name));
      expect(read.map(numberOf)).to.deep.equal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    });

    it('reads forward from a revision, inclusive, up to a limit', async () => {
      const name = await ten();
      expect((await all(store().readStream(name, { from: 7 }))).map(numberOf)).to.deep.equal([7, 8, 9]);
      const limited = await all(store().readStream(name, { from: 3, limit: 2 }));
      expect(limited.map(numberOf)).to.deep.equal([3, 4]);
    });

    it('reads backward from the last event, from a revision, up to a limit', async () => {
      const name = await ten();
      const backward = await all(store().readStream(name, { direction: 'backward' }));
      expect(backward.map(numberOf)).to.deep.equal([9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
      const from = await all(store().readStream(name, { direction: 'backward', from: 2 }));
      expect(from.map(numberOf)).to.deep.equal([2, 1, 0]);
      const last = await all(store().readStream(name, { direction: 'backward', limit: 1 }));
      expect(last.map(numberOf)).to.deep.equal([9]);
    });

    it('yields nothing for a stream that does not exist, beyond the end, and for limit 0', async () => {
      expect(await all(store().readStream(stream('absent')))).to.deep.equal([]);
      expect(await all(store().readStream(stream('absent'), { direction: 'backward' }))).to.deep.equal([]);
      const name = await ten();
      expect(await all(store().readStream(name, { from: 10 }))).to.deep.equal([]);
      expect(await all(store().readStream(name, { limit: 0 }))).to.deep.equal([]);
    });

    it('reads a stream of more than a thousand events whole, in both directions', async () => {
      const name = stream('long');
      for (let n = 0; n < 3; n += 1)
        await store().append(name, n === 0 ? 'no_stream' : n * 400 - 1, numbered(type('Many'), 400, n * 400));
      const forward = await all(store().readStream(name));
      expect(forward.map(numberOf)).to.deep.equal(Array.from({ length: 1200 }, (_, n) => n));
      const backward = await all(store().readStream(name, { direction: 'backward' }));
      expect(backward.map(numberOf)).to.deep.equal(Array.from({ length: 1200 }, (_, n) => 1199 - n));
    });

    it('does not mix up streams whose names begin alike', async () => {
      await store().append(stream('a'), 'no_stream', [event(type('Short'))]);
      await store().append(stream('ab'), 'no_stream', [event(type('Long'))]);
      expect((await all(store().readStream(stream('a')))).map((e) => e.type)).to.deep.equal([type('Short')]);
    });

    it('can be left early and read again', async () => {
      const name = await ten();
      for await (const read of store().readStream(name)) if (read.revision === 1) break;
      expect(await all(store().readStream(name))).to.have.lengthOf(10);
    });

    it('throws the reason of its signal, before and while it reads', async () => {
      const name = await ten();
      const reason = new Error('no longer wanted');
      const before = all(store().readStream(name, { signal: AbortSignal.abort(reason) }));
      expect(await errorOf(before)).to.equal(reason);
      const controller = new AbortController();
      const seen: number[] = [];
      const reading = async (): Promise<void> => {
        for await (const read of store().readStream(name, { signal: controller.signal })) {
          seen.push(read.revision);
          if (read.revision === 1) controller.abort(reason);
        }
      };
      expect(await errorOf(reading())).to.equal(reason);
      expect(seen).to.deep.equal([0, 1]);
    });
  });

  describe('currentRevision', () => {
    it('is no_stream, then the revision of the last event', async () => {
      const name = stream('current');
      expect(await store().currentRevision(name)).to.equal('no_stream');
      await store().append(name, 'no_stream', numbered(type('Counted'), 3));
      expect(await store().currentRevision(name)).to.equal(2);
    });

    it('throws the reason of its signal', async () => {
      const reason = new Error('no longer wanted');
      const call = store().currentRevision(stream('current'), AbortSignal.abort(reason));
      expect(await errorOf(call)).to.equal(reason);
    });
  });

  describe('readAll and lastPosition', () => {
    it('reads the whole log in order after a position, exclusive', async () => {
      const start = await store().append(stream('start'), 'no_stream', [event(type('Start'))]);
      const positions: string[] = [];
      for (let n = 0; n < 6; n += 1) {
        const appended = await store().append(stream(`s${n}`), 'no_stream', [event(type('Numbered'), { n })]);
        positions.push(appended.position);
      }
      const read = await all(store().readAll({ after: start.position, limit: 1000 }));
      const ours = read.filter((e) => e.type === type('Numbered'));
      expect(ours.map(numberOf)).to.deep.equal([0, 1, 2, 3, 4, 5]);
      expect(ours.map((e) => e.position)).to.deep.equal(positions);
      expect(read.map((e) => e.position)).to.deep.equal(read.map((e) => e.position).toSorted());
      expect(read.every((e) => e.position > start.position)).to.equal(true);
    });

    it('returns at most `limit` events, and pages join without gap or overlap', async () => {
      const start = await store().append(stream('start'), 'no_stream', [event(type('Start'))]);
      await store().append(stream('paged'), 'no_stream', numbered(type('Paged'), 25));
      const read: unknown[] = [];
      let after = start.position;
      for (;;) {
        const page = await all(store().readAll({ after, limit: 10 }));
        expect(page.length).to.be.at.most(10);
        read.push(...page.filter((e) => e.type === type('Paged')).map(numberOf));
        const last = page.at(-1);
        if (last === undefined) break;
        after = last.position;
      }
      expect(read).to.deep.equal(Array.from({ length: 25 }, (_, n) => n));
    });

    it('reads from the beginning when no position is given', async () => {
      await store().append(stream('any'), 'no_stream', numbered(type('Any'), 2));
      const [first] = await all(store().readAll({ limit: 1 }));
      const again = await all(store().readAll({ limit: 2 }));
      expect(first?.position).to.be.a('string').and.to.equal(again[0]?.position);
    });

    it('yields nothing after the end', async () => {
      await store().append(stream('any'), 'no_stream', [event(type('Any'))]);
      const end = await store().lastPosition();
      if (end === undefined) throw new Error('the log has an event');
      const read = await all(store().readAll({ after: end, limit: 10 }));
      expect(read.filter((e) => e.type === type('Any'))).to.deep.equal([]);
    });

    it('lastPosition grows with every append and is never before it', async () => {
      const one = await store().append(stream('one'), 'no_stream', [event(type('Any'))]);
      const afterOne = await store().lastPosition();
      const two = await store().append(stream('two'), 'no_stream', [event(type('Any'))]);
      const afterTwo = await store().lastPosition();
      expect((afterOne ?? '') >= one.position).to.equal(true);
      expect((afterTwo ?? '') >= two.position).to.equal(true);
      expect((afterTwo ?? '') > (afterOne ?? '')).to.equal(true);
    });

    it('ends with the last record, and names what stands at a position', async () => {
      const events = numbered(type('Placed'), 2);
      const { position } = await store().append(stream('placed'), 'no_stream', events);
      expect(((await store().end()) ?? '') >= position).to.equal(true);
      expect(await store().idAt(position)).to.equal(events[1]?.id);
      const next = String(BigInt(position) + 1n).padStart(position.length, '0');
      expect(await store().idAt(next)).to.equal(undefined);
    });

    it('throws the reason of its signal', async () => {
      const reason = new Error('no longer wanted');
      const signal = AbortSignal.abort(reason);
      expect(await errorOf(all(store().readAll({ limit: 1, signal })))).to.equal(reason);
      expect(await errorOf(store().lastPosition(signal))).to.equal(reason);
    });
  });

  describe('setMaxCount', () => {
    it('keeps the newest events of a sys- stream, for old and new events, with their revisions', async () => {
      const name = `sys-${stream('lease')}`;
      await store().append(name, 'no_stream', numbered(type('Held'), 3));
      await store().setMaxCount(name, 2);
      expect((await all(store().readStream(name))).map((e) => e.revision)).to.deep.equal([1, 2]);
      await store().append(name, 2, numbered(type('Held'), 2, 3));
      expect((await all(store().readStream(name))).map((e) => e.revision)).to.deep.equal([3, 4]);
      const backward = await all(store().readStream(name, { direction: 'backward' }));
      expect(backward.map((e) => e.revision)).to.deep.equal([4, 3]);
      expect((await all(store().readStream(name, { from: 0, limit: 1 }))).map(numberOf)).to.deep.equal([3]);
      expect(await store().currentRevision(name)).to.equal(4);
    });

    it('may be set before the first event and set again', async () => {
      const name = `sys-${stream('early')}`;
      await store().setMaxCount(name, 1);
      await store().setMaxCount(name, 1);
      await store().append(name, 'no_stream', numbered(type('Held'), 3));
      expect((await all(store().readStream(name))).map(numberOf)).to.deep.equal([2]);
    });

    it('leaves other streams alone', async () => {
      const name = `sys-${stream('bounded')}`;
      await store().setMaxCount(name, 1);
      await store().append(stream('free'), 'no_stream', numbered(type('Free'), 3));
      expect(await all(store().readStream(stream('free')))).to.have.lengthOf(3);
    });

    it('refuses streams outside sys- and counts below 1', async () => {
      expect(await errorOf(store().setMaxCount(stream('domain'), 1))).to.be.instanceOf(TypeError);
      expect(await errorOf(store().setMaxCount(`sys-${stream('zero')}`, 0))).to.be.instanceOf(TypeError);
    });
  });
};
