import { expect } from 'chai';
import fc from 'fast-check';
import type { FilterNode } from '../../../src/projections/filter/ast.ts';
import { BEFORE_ALL_CHANGES } from '../../../src/projections/resources/change-reader.ts';
import { stopping } from '../../../src/http/osac/watch/endings.ts';
import { checkAsync } from '../../support/property.ts';
import { at, fakeSink, hubFixture, toldOf, type FakeSink } from '../../support/http/watch-fixture.ts';

const named = (...ids: string[]): { id: string }[] => ids.map((id) => ({ id }));

describe('watch hub', () => {
  it('gives what comes after a watcher came, and nothing of before', async () => {
    const { changes, watch, settle } = hubFixture();
    changes.put(...named('a', 'b'));
    const watcher = watch();
    await settle();
    changes.put(...named('c'));
    changes.put(...named('d', 'e'));
    await settle();
    expect(toldOf(watcher)).to.deep.equal(['c', 'd', 'e']);
  });

  it('leaves out what came before the watcher, though the tail had not come so far', async () => {
    const { changes, watch, settle } = hubFixture();
    const early = watch();
    await settle();
    changes.put(...named('a'));
    const late = watch();
    changes.put(...named('b'));
    await settle();
    expect(toldOf(early)).to.deep.equal(['a', 'b']);
    expect(toldOf(late)).to.deep.equal(['b']);
  });

  it('resumes page by page and then gets what comes', async () => {
    const { changes, watch, settle } = hubFixture({ pageRows: 2 });
    changes.put(...named('a', 'b', 'c', 'd', 'e'));
    const watcher = watch({ after: at(1) });
    await settle();
    changes.put(...named('f'));
    await settle();
    expect(toldOf(watcher)).to.deep.equal(['b', 'c', 'd', 'e', 'f']);
  });

  it('reads a page once for all who are there', async () => {
    const { changes, watch, settle } = hubFixture();
    for (let i = 0; i < 50; i += 1) watch(i % 2 === 0 ? {} : { tenants: ['t1'] });
    await settle();
    changes.reads = 0;
    changes.put(...named('a', 'b', 'c'));
    await settle();
    expect(changes.reads).to.be.lessThan(4);
  });

  it('evaluates a filter once for all who sent it', async () => {
    const { changes, watch, settle } = hubFixture();
    let evaluated = 0;
    const filter: FilterNode = {
      get op() {
        evaluated += 1;
        return 'constant' as const;
      },
      value: true,
    };
    const watchers = Array.from({ length: 20 }, (_, i) =>
      watch({ filter, tenants: ['t1', `other-${i % 4}`] }),
    );
    await settle();
    changes.put(...named('a'));
    await settle();
    for (const watcher of watchers) expect(toldOf(watcher)).to.deep.equal(['a']);
    expect(evaluated).to.equal(1);
  });

  it('shows each only its tenants', async () => {
    const { changes, watch, settle } = hubFixture();
    const [one, two, all] = [
      watch({ tenants: ['t1', 'shared'] }),
      watch({ tenants: ['t2', 'shared'] }),
      watch(),
    ];
    await settle();
    changes.put({ id: 'a', tenant: 't1' }, { id: 'b', tenant: 't2' }, { id: 'c', tenant: 'shared' });
    changes.put({ id: 'd', tenant: 't3' }, { id: 'e', tenant: 't1', kind: 'unknown' });
    await settle();
    expect(toldOf(one)).to.deep.equal(['a', 'c']);
    expect(toldOf(two)).to.deep.equal(['b', 'c']);
    expect(toldOf(all)).to.deep.equal(['a', 'b', 'c', 'd']);
  });

  it('takes out what only the private surface shows', async () => {
    const { changes, watch, settle } = hubFixture();
    const watcher = watch();
    await settle();
    changes.put({ id: 'a', document: '{"id":"a","status":{"hub":"canary","state":"X"}}' });
    await settle();
    expect(watcher.text()).to.contain('"status":{"state":"X"}').and.not.to.contain('canary');
  });

  describe('one who does not read', () => {
    it('is closed with its last id, keeps little, and nobody waits for it', async () => {
      const { changes, watch, settle, time, hub } = hubFixture({
        backlogBytes: 500,
        stallMs: 1000,
        sweepMs: 100,
      });
      const stopped = watch({ sink: fakeSink(300) });
      const reader = watch();
      await settle();
      for (let i = 1; i <= 50; i += 1) {
        changes.put(...named(`c${i}`));
        await settle();
      }
      expect(toldOf(reader)).to.have.length(50);
      expect(stopped.most).to.be.lessThan(1000);
      expect(hub.status()).to.deep.include({ watchers: 2, waiting: 1 });
      await time.pass(1500);
      expect(stopped.ended()).to.equal(true);
      const told = toldOf(stopped);
      const sent = told.length - 1;
      expect(told.at(-1)).to.equal(`WATCH_TOO_SLOW ${at(sent).position}.0`);
      expect(told.slice(0, -1)).to.deep.equal(
        named(...Array.from({ length: sent }, (_, i) => `c${i + 1}`)).map(({ id }) => id),
      );
      expect(hub.status()).to.deep.include({ watchers: 1, waiting: 0 });
    });

    it('but takes something from time to time reads on at its own pace, without loss', async () => {
      const { changes, watch, settle, time } = hubFixture({
        backlogBytes: 500,
        stallMs: 1000,
        sweepMs: 100,
        pageRows: 3,
      });
      const slow = watch({ sink: fakeSink(300) });
      await settle();
      const ids: string[] = [];
      for (let i = 1; i <= 100; i += 1) {
        ids.push(`c${i}`);
        changes.put(...named(`c${i}`));
        if (i % 10 === 0) slow.drain();
        await time.pass(50);
      }
      for (let i = 0; i < 100; i += 1) {
        slow.drain();
        await settle();
      }
      expect(slow.ended()).to.equal(false);
      expect(slow.most).to.be.lessThan(1500);
      expect(toldOf(slow)).to.deep.equal(ids);
    });

    it('and has little to read is closed as well', async () => {
      const { changes, watch, settle, time } = hubFixture({ stallMs: 1000, sweepMs: 100 });
      const stopped = watch({ sink: fakeSink(0) });
      await settle();
      changes.put(...named('a'));
      await time.pass(1500);
      expect(toldOf(stopped)).to.deep.equal(['a', 'WATCH_TOO_SLOW 0001.0']);
    });

    it('on resuming gets one page', async () => {
      const { changes, watch, settle, time } = hubFixture({ pageRows: 2, stallMs: 1000, sweepMs: 100 });
      changes.put(...named('a', 'b', 'c', 'd', 'e', 'f'));
      const stopped = watch({ after: BEFORE_ALL_CHANGES, sink: fakeSink(0) });
      await settle();
      expect(toldOf(stopped)).to.deep.equal(['a', 'b']);
      await time.pass(1500);
      expect(toldOf(stopped)).to.deep.equal(['a', 'b', 'WATCH_TOO_SLOW 0002.0']);
    });
  });

  it('says so when what was not read yet is no longer kept', async () => {
    const { changes, watch, settle } = hubFixture({ pageRows: 1 });
    changes.put(...named('a', 'b', 'c', 'd'));
    const watcher = watch({ after: BEFORE_ALL_CHANGES, sink: fakeSink(0) });
    await settle();
    changes.prune(at(3));
    watcher.drain();
    await settle();
    expect(toldOf(watcher)).to.deep.equal(['a', 'FROM_TOO_OLD 0001.0']);
  });

  it('ends all when the log went back, and goes on for those who come then', async () => {
    const { changes, watch, settle, hub } = hubFixture();
    changes.put(...named('a', 'b'));
    const watcher = watch();
    await settle();
    changes.forgetAfter('0001');
    await settle();
    expect(toldOf(watcher)).to.deep.equal(['LOG_REPLACED 0002.0']);
    expect(hub.status().watchers).to.equal(0);
    const next = watch();
    await settle();
    changes.put({ id: 'new', position: '0002' });
    await settle();
    expect(toldOf(next)).to.deep.equal(['new']);
  });

  it('ends watches when the changes cannot be read, and serves again when they can', async () => {
    const { changes, watch, settle, logged, hub } = hubFixture();
    const live = watch();
    await settle();
    changes.broken = true;
    changes.put(...named('a'));
    await settle();
    expect(toldOf(live)).to.deep.equal(['READ_FAILED']);
    const reading = watch({ after: BEFORE_ALL_CHANGES });
    await settle();
    expect(toldOf(reading)).to.deep.equal(['READ_FAILED']);
    expect(logged).to.have.length(2);
    changes.broken = false;
    const next = watch({ after: BEFORE_ALL_CHANGES });
    await settle();
    changes.put(...named('b'));
    await settle();
    expect(toldOf(next)).to.deep.equal(['a', 'b']);
    expect(hub.status().watchers).to.equal(1);
  });

  it('ends all with the reason and what each may resume after', async () => {
    const { changes, watch, settle, hub } = hubFixture();
    changes.put(...named('a'));
    const [one, other] = [watch(), watch({ tenants: ['t2'] })];
    await settle();
    changes.put(...named('b'));
    await settle();
    hub.endAll(stopping);
    await settle();
    expect(toldOf(one)).to.deep.equal(['b', 'SHUTTING_DOWN 0002.0']);
    expect(toldOf(other)).to.deep.equal(['SHUTTING_DOWN 0001.0']);
    expect(hub.status()).to.deep.equal({ watchers: 0, groups: 0, waiting: 0 });
  });

  it('keeps nothing of those who left, and asks for nothing when nobody is there', async () => {
    const { changes, watch, settle, hub, time } = hubFixture();
    const watchers = Array.from({ length: 100 }, (_, i) =>
      watch({ tenants: [`t${i}`], after: BEFORE_ALL_CHANGES }),
    );
    await settle();
    for (const watcher of watchers) watcher.forget();
    for (const watcher of watchers) watcher.forget();
    expect(hub.status()).to.deep.equal({ watchers: 0, groups: 0, waiting: 0 });
    changes.reads = 0;
    changes.put(...named('a'));
    await time.pass(60_000);
    expect(changes.reads).to.equal(0);
  });

  it('lets Server-Sent Events know that it lives, and how far it is', async () => {
    const { changes, watch, settle, time } = hubFixture();
    const none = watch({ framing: 'sse' });
    await time.pass(16_000);
    expect(none.text()).to.equal(':\n\n');
    const sse = watch({ framing: 'sse', tenants: ['t2'] });
    const lines = watch({ tenants: ['t2'] });
    await settle();
    changes.put(...named('a', 'b'));
    await time.pass(16_000);
    expect(sse.text()).to.equal(':\nid: 0002.0\n\n');
    expect(lines.text()).to.equal('');
  });

  it('property: whatever comes and goes and however slowly it is read, each gets all of its own once, in order', async () => {
    const step = fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({
          do: fc.constant('put' as const),
          tenants: fc.array(fc.constantFrom('t1', 't2', 'shared'), { minLength: 1, maxLength: 5 }),
        }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('open' as const),
          tenant: fc.constantFrom('t1', 't2'),
          back: fc.nat({ max: 6 }),
          room: fc.constantFrom(0, 200, 2_000, 1_000_000),
        }),
      },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('drain' as const), which: fc.nat() }) },
      { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), which: fc.nat() }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('settle' as const) }) },
      { weight: 3, arbitrary: fc.record({ do: fc.constant('turn' as const) }) },
    );
    await checkAsync(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { changes, watch, settle } = hubFixture({ pageRows: 2, backlogBytes: 300 });
        const put: { id: string; tenant: string }[] = [];
        const open: { sink: FakeSink & { forget(): void }; tenant: string; from: number; until?: number }[] =
          [];
        for (const action of steps) {
          if (action.do === 'put') {
            const added = action.tenants.map((tenant, i) => ({ id: `c${put.length + i + 1}`, tenant }));
            put.push(...added);
            changes.put(...added);
          } else if (action.do === 'open') {
            const from = Math.max(0, put.length - action.back);
            const after = from === 0 ? BEFORE_ALL_CHANGES : at(from);
            const sink = watch({ tenants: [action.tenant, 'shared'], after, sink: fakeSink(action.room) });
            open.push({ sink, tenant: action.tenant, from });
          } else if (action.do === 'drain' && open.length > 0) open[action.which % open.length]?.sink.drain();
          else if (action.do === 'close' && open.length > 0)
            open.splice(action.which % open.length, 1)[0]?.sink.forget();
          else if (action.do === 'turn') await new Promise((resolve) => setImmediate(resolve));
          else if (action.do === 'settle') await settle();
        }
        for (let i = 0; i < 2 * put.length + 5; i += 1) {
          for (const { sink } of open) sink.drain();
          await new Promise((resolve) => setImmediate(resolve));
          await new Promise((resolve) => setImmediate(resolve));
        }
        await settle();
        for (const { sink, tenant, from } of open) {
          const own = put
            .slice(from)
            .filter((change) => change.tenant === tenant || change.tenant === 'shared');
          expect(toldOf(sink)).to.deep.equal(own.map(({ id }) => id));
          sink.forget();
        }
      }),
      { numRuns: 60 },
    );
  });
});
