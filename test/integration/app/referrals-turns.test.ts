import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { CommandOutcome } from '../../../src/app/commands/command.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { Timers } from '../../../src/app/ports.ts';
import { collect } from '../../support/commands/fake-context.ts';
import { manualTime } from '../../support/manual-time.ts';
import {
  create,
  remove,
  revise,
  seed,
  start,
  type Incarnation,
} from '../../support/commands/referring-objects.ts';

/** Instances that announce the same at the same time (`src/app/references/referrals.ts`) take turns. */

const turns = async (count: number): Promise<void> => {
  for (let i = 0; i < count; i += 1) await new Promise((resolve) => setImmediate(resolve));
};

/** A store that is as far away for reads as for appends. */
const distant = (store: EventStore, one: number): EventStore => ({
  ...store,
  async *readStream(...args) {
    await turns(2 * one);
    yield* store.readStream(...args);
  },
  async *readAll(...args) {
    await turns(6 * one);
    yield* store.readAll(...args);
  },
  currentRevision: async (...args) => {
    await turns(2 * one);
    return store.currentRevision(...args);
  },
  append: async (...args) => {
    await turns(one);
    try {
      return await store.append(...args);
    } finally {
      await turns(one);
    }
  },
});

const timers: Timers = {
  after: (ms, fire) => {
    const timer = setTimeout(fire, ms);
    return () => clearTimeout(timer);
  },
};

const codeOf = (outcome: CommandOutcome<unknown>): string => {
  if (outcome.outcome === 'rejected') return outcome.rejection.code;
  return outcome.replayed ? 'replayed' : 'accepted';
};

describe('instances that announce the same', () => {
  const typesOf = async (store: EventStore, stream: string): Promise<string[]> =>
    (await collect(store.readStream(stream))).map(({ type }) => type);
  const shared = async (): Promise<EventStore> => {
    const store = createMemoryEventStore({ singleWriter: false });
    await seed(store);
    return store;
  };
  /** Each on an instance of its own, `apart` turns after the one before it. */
  const atOnce = async (
    store: EventStore,
    count: number,
    apart: number,
    work: (on: Incarnation, i: number) => Promise<CommandOutcome<unknown>>,
  ): Promise<string[]> => {
    const all: Promise<string>[] = [];
    for (let i = 0; i < count; i += 1) {
      all.push(work(start(distant(store, 2), `i${i}`, {}, timers), i).then(codeOf));
      await turns(apart);
    }
    return (await Promise.all(all)).toSorted();
  };

  for (const [count, apart] of [
    [2, 2],
    [2, 7],
    [2, 9],
    [3, 6],
    [6, 3],
  ] as const)
    it(`one order that reaches ${count} instances, ${apart} turns apart, is announced once and answered the same by all`, async () => {
      const store = await shared();
      const codes = await atOnce(store, count, apart, (on) => create(on, 'roleBinding', 'x', 0));
      expect(codes).to.deep.equal(['accepted', ...Array<string>(count - 1).fill('replayed')]);
      expect(await typesOf(store, 'roleBinding-x')).to.deep.equal(['ReferencesAnnounced', 'RoleBound']);
    });

  for (const apart of [2, 5, 10])
    it(`of two deletions, ${apart} turns apart, one is carried out, and the other one finds nothing`, async () => {
      const store = await shared();
      const codes = await atOnce(store, 2, apart, async (on, i) => {
        const first = await remove(on, 'role', 'role0', `delete ${i}`);
        // As the handler does; each of them knows of the other one's by then.
        const isOvertaken = codeOf(first) === 'CONCURRENT_MODIFICATION';
        return isOvertaken ? remove(on, 'role', 'role0', `delete ${i}`) : first;
      });
      expect(codes).to.deep.equal(['NOT_FOUND', 'accepted']);
    });

  it('a change and a deletion of one object do not keep each other from it', async () => {
    const store = await shared();
    const codes = await atOnce(store, 2, 4, async (on, i) =>
      i === 0
        ? remove(on, 'clusterTemplate', 'clusterTemplate0', 'delete')
        : revise(on, 'clusterTemplate', 'clusterTemplate0', 1, 'revise'),
    );
    expect(codes).to.deep.equal(['NOT_FOUND', 'accepted']);
  });

  it('one that was left behind is waited for a moment, one that was refused is not', async () => {
    const store = await shared();
    const time = manualTime();
    const dying = { ...store, append: store.append };
    dying.append = async (...args) => {
      if (args[2].some(({ type }) => type === 'RoleBound')) return new Promise(() => undefined);
      return store.append(...args);
    };
    void create(start(dying, 'dying', {}, time.timers), 'roleBinding', 'x', 0);
    await time.pass(0);
    expect(await typesOf(store, 'roleBinding-x')).to.deep.equal(['ReferencesAnnounced']);
    const on = start(store, 'one', {}, time.timers);
    let code = '';
    void create(on, 'roleBinding', 'x', 0).then((outcome) => (code = codeOf(outcome)));
    await time.pass(900);
    expect(code).to.equal('');
    await time.pass(300);
    expect(code).to.equal('accepted');

    // Its name is taken, which is found out after the announcement.
    expect(codeOf(await create(on, 'roleBinding', 'X', 0, 'same name'))).to.equal('ALREADY_EXISTS');
    expect(await typesOf(store, 'roleBinding-X')).to.deep.equal([
      'ReferencesAnnounced',
      'AnnouncementWithdrawn',
    ]);
  });
});
