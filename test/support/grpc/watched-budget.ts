import { createBodyBudget, type BodyBudget } from '../../../src/http/body.ts';

/** What a service takes of a budget, and how much at most. */
export const watchedBudget = (bytes: number) => {
  const inner = createBodyBudget(bytes);
  const seen = { now: 0, most: 0 };
  const budget: BodyBudget = {
    take: (wanted) => {
      if (!inner.take(wanted)) return false;
      seen.now += wanted;
      seen.most = Math.max(seen.most, seen.now);
      return true;
    },
    give: (returned) => {
      inner.give(returned);
      seen.now -= returned;
    },
  };
  return { budget, seen };
};
