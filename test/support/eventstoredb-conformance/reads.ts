import {
  BACKWARDS,
  binaryEvent,
  END,
  FORWARDS,
  jsonEvent,
  type AllStreamResolvedEvent,
  type EventStoreDBClient,
  type Position,
} from '@eventstore/db-client';
import { expect } from 'chai';
import { eventually } from '../eventually.ts';
import { withClient, type Behaviour } from './server.ts';

const all = async (
  client: EventStoreDBClient,
  options: Parameters<EventStoreDBClient['readAll']>[0],
): Promise<AllStreamResolvedEvent[]> => {
  const read: AllStreamResolvedEvent[] = [];
  for await (const one of client.readAll(options)) read.push(one);
  return read;
};

/** Appends `count` events one by one and returns where each of them stands. */
export const appended = async (
  client: EventStoreDBClient,
  stream: string,
  count: number,
): Promise<Position[]> => {
  const places: Position[] = [];
  for (let n = 0; n < count; n += 1) {
    const { position } = await client.appendToStream(stream, jsonEvent({ type: 'Counted', data: { n } }));
    if (position === undefined) throw new Error(`the append to ${stream} was answered without a position`);
    places.push(position);
  }
  return places;
};

/** What a read returns. */
export const readBehaviours: readonly Behaviour[] = [
  {
    name: 'the whole log is read forward from its position, and backward from before it',
    check: (server) =>
      withClient(server, async (client) => {
        const [first, second] = await appended(client, server.unique('direction'), 2);
        const at = { fromPosition: second as Position, maxCount: 1 };
        const [forward] = await all(client, { ...at, direction: FORWARDS });
        expect(forward?.event?.position).to.deep.equal(second);
        const [backward] = await all(client, { ...at, direction: BACKWARDS });
        expect(backward?.event?.position?.commit).to.satisfy(
          (commit: bigint) => commit < (second as Position).commit && commit >= (first as Position).commit,
        );
      }),
  },
  {
    name: 'a position whose record was scavenged reads forward to the next record, and backward to the one before',
    needs: ['scavenge'],
    check: (server) =>
      withClient(server, async (client) => {
        const stream = server.unique('scavenged');
        const before = await appended(client, server.unique('before'), 1);
        const [gone] = await appended(client, stream, 1);
        const [kept] = await appended(client, stream, 1);
        await client.setStreamMetadata(stream, { maxCount: 1 });
        await server.scavenge?.();
        const at = { fromPosition: gone as Position, maxCount: 1 };
        const [forward] = await all(client, { ...at, direction: FORWARDS });
        expect(forward?.event?.position).to.deep.equal(kept);
        const [backward] = await all(client, { ...at, direction: BACKWARDS });
        expect(backward?.event?.position).to.deep.equal(before[0]);
      }),
  },
  {
    name: "the log ends with the server's own event when that came last",
    check: (server) =>
      withClient(server, async (client) => {
        const stream = server.unique('end');
        const [place] = await appended(client, stream, 1);
        await client.setStreamMetadata(stream, { maxCount: 5 });
        const [last] = await all(client, { fromPosition: END, direction: BACKWARDS, maxCount: 1 });
        expect(last?.event?.type.startsWith('$')).to.equal(true);
        expect(last?.event?.position?.commit).to.satisfy(
          (commit: bigint) => commit > (place as Position).commit,
        );
      }),
  },
  {
    name: 'a link in a stream is returned as it is, and takes a revision',
    check: (server) =>
      withClient(server, async (client) => {
        const [target, stream] = [server.unique('target'), server.unique('linked')];
        await appended(client, target, 1);
        await appended(client, stream, 1);
        await client.appendToStream(stream, binaryEvent({ type: '$>', data: Buffer.from(`0@${target}`) }));
        await appended(client, stream, 1);
        const read: [string, number, boolean][] = [];
        for await (const { event } of client.readStream(stream))
          if (event !== undefined) read.push([event.type, Number(event.revision), event.isJson]);
        expect(read).to.deep.equal([
          ['Counted', 0, true],
          ['$>', 1, false],
          ['Counted', 2, true],
        ]);
      }),
  },
  {
    name: 'a connection has 100 streams: one more read waits while they are open, and is not refused',
    check: (server) =>
      withClient(server, (other) =>
        withClient(server, async (client) => {
          const stream = server.unique('many');
          await appended(other, stream, 1);
          const last = { fromPosition: END, direction: BACKWARDS, maxCount: 1 } as const;
          let confirmed = 0;
          const open = Array.from({ length: 100 }, () =>
            client.subscribeToStream(stream).on('confirmation', () => void (confirmed += 1)),
          );
          await eventually('100 are confirmed', () => confirmed === 100);
          let isOver = false;
          const over = (): void => {
            isOver = true;
          };
          const more = all(client, last).then(over, over);
          // Time for an answer: on another connection the server gives many.
          for (let n = 0; n < 50; n += 1) await all(other, last);
          expect(isOver).to.equal(false);
          await Promise.all(open.map((one) => one.unsubscribe()));
          await more;
          // A server that has not yet let go of the hundred may refuse it.
          const answers = () =>
            all(client, last).then(
              (events) => events.length === 1,
              () => false,
            );
          await eventually('the connection answers again', answers);
        }),
      ),
  },
];
