import { expect } from 'chai';
import fc from 'fast-check';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { openSqliteEventStore } from '../../../src/adapters/event-store/sqlite/sqlite-event-store.ts';
import { systemIds } from '../../../src/adapters/system/system-ports.ts';
import type { EventStore } from '../../../src/app/log/event-store.ts';
import { filterFor, matchesFilter } from '../../../src/app/publisher/filter.ts';
import type { TopicSpec } from '../../../src/app/streams/stream.ts';
import { topicsOf } from '../../../src/app/streams/topics.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';
import { checkAsync } from '../../support/property.ts';
import { temporaryFolders } from '../../support/projections/open-notes.ts';

/** Pages hold every event, and a topic picks its own from them; a subscription is filtered by the store. */
describe('what a topic picks of a page', () => {
  const folders = temporaryFolders();
  afterEach(() => folders.clean());
  const ids = systemIds();
  const filters = topicsOf(registry, kinds).flatMap(({ filter }) => (filter === undefined ? [] : [filter]));

  const subscribed = async (store: EventStore, filter: TopicSpec['filter']): Promise<readonly string[]> => {
    const over = new AbortController();
    const positions: string[] = [];
    for await (const item of store.subscribe({ signal: over.signal, ...filterFor(filter) })) {
      if (item.kind === 'event') positions.push(item.event.position);
      if (item.kind === 'caught-up') break;
    }
    over.abort();
    return positions;
  };
  const picked = async (store: EventStore, filter: TopicSpec['filter']): Promise<readonly string[]> => {
    const positions: string[] = [];
    for await (const event of store.readAll({ limit: 10_000 }))
      if (matchesFilter(filter, event)) positions.push(event.position);
    return positions;
  };
  const names = fc.uniqueArray(
    fc.oneof(
      fc
        .constantFrom(...kinds.map(({ kind }) => `${kind}-`))
        .chain((prefix) => fc.stringMatching(/^[A-Za-z0-9._~-]{0,8}$/).map((id) => `${prefix}${id}`)),
      fc.constantFrom(
        'cluster',
        'clusterOrder-a',
        'Cluster-a',
        'clusters-a',
        'xcluster-a',
        'sys-auditTree',
        'sys-x',
      ),
      fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' }),
    ),
    { minLength: 1, maxLength: 40 },
  );
  const sameOn = async (store: EventStore, streams: readonly string[]): Promise<void> => {
    for (const stream of streams)
      await store.append(stream, 'no_stream', [
        { id: ids.uuidv7(), type: 'ThingHappened', data: '{}', metadata: '{}' },
      ]);
    for (const filter of filters)
      expect(await picked(store, filter)).to.deep.equal(await subscribed(store, filter));
  };

  it('is what its subscription would yield, in memory', () =>
    checkAsync(
      fc.asyncProperty(names, (streams) => sameOn(createMemoryEventStore(), streams)),
      { numRuns: 20 },
    ));

  it('is what its subscription would yield, of the embedded log', () =>
    checkAsync(
      fc.asyncProperty(names, async (streams) => {
        const store = await openSqliteEventStore({ dataDir: folders.make() });
        try {
          await sameOn(store, streams);
        } finally {
          await store.close();
        }
      }),
      { numRuns: 5 },
    ));
});
