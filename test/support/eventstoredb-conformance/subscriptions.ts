import {
  EVENT_TYPE,
  jsonEvent,
  START,
  STREAM_NAME,
  type AllStreamSubscription,
  type EventStoreDBClient,
  type Position,
} from '@eventstore/db-client';
import { expect } from 'chai';
import { eventually } from '../eventually.ts';
import { appended } from './reads.ts';
import { withClient, type Behaviour, type ServerUnderTest } from './server.ts';

type Seen = { readonly marks: (Position | 'caught-up')[]; readonly events: Position[] };
type From = Position | typeof START;
type Filter =
  | { filterOn: typeof EVENT_TYPE; regex: string }
  | { filterOn: typeof STREAM_NAME; prefixes: string[] };

const OURS: Filter = { filterOn: EVENT_TYPE, regex: '^[^$].*' };
const only = (stream: string): Filter => ({ filterOn: STREAM_NAME, prefixes: [stream] });
const ZERO: Position = { commit: 0n, prepare: 0n };

const open = (
  client: EventStoreDBClient,
  fromPosition: From,
  filter: Filter,
  seen: Seen,
): AllStreamSubscription => {
  const subscription = client.subscribeToAll({
    fromPosition,
    filter: {
      ...filter,
      checkpointInterval: 1,
      checkpointReached: (_subscription, position) => void seen.marks.push(position),
    },
  });
  subscription.on('caughtUp', () => void seen.marks.push('caught-up'));
  return subscription;
};

/** Runs `work` while a subscription on a connection of its own notes what it is sent. */
const following = (
  server: Pick<ServerUnderTest, 'connectionString'>,
  from: From,
  filter: Filter,
  work: (seen: Seen, failed: () => unknown) => Promise<void>,
): Promise<void> =>
  withClient(server, async (client) => {
    const seen: Seen = { marks: [], events: [] };
    let failure: unknown;
    const subscription = open(client, from, filter, seen);
    subscription
      .on('data', ({ event }) => event?.position !== undefined && seen.events.push(event.position))
      .on('error', (error) => {
        failure = error;
      });
    try {
      await work(seen, () => failure);
    } finally {
      await subscription.unsubscribe().catch(() => {});
    }
  });

const caughtUp = (seen: Seen) => eventually('caught-up', () => seen.marks.includes('caught-up'), 20_000);
const checkpoints = (seen: Seen): Position[] => seen.marks.filter((mark) => mark !== 'caught-up');
const isNowhere = ({ commit }: Position): boolean => commit >= 2n ** 63n;

/** Two events, of which the first is scavenged. */
const scavenged = async (
  server: ServerUnderTest,
  client: EventStoreDBClient,
): Promise<{ gone: Position; kept: Position; stream: string }> => {
  const stream = server.unique('scavenged');
  await appended(client, server.unique('before'), 1);
  const [gone] = await appended(client, stream, 1);
  const [kept] = await appended(client, stream, 1);
  await client.setStreamMetadata(stream, { maxCount: 1 });
  await server.scavenge?.();
  return { gone: gone as Position, kept: kept as Position, stream };
};

/** What a subscription to the whole log is sent. */
export const subscriptionBehaviours: readonly Behaviour[] = [
  {
    name: 'a subscription begins behind its position, and says caught-up once it has sent what was there',
    check: (server) =>
      withClient(server, async (client) => {
        const stream = server.unique('begins');
        const places = await appended(client, stream, 3);
        await following(server, places[0] as Position, only(stream), async (seen) => {
          await caughtUp(seen);
          expect(seen.events).to.deep.equal(places.slice(1));
        });
      }),
  },
  {
    name: 'a subscription from a position whose record was scavenged skips the next event',
    needs: ['scavenge'],
    versions: ['23.10'],
    check: (server) =>
      withClient(server, async (client) => {
        const { gone, stream } = await scavenged(server, client);
        await following(server, gone, only(stream), async (seen) => {
          await caughtUp(seen);
          expect(seen.events).to.deep.equal([]);
        });
      }),
  },
  {
    name: 'a subscription from a position whose record was scavenged skips nothing',
    needs: ['scavenge'],
    versions: ['24.10', '25.0'],
    check: (server) =>
      withClient(server, async (client) => {
        const { gone, kept, stream } = await scavenged(server, client);
        await following(server, gone, only(stream), async (seen) => {
          await caughtUp(seen);
          expect(seen.events).to.deep.equal([kept]);
        });
      }),
  },
  {
    name: 'a subscription from the start of a log in which nothing matches is told no checkpoint',
    needs: ['empty'],
    versions: ['23.10'],
    check: async (server) => {
      const empty = await emptyOf(server);
      await following(empty, START, OURS, async (seen) => {
        await caughtUp(seen);
        expect(checkpoints(seen)).to.deep.equal([]);
      });
    },
  },
  {
    name: 'a subscription from the start of a log in which nothing matches is told 2^64-1 before caught-up, and no checkpoint after',
    needs: ['empty'],
    versions: ['24.10'],
    check: async (server) => {
      const empty = await emptyOf(server);
      await following(empty, START, only('nobody-'), async (seen) => {
        await caughtUp(seen);
        expect(checkpoints(seen).every(isNowhere)).to.equal(true);
        expect(checkpoints(seen)).to.have.lengthOf(1);
        await withClient(empty, (client) => appended(client, 'busy-1', 200));
        // The same events are told of by a subscription that was opened in another way.
        await following(empty, ZERO, only('busy-'), (other) =>
          eventually('200 events', () => other.events.length === 200, 20_000),
        );
        expect(checkpoints(seen)).to.have.lengthOf(1);
      });
    },
  },
  {
    name: 'a subscription from the start of a log in which nothing matches is told 0 before caught-up',
    needs: ['empty'],
    versions: ['25.0'],
    check: async (server) => {
      const empty = await emptyOf(server);
      await following(empty, START, OURS, async (seen) => {
        await caughtUp(seen);
        expect(checkpoints(seen)).to.deep.equal([ZERO]);
      });
    },
  },
  {
    name: 'a subscription from (0,0) is sent everything, and never told 2^64-1',
    needs: ['empty'],
    check: async (server) => {
      const empty = await emptyOf(server);
      await following(empty, ZERO, OURS, async (seen) => {
        await caughtUp(seen);
        const places = await withClient(empty, (client) => appended(client, 'first-1', 100));
        await eventually('all of them', () => seen.events.length === 100, 20_000);
        expect(seen.events).to.deep.equal(places);
        await eventually('checkpoints', () => checkpoints(seen).length > 0);
        expect(checkpoints(seen).some(isNowhere)).to.equal(false);
      });
    },
  },
  {
    name: 'a checkpoint of a live subscription is the position of an event',
    check: (server) =>
      withClient(server, async (client) => {
        const stream = server.unique('live');
        const [from] = await appended(client, stream, 1);
        await following(server, from as Position, only('nobody-'), async (seen) => {
          await caughtUp(seen);
          const places = await appended(client, stream, 100);
          await eventually('two checkpoints', () => checkpoints(seen).length >= 2, 20_000);
          const mine = checkpoints(seen).filter(({ commit }) => commit > (from as Position).commit);
          const commits = places.map(({ commit }) => commit);
          expect(mine.filter(({ commit }) => commits.includes(commit)).length).to.be.greaterThan(0);
          expect(mine.every(({ commit, prepare }) => commit === prepare)).to.equal(true);
        });
      }),
  },
  {
    name: 'a checkpoint while catching up is an event that matched, or a position with 0 as its second half',
    check: (server) =>
      withClient(server, async (client) => {
        const stream = server.unique('noise');
        const places = await appended(client, stream, 200);
        await following(server, places[0] as Position, only('nobody-'), async (seen) => {
          await caughtUp(seen);
          const before = seen.marks.slice(0, seen.marks.indexOf('caught-up'));
          expect(before.length).to.be.greaterThan(2);
          for (const mark of before) expect(mark).to.have.property('prepare', 0n);
        });
      }),
  },
  {
    name: 'a subscription from beyond the end is told caught-up',
    versions: ['23.10'],
    check: (server) =>
      withClient(server, async (client) => {
        const [place] = await appended(client, server.unique('beyond'), 1);
        const beyond = (place as Position).commit + 1_000_000n;
        await following(server, { commit: beyond, prepare: beyond }, OURS, (seen) => caughtUp(seen));
      }),
  },
  {
    name: 'a subscription from inside a record fails with UNKNOWN, each time',
    versions: ['23.10'],
    check: (server) =>
      withClient(server, async (client) => {
        const [place] = await appended(client, server.unique('inside'), 2);
        const inside = (place as Position).commit + 1n;
        for (let times = 0; times < 2; times += 1)
          await following(server, { commit: inside, prepare: inside }, OURS, async (_seen, failed) => {
            await eventually('it fails', () => failed() !== undefined, 20_000);
            expect(failed()).to.have.property('code', 2);
          });
      }),
  },
  {
    name: 'a live subscription whose client does not read is aborted',
    versions: ['23.10'],
    check: (server) => slowConsumer(server, (failure) => expect(failure).to.match(/too slow/i)),
  },
  {
    name: 'a live subscription whose client does not read is sent everything in the end',
    versions: ['24.10', '25.0'],
    check: (server) => slowConsumer(server, (failure) => expect(failure).to.equal(undefined)),
  },
];

const emptyOf = async (server: ServerUnderTest): Promise<ServerUnderTest> => {
  const empty = await server.empty?.();
  if (empty === undefined) throw new Error('this server offers no empty one');
  return empty;
};

/** Appends 16 MB while the client does not read, then lets it read. `expected` is given the text of the failure. */
const slowConsumer = (
  server: ServerUnderTest,
  expected: (failure: string | undefined) => void,
): Promise<void> =>
  withClient(server, (writer) =>
    withClient(server, async (reader) => {
      const stream = server.unique('slow');
      const [from] = await appended(writer, stream, 1);
      const seen: Seen = { marks: [], events: [] };
      let failure: string | undefined;
      const subscription = open(reader, from as Position, only(stream), seen);
      subscription.on('error', (error: Error) => {
        failure = error.message;
      });
      try {
        await caughtUp(seen);
        const data = { text: 'x'.repeat(20_000) };
        for (let n = 0; n < 40; n += 1)
          await writer.appendToStream(
            stream,
            Array.from({ length: 20 }, () => jsonEvent({ type: 'Large', data })),
          );
        let read = 0;
        subscription.on('data', () => (read += 1));
        await eventually('an end', () => failure !== undefined || read === 800, 30_000);
        expected(failure);
      } finally {
        await subscription.unsubscribe().catch(() => {});
      }
    }),
  );
