import type { KafkaStatus, TopicLine, TopicProblem } from '../../http/ledger/kafka-operations.ts';
import type { Connection } from '../connection.ts';
import { EXIT } from '../exit.ts';
import { counted, duration, printable, table } from '../output.ts';
import { OTHER_HISTORY, showProblems } from './kafka-problems.ts';

export const KAFKA = '/api/ledger/v1/kafka';

export const NO_BROKERS = 'no brokers are set: LEDGER_KAFKA_BROKERS is empty';

/** What `kafka status` shows, for its help. */
export const COLUMNS = `
Columns:
  STATE             live          everything up to the end of the log is with the brokers
                    catching-up   on its way to the end of the log
                    waiting       the brokers do not take the next records; the service retries
                    failed        an operator must correct something; the service retries
                    missing       it does not exist on the brokers
                    standby       another instance publishes
  SENT SINCE START  records that the brokers have confirmed since the publishing instance was started
  LAST CONFIRMED    time of the last confirmation
  LOG BEHIND        events of the whole log, of all kinds, behind the last one that is done with; few of them become
                    records of this topic. Not told with an EventStoreDB, nor of a topic that is live
  WAITING           records that are made and not with the brokers yet; + where the log was not read to its end
  WAITING SINCE     when the oldest event was recorded that is not with the brokers yet
  PARKED            streams of which an event cannot be published
  NOW               current attempt, since when, failed attempts, and why the last one failed
`;

/** Prints how far each topic is, and says with which status the command ends. */
export const showStatus = (status: KafkaStatus, asJson: boolean, io: Connection['io']): number => {
  if (asJson) io.out(`${JSON.stringify(status, null, 2)}\n`);
  if (!status.configured) {
    if (!asJson) io.err(`${NO_BROKERS}\n`);
    return EXIT.failed;
  }
  if (!status.publishing) {
    if (!asJson) io.err(`${standbyOf(status)}\n`);
    return EXIT.unavailable;
  }
  if (!asJson) {
    io.out(`${brokersOf(status)}\n`);
    showWaiting(status, io);
    const missing = new Set(status.problems.filter(isMissing).map(({ topic }) => topic));
    io.out(
      `${table(
        HEADER,
        status.topics.map((line) => rowOf(line, missing)),
      )}\n`,
    );
    showParked(status, io);
    showMissing(status, missing, io);
    showProblems(status.problems, io);
    showNotCompared(status.not_compared ?? [], io);
  }
  return isWell(status) ? EXIT.done : EXIT.failed;
};

const HEADER = [
  'topic',
  'state',
  'sent since start',
  'last confirmed',
  'log behind',
  'waiting',
  'waiting since',
  'parked',
  'now',
];

const isMissing = ({ code }: TopicProblem): boolean => code === 'missing';

/** The table names those that are published to; what it means is said once for all of them. */
const showMissing = (
  { topics }: KafkaStatus,
  missing: ReadonlySet<string>,
  io: Pick<Connection['io'], 'err'>,
): void => {
  const filling = topics.filter(({ filling_since: since }) => since !== undefined).length;
  if (filling > 0)
    io.err(
      `${counted(filling, 'topic was', 'topics were')} found empty although published to: filled from the beginning of the log now\n`,
    );
  if (missing.size === 0) return;
  const listed = topics.filter(({ topic }) => missing.has(topic));
  const others = [...missing].filter((name) => !listed.some(({ topic }) => topic === name));
  const also = others.length === 0 ? '' : ` (also ${others.join(', ')})`;
  const gone = listed.filter(({ published }) => published === true).length;
  io.err(
    `${counted(missing.size, 'topic does', 'topics do')} not exist on the brokers${also}: \`ledgerctl kafka create-topics\` makes what is missing\n`,
  );
  if (gone > 0)
    io.err(
      `${gone} of them had been published to: these brokers are other ones or were emptied, or somebody deleted the topics. Nothing is lost: once made, they are filled from the beginning of the log\n`,
    );
};

/** One line for each reason: it is nearly always the same one for all topics. */
export const showNotCompared = (
  topics: readonly { readonly topic: string; readonly message: string }[],
  io: Connection['io'],
): void => {
  for (const [message, each] of Map.groupBy(topics, (topic) => topic.message)) {
    const names = each.map(({ topic }) => topic).join(', ');
    io.err(`not compared with the log: ${names}: ${printable(message)}\n`);
  }
};

const WELL: ReadonlySet<string> = new Set(['live', 'catching-up', 'standby']);

const isWell = ({ topics, problems, brokers }: KafkaStatus): boolean =>
  topics.every(({ state, parked = [] }) => WELL.has(state) && parked.length === 0) &&
  problems.length === 0 &&
  brokers?.trouble === undefined;

export const standbyOf = ({ owner }: Pick<KafkaStatus, 'owner'>): string =>
  owner === undefined
    ? 'this instance does not publish, and nobody else holds the lease: start one with the role publisher'
    : `this instance stands by and does not know how far the topics are: ask ${owner}, which publishes`;

const brokersOf = ({ brokers = {} }: KafkaStatus): string => {
  const { last_answer_at: at, trouble } = brokers;
  const last = at === undefined ? 'no answer yet' : `last answer ${at}`;
  return trouble === undefined
    ? `brokers: ${last}`
    : `brokers: in trouble since ${trouble.since}: ${printable(trouble.message)}; ${last}`;
};

const rowOf = (line: TopicLine, missing: ReadonlySet<string>) => [
  line.topic,
  missing.has(line.topic) ? 'missing' : line.state,
  line.sent_records,
  line.confirmed_at,
  line.state === 'live' || line.behind_events === 0 ? undefined : line.behind_events,
  waitingText(line),
  line.waiting_since === undefined ? undefined : `${line.waiting_since} (${duration(line.lag_seconds ?? 0)})`,
  line.parked?.length === 0 ? undefined : line.parked?.length,
  nowOf(line, missing.has(line.topic)),
];

const waitingText = ({ waiting_records: records = 0, more_waiting: more = false }: TopicLine): string =>
  records === 0 && !more ? '' : `${records}${more ? '+' : ''}`;

const showWaiting = ({ topics }: KafkaStatus, io: Connection['io']): void => {
  const held = topics.filter((topic) => waitingText(topic) !== '');
  if (held.length === 0) return;
  const sum = (of: (topic: TopicLine) => number | undefined): number =>
    held.reduce((total, topic) => total + (of(topic) ?? 0), 0);
  const records = counted(
    sum((topic) => topic.waiting_records),
    'record',
  );
  const events = counted(
    sum((topic) => topic.waiting_events),
    'event',
  );
  const least = held.some(({ more_waiting: more }) => more === true) ? 'at least ' : '';
  io.out(`waiting: ${least}${records} of ${events}, in ${counted(held.length, 'topic')}\n`);
};

/** What it does, where that is more than waiting for news. */
const nowOf = (
  { state, trying, filling_since: filling, last_error: error }: TopicLine,
  isGone: boolean,
): string | undefined => {
  const waits = trying && `${counted(trying.records, 'record')} ${trying.records === 1 ? 'waits' : 'wait'}`;
  if (isGone) return waits;
  if (state === 'failed' && error?.reason === 'other-history')
    return waits === undefined ? OTHER_HISTORY : `${OTHER_HISTORY}: ${waits}`;
  const now = trying === undefined || state === 'live' ? undefined : tryingText(trying);
  if (filling !== undefined) {
    const what = `filled from the beginning since ${filling}`;
    return now === undefined ? what : `${what}: ${now}`;
  }
  if (now !== undefined || state === 'live' || state === 'catching-up') return now;
  return printable(error?.message ?? '');
};

const tryingText = ({ records, since, failed, problem }: NonNullable<TopicLine['trying']>): string => {
  const what = `sending ${counted(records, 'record')} since ${since}`;
  const vain = failed === 0 ? what : `${what}, ${counted(failed, 'failed attempt')}`;
  return problem === undefined ? vain : `${vain}: ${printable(problem)}`;
};

const showParked = ({ topics }: KafkaStatus, io: Connection['io']): void => {
  let isAny = false;
  for (const { topic, parked = [] } of topics)
    for (const { stream, revision, error, at } of parked) {
      isAny = true;
      io.err(`${topic}: ${stream} is parked at revision ${revision} since ${at}: ${printable(error)}\n`);
    }
  if (isAny) io.err('hint: `ledgerctl kafka retry --all` publishes them, once what is wrong is put right\n');
};
