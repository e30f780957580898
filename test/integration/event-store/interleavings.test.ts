import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  WrongExpectedRevision,
  type EventStore,
  type EventToAppend,
  type ExpectedRevision,
} from '../../../src/app/log/event-store.ts';
import { createMemoryEventStore } from '../../../src/adapters/event-store/memory/memory-event-store.ts';
import { all, event, follow } from './contract/fixture.ts';
import { resources } from './support/files.ts';

/**
 * Any mix of appends that arrive together or one after the other (new ones, stale ones, repeated ones, mixed ones)
 * against the simplest thing that could be right: a list of ids per stream.
 */
type Step =
  | { readonly kind: 'append'; readonly stream: number; readonly offset: number; readonly count: number }
  /** The n-th earlier attempt once more, as after a lost answer; `changed` replaces its last event. */
  | { readonly kind: 'repeat'; readonly back: number; readonly changed: boolean };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('append' as const),
      stream: fc.nat({ max: 3 }),
      // 0: at the revision where the model stands; else that far off.
      offset: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -3, max: 2 })),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('repeat' as const),
      back: fc.nat({ max: 9 }),
      changed: fc.boolean(),
    }),
  },
);
/** Each inner list arrives at once. */
const script = fc.array(fc.array(step, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 8 });

type Attempt = {
  readonly stream: string;
  readonly expected: ExpectedRevision;
  readonly events: EventToAppend[];
};
type Outcome = { stored: number } | { duplicate: number } | { conflict: ExpectedRevision };

const createModel = () => {
  const streams = new Map<string, string[]>();
  const attempts: Attempt[] = [];
  const revisionOf = (ids: readonly string[]): ExpectedRevision =>
    ids.length === 0 ? 'no_stream' : ids.length - 1;
  const attemptOf = (step: Step, prefix: string): Attempt => {
    const earlier = step.kind === 'repeat' ? attempts.at(-1 - step.back) : undefined;
    if (earlier !== undefined && step.kind === 'repeat')
      return step.changed
        ? { ...earlier, events: [...earlier.events.slice(0, -1), event('Changed')] }
        : earlier;
    const { stream, offset, count } = step.kind === 'append' ? step : { stream: 0, offset: 0, count: 1 };
    const name = `${prefix}-${stream}`;
    const length = Math.max(0, (streams.get(name)?.length ?? 0) + offset);
    return {
      stream: name,
      expected: length === 0 ? 'no_stream' : length - 1,
      events: Array.from({ length: count }, () => event('Appended')),
    };
  };
  const apply = ({ stream, expected, events }: Attempt): Outcome => {
    const ids = streams.get(stream) ?? [];
    const first = expected === 'no_stream' ? 0 : expected + 1;
    const given = events.map((e) => e.id);
    if (first === ids.length) {
      streams.set(stream, [...ids, ...given]);
      return { stored: first + given.length - 1 };
    }
    const there = ids.slice(first, first + given.length);
    if (there.length === given.length && there.every((id, i) => id === given[i]))
      return { duplicate: first + given.length - 1 };
    return { conflict: revisionOf(ids) };
  };
  return {
    streams,
    play: (step: Step, prefix: string): { attempt: Attempt; outcome: Outcome } => {
      const attempt = attemptOf(step, prefix);
      attempts.push(attempt);
      return { attempt, outcome: apply(attempt) };
    },
  };
};

const outcomeOf = async (store: EventStore, attempt: Attempt): Promise<Outcome> => {
  try {
    const { revision, duplicate } = await store.append(attempt.stream, attempt.expected, attempt.events);
    return duplicate ? { duplicate: revision } : { stored: revision };
  } catch (error) {
    if (error instanceof WrongExpectedRevision) return { conflict: error.actual };
    throw error;
  }
};

type Opened = {
  readonly store: EventStore;
  readonly runs: number;
  /** What must hold of the whole log at the end. */
  readonly check: () => Promise<void>;
  readonly dispose: () => Promise<void>;
};

const stores: Record<string, () => Promise<Opened>> = {
  memory: async () => {
    const store = createMemoryEventStore();
    return { store, runs: 300, check: async () => {}, dispose: () => store.close() };
  },
  sqlite: async () => {
    const made = resources();
    const store = await made.openStore(await made.dataDir());
    const check = async (): Promise<void> => {
      expect((await store.fullCheck()).findings).to.deep.equal([]);
    };
    return { store, runs: 100, check, dispose: made.endAll };
  },
};

describe('event store: random interleavings of appends', function () {
  this.timeout(60_000);
  for (const [name, open] of Object.entries(stores)) {
    const seed = Number(process.env['LEDGER_TEST_SEED'] ?? Date.now() % 2 ** 31);
    it(`${name} answers and stores what the model says (LEDGER_TEST_SEED=${seed})`, async () => {
      const { store, runs, check, dispose } = await open();
      const property = fc.asyncProperty(script, async (rounds) => {
        const prefix = `p${randomUUID()}`;
        const model = createModel();
        const after = await store.lastPosition();
        for (const round of rounds) {
          const played = round.map((each) => model.play(each, prefix));
          const outcomes = await Promise.all(played.map(({ attempt }) => outcomeOf(store, attempt)));
          expect(outcomes).to.deep.equal(played.map(({ outcome }) => outcome));
        }
        const total = [...model.streams.values()].flat().length;
        for (const [stream, ids] of model.streams)
          expect((await all(store.readStream(stream))).map((e) => e.id)).to.deep.equal(ids);
        const log = await all(store.readAll({ ...(after && { after }), limit: Infinity }));
        expect(log).to.have.lengthOf(total);
        const follower = follow(store, { ...(after && { after }), filter: { streamPrefixes: [prefix] } });
        await follower.untilCaughtUp();
        await follower.stop();
        expect(follower.events().map((e) => e.position)).to.deep.equal(log.map((e) => e.position));
      });
      try {
        await fc.assert(property, { numRuns: runs, seed });
        await check();
      } finally {
        await dispose();
      }
    });
  }
});
