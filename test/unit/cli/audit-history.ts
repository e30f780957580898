import { consistencyPath } from '../../../src/app/audit/merkle/proofs.ts';
import { eventsOf, historyOf, type History } from '../../support/audit/signed-history.ts';

export const SIZE = 30;
export const history = historyOf(eventsOf(SIZE));
/** The same log up to ten events, and another one after them. */
export const fork = historyOf([...history.events.slice(0, 10), ...eventsOf(SIZE, 1).slice(10)]);

/** The sizes that a question for a proof of consistency names, and what a service of this history answers. */
export const consistencyOf = (of: History, query: URLSearchParams) => {
  const [from, to] = [Number(query.get('from')), Number(query.get('to'))];
  const path = consistencyPath(from, to, of.tree.hashAt).map((hash) => hash.toString('base64'));
  return { from, to, path };
};
