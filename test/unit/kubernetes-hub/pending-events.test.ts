import { expect } from 'chai';
import fc from 'fast-check';
import {
  createPendingEvents,
  UnreadableWatch,
  watchLines,
} from '../../../src/adapters/management-cluster/kubernetes/watch.ts';
import { CLUSTER_ORDER } from '../../../src/domain/clusters/hub-objects.ts';
import type { HubObjectEvent } from '../../../src/domain/hubs/hub-object.ts';
import { checkAsync } from '../../support/property.ts';

const event = (type: 'applied' | 'deleted', uid: string, version: number): HubObjectEvent => ({
  type,
  object: CLUSTER_ORDER.shown({ metadata: { name: `n-${uid}`, uid, resourceVersion: String(version) } }),
});
const versionOf = (one: HubObjectEvent): number =>
  one.type === 'synced' ? 0 : Number(one.object.resourceVersion);

describe('events of a watch that wait for their reader', () => {
  it('of each object the newest state comes last, in order, and nothing is told twice', () =>
    checkAsync(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 5 }), fc.boolean()), { maxLength: 200 }),
        async (deeds) => {
          const pending = createPendingEvents({ events: 1_000, bytes: 1_000_000 });
          const newest = new Map<string, number>();
          const told = new Map<string, number[]>();
          const read = async (): Promise<void> => {
            for (const one of (await pending.take()) ?? []) {
              if (one.type !== 'synced')
                told.set(one.object.uid, [...(told.get(one.object.uid) ?? []), versionOf(one)]);
            }
          };
          for (const [index, [object, reads]] of deeds.entries()) {
            pending.push(event('applied', String(object), index), 10);
            newest.set(String(object), index);
            if (reads) await read();
          }
          pending.push({ type: 'synced', names: [], resourceVersion: '1' }, 1);
          await read();
          for (const [object, version] of newest) expect(told.get(object)?.at(-1)).to.equal(version);
          for (const versions of told.values())
            expect(versions).to.deep.equal([...new Set(versions)].toSorted((a, b) => a - b));
        },
      ),
      { numRuns: 100 },
    ));

  it('a later list replaces an earlier one and stands behind what it holds', async () => {
    const pending = createPendingEvents({ events: 10, bytes: 1_000 });
    pending.push({ type: 'synced', names: ['old'], resourceVersion: '1' }, 1);
    pending.push(event('applied', 'a', 2), 1);
    pending.push({ type: 'synced', names: ['n-a'], resourceVersion: '2' }, 1);
    expect((await pending.take())?.map(({ type }) => type)).to.deep.equal(['applied', 'synced']);
  });

  it('there is room only below number and size; taking makes room, and so does the end', async () => {
    const pending = createPendingEvents({ events: 2, bytes: 100 });
    let entered = 0;
    const enter = async (): Promise<void> => {
      await pending.room();
      entered += 1;
    };
    pending.push(event('applied', 'a', 1), 100);
    const first = enter();
    await new Promise(setImmediate);
    expect(entered).to.equal(0);
    await pending.take();
    await first;
    pending.push(event('applied', 'a', 2), 1);
    pending.push(event('applied', 'b', 3), 1);
    const second = enter();
    await new Promise(setImmediate);
    expect(entered).to.equal(1);
    pending.end();
    await second;
    expect(await pending.take()).to.equal(undefined);
  });
});

describe('lines of a watch', () => {
  const lines = async (chunks: readonly string[]): Promise<unknown[]> => {
    async function* source(): AsyncGenerator<Buffer> {
      for (const chunk of chunks) yield Buffer.from(chunk, 'latin1');
    }
    const values: unknown[] = [];
    for await (const { value } of watchLines(source())) values.push(value);
    return values;
  };

  it('are put together however they were cut, also inside a character', () =>
    checkAsync(
      fc.asyncProperty(fc.array(fc.string()), fc.array(fc.nat(200)), async (texts, cuts) => {
        const objects = texts.map((text) => ({ text: text.toWellFormed() }));
        const bytes = Buffer.from(objects.map((one) => `${JSON.stringify(one)}\n`).join('')).toString(
          'latin1',
        );
        const points = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].toSorted((a, b) => a - b);
        const chunks = [0, ...points].map((from, index) => bytes.slice(from, points[index]));
        expect(await lines(chunks)).to.deep.equal(objects);
      }),
      { numRuns: 100 },
    ));

  it('that end without a line feed are dropped; others that are no objects are faults', async () => {
    expect(await lines(['{"a":1}\n{"b"'])).to.deep.equal([{ a: 1 }]);
    for (const text of ['x\n', '7\n', '[]\n', '{"a":\n']) {
      const fault = await lines([text]).catch((error: unknown) => error);
      expect(fault).to.be.instanceOf(UnreadableWatch);
      expect(String(fault)).to.not.include(text.trim().slice(0, 4));
    }
  });

  it('without an end are a fault, not a full memory', async () => {
    const endless = await lines(Array.from({ length: 10 }, () => 'x'.repeat(1_000_000))).catch(
      (error: unknown) => error,
    );
    expect(endless).to.be.instanceOf(UnreadableWatch);
  });
});
