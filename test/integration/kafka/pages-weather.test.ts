import { expect } from 'chai';
import fc from 'fast-check';
import { StoreUnavailable, type EventStore, type RecordedEvent } from '../../../src/app/log/event-store.ts';
import { checkAsync } from '../../support/property.ts';
import { createRig, expectDelivered, recordOf, type Running } from './publisher-rig.ts';

const TOPICS = ['things', 'others', 'more'] as const;
type Topic = (typeof TOPICS)[number];

type Step =
  | { readonly kind: 'append'; readonly streams: readonly number[] }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'hold' | 'release' | 'refuse' | 'take' | 'lose' | 'fail'; readonly topic: Topic }
  | { readonly kind: 'poison' | 'retry'; readonly topic: Topic; readonly stream: number }
  | { readonly kind: 'away'; readonly reads: number }
  | { readonly kind: 'stop' | 'takeover' | 'cure' };

const topic = fc.constantFrom(...TOPICS);
const stream = fc.nat(3);
const appended = fc.record({
  kind: fc.constant('append' as const),
  streams: fc.array(stream, { minLength: 1, maxLength: 25 }),
});
const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: appended },
    {
      weight: 5,
      arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(0, 1, 600, 3_000) }),
    },
    {
      weight: 6,
      arbitrary: fc.record({
        kind: fc.constantFrom('hold', 'release', 'refuse', 'take', 'lose', 'fail'),
        topic,
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constantFrom('poison' as const, 'retry' as const), topic, stream }),
    },
    {
      weight: 1,
      arbitrary: fc.record({ kind: fc.constant('away' as const), reads: fc.integer({ min: 1, max: 9 }) }),
    },
    { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('stop', 'takeover', 'cure') }) },
  ),
  { minLength: 3, maxLength: 30 },
);

/** Three of them fill a page: pages are bounded by the size of what their events hold. */
const LARGE = { text: 'x'.repeat(250_000) };

/** Topics that share pages of the log, each at its own pace. */
describe('topics that read pages together, in any weather', function () {
  this.timeout(120_000);
  it('lose nothing, repeat only equal records, and keep the order of first times', () =>
    checkAsync(
      fc.asyncProperty(appended, steps, fc.constantFrom(2, 4), async (first, weather, batch) => {
        const rig = createRig({ topics: TOPICS });
        let readsThatFail = 0;
        const store: EventStore = {
          ...rig.store,
          async *readAll(options) {
            for await (const event of rig.store.readAll(options)) {
              readsThatFail -= 1;
              // Amid a page, sooner or later.
              if (readsThatFail === 0) throw new StoreUnavailable('away');
              yield { ...event, data: LARGE };
            }
          },
        };
        const poison = new Set<string>();
        const failing = new Set<Topic>();
        const releases = new Map<Topic, () => void>();
        const recordsOf = async (name: string, event: RecordedEvent) => {
          if (failing.delete(name as Topic)) throw new StoreUnavailable('the stream cannot be read');
          if (poison.has(`${name} ${event.stream}@${event.revision}`)) throw new Error('poison');
          return [recordOf(name, event)];
        };
        const begin = (): Running =>
          rig.start({
            store,
            settings: {
              outbox: { records: 4, bytes: 100_000 },
              // All that there is room for, or half of it.
              batch: { records: batch, bytes: 100_000 },
              checkpointRecords: 3,
            },
            // One topic waits for each record that it makes, one for none of them, one for some.
            map: (name) => (event) =>
              name === 'more' ||
              (name === 'others' && event.revision % 3 === 0) ||
              poison.has(`${name} ${event.stream}@${event.revision}`)
                ? recordsOf(name, event)
                : [recordOf(name, event)],
          });
        const all: Running[] = [begin()];
        /** What is on its way is confirmed during the goodbye; what waits for room is not sent any more. */
        const stopped = async (): Promise<void> => {
          const ended = all.at(-1)?.end();
          await rig.time.pass(100);
          for (const release of releases.values()) release();
          await rig.time.pass(5_000);
          await ended;
          all.push(begin());
        };
        const carryOut = async (step: Step): Promise<void> => {
          switch (step.kind) {
            case 'append':
              for (const n of step.streams) await rig.append(n === 3 ? 'other-z' : `thing-${n}`);
              return;
            case 'pass':
              return rig.time.pass(step.ms);
            case 'hold':
              releases.get(step.topic)?.();
              releases.set(step.topic, rig.kafka.faults.hold(step.topic));
              return;
            case 'release':
              return releases.get(step.topic)?.();
            case 'refuse':
              return rig.kafka.faults.refuse(step.topic, 'full');
            case 'take':
              return rig.kafka.faults.refuse(step.topic, undefined);
            case 'lose':
              return rig.kafka.faults.loseAnswers(step.topic, 1);
            case 'fail':
              return void failing.add(step.topic);
            case 'poison': {
              // One that is read soon, or was read already.
              const last = await rig.store.currentRevision(`thing-${step.stream}`);
              poison.add(`${step.topic} thing-${step.stream}@${last === 'no_stream' ? 0 : last + 1}`);
              return;
            }
            case 'retry':
              return void all.at(-1)?.publisher.retry(step.topic, `thing-${step.stream}`);
            case 'cure':
              return poison.clear();
            case 'away':
              readsThatFail = step.reads;
              return;
            case 'stop':
              return stopped();
            case 'takeover':
              // The old one is not told, and goes on for a while.
              all.push(begin());
          }
        };
        for (const step of [first, ...weather]) await carryOut(step);
        readsThatFail = 0;
        failing.clear();
        poison.clear();
        for (const release of releases.values()) release();
        for (const name of TOPICS) {
          rig.kafka.faults.refuse(name, undefined);
          rig.kafka.faults.loseAnswers(name, 0);
        }
        await rig.time.pass(65_000);
        for (const each of all.slice(0, -1)) await each.stop();
        const last = all.at(-1) ?? begin();
        await rig.time.pass(65_000);
        const parked = (): readonly (readonly [Topic, string])[] =>
          TOPICS.flatMap((name) => last.topic(name).parked.map((each) => [name, each.stream] as const));
        for (let tries = 0; tries < 10 && parked().length > 0; tries += 1) {
          for (const [name, each] of parked()) void last.publisher.retry(name, each);
          await rig.time.pass(5_000);
        }
        expect(parked()).to.deep.equal([]);
        for (const name of TOPICS)
          expect(last.topic(name), name).to.include({ state: 'live', waitingEvents: 0 });
        await last.stop();
        for (const name of TOPICS) await expectDelivered(rig, name);
      }),
      { numRuns: 60 },
    ));
});
