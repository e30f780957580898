import { actingKinds } from '../../../src/domain/acting-kinds.ts';
import { isOwned } from '../../../src/domain/hub-objects.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { parseStreamName, streamName } from '../../../src/domain/stream-name.ts';
import { KIND_SAMPLES, makeHousePool } from '../http/kind-samples.ts';
import { seedCatalogue } from '../http/seed-catalogue.ts';
import { PRIVATE, type Caller } from '../http/caller.ts';
import type { Request } from './api.ts';
import { createClients, principalOf } from './clients.ts';
import { planOfDrill } from './drill.ts';
import { Violation } from './invariants.ts';
import { playOut, until, type Simulated } from './simulate.ts';
import type { World } from './world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const HUB = 'sim-1';
const QUICK = { simulation: 'factor=0.2' };
const LOOK_MS = 2_000;
/** After that an order that waits asks again: an hour and a half, and some for jitter. */
const BOUND_MS = 3 * HOUR;

/** Every kind of which an object is one object on one hub. */
const KINDS = actingKinds.filter(({ hubObjects }) =>
  hubObjects.some((one) => isOwned(one) && one.ownLane === true),
);
const AS_WANTED = /_STATE_(READY|ALLOCATED|AVAILABLE|RUNNING)$/;

/**
 * One hub goes away for an hour. Meanwhile one of each placed kind is created, changed, deleted, and created and deleted;
 * parents and children at once, in any order. Afterwards everything is made, and then everything goes.
 */
export const runAway = (seed: number): Promise<Simulated> =>
  playOut(
    { ...planOfDrill(seed, {}), hubs: [{ id: HUB, controlPlanes: 100, nodes: 1_000 }], clusters: 0 },
    async (world) => {
      const people = peopleOf(world);
      world.keepRunning(1);
      await until(world, 'the catalogue is there', seedCatalogue(people.admin), 5 * MINUTE);
      await until(world, 'the house is there', makeHousePool(people.admin, QUICK), HOUR);
      await people.settle(() => true);
      await until(world, 'one of each is made', people.makeAll('first'), HOUR);
      await people.settle(() => true);

      world.trace.note('world', 'the hub goes away');
      const before = world.objectsOn(HUB).length;
      world.sendAway([HUB]);
      const back = world.agenda.now() + HOUR;
      await until(world, 'all is answered', people.ask(), HOUR);
      const left = back - world.agenda.now();
      await until(world, 'an hour passes', world.agenda.sleep('client', left), left + 1);
      if (world.objectsOn(HUB).length !== before)
        throw new Violation('an object was made on a hub that is away');
      people.checkAway();

      world.trace.note('world', 'the hub is back');
      world.sendAway([]);
      await until(world, 'what is to go was asked to', people.removeAll(isOfHour), BOUND_MS);
      await people.settle(() => true);
      people.checkOnce();
      await until(
        world,
        'everything was asked to go',
        people.removeAll(() => true),
        BOUND_MS,
      );
      await people.settle(() => false);
      people.checkNothingLeft();
      people.check();
      world.calmDown();
      await until(world, 'everybody has stopped', world.stopAll(), 5 * MINUTE);
    },
  );

/** Those that were to go while the hub was away. */
const isOfHour = (id: string): boolean => /^(first|brief)-/.test(id);

const peopleOf = (world: World) => {
  const { agenda, ledger } = world;
  const random = world.random.fork('people');
  const clients = createClients(world, world.random.fork('clients'));
  const around = { user: () => '' };
  let requests = 0;
  const send = (verb: string, path: string, body: object = {}) =>
    clients.send({
      verb: verb as Request['verb'],
      surface: 'private',
      path: path.replace(`${PRIVATE}/`, ''),
      body: JSON.parse(JSON.stringify(body)) as JsonObject,
      idempotencyKey: `a${(requests += 1)}`,
      principal: principalOf(undefined),
    });
  /** What it refers to may not be known or ready yet. */
  const patient = async (verb: string, path: string, body: object = {}) => {
    for (let tries = 0; ; tries += 1) {
      const reply = await send(verb, path, body);
      if (reply?.status === 200 || tries === 300) return reply;
      await agenda.sleep('client', 1_000);
    }
  };
  const admin = (async (verb: string, path: string, body: object) => {
    const reply = await patient(verb, path, body);
    return { status: reply?.status ?? 0, text: reply?.message ?? '', json: reply?.body };
  }) as unknown as Caller;

  const things = () =>
    KINDS.flatMap((kind) =>
      ledger.streams(kind.kind).flatMap((stream) => {
        const state = ledger
          .events(stream)
          .reduce((before, event) => kind.decider.evolve(before, event), kind.decider.initialState());
        const view = kind.view(state);
        const { id } = parseStreamName(stream);
        return view.exists ? [{ kind, id, view, isThere: !view.archived }] : [];
      }),
    );
  const unsettled = (mayBe: (id: string) => boolean): readonly string[] =>
    things().flatMap(({ kind, id, view, isThere }) => {
      if (!isThere) return [];
      const isWanted = view.deletionTimestamp === undefined && AS_WANTED.test(view.state ?? '');
      return mayBe(id) && isWanted ? [] : [`${kind.words} ${id} is ${view.state ?? 'nothing'}`];
    });
  const shuffled = <T>(all: readonly T[]): readonly T[] =>
    all
      .map((one) => ({ one, at: random.next() }))
      .toSorted((a, b) => a.at - b.at)
      .map(({ one }) => one);

  const make = async (prefix: string, kind: (typeof KINDS)[number]): Promise<string> => {
    const id = `${prefix}-${kind.kind.toLowerCase()}`;
    const { metadata, ...sample } = (KIND_SAMPLES[kind.kind]?.body(id, around) ?? {}) as {
      metadata: object;
    };
    const body = { ...sample, id, metadata: { ...metadata, annotations: QUICK } };
    const reply = await patient('POST', kind.collection, body);
    if (reply?.status !== 200) throw new Violation(`${id}: ${reply?.status} ${reply?.message}`);
    return id;
  };

  return {
    admin,
    check: () => clients.check(),
    makeAll: (prefix: string) => Promise.all(KINDS.map((kind) => make(prefix, kind))),
    /** Until nothing is left to happen. */
    settle: async (mayBe: (id: string) => boolean): Promise<void> => {
      const bound = agenda.now() + BOUND_MS;
      for (let left = unsettled(mayBe); left.length > 0; left = unsettled(mayBe)) {
        if (agenda.now() > bound) throw new Violation(`not settled: ${left.join('; ')}`);
        await until(world, 'time passes', agenda.sleep('world', LOOK_MS), LOOK_MS + 1);
      }
    },
    /** What people do while the hub is away, all at once. */
    ask: async (): Promise<void> => {
      const changed = { metadata: { labels: { changed: 'yes' } } };
      const one = async (kind: (typeof KINDS)[number]): Promise<void> => {
        await make('second', kind);
        await send('PATCH', `${kind.collection}/first-${kind.kind.toLowerCase()}`, changed);
        const brief = await make('brief', kind);
        await send('DELETE', `${kind.collection}/${brief}`);
      };
      await Promise.all(shuffled(KINDS).map(one));
      // What refers to another one goes before it: whoever is refused asks again later.
      await Promise.all(
        shuffled(KINDS).map((kind) => send('DELETE', `${kind.collection}/first-${kind.kind.toLowerCase()}`)),
      );
    },
    removeAll: async (which: (id: string) => boolean): Promise<void> => {
      const left = () => things().filter(({ id, isThere }) => isThere && which(id));
      for (let all = left(); all.length > 0; all = left()) {
        const open = all.filter(({ view }) => view.deletionTimestamp === undefined);
        await Promise.all(shuffled(open).map(({ kind, id }) => send('DELETE', `${kind.collection}/${id}`)));
        await agenda.sleep('client', LOOK_MS);
      }
    },
    checkAway: (): void => {
      for (const { kind, id, view, isThere } of things()) {
        if (id.startsWith('second-') && AS_WANTED.test(view.state ?? ''))
          throw new Violation(`${kind.words} ${id} is ${view.state}, and its hub was away`);
        if (id.startsWith('first-') && !isThere)
          throw new Violation(`${kind.words} ${id} is gone, and nobody saw that its object is`);
      }
    },
    /** What was made has one object, and what was to go has none. */
    checkOnce: (): void => {
      const objects = world.objectsOn(HUB);
      for (const kind of KINDS) {
        const [object] = kind.hubObjects;
        const made = (id: string) => objects.filter((one) => one.kind === object?.kind && one.id === id);
        const second = made(`second-${kind.kind.toLowerCase()}`);
        if (second.length !== 1) throw new Violation(`${kind.words}: ${second.length} objects were made`);
        if (made(`first-${kind.kind.toLowerCase()}`).length !== 1)
          throw new Violation(`${kind.words}: the first one was made again`);
      }
    },
    checkNothingLeft: (): void => {
      const left = world
        .objectsOn(HUB)
        .filter(({ deletionAt, kind }) => deletionAt === undefined && kind !== 'ClusterOrder');
      const ours = left.filter(({ kind }) =>
        KINDS.some(({ hubObjects }) => hubObjects.some((object) => object.kind === kind)),
      );
      if (ours.length > 0)
        throw new Violation(`the hub still has ${ours.map(({ kind, id }) => `${kind} ${id}`).join(', ')}`);
      for (const { kind, id } of things()) {
        const held = kind.lends?.held(
          ledger
            .events(streamName(kind.kind, id))
            .reduce((before, event) => kind.decider.evolve(before, event), kind.decider.initialState()),
        );
        if ((held?.length ?? 0) > 0) throw new Violation(`${kind.words} ${id} is still held`);
      }
    },
  };
};
