import { expect } from 'chai';
import type { SubscriptionItem } from '../../../src/app/log/event-store.ts';
import { createIntake } from '../../../src/app/process-runner/intake.ts';

type Options = Parameters<typeof createIntake>[0];

/** What wakes runs, as far as the intake says so. */
const wokenBy = async (
  items: readonly object[],
): Promise<readonly (readonly [string, number | undefined])[]> => {
  const woken: [string, number | undefined][] = [];
  const nothing = (): undefined => undefined;
  const wakes = [
    { types: ['Freed'], timerId: 'ask', perStream: 3 },
    { types: ['HubCame'], timerId: 'look' },
  ];
  const intake = createIntake({
    store: {
      subscribe: async function* () {
        yield* items as readonly SubscriptionItem[];
      },
    },
    clock: { monotonicMs: () => 0 },
    index: { anchor: nothing },
    memory: { flush: nothing },
    workflows: wakes.map((each, n) => ({ name: `w${n}`, subject: `s${n}`, subjectTypes: [], wakes: [each] })),
    runEventTypes: [],
    live: nothing,
    wake: (timerId: string, most?: number) => woken.push([timerId, most]),
  } as unknown as Options);
  await intake.run(new AbortController().signal, () => Promise.resolve());
  return woken;
};

describe('the intake of the process runner', () => {
  const event = (type: string, stream: string, position: number) => ({
    kind: 'event',
    event: { type, stream, position: String(position), id: `e${position}` },
  });
  const news = [
    ...Array.from({ length: 5 }, (_, n) => event('Freed', 'pool-p', n)),
    event('Freed', 'pool-q', 5),
    event('HubCame', 'hub-h', 6),
    event('HubCame', 'hub-h', 7),
  ];
  const caughtUp = { kind: 'caught-up' };
  it('wakes for each of what was missed, once it has caught up', async () => {
    expect(await wokenBy(news)).to.deep.equal([]);
    expect(await wokenBy([...news, caughtUp])).to.deep.equal([
      ['ask:p', 15],
      ['ask:q', 3],
      ['look', undefined],
    ]);
  });
  it('wakes at once from then on', async () => {
    expect(await wokenBy([caughtUp, ...news])).to.deep.equal([
      ...Array.from({ length: 5 }, () => ['ask:p', 3]),
      ['ask:q', 3],
      ['look', undefined],
      ['look', undefined],
    ]);
  });
});
