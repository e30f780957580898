import { expect } from 'chai';
import fc from 'fast-check';
import type { PublisherFailpoint, PublisherSettings } from '../../../src/app/publisher/types.ts';
import { checkAsync } from '../../support/property.ts';
import { createRig, specOf, TOPIC, valuesOf, type Running } from './publisher-rig.ts';

/** Several sends fill the topic, and few of them store a position. */
const SMALL: Partial<PublisherSettings> = { batch: { records: 2, bytes: 100_000 }, checkpointRecords: 3 };

type Step =
  | { readonly kind: 'append'; readonly streams: readonly number[] }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'anew' | 'lose' | 'hold' | 'release' | 'stop' }
  | { readonly kind: 'kill'; readonly point: Parameters<PublisherFailpoint>[0] };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('append' as const),
        streams: fc.array(fc.nat(3), { minLength: 1, maxLength: 12 }),
      }),
    },
    {
      weight: 4,
      arbitrary: fc.record({
        kind: fc.constant('pass' as const),
        ms: fc.constantFrom(0, 300, 2_000, 62_000),
      }),
    },
    { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('anew', 'lose', 'hold', 'release', 'stop') }) },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('kill' as const),
        point: fc.constantFrom('before-send', 'after-send', 'before-checkpoint', 'after-checkpoint'),
      }),
    },
  ),
  { minLength: 3, maxLength: 30 },
);

describe('a topic that is made anew at any moment', function () {
  this.timeout(60_000);
  it('has the whole history in the end, however often that was, and whoever was killed meanwhile', () =>
    checkAsync(
      fc.asyncProperty(steps, async (weather) => {
        const rig = createRig();
        let release = (): void => undefined;
        let isKilled = false;
        let killAt: Parameters<PublisherFailpoint>[0] | undefined;
        const begin = (): Running => {
          isKilled = false;
          killAt = undefined;
          let isOwn = false;
          return rig.start({
            settings: SMALL,
            failpoint: (point) => {
              if (point === killAt) {
                killAt = undefined;
                [isKilled, isOwn] = [true, true];
              }
              return isOwn ? new Promise<void>(() => undefined) : undefined;
            },
          });
        };
        let running = begin();
        const carryOut = async (step: Step): Promise<void> => {
          switch (step.kind) {
            case 'append':
              return rig.append(...step.streams.map((n) => `thing-${n}`));
            case 'pass':
              return rig.time.pass(step.ms);
            case 'anew':
              rig.kafka.deleteTopic(TOPIC);
              return rig.kafka.createTopic(specOf(TOPIC));
            case 'lose':
              return rig.kafka.faults.loseAnswers(TOPIC, 1);
            case 'hold':
              release();
              release = rig.kafka.faults.hold(TOPIC);
              return;
            case 'release':
              return release();
            case 'stop':
              release();
              killAt = undefined;
              await running.stop();
              running = begin();
              return;
            case 'kill':
              killAt = step.point;
          }
        };
        for (const step of weather) {
          await carryOut(step);
          if (isKilled) running = begin();
        }
        release();
        killAt = undefined;
        rig.kafka.faults.loseAnswers(TOPIC, 0);
        // Until all topics were looked at once more.
        await rig.time.pass(400_000);
        await running.stop();
        const expected: string[] = [];
        for await (const { stream, revision } of rig.store.readAll({ limit: 100_000 }))
          if (stream.startsWith('thing-')) expected.push(`${stream}@${revision}`);
        expect([...new Set(valuesOf(rig.kafka))].toSorted()).to.deep.equal(expected.toSorted());
      }),
      { numRuns: 60 },
    ));
});
