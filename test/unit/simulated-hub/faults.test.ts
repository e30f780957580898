import { CLUSTER_ORDER, HOSTED_CLUSTER } from '../../../src/domain/clusters/hub-objects.ts';
import { expect } from 'chai';
import {
  assertNoSecondObject,
  readHubCalls,
  readHubCounts,
  readHubOrders,
} from '../../support/hubs/hub-journal.ts';
import { createHubBench, HOSTED, hubErrorOf, manifestOf, REF } from './hub-support.ts';

describe('faults of the simulated hub', () => {
  let bench: ReturnType<typeof createHubBench>;
  beforeEach(() => {
    bench = createHubBench();
  });
  afterEach(() => bench.close());

  const create = (simulation: string) =>
    bench.hub.create(CLUSTER_ORDER, manifestOf('order-a', { simulation }), bench.by());
  const get = () => bench.hub.get(CLUSTER_ORDER, REF('order-a'), bench.by());
  const lastCall = () => readHubCalls(bench.file).at(-1);

  it('lost answer: done, nobody hears of it, the repetition finds it', async () => {
    const lost = await hubErrorOf(create('lostAnswer=1'));
    expect(lost.kind).to.equal('unknown-outcome');
    expect(lastCall()).to.include({
      operation: 'create',
      result: 'created',
      answer: 'lost',
      effectId: 'effect-1',
    });
    const again = await hubErrorOf(create('lostAnswer=1'));
    expect([again.kind, again.object?.id]).to.deep.equal(['already-exists', 'cluster-of-order-a']);
    expect(lastCall()).to.include({ result: 'refused: already-exists', answer: 'given' });
    assertNoSecondObject(bench.file);
  });

  const refusals: [fault: string, kind: string, status?: number][] = [
    ['conflict=1', 'conflict'],
    ['409=1', 'conflict'],
    ['invalid=1', 'invalid'],
    ['429=1,retryAfter=7s', 'throttled'],
    ['503=1', 'unavailable'],
    ['unauthorized=1', 'unauthorized', 401],
    ['401=1', 'unauthorized', 401],
    ['forbidden=1', 'unauthorized', 403],
    ['403=1', 'unauthorized', 403],
  ];
  for (const [fault, kind, status] of refusals) {
    it(`${fault}: refused as ${kind}, nothing done, the next call succeeds`, async () => {
      const error = await hubErrorOf(create(fault));
      expect(error.kind).to.equal(kind);
      expect(error.facts['status']).to.equal(status);
      if (kind === 'throttled') expect(error.retryAfterMs).to.equal(7000);
      expect(readHubOrders(bench.file)).to.deep.equal([]);
      expect((await create(fault)).name).to.equal('order-a');
    });
  }

  it('calls are counted only where a fault may ask for their number', async () => {
    await create('');
    await get();
    expect(readHubCounts(bench.file)).to.deep.equal([]);
    const manifest = manifestOf('order-b', { simulation: '503=3' });
    await bench.hub.create(CLUSTER_ORDER, manifest, bench.by());
    await bench.hub.get(CLUSTER_ORDER, REF('order-b'), bench.by());
    await bench.hub.control.configure('slow=1ms');
    const read = bench.hub.get(CLUSTER_ORDER, REF('order-a'), bench.by());
    await bench.time.advance(1);
    await read;
    expect(readHubCounts(bench.file)).to.have.deep.members(['* 1 0', 'osac-hub/order-b 2 1']);
    const third = bench.hub.get(CLUSTER_ORDER, REF('order-b'), bench.by()).catch(({ kind }) => kind);
    await bench.time.advance(1);
    expect(await third).to.equal('unavailable');
  });

  it('counts go on over a restart', async () => {
    await hubErrorOf(create('409=1-2'));
    const restarted = bench.open();
    const manifest = manifestOf('order-a', { simulation: '409=1-2' });
    expect((await hubErrorOf(restarted.create(CLUSTER_ORDER, manifest, bench.by()))).kind).to.equal(
      'conflict',
    );
    await restarted.create(CLUSTER_ORDER, manifest, bench.by());
  });

  it('slow: the work is done at once, the answer comes late; past the deadline a write is unknown', async () => {
    const slow = hubErrorOf(
      bench.hub.create(
        CLUSTER_ORDER,
        manifestOf('order-a', { simulation: 'slow=2s,slowCalls=1-2' }),
        bench.by({ deadlineMs: 1000 }),
      ),
    );
    await bench.time.advance(999);
    expect(readHubOrders(bench.file)).to.have.length(1);
    await bench.time.advance(1);
    expect((await slow).kind).to.equal('unknown-outcome');

    const read = hubErrorOf(bench.hub.get(CLUSTER_ORDER, REF('order-a'), bench.by({ deadlineMs: 1000 })));
    await bench.time.advance(1000);
    expect((await read).kind).to.equal('unavailable');
    expect((await get())?.name).to.equal('order-a');
  });

  it('late: the write arrives after its caller gave up, and finds what was done meanwhile', async () => {
    const manifest = manifestOf('order-a', { simulation: 'late=1,lateBy=3s' });
    const late = hubErrorOf(bench.hub.create(CLUSTER_ORDER, manifest, bench.by({ deadlineMs: 1000 })));
    await bench.time.advance(1000);
    expect((await late).kind).to.equal('unknown-outcome');
    expect(await get()).to.equal(undefined);
    await bench.hub.create(CLUSTER_ORDER, manifest, bench.by());
    await bench.time.advance(5000);
    const results = readHubCalls(bench.file).map(({ result }) => result);
    expect(results).to.deep.equal(['on its way', 'absent', 'created', 'refused: already-exists']);
    assertNoSecondObject(bench.file);
  });

  it('dead: unavailable for its time, also on the watch', async () => {
    await bench.hub.control.configure('dead=5s');
    expect((await hubErrorOf(create(''))).kind).to.equal('unavailable');
    const seen: string[] = [];
    const end = new AbortController();
    const watching = (async () => {
      for await (const event of bench.hub.watch(CLUSTER_ORDER, 'osac-hub', end.signal)) seen.push(event.type);
    })();
    await bench.time.advance(4999);
    expect(seen).to.deep.equal([]);
    await bench.time.advance(300);
    expect(seen).to.deep.equal(['synced']);
    expect((await create('')).name).to.equal('order-a');
    end.abort();
    await watching;
  });

  it('silent: ends by the deadline; nothing was done', async () => {
    const silent = hubErrorOf(
      bench.hub.create(
        CLUSTER_ORDER,
        manifestOf('order-a', { simulation: 'silent=1m' }),
        bench.by({ deadlineMs: 500 }),
      ),
    );
    await bench.time.advance(500);
    expect((await silent).kind).to.equal('unknown-outcome');
    expect(lastCall()).to.include({ result: 'not carried out', answer: 'none' });
    expect(readHubOrders(bench.file)).to.deep.equal([]);
  });

  it('an abort ends a call that nobody answers, and a call not yet sent', async () => {
    await bench.hub.control.configure({ silent: 'forever' });
    const given = new AbortController();
    const read = hubErrorOf(bench.hub.get(CLUSTER_ORDER, REF('order-a'), bench.by({ signal: given.signal })));
    await bench.time.settle();
    given.abort();
    expect((await read).kind).to.equal('unavailable');
    const unsent = await hubErrorOf(
      bench.hub.create(CLUSTER_ORDER, manifestOf('order-a'), bench.by({ signal: given.signal })),
    );
    expect(unsent.kind).to.equal('unavailable');
  });

  it('percentages are the same in every run with the same seed', async () => {
    const run = async (): Promise<string[]> => {
      const one = createHubBench({ settings: '503=30%,409=30%,seed=s1' });
      for (let index = 0; index < 20; index += 1) {
        await one.hub.create(CLUSTER_ORDER, manifestOf(`order-${index}`), one.by()).catch(() => undefined);
      }
      const results = readHubCalls(one.file).map(({ result }) => result);
      await one.close();
      return results;
    };
    const first = await run();
    expect(new Set(first)).to.deep.equal(new Set(['created', 'refused: unavailable', 'refused: conflict']));
    expect(await run()).to.deep.equal(first);
  });

  it('an unknown key is refused, so that no test believes in a fault that never came', async () => {
    const error = await hubErrorOf(create('lostAnswers=1'));
    expect([error.kind, error.message.includes('unknown simulation key')]).to.deep.equal(['invalid', true]);
  });

  it('settings of the hub reach other instances on its file and new objects', async () => {
    const other = bench.open();
    await other.control.configure('factor=0.1');
    await create('');
    await bench.time.advance(400);
    expect((await get())?.phase).to.equal('Ready');
  });

  it('objects vanish and finalizers go behind our back', async () => {
    await create('stuckDeletion=forever');
    await bench.time.advance(4000);
    await bench.hub.control.vanish(CLUSTER_ORDER, REF('order-a'), HOSTED_CLUSTER);
    expect(await bench.hub.get(HOSTED_CLUSTER, HOSTED('order-a'), bench.by())).to.equal(undefined);
    await bench.hub.delete(CLUSTER_ORDER, REF('order-a'), bench.by());
    await bench.time.advance(60_000);
    expect((await get())?.finalizers).to.deep.equal(['osac.openshift.io/infrastructure']);
    await bench.hub.control.removeFinalizer(
      CLUSTER_ORDER,
      REF('order-a'),
      'osac.openshift.io/infrastructure',
    );
    expect(await get()).to.equal(undefined);
    await create('');
    await bench.hub.control.vanish(CLUSTER_ORDER, REF('order-a'));
    expect(await get()).to.equal(undefined);
    assertNoSecondObject(bench.file);
  });
});
