import type { TopicProblem } from '../../http/ledger/kafka-operations.ts';
import type { Connection } from '../connection.ts';
import { printable } from '../output.ts';

/** In a table: what is wrong stands beneath it. */
export const OTHER_HISTORY = 'other history';

/** What is the same of several topics is one line. What is missing is told elsewhere, as one sentence for all. */
export const showProblems = (problems: readonly TopicProblem[], io: Pick<Connection['io'], 'err'>): void => {
  const told = problems.filter(({ code }) => code !== 'missing');
  for (const [message, each] of Map.groupBy(told, (problem) => problem.message))
    io.err(`${each.map(({ topic }) => topic).join(', ')} ${printable(message)}\n`);
  if (told.some(({ code }) => code === 'history')) io.err(`${HISTORY_HINT}\n`);
};

/** The same steps, in the same order, as in the runbook. */
const HISTORY_HINT =
  'hint: "another log": find out who else publishes there, or did, before anything is deleted, and give one of the two other ' +
  'brokers; delete a topic only when nobody else needs it. "this log does not have", after a restore: delete those of events and ' +
  'states. `ledgerctl kafka create-topics` then makes them again, and the publisher fills them from the beginning (runbook ' +
  'LedgerKafkaTopicsWrong)';
