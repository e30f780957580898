import { expect } from 'chai';
import { v5 } from 'uuid';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { ChangedEvent } from '../../../src/app/audit/event-source.ts';
import { createEventCodec } from '../../../src/app/log/event-codec.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import type { OpenPersonal } from '../../../src/domain/personal.ts';
import { eventTypes, registry } from '../../../src/domain/registry.ts';
import { ApiError } from '../../../src/http/errors.ts';
import { createNameSearches } from '../../../src/http/audit/name-searches.ts';
import { subjectOf } from '../../../src/http/audit/subjects.ts';
import type { ReadModels } from '../../../src/projections/read-models.ts';
import { audit, followed, openAuditView } from '../../support/audit/open-audit.ts';

const NAMESPACE = '3f0d4c26-6f0e-4a58-9a3c-5b3d0a1f7c11';
const PEOPLE = 120;
const idOf = (n: number): string => v5(`person ${n}`, NAMESPACE);
/** What is encrypted stands in clear here. */
const open: OpenPersonal = (values) => values.map(({ ct }) => ct);

describe('a subject by user name', () => {
  let store: EventStore;
  let models: ReadModels;
  beforeEach(async () => {
    store = createMemoryEventStore();
    for (let n = 0; n < PEOPLE; n += 1)
      for (const what of ['first', 'last'])
        await store.append(`cluster-${what}-${n}`, 'no_stream', [
          {
            id: v5(`${what} ${n}`, NAMESPACE),
            type: 'ClusterLabelled',
            data: '{}',
            metadata: JSON.stringify({
              tenant: 'acme',
              occurredAt: '2026-01-01T00:00:00.000Z',
              actor: {
                subjectId: idOf(n),
                personal: {
                  alg: 'A256GCM',
                  keyId: `${idOf(n)}.1`,
                  nonce: 'n',
                  ct: JSON.stringify({ userName: `person-${n}-${what}` }),
                  tag: 't',
                },
              },
            }),
          },
        ]);
    models = await openAuditView(store);
    await followed(models, store);
  });
  afterEach(async () => {
    await models.close();
    await store.close();
  });

  const ask = (
    name: string,
    reading: Pick<EventStore, 'readStream'> = store,
    searches = createNameSearches(),
  ): Promise<string> =>
    subjectOf(
      name,
      { tenants: ['acme'], audience: 'tenant' },
      {
        reader: audit(models),
        store: { ...store, ...reading },
        words: { codec: createEventCodec(eventTypes), registry, open },
        searches,
        field: "query parameter 'subject'",
      },
      new AbortController().signal,
    );

  it('is found by what the first and the last event tell', async () => {
    expect(await ask('person-77-first')).to.equal(idOf(77));
    expect(await ask('person-0-last')).to.equal(idOf(0));
    expect(await ask('person-119').catch((error: unknown) => error)).to.be.instanceOf(ApiError);
  });

  it('is looked for when it is its turn; who is asked for by id waits for nobody', async () => {
    const searches = createNameSearches(0);
    const held = Promise.withResolvers<void>();
    const other = searches.run(() => held.promise, new AbortController().signal);
    expect(await ask('person-77-first', store, searches).catch((error: unknown) => error)).to.include({
      reason: 'SEARCHES_BUSY',
    });
    expect(await ask(idOf(77), store, searches)).to.equal(idOf(77));
    held.resolve();
    await other;
    expect(await ask('person-77-first', store, searches)).to.equal(idOf(77));
  });

  it('is not told from an event that is another one than was recorded', async () => {
    const forging: Pick<EventStore, 'readStream'> = {
      readStream: async function* (stream, options) {
        for await (const event of store.readStream(stream, options))
          yield stream === 'cluster-first-5' ? { ...event, data: { changed: true } } : event;
      },
    };
    expect(await ask('person-5-first', forging).catch((error: unknown) => error)).to.be.instanceOf(
      ChangedEvent,
    );
    expect(await ask('person-6-first', forging)).to.equal(idOf(6));
  });

  it('is looked for in small pieces: others have the thread behind each person', async () => {
    let [reads, most, all] = [0, 0, 0];
    const counting: Pick<EventStore, 'readStream'> = {
      readStream: (stream, options) => {
        reads += 1;
        all += 1;
        most = Math.max(most, reads);
        return store.readStream(stream, options);
      },
    };
    const turn = (): void => {
      reads = 0;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    await ask('nobody', counting).catch(() => undefined);
    clearImmediate(next);
    expect(all).to.equal(2 * PEOPLE);
    // The turn may come between two of them.
    expect(most, 'events that are read in one turn').to.be.at.most(4);
  });
});
