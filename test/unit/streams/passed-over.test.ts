import { expect } from 'chai';
import fc from 'fast-check';
import type { RecordedEvent } from '../../../src/app/event-store.ts';
import { matchesFilter } from '../../../src/app/publisher/filter.ts';
import { createStreams } from '../../../src/app/streams/streams.ts';
import { contextsOf, eventsTopic } from '../../../src/app/streams/topics.ts';
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
