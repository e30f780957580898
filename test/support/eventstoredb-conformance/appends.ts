import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { binaryEvent, jsonEvent, NO_STREAM, type EventStoreDBClient } from '@eventstore/db-client';
import { withClient, type Behaviour, type ServerUnderTest } from './server.ts';

const LIMIT = 1024 * 1024;
const TYPE = 'Sized';

const placed = (type = 'Placed') => jsonEvent({ type, id: randomUUID(), data: {} });

const sized = (data: number, metadata = 0) =>
  binaryEvent({
    type: TYPE,
    id: randomUUID(),
    data: new Uint8Array(data),
    metadata: new Uint8Array(metadata),
  });

/** Revisions and ids of a stream, in its order. */
const stored = async (
  client: EventStoreDBClient,
  stream: string,
): Promise<{ readonly revision: number; readonly id: string }[]> => {
  const events: { revision: number; id: string }[] = [];
  for await (const { event } of client.readStream(stream)) {
    if (event !== undefined) events.push({ revision: Number(event.revision), id: event.id });
  }
  return events;
};

/** `type` of the error that a call ends with. */
const refusal = async (call: Promise<unknown>): Promise<string> => {
  try {
    await call;
  } catch (error) {
    return String((error as { type?: unknown }).type ?? error);
  }
  throw new Error('expected a refusal, but the call succeeded');
};

const on = (
  name: string,
  check: (client: EventStoreDBClient, stream: string, server: ServerUnderTest) => Promise<void>,
  rest: Pick<Behaviour, 'needs' | 'versions'> = {},
): Behaviour => ({
  name,
  ...rest,
  check: (server) => withClient(server, (client) => check(client, server.unique('append'), server)),
});

/** How a server takes appends, and what it answers. */
export const appendBehaviours: readonly Behaviour[] = [
  on(
    'answers the same ids at the same revision as it did first, also when the stream has moved on',
    async (client, stream) => {
      const events = [placed(), placed('Paid')];
      const first = await client.appendToStream(stream, events, { expectedRevision: NO_STREAM });
      const later = [placed('Shipped')];
      const second = await client.appendToStream(stream, later, { expectedRevision: 1n });
      const again = await client.appendToStream(stream, events, { expectedRevision: NO_STREAM });
      expect(again).to.deep.equal(first);
      expect(await client.appendToStream(stream, later, { expectedRevision: 1n })).to.deep.equal(second);
      const ids = [...events, ...later].map(({ id }) => id);
      expect((await stored(client, stream)).map(({ id }) => id)).to.deep.equal(ids);
    },
  ),

  on(
    'takes other ids at a revision that is over, and ids that are partly the same, for a conflict',
    async (client, stream) => {
      const events = [placed(), placed('Paid')];
      await client.appendToStream(stream, events, { expectedRevision: NO_STREAM });
      const [same] = events;
      if (same === undefined) throw new Error('two events were made');
      for (const others of [[placed()], [same, placed()], [...events, placed()]])
        expect(
          await refusal(client.appendToStream(stream, others, { expectedRevision: NO_STREAM })),
        ).to.equal('wrong-expected-version');
      expect(await stored(client, stream)).to.have.lengthOf(2);
    },
  ),

  on('stores one of two identical appends at once, and answers at least one', async (client, stream) => {
    const events = [placed()];
    const call = () => client.appendToStream(stream, events, { expectedRevision: NO_STREAM });
    const { nextExpectedRevision } = await Promise.any([call(), call()]);
    expect(nextExpectedRevision).to.equal(0n);
    expect(await stored(client, stream)).to.have.lengthOf(1);
  }),

  on(
    'counts the data alone: metadata beyond the limit is stored',
    async (client, stream) => {
      await client.appendToStream(stream, [sized(LIMIT)]);
      await client.appendToStream(
        stream,
        Array.from({ length: 20 }, () => sized(10, 100 * 1024)),
      );
      expect(await refusal(client.appendToStream(stream, [sized(LIMIT + 1)]))).to.equal(
        'maximum-append-size-exceeded',
      );
      expect(await stored(client, stream)).to.have.lengthOf(21);
    },
    { versions: ['23.10'] },
  ),

  on(
    'counts data, metadata and twice the length of the type, over all events of the append',
    async (client, stream) => {
      const room = LIMIT - 2 * TYPE.length;
      await client.appendToStream(stream, [sized(room - 100, 100)]);
      expect(await refusal(client.appendToStream(stream, [sized(room - 100, 101)]))).to.equal(
        'maximum-append-size-exceeded',
      );
      const half = room / 2 - TYPE.length;
      await client.appendToStream(stream, [sized(half), sized(half)]);
      expect(await refusal(client.appendToStream(stream, [sized(half), sized(half + 1)]))).to.equal(
        'maximum-append-size-exceeded',
      );
      // What was refused is not stored, and the call goes on.
      expect(await stored(client, stream)).to.have.lengthOf(3);
    },
    { versions: ['24.10', '25.0'] },
  ),

  on(
    'ends the whole call for a message above 17 MiB',
    async (client, stream) => {
      const error: unknown = await client
        .appendToStream(stream, [sized(18 * LIMIT)])
        .catch((e: unknown) => e);
      expect((error as { code?: number }).code, String(error)).to.equal(8);
    },
    { versions: ['24.10', '25.0'] },
  ),

  on(
    'answers the repeat of an append whose events $maxCount took, without a position',
    async (client, stream) => {
      await client.setStreamMetadata(stream, { maxCount: 1 });
      const first = [placed()];
      await client.appendToStream(stream, first, { expectedRevision: NO_STREAM });
      for (let n = 0n; n < 3n; n += 1n)
        await client.appendToStream(stream, [placed('Renewed')], { expectedRevision: n });
      const again = await client.appendToStream(stream, first, { expectedRevision: NO_STREAM });
      expect(again).to.include({ success: true, nextExpectedRevision: 0n });
      expect(again.position).to.equal(undefined);
    },
  ),

  on(
    'goes on with the old numbers in a stream that was deleted, and tells the repeat that it conflicts',
    async (client, stream) => {
      await client.appendToStream(stream, [placed(), placed('Paid')]);
      const deleted = await client.deleteStream(stream);
      expect(deleted.position, 'a deletion has a position').to.not.equal(undefined);
      const events = [placed('Begun')];
      const { nextExpectedRevision } = await client.appendToStream(stream, events, {
        expectedRevision: NO_STREAM,
      });
      expect(nextExpectedRevision).to.equal(2n);
      expect(await refusal(client.appendToStream(stream, events, { expectedRevision: NO_STREAM }))).to.equal(
        'wrong-expected-version',
      );
      expect(await stored(client, stream)).to.deep.equal([{ revision: 2, id: events[0]?.id }]);
    },
  ),

  on('refuses every append to a stream that was deleted for good', async (client, stream) => {
    await client.appendToStream(stream, [placed()]);
    const deleted = await client.tombstoneStream(stream);
    expect(deleted.position, 'a deletion has a position').to.not.equal(undefined);
    for (const expectedRevision of [NO_STREAM, 0n] as const)
      expect(await refusal(client.appendToStream(stream, [placed('Paid')], { expectedRevision }))).to.equal(
        'stream-deleted',
      );
  }),

  on('takes an append that asks for the leader', async (client, stream) => {
    const { nextExpectedRevision } = await client.appendToStream(stream, [placed()], {
      expectedRevision: NO_STREAM,
      requiresLeader: true,
    });
    expect(nextExpectedRevision).to.equal(0n);
  }),

  on('answers 2,000 appends at once', async (client, stream) => {
    const answers = await Promise.all(
      Array.from({ length: 2_000 }, (_, n) => client.appendToStream(`${stream}-${n}`, [placed()])),
    );
    expect(answers.every(({ success }) => success)).to.equal(true);
  }),
];
