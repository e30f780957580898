import type { Lease, Ownership } from '../deployment/ownership.ts';
import { createTurns } from '../fairness/slicer.ts';
import type { EventStore } from '../log/event-store.ts';
import type { Clock, Timers, Logger, Runtime } from '../ports.ts';
import { pause } from '../process-runner/pause.ts';
import type { TopicSpec, TopicStream } from '../streams/stream.ts';
import { type BrokerTrouble, createContact, type ContactStatus } from './contact.ts';
import { createHeartbeatPublisher, type HeartbeatPublisher, type Heartbeats } from './heartbeat-publisher.ts';
import { createHistoryCheck, type NotCompared } from './history.ts';
import { createLogPages } from './log-pages.ts';
import type { KafkaCluster, OnTrouble } from './ports.ts';
import { replay, type ReplayedLog, type ReplayRequest, type ReplayStep } from './replay.ts';
import { createTopicCheck, CREATE_COMMAND, type TopicPlan, type TopicProblem } from './topic-check.ts';
import { createTopicPublisher, type TopicPublisher } from './topic-publisher.ts';
import { STANDBY, topicErrorOf, type TopicStatus } from './topic-status.ts';
import { THE_BROKERS, type Trouble, createRefillLog, createTrouble, THE_CHECK } from './trouble.ts';
import {
  PUBLISHER_SETTINGS,
  type PublisherFailpoint,
  type PublisherSettings,
  type RetryOutcome,
} from './types.ts';
import { NO_ENDS } from './written-ends.ts';

/** Milliseconds that brokers may be away without a word: one of them is started again, a leader moves. */
const SHORT_MS = 5_000;
/** Milliseconds after which they are looked at when something went wrong: nobody may send anything for hours. */
const LOOK_SOON_MS = 2_000;

/**
 * What becomes of the brokers' trouble: told in the service's log when it lasts, and a look at the topics soon, for brokers
 * that went away may come back empty.
 */
type BrokerWatch = {
  /** Each trouble; undefined: it is over. */
  readonly heard: (trouble: BrokerTrouble | undefined) => void;
  /** Who writes it down from now on; undefined: nobody. */
  readonly tellTo: (trouble: Trouble | undefined) => void;
  /** Aborted a moment after the next trouble has begun. */
  readonly begun: () => AbortSignal;
};

export const createBrokerWatch = ({
  clock,
  timers,
}: {
  readonly clock: Pick<Clock, 'now'>;
  readonly timers: Timers;
}): BrokerWatch => {
  let current: BrokerTrouble | undefined;
  let log: Trouble | undefined;
  let isTold = false;
  let cancel: (() => void) | undefined;
  let begun = new AbortController();

  const tell = (): void => {
    if (current === undefined || log === undefined) return;
    isTold = true;
    const { reason, message } = current;
    log.has(THE_BROKERS, { reason, message, at: clock.now() });
  };
  const wait = (): void => {
    cancel ??= timers.after(SHORT_MS, tell);
  };
  const rest = (): void => {
    cancel?.();
    cancel = undefined;
    isTold = false;
  };

  return {
    heard: (trouble) => {
      const isNew = current === undefined && trouble !== undefined;
      current = trouble;
      if (trouble === undefined) {
        if (isTold) log?.over(THE_BROKERS);
        return rest();
      }
      if (isTold) tell();
      else if (log !== undefined) wait();
      if (!isNew) return;
      const ending = begun;
      begun = new AbortController();
      timers.after(LOOK_SOON_MS, () => ending.abort());
    },
    tellTo: (trouble) => {
      rest();
      log = trouble;
      if (current !== undefined && log !== undefined) wait();
    },
    begun: () => begun.signal,
  };
};

export type PublisherOptions = {
  /** Fresh mappers: they keep folded streams, and belong to one tenure. `log`: what they read streams from; default: the store. */
  readonly streams: (log?: ReplayedLog) => readonly TopicStream[];
  /** Every topic there is to be, also those that no event fills. */
  readonly topics: readonly TopicSpec[];
  /** Absent: none are sent. */
  readonly heartbeats?: Heartbeats;
  readonly cluster: KafkaCluster;
  readonly store: EventStore;
  /** The log as replays read it, whose events are those that were recorded. Default: the store. */
  readonly recorded?: ReplayedLog;
  readonly ownership: Ownership;
  readonly hooks?: { readonly published?: (topic: string, records: number) => void };
  readonly failpoint?: PublisherFailpoint;
  readonly settings?: Partial<PublisherSettings>;
} & Runtime;

/**
 * The role `publisher`: every event of the log becomes records, at least once and in order per key
 * between takeovers. One instance at a time, others stand by; one place in the log, one connection and one
 * checkpoint for
 * each topic, so that a slow or refused one delays no other.
 */
export type Publisher = {
  /** Resolves after the signal was aborted and nothing of it runs any more. */
  run(signal: AbortSignal): Promise<void>;
  status(): PublisherStatus;
  /** Topics as they are on the brokers and as they should be. Throws KafkaFault. */
  plan(signal: AbortSignal): Promise<readonly TopicPlan[]>;
  /** Makes the missing topics and returns their names. Throws KafkaFault. */
  createTopics(signal: AbortSignal): Promise<readonly string[]>;
  /**
   * A part of the log to a topic of its own, see `replay`. Undefined: there is no such topic, or nothing of the log
   * becomes a record of it. Works on every instance, whoever publishes.
   */
  replay(request: ReplayRequest, signal: AbortSignal): AsyncIterable<ReplayStep> | undefined;
  /** Undefined: there is no such topic, or this instance does not publish. */
  retry(topic: string, stream: string): Promise<RetryOutcome | undefined>;
};

export type PublisherStatus = {
  /** Epoch of the lease; undefined: standby. */
  readonly epoch: number | undefined;
  readonly brokers: ContactStatus;
  readonly topics: readonly TopicStatus[];
  /** What is wrong with topics, as last seen by this instance. */
  readonly problems: readonly (TopicProblem & { readonly topic: string })[];
  /** Topics that were not compared with the log when that was tried last, and why: they are published to all the same. */
  readonly notCompared: readonly (NotCompared & { readonly topic: string })[];
};

type Tenure = {
  readonly epoch: number;
  /** Aborted when it is over. */
  readonly signal: AbortSignal;
  readonly topics: readonly TopicPublisher[];
  readonly heartbeats: readonly HeartbeatPublisher[];
  readonly trouble: Trouble;
};

/** Milliseconds between two looks at the topics: somebody may change or remove them. */
const LOOK_EVERY_MS = 300_000;
const LOOK_AGAIN_MS = 30_000;
/** The same, at first, when it could not be seen what they hold: twice as many each time. */
const UNSURE_MS = 1_000;
export const createPublisher = (options: PublisherOptions): Publisher => {
  const { ownership, clock, timers, logger, store } = options;
  const brokers = createBrokerWatch({ clock, timers });
  const contact = createContact(options.cluster, { clock, onTrouble: brokers.heard });
  const { cluster } = contact;
  const settings = { ...PUBLISHER_SETTINGS, ...options.settings };
  const specs = options.topics;
  let told = '';
  const tellNotCompared = createNotComparedLog(logger);
  const check = createTopicCheck({
    admin: cluster.admin,
    history: createHistoryCheck({ admin: cluster.admin, store }),
    topics: specs,
    clock,
    onPlan: (plan) => {
      tellNotCompared(notComparedOf(plan));
      const problems = problemsOf(plan);
      const text = JSON.stringify(problems);
      if (text === told) return;
      told = text;
      if (problems.length === 0) logger.info({}, 'Kafka topics are well');
      else logger.warn(shownOf(problems), inShort(plan, tenure?.topics.map((topic) => topic.status()) ?? []));
    },
  });
  let tenure: Tenure | undefined;

  /** At the start and from then on, also while no topic has anything to send. */
  const look = async (trouble: Trouble, signal: AbortSignal): Promise<void> => {
    for (let unsure = 0; !signal.aborted; ) {
      let wait = LOOK_EVERY_MS;
      try {
        await check.look(signal);
        unsure = check.isUnsure() ? unsure + 1 : 0;
        if (unsure > 0) wait = Math.min(LOOK_AGAIN_MS, UNSURE_MS * 2 ** (unsure - 1));
        trouble.over(THE_CHECK);
        if (notComparedOf(check.last()).some(({ reason }) => reason === 'failed'))
          wait = Math.min(wait, LOOK_AGAIN_MS);
      } catch (error) {
        if (signal.aborted) return;
        trouble.has(THE_CHECK, topicErrorOf(error, clock.now()));
        wait = LOOK_AGAIN_MS;
      }
      await pause(timers, wait, AbortSignal.any([signal, check.making(), brokers.begun()]));
    }
  };

  /** What this instance runs while it owns the lease. */
  const begin = (lease: Lease, stopping: AbortSignal): Tenure => {
    const { epoch, isHeld, afterSilence = false } = lease;
    const over = new AbortController();
    const signal = AbortSignal.any([lease.signal, over.signal]);
    const trouble = createTrouble(logger, clock);
    // What was seen before this tenure says nothing of what somebody else has sent since.
    check.forget();
    const shared = {
      ...options,
      producers: {
        open: (until: AbortSignal, _mayWrite?: () => boolean, onTrouble?: OnTrouble) =>
          cluster.producers.open(until, isHeld, onTrouble),
      },
      // One look serves many topics, and must not end with the session of one of them.
      check: {
        ready: (topic: string) => check.ready(topic, signal),
        forget: check.forget,
        making: check.making,
        looked: check.looked,
        lastEnds: check.lastEnds,
        endsOf: async (topic: string) => (await cluster.admin.endsOf([topic], signal)).get(topic) ?? NO_ENDS,
      },
      settings,
      graceMs: () => (signal.aborted && !stopping.aborted ? 0 : settings.graceMs),
      silenceMs: afterSilence ? settings.silenceMs : 0,
      takenOver: () => {
        if (over.signal.aborted) return;
        logger.warn({ epoch }, 'another instance publishes; giving the lease back');
        over.abort();
      },
      turn: createTurns(clock),
      pages: createLogPages(store, signal),
      trouble,
      refilled: createRefillLog(logger, timers),
    };
    const { heartbeats } = options;
    return {
      epoch,
      signal,
      trouble,
      topics: options.streams().map((stream) => createTopicPublisher({ ...shared, stream })),
      heartbeats: heartbeats === undefined ? [] : [createHeartbeatPublisher({ ...shared, heartbeats })],
    };
  };

  return {
    run: (signal) =>
      ownership.hold(signal, async (lease) => {
        const own = begin(lease, signal);
        tenure = own;
        brokers.tellTo(own.trouble);
        logger.info({ epoch: lease.epoch, topics: own.topics.length }, 'publishing to Kafka');
        try {
          const parts = [...own.topics, ...own.heartbeats];
          await Promise.all([look(own.trouble, own.signal), ...parts.map((part) => part.run(own.signal))]);
        } finally {
          tenure = undefined;
          brokers.tellTo(undefined);
        }
      }),
    status: () => ({
      epoch: tenure?.epoch,
      brokers: contact.status(),
      topics:
        tenure === undefined
          ? specs.map(({ name }) => ({ topic: name, ...STANDBY }))
          : [...tenure.topics, ...tenure.heartbeats].map((topic) => topic.status()),
      problems: problemsOf(check.last()),
      notCompared: notComparedOf(check.last()),
    }),
    plan: (signal) => check.plan(signal),
    createTopics: async (signal) => {
      const made = await cluster.admin.create(specs, signal);
      check.made();
      return made;
    },
    replay: (request, signal) => {
      const { recorded, streams } = options;
      const stream = streams(recorded).find(({ topic }) => topic.name === request.topic);
      const from = { cluster, stream, store: recorded ?? store, clock, timers };
      return stream === undefined ? undefined : replay({ ...from, stream }, request, signal);
    },
    retry: async (name, stream) => tenure?.topics.find((topic) => topic.name === name)?.retry(stream),
  };
};

/** Problems that one log line tells. */
const SHOWN = 50;

const problemsOf = (plan: readonly TopicPlan[]): PublisherStatus['problems'] =>
  plan.flatMap(({ topic, problems }) =>
    problems.map(({ code, message }) => ({ topic: topic.name, code, message })),
  );

/** Of what is missing the names alone, and what is the same of several topics once: what to do about it is the same for all. */
const shownOf = (problems: PublisherStatus['problems']): object => {
  const missing = problems.filter(({ code }) => code === 'missing').map(({ topic }) => topic);
  const others = [
    ...Map.groupBy(
      problems.filter(({ code }) => code !== 'missing'),
      ({ message }) => message,
    ),
  ];
  const told = others
    .slice(0, SHOWN)
    .map(([message, each]) => `${each.map(({ topic }) => topic).join(', ')} ${message}`);
  return {
    ...(missing.length > 0 && { missing }),
    ...(told.length > 0 && { problems: told }),
    ...(others.length > SHOWN && { more: others.length - SHOWN }),
  };
};

const notComparedOf = (plan: readonly TopicPlan[]): PublisherStatus['notCompared'] =>
  plan.flatMap(({ topic, notCompared }) =>
    notCompared === undefined ? [] : [{ topic: topic.name, ...notCompared }],
  );

/** Tells once what changes. Rights may be withheld on purpose; a look that fails is never meant. */
const createNotComparedLog = (logger: Logger) => {
  let told = '';
  return (topics: PublisherStatus['notCompared']): void => {
    const text = JSON.stringify(topics);
    if (text === told || (told === '' && topics.length === 0)) return;
    told = text;
    const level = topics.some(({ reason }) => reason === 'failed') ? 'warn' : 'info';
    logger[level](
      { topics: topics.slice(0, SHOWN), more: Math.max(0, topics.length - SHOWN) },
      topics.length === 0
        ? 'all topics are compared with the log again'
        : `${topics.length} Kafka topics are not compared with the log: were an older backup restored, nobody would be told`,
    );
  };
};

const inShort = (plan: readonly TopicPlan[], topics: readonly TopicStatus[]): string => {
  const missing = plan.filter(({ found }) => found === undefined);
  const wrong = plan.filter(({ found, problems }) => found !== undefined && problems.length > 0).length;
  const gone = goneOf(topics, missing).length;
  return [
    missing.length > 0 && `${missing.length} Kafka topics are missing: ${CREATE_COMMAND} creates them`,
    gone > 0 &&
      `${gone} of them were published to, so that these brokers are other ones or were emptied, or somebody has deleted them: once made, they are filled from the beginning of the log`,
    wrong > 0 && `${wrong} Kafka topics are not as they should be`,
  ]
    .filter((part) => part !== false)
    .join('; ');
};

/** Topics that are missing although something was sent to them. */
const goneOf = (topics: readonly TopicStatus[], missing: readonly TopicPlan[]): readonly TopicStatus[] => {
  const names = new Set(missing.map(({ topic }) => topic.name));
  return topics.filter(({ topic, published }) => published && names.has(topic));
};
