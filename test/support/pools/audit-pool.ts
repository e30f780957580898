import { expect } from 'chai';
import { blocksOf, blockText, cutOut } from '../../../src/domain/pools/prefix-blocks.ts';

/** Walks over the log, and looks after each of its events at what is held: a crash may end it anywhere. */
export const auditPool = <Event extends { readonly type: string; readonly data: object }>(
  events: readonly Event[],
  textsOf: (data: Event['data']) => readonly string[],
  /** What is left of one without the other. */
  without: (text: string, taken: string) => readonly string[],
): void => {
  const overlap = (left: string, right: string): boolean => without(left, right)[0] !== left;
  const live = new Map<number, readonly string[]>();
  let resting: readonly { readonly text: string; readonly until: string }[] = [];
  let exhausted: string | undefined;
  for (const { type, data } of events) {
    const {
      generation = 0,
      at = '',
      quarantinedUntil,
      holder,
    } = data as {
      readonly generation?: number;
      readonly at?: string;
      readonly quarantinedUntil?: string;
      readonly holder?: object;
    };
    if (type.endsWith('Exhausted')) {
      expect(exhausted, 'told once').to.equal(undefined);
      exhausted = at;
    } else if (type.endsWith('Resized')) exhausted = undefined;
    if (holder === undefined) continue;
    if (type.endsWith('Allocated')) {
      exhausted = undefined;
      const texts = textsOf(data);
      for (const text of texts) {
        for (const others of live.values())
          for (const other of others) expect(overlap(text, other), `${text} and ${other}`).to.equal(false);
        for (const { text: other, until } of resting.filter((rest) => overlap(rest.text, text)))
          expect(until <= at, `${text} at ${at} while ${other} rests until ${until}`).to.equal(true);
        // What was given out again rests no more; the rest of it does.
        resting = resting.flatMap(({ text: other, until }) =>
          without(other, text).map((left) => ({ text: left, until })),
        );
      }
      expect(live.has(generation)).to.equal(false);
      live.set(generation, texts);
    } else {
      expect(live.has(generation), 'a release pairs with an allocation').to.equal(true);
      for (const text of live.get(generation) ?? [])
        if (quarantinedUntil !== undefined) resting = [...resting, { text, until: quarantinedUntil }];
      live.delete(generation);
    }
  }
};

export const withoutVlan = (text: string, taken: string): readonly string[] => (text === taken ? [] : [text]);
export const withoutPrefix = (text: string, taken: string): readonly string[] => {
  const [one, other] = blocksOf([text, taken]);
  return one === undefined || other === undefined ? [text] : cutOut(one, other).map(blockText);
};
