import { expect } from 'chai';
import fc from 'fast-check';
import { createLeases } from '../../../src/adapters/ownership/lease-ownership.ts';
import { leaseHolder } from '../../../src/app/deployment/ownership.ts';
import { PUBLISHER_LEASE } from '../../../src/app/publisher/ports.ts';
import type { PublisherFailpoint, PublisherSettings } from '../../../src/app/publisher/types.ts';
import type { RecordMapper } from '../../../src/app/streams/stream.ts';
import { checkAsync } from '../../support/property.ts';
import {
  createRig,
  expectDelivered,
  recordOf,
  TOPIC,
  valuesOf,
  type Rig,
  type Running,
} from './publisher-rig.ts';

type Point = Parameters<PublisherFailpoint>[0];
const POINTS: readonly Point[] = ['before-send', 'after-send', 'before-checkpoint', 'after-checkpoint'];

/** Small, so that every run passes each point several times. */
const SMALL: Partial<PublisherSettings> = { batch: { records: 3, bytes: 100_000 }, checkpointRecords: 5 };

/** Stops for good where the `n`-th passing of a point begins, until it is woken. */
const frozenAt = (point: Point, n: number) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let left = n;
  let frozen = false;
  return {
    wake: resolve,
    isFrozen: () => frozen,
    failpoint: ((passed) => {
      if (passed !== point) return undefined;
      left -= 1;
      if (left !== 0) return undefined;
      frozen = true;
      return promise;
    }) satisfies PublisherFailpoint,
  };
};

const work = async (rig: Rig, rounds: number): Promise<void> => {
  for (let i = 0; i < rounds; i += 1) await rig.append('thing-a', `thing-${i % 3}`, 'other-z');
};

/** Records of all but these events. */
const poisoned =
  (topic: string, poison: ReadonlySet<string>): RecordMapper =>
  (event) => {
    const record = recordOf(topic, event);
    if (poison.has(record.value ?? '')) throw new Error('poison');
    return [record];
  };

describe('a publisher that another one takes over from', () => {
  for (const point of POINTS)
    for (const n of [1, 2, 3]) {
      it(`killed at its ${n}. "${point}": the next one loses nothing, and what comes twice is equal`, async () => {
        const rig = createRig();
        await work(rig, 12);
        const frozen = frozenAt(point, n);
        rig.start({ settings: SMALL, failpoint: frozen.failpoint });
        await rig.time.pass(3_000);
        expect(frozen.isFrozen()).to.equal(true);
        await work(rig, 3);
        const next = rig.start({ settings: SMALL });
        await rig.time.pass(3_000);
        await next.stop();
        await expectDelivered(rig);
      });

      it(`suspended at its ${n}. "${point}" and woken after that: equal records only, and no loss`, async () => {
        const rig = createRig();
        await work(rig, 12);
        const frozen = frozenAt(point, n);
        const first = rig.start({ settings: SMALL, failpoint: frozen.failpoint });
        await rig.time.pass(3_000);
        expect(frozen.isFrozen()).to.equal(true);
        await work(rig, 3);
        const second = rig.start({ settings: SMALL });
        await rig.time.pass(3_000);
        frozen.wake();
        await work(rig, 3);
        await rig.time.pass(3_000);
        await first.stop();
        await work(rig, 2);
        await rig.time.pass(3_000);
        await second.stop();
        await expectDelivered(rig);
      });
    }

  it('leaves what it could not confirm to the next one, when an answer is lost at the very end', async () => {
    const rig = createRig();
    const first = rig.start({ settings: SMALL });
    await work(rig, 4);
    await rig.time.pass(2_000);
    rig.kafka.faults.loseAnswers(TOPIC, 1);
    await work(rig, 4);
    await first.stop();
    const second = rig.start({ settings: { ...SMALL, batch: { records: 2, bytes: 100_000 } } });
    await rig.time.pass(3_000);
    await second.stop();
    await expectDelivered(rig);
  });

  it('stands by while another one holds the lease, and publishes when that one has gone without a word', async () => {
    const rig = createRig();
    const lease = (instance: string) =>
      createLeases({
        store: rig.store,
        instance,
        directory: instance,
        clock: rig.time.clock,
        timers: rig.time.timers,
        logger: rig.log,
      })('publisher');
    const first = rig.start({ ownership: lease('one') });
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    const second = rig.start({ ownership: lease('two') });
    await rig.append('thing-a');
    await rig.time.pass(20_000);
    expect(first.publisher.status().epoch).to.equal(1);
    expect(second.publisher.status().epoch).to.equal(undefined);
    expect(second.topic(TOPIC).state).to.equal('standby');
    const { signal } = new AbortController();
    expect(await leaseHolder(rig.store, PUBLISHER_LEASE, signal)).to.equal('one');
    await first.stop();
    await rig.append('thing-a');
    await rig.time.pass(20_000);
    expect(second.publisher.status().epoch).to.equal(2);
    await second.stop();
    expect(await leaseHolder(rig.store, PUBLISHER_LEASE, signal)).to.equal(undefined);
    await expectDelivered(rig);
    expect(valuesOf(rig.kafka)).to.have.length(3);
  });

  it('killed after it parked a stream: what came before in that stream is sent by the next one', async () => {
    const rig = createRig();
    const map = (topic: string) => poisoned(topic, new Set(['thing-a@2']));
    const frozen = frozenAt('before-send', 1);
    await rig.append('thing-a', 'thing-a', 'thing-a', 'thing-b');
    rig.start({ map, failpoint: frozen.failpoint });
    await rig.time.pass(2_000);
    expect(frozen.isFrozen()).to.equal(true);
    const next = rig.start({ map });
    await rig.time.pass(2_000);
    expect(valuesOf(rig.kafka).toSorted()).to.deep.equal(['thing-a@0', 'thing-a@1', 'thing-b@0']);
    expect(next.topic(TOPIC).parked.map(({ revision }) => revision)).to.deep.equal([2]);
    await next.stop();
  });

  it('killed while it tried a parked stream again, of which a later event is poison: nothing is left out', async () => {
    const rig = createRig();
    const poison = new Set(['thing-a@1']);
    const map = (topic: string) => poisoned(topic, poison);
    await rig.append('thing-a', 'thing-a', 'thing-a', 'thing-a', 'thing-b');
    const first = rig.start({ map });
    await rig.time.pass(5_000);
    await first.stop();
    const frozen = frozenAt('before-send', 1);
    const second = rig.start({ map, failpoint: frozen.failpoint });
    await rig.time.pass(1_000);
    poison.clear();
    poison.add('thing-a@3');
    void second.publisher.retry(TOPIC, 'thing-a');
    await rig.time.pass(2_000);
    expect(frozen.isFrozen()).to.equal(true);
    poison.clear();
    const third = rig.start({ map });
    await rig.time.pass(2_000);
    const outcome = third.publisher.retry(TOPIC, 'thing-a');
    await rig.time.pass(2_000);
    expect(await outcome).to.have.property('outcome', 'published');
    await third.stop();
    await expectDelivered(rig);
  });

  it('keeps what was parked, whoever publishes', async () => {
    const rig = createRig();
    await rig.append('thing-a', 'thing-b');
    const map = () => () => {
      throw new Error('not with this release');
    };
    const first = rig.start({ map });
    await rig.time.pass(2_000);
    await first.stop();
    const second = rig.start();
    await rig.append('thing-a');
    await rig.time.pass(2_000);
    expect(second.topic(TOPIC).parked.map(({ stream }) => stream)).to.have.members(['thing-a', 'thing-b']);
    const retried = [second.publisher.retry(TOPIC, 'thing-a'), second.publisher.retry(TOPIC, 'thing-b')];
    await rig.time.pass(2_000);
    expect(await Promise.all(retried)).to.deep.equal([
      { outcome: 'published', records: 2 },
      { outcome: 'published', records: 1 },
    ]);
    await second.stop();
    await expectDelivered(rig);
  });
});

type Step =
  | { readonly kind: 'append'; readonly stream: number; readonly count: number }
  | { readonly kind: 'lose'; readonly times: number }
  | { readonly kind: 'poison' | 'retry'; readonly stream: number }
  | { readonly kind: 'refuse' | 'take' | 'down' | 'up' | 'stop' | 'takeover' | 'cure' }
  | { readonly kind: 'freeze'; readonly point: Point }
  | { readonly kind: 'pass'; readonly ms: number };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        kind: fc.constant('append' as const),
        stream: fc.nat(3),
        count: fc.integer({ min: 1, max: 6 }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(1, 60, 700, 5_000) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('lose' as const), times: fc.integer({ min: 1, max: 2 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constantFrom('poison' as const, 'retry' as const), stream: fc.nat(3) }),
    },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant('freeze' as const), point: fc.constantFrom(...POINTS) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constantFrom('refuse', 'take', 'down', 'up', 'stop', 'takeover', 'cure'),
      }),
    },
  ),
  { minLength: 3, maxLength: 25 },
);

describe('a publisher in any weather', function () {
  this.timeout(60_000);
  it('loses nothing, repeats only equal records, and keeps the order of first times', () =>
    checkAsync(
      fc.asyncProperty(steps, fc.integer({ min: 1, max: 4 }), async (weather, batch) => {
        const rig = createRig();
        const settings = { ...SMALL, batch: { records: batch, bytes: 100_000 } };
        const wakers: (() => void)[] = [];
        const freezes: { point: Point }[] = [];
        const poison = new Set<string>();
        const begin = (): Running =>
          rig.start({
            settings,
            map: (topic) => poisoned(topic, poison),
            failpoint: (passed) => {
              if (freezes[0]?.point !== passed) return undefined;
              freezes.shift();
              const { promise, resolve } = Promise.withResolvers<void>();
              wakers.push(resolve);
              return promise;
            },
          });
        const all: Running[] = [begin()];
        const carryOut = async (step: Step): Promise<void> => {
          switch (step.kind) {
            case 'append':
              for (let i = 0; i < step.count; i += 1) await rig.append(`thing-${step.stream}`);
              return;
            case 'pass':
              return rig.time.pass(step.ms);
            case 'lose':
              return rig.kafka.faults.loseAnswers(TOPIC, step.times);
            case 'freeze':
              return void freezes.push({ point: step.point });
            case 'poison': {
              // The event that comes next on this stream.
              const last = await rig.store.currentRevision(`thing-${step.stream}`);
              poison.add(`thing-${step.stream}@${last === 'no_stream' ? 0 : last + 1}`);
              return;
            }
            case 'cure':
              return poison.clear();
            case 'retry':
              return void all.at(-1)?.publisher.retry(TOPIC, `thing-${step.stream}`);
            case 'refuse':
              return rig.kafka.faults.refuse(TOPIC, 'full');
            case 'take':
              return rig.kafka.faults.refuse(TOPIC, undefined);
            case 'down':
            case 'up':
              return rig.kafka.faults.down(step.kind === 'down');
            case 'stop':
              // Nobody who is frozen stops in order.
              freezes.length = 0;
              for (const wake of wakers.splice(0)) wake();
              await all.at(-1)?.stop();
              all.push(begin());
              return;
            case 'takeover':
              // The old one is not told: it goes on for a while, or hangs where it is.
              all.push(begin());
          }
        };
        for (const step of weather) await carryOut(step);
        freezes.length = 0;
        rig.kafka.faults.down(false);
        rig.kafka.faults.refuse(TOPIC, undefined);
        rig.kafka.faults.loseAnswers(TOPIC, 0);
        for (const wake of wakers.splice(0)) wake();
        poison.clear();
        await rig.time.pass(65_000);
        for (const each of all.slice(0, -1)) await each.stop();
        // The last one publishes what is parked still; one that was overtaken finds that out first.
        const last = all.at(-1) ?? begin();
        await rig.time.pass(1_000);
        for (let tries = 0; tries < 10; tries += 1) {
          const [parked] = last.topic(TOPIC).parked;
          if (parked === undefined) break;
          void last.publisher.retry(TOPIC, parked.stream);
          await rig.time.pass(5_000);
        }
        expect(last.topic(TOPIC).parked).to.deep.equal([]);
        await last.stop();
        await expectDelivered(rig);
      }),
      { numRuns: 60 },
    ));
});
