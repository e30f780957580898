import type { KafkaTopicPlan } from '../../http/ledger/kafka-operations.ts';
import type { Connection } from '../connection.ts';
import { EXIT } from '../exit.ts';
import { counted, table } from '../output.ts';
import { KAFKA, showNotCompared } from './kafka-status.ts';
import { OTHER_HISTORY, showProblems } from './kafka-problems.ts';

/** Seconds that the brokers may take to answer, unless another bound is given. */
export const BROKERS_SECONDS = 10;

/** The routes whose answers come from the brokers. */
export const topicsPath = (seconds: number): string => `${KAFKA}/topics?timeout_seconds=${seconds}`;

/** What the call comes to; says on stderr every now and then that it is waited for. */
export const whileAsked = async <Answer>(
  call: Promise<Answer>,
  seconds: number,
  io: Pick<Connection['io'], 'err'>,
  everyMs = TELL_MS,
): Promise<Answer> => {
  const began = performance.now();
  const timer = setInterval(() => {
    const passed = Math.round((performance.now() - began) / 1000);
    io.err(`the brokers are asked: ${passed} s of at most ${seconds} s\n`);
  }, everyMs);
  try {
    return await call;
  } finally {
    clearInterval(timer);
  }
};

const TELL_MS = 2_000;

/** Prints every topic as it should be and as it is, and says with which status the command ends. */
export const showPlan = (items: readonly KafkaTopicPlan[], asJson: boolean, io: Connection['io']): number => {
  if (asJson) io.out(`${JSON.stringify(items, null, 2)}\n`);
  else {
    const header = ['topic', 'cleanup', 'partitions', 'retention', 'on the brokers'];
    io.out(`${table(header, items.map(planRow))}\n`);
    const missing = items.filter(({ exists }) => !exists).length;
    if (missing > 0) io.err(`${missingText(missing)}\n`);
    showProblems(
      items.flatMap(({ topic, problems }) => problems.map((problem) => ({ topic, ...problem }))),
      io,
    );
    showNotCompared(
      items.flatMap(({ topic, not_compared: not }) => (not === undefined ? [] : [{ topic, ...not }])),
      io,
    );
  }
  return items.some(({ problems }) => problems.length > 0) ? EXIT.failed : EXIT.done;
};

const missingText = (missing: number): string =>
  `${counted(missing, 'topic does', 'topics do')} not exist: \`ledgerctl kafka create-topics\` makes what is missing`;

const planRow = ({
  topic,
  cleanup,
  partitions,
  retention_ms: ms,
  exists,
  found,
  problems,
}: KafkaTopicPlan) => [
  topic,
  cleanup,
  partitions,
  ms < 0 ? 'for ever' : `${Math.round(ms / DAY_MS)} d`,
  !exists
    ? 'missing'
    : problems.length > 0
      ? wrongOf(problems)
      : `${counted(found?.partitions ?? 0, 'partition')}, ${counted(found?.replicas ?? 0, 'replica')}`,
];

const wrongOf = (problems: KafkaTopicPlan['problems']): string =>
  problems.every(({ code }) => code === 'history') ? OTHER_HISTORY : 'wrong';

const DAY_MS = 86_400_000;
