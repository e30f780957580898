import { expect } from 'chai';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import type { CommandOutcome } from '../../../src/app/commands/command.ts';
import { OutcomeUnknown, StoreUnavailable, type EventStore } from '../../../src/app/log/event-store.ts';
import { ReferencesBusy, createAnnouncements } from '../../../src/app/references/reference-guard.ts';
import { createReferrals } from '../../../src/app/references/referrals.ts';
import { DELETION_ANNOUNCED, REFERENCES_ANNOUNCED } from '../../../src/domain/announcements.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { kindOf, type AnyKind } from '../../../src/domain/kinds.ts';
import { collect, fakeContext } from '../../support/commands/fake-context.ts';
import { delaying, gateBefore } from '../../support/event-store/held-appends.ts';
import {
  at,
  create,
  dangling,
  declared,
  REFERRING,
  remove,
  revise,
  seed,
  start,
  type Incarnation,
} from '../../support/commands/referring-objects.ts';

/** What references and deletions leave in the log when they are refused, repeated or overtaken (`src/app/references/referrals.ts`). */

const codeOf = (outcome: CommandOutcome<unknown>): string => {
  if (outcome.outcome === 'rejected') return outcome.rejection.code;
  return outcome.replayed ? 'replayed' : 'accepted';
};
const typesOf = async (store: EventStore, stream: string): Promise<string[]> =>
  (await collect(store.readStream(stream))).map(({ type }) => type);
const seeded = async (singleWriter: boolean): Promise<EventStore> => {
  const store = createMemoryEventStore({ singleWriter });
  await seed(store);
  return store;
};
/** Role 0 again, under the id of the one that was deleted. */
const restore = (on: Incarnation): Promise<CommandOutcome<unknown>> =>
  create(on, 'role', 'role0', -1, 'restored');

describe('references and deletions on a log with other writers', () => {
  let store: EventStore;
  let one: Incarnation;
  let two: Incarnation;
  beforeEach(async () => {
    store = await seeded(false);
    [one, two] = [start(store, 'one'), start(store, 'two')];
  });

  it('a target that another instance has restored can be referred to, whatever this one remembers', async () => {
    expect(codeOf(await remove(one, 'role', 'role0', 'd1'))).to.equal('accepted');
    expect(codeOf(await restore(two))).to.equal('accepted');
    expect(codeOf(await create(one, 'roleBinding', 'x', 0))).to.equal('accepted');
  });

  it('a reference to what is gone is refused without a trace in the log', async () => {
    expect(codeOf(await remove(one, 'role', 'role0', 'd1'))).to.equal('accepted');
    expect(codeOf(await create(one, 'roleBinding', 'x', 0))).to.equal('REFERENCE_NOT_FOUND');
    expect(await typesOf(store, 'roleBinding-x')).to.deep.equal([]);
  });

  it('a reference that cannot settle a deletion of its target now takes its announcement back', async () => {
    const left = gateBefore(store, 'RoleRetired');
    void remove(start(left.store, 'dies'), 'role', 'role0', 'd1');
    await left.reached;
    // The deletion does not come, and its target's stream takes nothing.
    const noRoles: EventStore = {
      ...store,
      append: async (...args) => {
        if (args[0] === 'role-role0') throw new StoreUnavailable('no', 'closed');
        return store.append(...args);
      },
    };
    // Its waits for the deletion are over at once.
    const hasty = { after: (_ms: number, fire: () => void) => (setImmediate(fire), () => undefined) };
    const refused = await create(start(noRoles, 'three', {}, hasty), 'roleBinding', 'x', 0).catch(
      (error: unknown) => error,
    );
    expect(refused).to.be.instanceOf(ReferencesBusy);
    expect(await typesOf(store, 'roleBinding-x')).to.deep.equal([
      'ReferencesAnnounced',
      'AnnouncementWithdrawn',
    ]);
  });

  it('a deletion that is refused keeps nobody waiting who comes to refer to the object', async () => {
    expect(codeOf(await create(one, 'roleBinding', 'x', 0))).to.equal('accepted');
    expect(codeOf(await remove(two, 'role', 'role0', 'd1'))).to.equal('STILL_REFERENCED');
    // No timer of these incarnations ever fires.
    expect(codeOf(await create(one, 'roleBinding', 'y', 0))).to.equal('accepted');
  });

  it('a deletion that is repeated after its id was used again leaves the new object alone', async () => {
    expect(codeOf(await remove(one, 'role', 'role0', 'd1'))).to.equal('accepted');
    expect(codeOf(await restore(two))).to.equal('accepted');
    const before = await typesOf(store, 'role-role0');
    expect(codeOf(await remove(one, 'role', 'role0', 'd1'))).to.equal('replayed');
    expect(await typesOf(store, 'role-role0')).to.deep.equal(before);
  });

  it('nor does it wait for, or end, the deletion of the new one', async () => {
    expect(codeOf(await remove(one, 'role', 'role0', 'd1'))).to.equal('accepted');
    expect(codeOf(await restore(two))).to.equal('accepted');
    const gate = gateBefore(store, 'RoleRetired');
    const removing = remove(start(gate.store, 'three'), 'role', 'role0', 'd2');
    await gate.reached;
    // No timer of these incarnations ever fires: what waits here stays.
    expect(codeOf(await remove(one, 'role', 'role0', 'd1'))).to.equal('replayed');
    expect((await typesOf(store, 'role-role0')).at(-1)).to.equal(DELETION_ANNOUNCED);
    gate.open();
    expect(codeOf(await removing)).to.equal('accepted');
  });

  it('a deletion that found nothing takes nothing that it has not announced', async () => {
    const codes: string[] = [];
    for (let look = 0; look < 6; look += 1) {
      store = await seeded(false);
      [one, two] = [start(store, 'one'), start(store, 'two')];
      expect(codeOf(await remove(one, 'role', 'role0', 'd1'))).to.equal('accepted');
      let looks = 0;
      // Made again at one of the moments between two looks at the stream.
      const meanwhile = async <T>(stream: string, then: () => T | Promise<T>): Promise<T> => {
        if (stream === 'role-role0' && looks++ === look) await restore(two);
        return then();
      };
      const late: EventStore = {
        ...store,
        currentRevision: (stream, signal) => meanwhile(stream, () => store.currentRevision(stream, signal)),
        async *readStream(stream, range) {
          yield* await meanwhile(stream, () => store.readStream(stream, range));
        },
      };
      codes.push(codeOf(await remove(start(late, 'late'), 'role', 'role0', 'd2')));
      const types = await typesOf(store, 'role-role0');
      const retired = types.flatMap((type, i) => (type === 'RoleRetired' ? [types[i - 1]] : []));
      expect(new Set(retired), `look ${look}`).to.deep.equal(new Set([DELETION_ANNOUNCED]));
    }
    expect(codes).to.include.members(['accepted', 'CONCURRENT_MODIFICATION', 'NOT_FOUND']);
  });

  it('a change for another revision than the stored one is told so, not that others were faster', async () => {
    expect(codeOf(await create(one, 'roleBinding', 'x', 0))).to.equal('accepted');
    const change = { type: 'ReviseDocument', at, document: REFERRING.roleBinding?.(1) } as DocumentCommand;
    const stale = { ...fakeContext('stale'), ifRevision: 0 };
    const outcome = await two.resources.execute(declared('roleBinding'), 'x', change, stale);
    expect(codeOf(outcome)).to.equal('VERSION_MISMATCH');
  });

  it('a change for the stored revision is carried out behind its own announcement', async () => {
    expect(codeOf(await create(one, 'roleBinding', 'x', 0))).to.equal('accepted');
    const change = { type: 'ReviseDocument', at, document: REFERRING.roleBinding?.(1) } as DocumentCommand;
    const exact = { ...fakeContext('exact'), ifRevision: 1 };
    const outcome = await two.resources.execute(declared('roleBinding'), 'x', change, exact);
    expect(codeOf(outcome)).to.equal('accepted');
    expect((await typesOf(store, 'roleBinding-x')).slice(-2)).to.deep.equal([
      'ReferencesAnnounced',
      'RoleBindingRevised',
    ]);
  });

  it('a deletion withdraws an announcement in a stream that it remembers from before', async () => {
    expect(codeOf(await create(two, 'roleBinding', 'x', 1))).to.equal('accepted');
    const left = gateBefore(store, 'RoleBindingRevised');
    const revising = revise(start(left.store, 'slow'), 'roleBinding', 'x', 0, 'r1');
    await left.reached;
    expect(codeOf(await remove(two, 'role', 'role0', 'd1'))).to.equal('accepted');
    left.open();
    expect(codeOf(await revising)).to.equal('REFERENCE_NOT_FOUND');
    expect(await dangling(store)).to.deep.equal([]);
  });

  it('a reference whose announcement is withdrawn again and again gives up, and leaves nothing', async () => {
    const { withdraw } = createAnnouncements({ ...two, step: two.names.step });
    const withdrawing: EventStore = {
      ...store,
      append: async (...args) => {
        const appended = await store.append(...args);
        if (args[2].some(({ type }) => type === REFERENCES_ANNOUNCED))
          await withdraw(kindOf('roleBinding') as AnyKind, 'x', appended.revision);
        return appended;
      },
    };
    const refused = await create(start(withdrawing, 'three'), 'roleBinding', 'x', 0);
    expect(codeOf(refused)).to.equal('CONCURRENT_MODIFICATION');
    const types = await typesOf(store, 'roleBinding-x');
    expect(new Set(types)).to.deep.equal(new Set([REFERENCES_ANNOUNCED, 'AnnouncementWithdrawn']));
    expect(types.at(-1)).to.equal('AnnouncementWithdrawn');
  });
});

describe('references and deletions of the only writer', () => {
  it('an append that turned out to be stored is settled: a later deletion writes nothing to its stream', async () => {
    const store = await seeded(true);
    const wire = delaying(store, 'RoleBound');
    const now = { append: wire.store.append };
    const on = start({ ...store, append: (...args) => now.append(...args) }, 'one');
    const failed = await create(on, 'roleBinding', 'x', 0).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(OutcomeUnknown);
    await wire.deliver();
    now.append = store.append;
    expect(codeOf(await create(on, 'roleBinding', 'x', 0))).to.equal('replayed');
    expect(codeOf(await revise(on, 'roleBinding', 'x', 1, 'r1'))).to.equal('accepted');
    expect(codeOf(await remove(on, 'role', 'role0', 'd1'))).to.equal('accepted');
    expect(await typesOf(store, 'roleBinding-x')).to.deep.equal(['RoleBound', 'RoleBindingRevised']);
    expect(await dangling(store)).to.deep.equal([]);
  });

  it('a command that is withheld each time it is tried gives up', async () => {
    const on = start(await seeded(true), 'one');
    const parts = { ...on, step: on.names.step, caughtUp: async () => true, announcedTo: () => [] };
    const { carryOut } = createReferrals({ ...parts, alone: true });
    const loaded = { state: undefined, revision: 'no_stream', version: -1 } as const;
    let tries = 0;
    const attempt = async () => {
      tries += 1;
      return { outcome: 'withheld', targets: [{ kind: 'role', id: `role${tries}` }], loaded } as never;
    };
    const kind = kindOf('roleBinding') as AnyKind;
    expect(codeOf(await carryOut(kind, 'x', fakeContext('c'), {}, attempt))).to.equal(
      'CONCURRENT_MODIFICATION',
    );
    expect(tries).to.be.within(2, 20);
  });

  it('a creation that got no further than its name leaves its own stream empty when its target goes', async () => {
    const store = await seeded(true);
    const wire = delaying(store, 'NameReserved');
    const on = start(wire.store, 'one');
    const failed = await create(on, 'roleBinding', 'x', 0).catch((error: unknown) => error);
    expect(failed).to.be.instanceOf(OutcomeUnknown);
    expect(codeOf(await remove(on, 'role', 'role0', 'd1'))).to.equal('accepted');
    expect(await typesOf(store, 'roleBinding-x')).to.deep.equal([]);
  });
});
