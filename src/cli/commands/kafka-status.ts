import type { Connection } from '../connection.ts';
import { EXIT } from '../exit.ts';
import { counted, duration, printable, table } from '../output.ts';

export const KAFKA = '/api/ledger/v1/kafka';

/** `GET /api/ledger/v1/kafka`. */
export type KafkaStatus = {
  readonly configured: boolean;
  readonly publishing: boolean;
  /** Of an instance that stands by: the one that publishes. */
  readonly owner?: string;
  readonly brokers?: {
    readonly last_answer_at?: string;
    readonly trouble?: { readonly message: string; readonly since: string };
  };
  readonly topics: readonly TopicLine[];
  readonly problems: readonly { readonly topic: string; readonly message: string }[];
  readonly not_compared?: readonly { readonly topic: string; readonly message: string }[];
};

export type ParkedLine = {
  readonly stream: string;
  readonly revision: number;
  readonly error: string;
  readonly at?: string;
};

type TopicLine = {
  readonly topic: string;
  readonly state: string;
  readonly behind_events?: number;
  readonly waiting_since?: string;
  readonly lag_seconds?: number;
  readonly sent_records?: number;
  readonly confirmed_at?: string;
  readonly trying?: {
    readonly records: number;
    readonly since: string;
    readonly attempt: number;
    readonly problem?: string;
  };
  readonly last_error?: { readonly reason: string; readonly message: string; readonly at: string };
  readonly parked?: readonly ParkedLine[];
};

/** Prints how far each topic is, and says with which status the command ends. */
export const showStatus = (status: KafkaStatus, asJson: boolean, io: Connection['io']): number => {
  if (asJson) io.out(`${JSON.stringify(status, null, 2)}\n`);
  if (!status.configured) {
    if (!asJson) io.err('no brokers are set: LEDGER_KAFKA_BROKERS is empty\n');
    return EXIT.done;
  }
  if (!status.publishing) {
    if (!asJson) io.err(`${standbyOf(status)}\n`);
    return EXIT.unavailable;
  }
  if (!asJson) {
    io.out(`${brokersOf(status)}\n`);
    const header = ['topic', 'state', 'sent', 'confirmed', 'behind', 'waiting since', 'parked', 'now'];
    io.out(`${table(header, status.topics.map(rowOf))}\n`);
    showParked(status, io);
    for (const { topic, message } of status.problems) io.err(`${topic} ${message}\n`);
    showNotCompared(status.not_compared ?? [], io);
  }
  return isWell(status) ? EXIT.done : EXIT.failed;
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

/** What an instance that does not publish says of the topics. */
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

const rowOf = (line: TopicLine) => [
  line.topic,
  line.state,
  line.sent_records,
  line.confirmed_at,
  line.state === 'live' || line.behind_events === 0 ? undefined : line.behind_events,
  line.waiting_since === undefined ? undefined : `${line.waiting_since} (${duration(line.lag_seconds ?? 0)})`,
  line.parked?.length === 0 ? undefined : line.parked?.length,
  nowOf(line),
];

/** What it does, where that is more than waiting for news. */
const nowOf = ({ state, trying, last_error: error }: TopicLine): string | undefined => {
  if (state === 'live') return undefined;
  if (trying === undefined) return state === 'catching-up' ? undefined : printable(error?.message ?? '');
  const { records, attempt, problem } = trying;
  const what = `sending ${counted(records, 'record')}, try ${attempt}`;
  return problem === undefined ? what : `${what}: ${printable(problem)}`;
};

const showParked = ({ topics }: KafkaStatus, io: Connection['io']): void => {
  let isAny = false;
  for (const { topic, parked = [] } of topics)
    for (const { stream, revision, error, at } of parked) {
      isAny = true;
      const since = at === undefined ? '' : ` since ${at}`;
      io.err(`${topic}: ${stream} is parked at revision ${revision}${since}: ${printable(error)}\n`);
    }
  if (isAny) io.err('hint: `ledgerctl kafka retry --all` publishes them, once what is wrong is put right\n');
};
