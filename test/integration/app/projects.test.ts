import { secretData } from '../../support/domain/secret-data.ts';
import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { Timers } from '../../../src/app/ports.ts';
import { settleEntries } from '../../../src/app/tenancy/project-entries.ts';
import type { DocumentCommand } from '../../../src/domain/catalog/document.ts';
import { aggregateOf, kinds, project, projectMembership, secret } from '../../../src/domain/kinds.ts';
import { eventTypes } from '../../../src/domain/registry.ts';
import { parseStreamName } from '../../../src/domain/stream-name.ts';
import { collect, fakeContext } from '../../support/commands/fake-context.ts';
import { crashing, createIncarnation } from '../../support/commands/fake-incarnation.ts';
import { cases, checkAsync } from '../../support/property.ts';
import { eventually } from '../../support/eventually.ts';

/** Whoever waits for somebody who is dead has waited long enough at once. */
const waits: Timers = {
  after: (_ms, fire) => {
    const timer = setImmediate(fire);
    return () => clearImmediate(timer);
  },
};

/** No order of events leaves a deleted project with an object inside (`src/app/tenancy/project-entries.ts`). */
const settings = {
  waits,
  codec: createEventCodec(eventTypes),
  kinds,
  lifecycle: {
    starts: ['ProjectOpened', 'SecretDeposited', 'ProjectMembershipGranted'],
    ends: ['ProjectClosed', 'SecretRemoved', 'ProjectMembershipRevoked'],
  },
};
const start = (store: EventStore, name: string) => createIncarnation(store, name, settings);
type Incarnation = ReturnType<typeof start>;

const at = '2026-11-21T10:00:00.000Z';
const shared = () => createMemoryEventStore({ singleWriter: false });
const KINDS = { project, projectMembership, secret };
type Kind = keyof typeof KINDS;

const DOCUMENTS: { readonly [kind in Kind]: DocumentCommand & { readonly type: 'CreateDocument' } } =
  Object.fromEntries(
    Object.keys(KINDS).map((kind) => [
      kind,
      {
        type: 'CreateDocument',
        at,
        id: '',
        tenant: 'acme',
        project: '',
        name: '',
        creator: 'u',
        document:
          kind === 'projectMembership'
            ? { spec: { role: 'PROJECT_MEMBERSHIP_ROLE_VIEWER', users: [{ id: 'u1' }] } }
            : {},
        ...(kind === 'secret' ? { secrets: secretData } : {}),
      },
    ]),
  ) as never;

const create = (on: Incarnation, kind: Kind, id: string, place: string, name: string, command = id) =>
  on.resources.execute(
    KINDS[kind] as typeof secret,
    id,
    (abandonedBefore: number): DocumentCommand => ({
      ...DOCUMENTS[kind],
      id,
      name,
      project: place,
      abandonedBefore,
    }),
    fakeContext(`create ${kind} ${command}`),
  );

const isLive = async (on: Incarnation, kind: Kind, id: string): Promise<boolean> => {
  const declared = KINDS[kind] as typeof secret;
  const view = declared.view((await on.runner.load(aggregateOf(declared), id)).state);
  return view.exists && !view.archived;
};

/** What a read model that knows all of the log says is inside. */
const inside = async (store: EventStore, place: string): Promise<boolean> => {
  const reader = start(store, 'reader');
  const streams = new Set((await collect(store.readAll({ limit: 10_000 }))).map(({ stream }) => stream));
  for (const stream of streams) {
    const { category, id } = parseStreamName(stream);
    if (!Object.hasOwn(KINDS, category)) continue;
    const declared = KINDS[category as Kind] as typeof secret;
    const view = declared.view((await reader.runner.load(aggregateOf(declared), id)).state);
    if (view.exists && !view.archived && view.project === place) return true;
  }
  return false;
};

/** A deletion as the handler makes it: look, settle, look, delete at the revision of the beginning. */
const remove = async (on: Incarnation, log: EventStore, id: string, command: string): Promise<boolean> => {
  for (let round = 0; round < 5; round += 1) {
    const { state, revision } = await on.runner.load(aggregateOf(project), id);
    const view = project.view(state);
    if (!view.exists || view.archived || revision === 'no_stream') return false;
    if ((await settleEntries(on, id, command)).length > 0) return false;
    if (await inside(log, view.name)) return false;
    const context = fakeContext(command, { ifRevision: revision });
    const outcome = await on.resources.execute(project, id, { type: 'DeleteDocument', at }, context);
    if (outcome.outcome === 'accepted') return true;
    if (outcome.rejection.kind !== 'conflict') return false;
  }
  return false;
};

describe('projects and what is created in them', () => {
  it('a creation enters the project first, and the next one says that it is over', async () => {
    const store = shared();
    const one = start(store, 'one');
    await create(one, 'project', 'p1', '', 'a');
    await create(one, 'secret', 's1', 'a', 'x');
    await create(one, 'secret', 's2', 'a', 'y');
    const entries = (await collect(store.readAll({ limit: 100 }))).filter(
      ({ type }) => type === 'ProjectEntered',
    );
    expect(entries.map(({ stream, data }) => [stream, data['stream'], data['left']])).to.deep.equal([
      ['project-p1', 'secret-s1', undefined],
      ['project-p1', 'secret-s2', ['secret-s1']],
    ]);
    const { state } = await one.runner.load(aggregateOf(project), 'p1');
    expect(state.entering).to.deep.equal(['secret-s2']);
  });

  it('nothing enters a project that is not there, is gone, or is being deleted; its name stays free', async () => {
    const store = shared();
    const one = start(store, 'one');
    const refused = async (kind: Kind, name: string, place: string, text: string): Promise<void> => {
      const outcome = await create(one, kind, `${kind}-${name}`, place, name, `${kind} ${name} ${place}`);
      expect(outcome.outcome === 'rejected' && outcome.rejection).to.include({
        code: 'PROJECT_NOT_FOUND',
        kind: 'invalid',
        message: text,
      });
    };
    await refused('secret', 'x', 'a', "project 'a' doesn't exist");
    await refused('project', 'a.b', 'a', "parent project 'a' doesn't exist");
    await create(one, 'project', 'p1', '', 'a');
    expect(await remove(one, store, 'p1', 'd1')).to.equal(true);
    await refused('secret', 'x', 'a', "project 'a' doesn't exist");
    await create(one, 'project', 'p2', '', 'a');
    const held = { metadata: { finalizers: ['f'] } };
    const hold = { type: 'ReviseDocument', at, document: held } as const;
    await one.resources.execute(project, 'p2', hold, fakeContext('hold'));
    expect(await remove(one, store, 'p2', 'd2')).to.equal(true);
    await refused('secret', 'x', 'a', "project 'a' doesn't exist");
    await one.resources.execute(project, 'p2', { ...hold, document: {} }, fakeContext('let go'));
    await create(one, 'project', 'p3', '', 'a');
    const made = await create(one, 'secret', 's9', 'a', 'x');
    expect(made.outcome).to.equal('accepted');
    expect(await remove(one, store, 'p3', 'd3')).to.equal(false);
  });

  it('a creation that died on its way does not keep the project, and cannot come back', async () => {
    for (const at of [1, 2, 3]) {
      const store = shared();
      const one = start(store, 'one');
      await create(one, 'project', 'p1', '', 'a');
      const dying = start(crashing(store, { at, when: 'before' }), 'dying');
      await create(dying, 'secret', 's1', 'a', 'x').catch(() => undefined);
      expect(await remove(one, store, 'p1', 'd1'), String(at)).to.equal(true);
      const again = await create(one, 'secret', 's1', 'a', 'x');
      expect(again.outcome === 'rejected' && again.rejection.code).to.equal('PROJECT_NOT_FOUND');
    }
  });

  it('a creation that was fenced off and entered again is fenced off again by the same deletion', async () => {
    const store = shared();
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let appends = 0;
    const gated: EventStore = {
      ...store,
      append: async (stream, expected, events, ...rest) => {
        if (events.some(({ type }) => type === 'SecretDeposited')) await gates[appends++]?.promise;
        return store.append(stream, expected, events, ...rest);
      },
    };
    const count = async (type: string): Promise<number> =>
      (await collect(store.readAll({ limit: 100 }))).filter((event) => event.type === type).length;
    const entered = async (times: number): Promise<void> => {
      await eventually(`${times} appends`, () => appends >= times);
      expect([appends, await count('ProjectEntered')]).to.deep.equal([times, times]);
    };
    const two = start(store, 'two');
    await create(two, 'project', 'p1', '', 'a');
    const creation = create(start(gated, 'one'), 'secret', 's1', 'a', 'x');
    for (const [round, gate] of gates.entries()) {
      await entered(round + 1);
      await settleEntries(two, 'p1', 'd1');
      expect(await count('CreationAbandoned')).to.equal(round + 1);
      if (round === 0) gate.resolve();
    }
    expect(await remove(two, store, 'p1', 'd1')).to.equal(true);
    gates[1]?.resolve();
    const outcome = await creation;
    expect(outcome.outcome === 'rejected' && outcome.rejection.code).to.equal('PROJECT_NOT_FOUND');
    expect(await isLive(two, 'secret', 's1')).to.equal(false);
  });

  it('a refused creation is not said to be over, since another attempt at the same object may be under way', async () => {
    const store = shared();
    const one = start(store, 'one');
    await create(one, 'project', 'p1', '', 'a');
    let fenced = false;
    const overtaken: EventStore = {
      ...store,
      append: async (stream, expected, events, ...rest) => {
        if (events.some(({ type }) => type === 'SecretDeposited') && !fenced) {
          fenced = true;
          await settleEntries(one, 'p1', 'd1');
        }
        return store.append(stream, expected, events, ...rest);
      },
    };
    const two = start(overtaken, 'two');
    const command = { ...DOCUMENTS.secret, id: 's1', name: 'x', project: 'a' };
    const refused = await two.resources.execute(secret, 's1', command, fakeContext('create s1'));
    expect(refused.outcome === 'rejected' && refused.rejection.code).to.equal('CREATION_ABANDONED');
    await create(two, 'secret', 's2', 'a', 'y');
    const { state } = await one.runner.load(aggregateOf(project), 'p1');
    expect(state.entering).to.deep.equal(['secret-s1', 'secret-s2']);
  });

  /** Every call of the store waits for its turn, in an order that fast-check chooses. */
  const inTurn = (store: EventStore, scheduler: fc.Scheduler): EventStore => ({
    ...store,
    append: async (...args) => {
      await scheduler.schedule(Promise.resolve(), 'append');
      const appended = await store.append(...args);
      await scheduler.schedule(Promise.resolve(), 'appended');
      return appended;
    },
    async *readStream(...args) {
      await scheduler.schedule(Promise.resolve(), 'read');
      yield* store.readStream(...args);
    },
  });

  it('no interleaving leaves a deleted project with an object inside', async function () {
    this.timeout(60_000);
    const operation = fc.record({
      on: fc.nat(1),
      what: fc.oneof(
        { weight: 2, arbitrary: fc.constantFrom('secret', 'projectMembership', 'project') },
        { weight: 3, arbitrary: fc.constant('delete') },
      ),
      n: fc.nat(1),
    });
    const crash = fc.record({
      at: fc.integer({ min: 2, max: 30 }),
      when: fc.constantFrom('before' as const, 'after' as const),
    });
    await checkAsync(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(operation, { minLength: 2, maxLength: 6 }),
        fc.tuple(crash, crash),
        async (scheduler, operations, crashes) => {
          const store = shared();
          await create(start(store, 'first'), 'project', 'p', '', 'a');
          const scheduled = inTurn(store, scheduler);
          const both = crashes.map((plan, i) => start(crashing(scheduled, plan), `i${i}`));
          const run = ({ on, what, n }: { on: number; what: string; n: number }, again = '') => {
            const where = both[on] as Incarnation;
            return what === 'delete'
              ? remove(where, store, 'p', `delete ${on} ${n}${again}`)
              : create(where, what as Kind, `${what}-${n}`, 'a', what === 'project' ? `a.b${n}` : `o${n}`);
          };
          await scheduler.waitFor(Promise.allSettled(operations.map((one) => run(one))));
          const last = start(store, 'last');
          const open = await isLive(last, 'project', 'p');
          expect(open || !(await inside(store, 'a')), 'an object in a deleted project').to.equal(true);
          // And nobody is stuck: an empty project can be deleted by whoever comes last.
          const empty = open && !(await inside(store, 'a'));
          if (empty) expect(await remove(last, store, 'p', 'at last')).to.equal(true);
        },
      ),
      { numRuns: cases(1_000) },
    );
  });
});
