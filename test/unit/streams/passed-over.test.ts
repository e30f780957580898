import { expect } from 'chai';
import fc from 'fast-check';
import type { RecordedEvent } from '../../../src/app/log/event-store.ts';
import { categoryOf, matchesFilter } from '../../../src/app/publisher/filter.ts';
import { createStreams } from '../../../src/app/streams/streams.ts';
import { contextsOf, eventsTopic, topicsOf } from '../../../src/app/streams/topics.ts';
import { kinds } from '../../../src/domain/kinds.ts';
import { registry } from '../../../src/domain/registry.ts';
import { check } from '../../support/property.ts';
import { recorded, recordedSamples } from '../../support/streams/samples.ts';

/** Whoever is behind maps only what is not passed over (reader.ts): what is passed over must be nothing, and nothing else. */
describe('what a topic of events passes over without mapping it', () => {
  const streams = createStreams({
    registry,
    kinds,
    store: {
      storeId: 'store-1',
      async *readStream() {
        // Topics of events need no history.
      },
    },
  }).filter(({ topic }) => topic.kind === 'events');
  const takenBy = (event: RecordedEvent): readonly string[] =>
    streams
      .filter(({ topic, isNothing }) => matchesFilter(topic.filter, event) && isNothing?.(event) === false)
      .map(({ topic }) => topic.name);

  it('is exactly what becomes no record, of every event that there is', () => {
    const samples = recordedSamples();
    expect(samples.length).to.be.greaterThan(50);
    for (const event of samples) {
      const made = streams.filter(({ map }) => (map(event) as readonly unknown[]).length > 0);
      expect(takenBy(event), event.type).to.deep.equal(made.map(({ topic }) => topic.name));
    }
  });

  it('is never of a type that is not known here: any context may be its own', () => {
    const all = contextsOf(registry).map(eventsTopic);
    check(
      fc.property(
        fc.string({ minLength: 1 }).filter((type) => registry.get(type) === undefined),
        fc.constantFrom('cluster-a', 'painting-b', 'x'),
        (type, stream) => {
          expect(takenBy(recorded(type, {}, { stream }))).to.have.members(all);
        },
      ),
    );
  });

  it('is all that the service notes for itself', () => {
    const types = [...registry.types.map(({ type }) => type), 'NotKnownHere'];
    check(
      fc.property(fc.constantFrom(...types), fc.string(), (type, rest) => {
        expect(takenBy(recorded(type, {}, { stream: `sys-${rest}` }))).to.deep.equal([]);
      }),
    );
  });
});

describe('the category of streams that a topic looks for in a page', () => {
  const filters = topicsOf(registry, kinds).flatMap(({ filter }) => (filter === undefined ? [] : [filter]));

  it('is known of topics of one kind, and of none that read the whole log', () => {
    const known = topicsOf(registry, kinds).filter(({ filter }) => categoryOf(filter) !== undefined);
    expect(known.map(({ kind }) => kind)).not.to.include('events');
    expect(known.length).to.be.greaterThan(10);
    expect(categoryOf({ streamPrefixes: ['cluster-', 'clusterOrder-'] })).to.equal(undefined);
    expect(categoryOf({ streamPrefixes: ['cluster'] })).to.equal(undefined);
    expect(categoryOf({ typePrefixes: ['Cluster-'] })).to.equal(undefined);
  });

  it('is that of every event that its filter lets through', () => {
    const prefixes = filters.flatMap((filter) =>
      typeof filter === 'object' && 'streamPrefixes' in filter ? filter.streamPrefixes : [],
    );
    const stream = fc
      .tuple(fc.oneof(fc.constantFrom(...prefixes), fc.string()), fc.string())
      .map(([prefix, rest]) => `${prefix}${rest}`);
    check(
      fc.property(stream, fc.constantFrom(...filters), (name, filter) => {
        const category = categoryOf(filter);
        if (category === undefined || !matchesFilter(filter, { stream: name, type: 'ThingHappened' })) return;
        expect(name.slice(0, name.indexOf('-'))).to.equal(category);
      }),
      { numRuns: 1_000 },
    );
  });
});
