import { expect } from 'chai';
import fc from 'fast-check';
import { BARE_METAL_INSTANCE } from '../../../src/domain/bare-metal/hub-objects.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { readHubObjects } from '../../support/hubs/hub-journal.ts';
import { cases, checkAsync } from '../../support/property.ts';
import { createHubBench, NAMESPACE } from './hub-support.ts';

/** A hub with few bare-metal hosts: each serves one machine at a time. */
describe('the bare-metal hosts of a simulated hub', () => {
  const benches: ReturnType<typeof createHubBench>[] = [];
  const benchWith = (hosts: string, more: object = {}) => {
    const bench = createHubBench({ settings: { hosts, ...more } });
    benches.push(bench);
    const ref = (name: string) => ({ namespace: NAMESPACE, name });
    return {
      bench,
      order: (name: string, selector: { [label: string]: string } = {}) =>
        bench.hub.create(
          BARE_METAL_INSTANCE,
          {
            ...ref(name),
            labels: { [BARE_METAL_INSTANCE.idLabel]: `id-${name}` },
            annotations: {},
            spec: BARE_METAL_INSTANCE.spec.parse({
              ...objectAt(BARE_METAL_INSTANCE.sample as JsonObject, 'spec'),
              selector: { hostSelector: selector },
            }),
          },
          bench.by(),
        ),
      phaseOf: async (name: string) =>
        (await bench.hub.get(BARE_METAL_INSTANCE, ref(name), bench.by()))?.phase,
      give: (name: string) => bench.hub.delete(BARE_METAL_INSTANCE, ref(name), bench.by()),
      vanish: (name: string) => bench.hub.control.vanish(BARE_METAL_INSTANCE, ref(name)),
      halt: (name: string) =>
        bench.hub.patch(BARE_METAL_INSTANCE, ref(name), { runStrategy: 'Halted' }, bench.by()),
      pass: (ms: number) => bench.time.advance(ms),
    };
  };
  afterEach(async () => {
    for (const bench of benches.splice(0)) await bench.close();
  });

  it('go to machines by their labels; who finds none waits until one is given back, the oldest first', async () => {
    const { order, phaseOf, give, pass } = benchWith('class:gpu | class:small');
    for (const name of ['a', 'b', 'c']) await order(name, { class: 'gpu' });
    await order('d', { class: 'small' });
    const phases = async () => Promise.all(['a', 'b', 'c', 'd'].map(phaseOf));
    await pass(2_000);
    expect(await phases()).to.deep.equal(['Ready', 'Allocating', 'Allocating', 'Ready']);
    await give('a');
    await pass(2_000);
    expect(await phases()).to.deep.equal([undefined, 'Ready', 'Allocating', 'Ready']);
    await give('d');
    await pass(2_000);
    expect(await phases(), 'no host of another class').to.deep.equal([
      undefined,
      'Ready',
      'Allocating',
      undefined,
    ]);
    await give('b');
    await pass(2_000);
    expect((await phases())[2]).to.equal('Ready');
  });

  it('are not given again before the machine is gone, however long that takes', async () => {
    const { order, phaseOf, give, pass } = benchWith('class:gpu', { stuckDeletion: '1m' });
    await order('a');
    await pass(2_000);
    await give('a');
    await order('b');
    await pass(30_000);
    expect([await phaseOf('a'), await phaseOf('b')]).to.deep.equal(['Deleting', 'Allocating']);
    await pass(32_000);
    expect([await phaseOf('a'), await phaseOf('b')]).to.deep.equal([undefined, 'Ready']);
  });

  it('a promise for later gives way to a host that is free sooner', async () => {
    const { bench, order, phaseOf, give, vanish, pass } = benchWith('class:gpu | class:gpu', {
      stuckDeletion: '1h',
    });
    await order('a');
    await order('b');
    await order('c');
    await pass(2_000);
    await give('a');
    await pass(1_000);
    expect(await phaseOf('c')).to.equal('Allocating');
    await vanish('b');
    await pass(2_000);
    expect(await phaseOf('c')).to.equal('Ready');
    const [, , third] = readHubObjects(bench.file);
    expect(third?.host?.name).to.equal('2 class:gpu');
  });

  it('a machine that waits is not powered, whatever is asked of it', async () => {
    const { order, phaseOf, give, halt, pass } = benchWith('class:gpu');
    await order('a');
    await order('b');
    await pass(2_000);
    await halt('b');
    await pass(2_000);
    expect(await phaseOf('b')).to.equal('Allocating');
    await give('b');
    await pass(2_000);
    expect(await phaseOf('b')).to.equal(undefined);
    await order('c');
    await give('a');
    await pass(3_000);
    expect(await phaseOf('c')).to.equal('Ready');
  });

  it('serve one machine at a time, and none waits while one of its labels is free', async () => {
    const deed = fc.oneof(
      fc.record({ what: fc.constant('order'), label: fc.constantFrom('gpu', 'small', 'none') }),
      fc.record({ what: fc.constantFrom('give', 'halt', 'vanish'), n: fc.nat(9) }),
      fc.record({ what: fc.constant('pass'), ms: fc.integer({ min: 1, max: 3_000 }) }),
    );
    await checkAsync(
      fc.asyncProperty(fc.array(deed, { maxLength: 30 }), async (deeds) => {
        const { bench, order, phaseOf, give, halt, vanish, pass } = benchWith(
          'class:gpu | class:small | class:gpu',
        );
        const known = [{ name: 'first', label: 'gpu' }];
        await order('first', { class: 'gpu' });
        for (const one of deeds) {
          const name = known[('n' in one ? one.n : 0) % known.length]?.name ?? '';
          const isThere = (await phaseOf(name)) !== undefined;
          if ('label' in one) {
            known.push({ name: `m${known.length}`, label: one.label });
            await order(`m${known.length - 1}`, { class: one.label });
          } else if ('ms' in one) await pass(one.ms);
          else if (isThere) await { give, halt, vanish }[one.what as 'give' | 'halt' | 'vanish'](name);
        }
        await pass(10_000);
        const living = new Map<string, number>();
        const waits: string[] = [];
        for (const { name, label } of known) {
          const phase = await phaseOf(name);
          if (phase === 'Allocating') waits.push(label);
          else if (phase !== undefined) living.set(label, (living.get(label) ?? 0) + 1);
        }
        const room: { [label: string]: number } = { gpu: 2, small: 1, none: 0 };
        for (const [label, count] of living) expect(count, label).to.be.at.most(room[label] ?? 0);
        for (const label of waits) expect(living.get(label) ?? 0, `${label} is free`).to.equal(room[label]);
        const rows = readHubObjects(bench.file).filter(({ host }) => host !== undefined);
        for (const held of Map.groupBy(rows, ({ host }) => host?.name).values())
          for (const [i, former] of held
            .toSorted((a, b) => (a.host?.at ?? 0) - (b.host?.at ?? 0))
            .entries()) {
            const next = held.toSorted((a, b) => (a.host?.at ?? 0) - (b.host?.at ?? 0))[i + 1];
            if (next !== undefined) expect(former.goneAt ?? Infinity).to.be.at.most(next.host?.at ?? 0);
          }
      }),
      { numRuns: cases(200) },
    );
  });
});
