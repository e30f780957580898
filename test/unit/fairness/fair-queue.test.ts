import { expect } from 'chai';
import fc from 'fast-check';
import { createFairQueue, PRIORITIES, type Priority } from '../../../src/app/fairness/fair-queue.ts';
import { check } from '../../support/property.ts';

type Item = { readonly tenant: string; readonly priority: Priority; readonly number: number };

describe('fair queue of a lane', () => {
  const filled = (items: readonly Item[]) => {
    const queue = createFairQueue<Item>();
    for (const item of items) queue.add(item, item);
    return queue;
  };
  const drained = (items: readonly Item[]): Item[] => {
    const queue = filled(items);
    const taken: Item[] = [];
    for (let item = queue.take(); item !== undefined; item = queue.take()) taken.push(item);
    return taken;
  };
  const of = (tenant: string, priority: Priority, count: number): Item[] =>
    Array.from({ length: count }, (_, number) => ({ tenant, priority, number }));

  it('lets tenants take turns, whatever one of them has queued before', () => {
    const taken = drained([...of('big', 'work', 100), ...of('small', 'work', 2)]);
    expect(taken.slice(0, 5).map(({ tenant }) => tenant)).to.deep.equal([
      'big',
      'small',
      'big',
      'small',
      'big',
    ]);
  });
  it('lets deletions go before other work, and that before reads', () => {
    const taken = drained([...of('a', 'read', 2), ...of('a', 'work', 2), ...of('a', 'deletion', 2)]);
    expect(taken.map(({ priority }) => priority)).to.deep.equal([
      'deletion',
      'deletion',
      'work',
      'work',
      'read',
      'read',
    ]);
  });
  it('does not let a flood of deletions starve anybody', () => {
    const taken = drained([...of('a', 'read', 1), ...of('a', 'work', 1), ...of('a', 'deletion', 100)]);
    const at = (priority: Priority): number => taken.findIndex((item) => item.priority === priority);
    expect(at('read')).to.be.at.most(10);
    expect(at('work')).to.be.at.most(10);
  });
  it('names that every object has are tenants like others', () => {
    expect(drained([...of('__proto__', 'work', 1), ...of('constructor', 'work', 1)])).to.have.lengthOf(2);
  });

  const item = fc.record({
    tenant: fc.constantFrom('a', 'b', 'c', 'd'),
    priority: fc.constantFrom(...PRIORITIES),
  });
  const numbered = (items: readonly Omit<Item, 'number'>[]): Item[] =>
    items.map((each, number) => ({ ...each, number }));

  it('gives out everything once, and what is of one tenant and kind in order', () => {
    check(
      fc.property(fc.array(item, { maxLength: 200 }), (items) => {
        const taken = drained(numbered(items));
        expect(taken.map(({ number }) => number).toSorted((l, r) => l - r)).to.deep.equal(
          items.map((_, i) => i),
        );
        const last = new Map<string, number>();
        for (const { tenant, priority, number } of taken) {
          const key = `${tenant} ${priority}`;
          expect(number).to.be.greaterThan(last.get(key) ?? -1);
          last.set(key, number);
        }
      }),
    );
  });
  it('between two turns of a tenant that waits, every other one that waits has at most one turn', () => {
    check(
      fc.property(fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 200 }), (tenants) => {
        const taken = drained(numbered(tenants.map((tenant) => ({ tenant, priority: 'work' as const }))));
        for (const [i, { tenant }] of taken.entries()) {
          const next = taken.findIndex((other, j) => j > i && other.tenant === tenant);
          if (next < 0) continue;
          const between = taken.slice(i + 1, next).map((other) => other.tenant);
          expect(new Set(between).size).to.equal(between.length);
        }
      }),
    );
  });
  it('whatever comes in between, nobody waits for more than a bounded number of others', () => {
    check(
      fc.property(fc.array(fc.constantFrom('add', 'take'), { maxLength: 300 }), (steps) => {
        const queue = createFairQueue<Item>();
        const read: Item = { tenant: 'patient', priority: 'read', number: -1 };
        queue.add(read, read);
        let before = 0;
        for (const [number, step] of steps.entries()) {
          if (step === 'add') {
            const deletion: Item = { tenant: 'busy', priority: 'deletion', number };
            queue.add(deletion, deletion);
          } else if (queue.take() === read) return;
          else before += 1;
          expect(before).to.be.at.most(8);
        }
      }),
    );
  });
});
