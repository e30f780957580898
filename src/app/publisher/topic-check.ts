import type { Clock } from '../ports.ts';
import type { TopicSpec } from '../streams/stream.ts';
import { stopsAtOtherHistory, type HistoryCheck, type NotCompared } from './history.ts';
import { insyncOf, KafkaFault, REPLICAS, type Ends, type KafkaAdmin, type TopicOnBrokers } from './ports.ts';

/** What is wrong with a topic, in words that say what to do. */
export type TopicProblem = {
  readonly code: 'missing' | 'cleanup' | 'retention' | 'partitions' | 'replicas' | 'insync' | 'history';
  readonly message: string;
};

export type TopicPlan = {
  readonly topic: TopicSpec;
  /** Undefined: it is missing. */
  readonly found: TopicOnBrokers | undefined;
  readonly problems: readonly TopicProblem[];
  /** Why it was not compared with the log when that was tried last; absent: it was, or nothing of it can be. */
  readonly notCompared?: NotCompared;
};

/** The command that makes what is missing. */
export const CREATE_COMMAND = 'ledgerctl kafka create-topics';

/** Milliseconds that what was found missing, or of another history, is not asked for again. */
const MISSING_MS = 5_000;
/** Milliseconds that a comparison with the log holds which found nothing: it reads a batch of every partition. */
const COMPARED_MS = 300_000;

export type TopicCheck = {
  /** Every topic as it is and as it should be, asked now. Throws KafkaFault. */
  plan(signal: AbortSignal): Promise<readonly TopicPlan[]>;
  /** The same for whoever asks meanwhile, too. Throws KafkaFault. */
  look(signal: AbortSignal): Promise<unknown>;
  /**
   * Throws KafkaFault `topic-missing` with the command that makes it, `other-history`, and whatever keeps the brokers from
   * saying so.
   */
  ready(topic: string, signal: AbortSignal): Promise<void>;
  /** What was last seen is no longer believed; of one topic: that it is the same topic still. */
  forget(topic?: string): void;
  /** Topics were made: whoever waits for one need wait no longer. */
  made(): void;
  /** Aborted when topics are made the next time. */
  making(): AbortSignal;
  /** Aborted after the next look at all topics. */
  looked(): AbortSignal;
  /** Where the topic ended at the last look; undefined: it was not there, or that could not be seen. */
  lastEnds(topic: string): Ends | undefined;
  /** At the last look it could not be seen where the topics end: nobody leads one that has just been made, say. */
  isUnsure(): boolean;
  /** As last seen; empty before the first look. */
  last(): readonly TopicPlan[];
};

/** As topics see it. */
export type TopicsReady = Pick<TopicCheck, 'forget' | 'making' | 'looked' | 'lastEnds'> & {
  ready(topic: string): Promise<void>;
  /** Where it ends now. Throws KafkaFault. */
  endsOf(topic: string): Promise<Ends>;
};

/** One look at the brokers serves all topics: when they are away, one connection is tried and not one for each. */
export const createTopicCheck = ({
  admin,
  history,
  topics,
  clock,
  onPlan,
}: {
  readonly admin: Pick<KafkaAdmin, 'describe' | 'endsOf'>;
  readonly history: HistoryCheck;
  readonly topics: readonly TopicSpec[];
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Told of each look. */
  readonly onPlan?: (plan: readonly TopicPlan[]) => void;
}): TopicCheck => {
  let last: readonly TopicPlan[] = [];
  let lookedAt: number | undefined;
  let looking: Promise<readonly TopicPlan[]> | undefined;
  let making = new AbortController();
  let looked = new AbortController();
  let ends: ReadonlyMap<string, Ends> = new Map();
  let isUnsure = false;

  /** By topic, what the last comparison has found. */
  const compared = new Map<string, Comparison>();

  /** Never fails a topic that is sound: what could not be compared is tried again, and known to be of another history stays so. */
  const compare = async (existing: readonly TopicSpec[], signal: AbortSignal): Promise<void> => {
    const at = clock.monotonicMs();
    try {
      const { others, not } = await history(existing, signal);
      for (const { name } of existing)
        compared.set(name, { at, other: others.get(name), not: not.get(name) });
    } catch (error) {
      if (signal.aborted) throw error;
      const text = error instanceof Error ? error.message : String(error);
      const message = `the look at its newest records failed: ${text}`;
      for (const { name, filter } of existing) {
        const other = compared.get(name)?.other;
        const not: NotCompared = { reason: 'failed', message };
        compared.set(name, { at, other, not: filter === undefined ? undefined : not });
      }
    }
  };
  const isDue = ({ name }: TopicSpec): boolean => {
    const { at, other, not } = compared.get(name) ?? { at: Number.NEGATIVE_INFINITY };
    if (clock.monotonicMs() - at >= COMPARED_MS) return true;
    return other !== undefined || not?.reason === 'failed';
  };

  /** What cannot be seen of one, without a leader for a moment say, is asked again at the next look. */
  const endsAmong = async (
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, Ends>> => {
    try {
      return names.length === 0 ? new Map() : await admin.endsOf(names, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof KafkaFault)) throw error;
      return new Map();
    }
  };

  const see = async (signal: AbortSignal, isWanted: (topic: TopicSpec) => boolean) => {
    const found = await admin.describe(
      topics.map(({ name }) => name),
      signal,
    );
    for (const { name } of topics) if (!found.topics.has(name)) compared.delete(name);
    ends = await endsAmong([...found.topics.keys()], signal);
    const wanted = topics.filter((topic) => found.topics.has(topic.name) && isWanted(topic));
    isUnsure = ends.size < found.topics.size;
    if (wanted.length > 0) await compare(wanted, signal);
    last = topics.map((topic) => {
      const plan = planOf(topic, found.topics.get(topic.name), found.brokers);
      const { other, not } = compared.get(topic.name) ?? {};
      const problems: readonly TopicProblem[] =
        other === undefined ? plan.problems : [...plan.problems, { code: 'history', message: other }];
      return { ...plan, problems, ...(not === undefined ? {} : { notCompared: not }) };
    });
    lookedAt = clock.monotonicMs();
    onPlan?.(last);
    looked.abort();
    looked = new AbortController();
    return last;
  };
  const look = (signal: AbortSignal): Promise<unknown> => {
    looking ??= see(signal, isDue).finally(() => {
      looking = undefined;
    });
    return looking;
  };
  /** What keeps a topic from taking anything. */
  const obstacleOf = (name: string): KafkaFault | undefined => {
    const plan = last.find(({ topic }) => topic.name === name);
    if (plan === undefined) return undefined;
    if (plan.found === undefined)
      return new KafkaFault(
        'topic-missing',
        `topic ${name} does not exist on the brokers; ${CREATE_COMMAND} creates it`,
      );
    const other = plan.problems.find(({ code }) => code === 'history');
    return other === undefined || !stopsAtOtherHistory(plan.topic)
      ? undefined
      : new KafkaFault('other-history', `topic ${name} ${other.message}`);
  };

  return {
    plan: (signal) => see(signal, () => true),
    look,
    ready: async (name, signal) => {
      const isOld =
        lookedAt === undefined ||
        (obstacleOf(name) !== undefined && clock.monotonicMs() - lookedAt >= MISSING_MS);
      if (isOld) await look(signal);
      const obstacle = obstacleOf(name);
      if (obstacle !== undefined) throw obstacle;
    },
    forget: (topic) => {
      lookedAt = undefined;
      if (topic === undefined) compared.clear();
      else compared.delete(topic);
    },
    made: () => {
      lookedAt = undefined;
      // Until they are looked at: nobody may lead them for a moment.
      last = last.filter(({ found }) => found !== undefined);
      making.abort();
      making = new AbortController();
    },
    making: () => making.signal,
    looked: () => looked.signal,
    lastEnds: (topic) => ends.get(topic),
    isUnsure: () => isUnsure,
    last: () => last,
  };
};

type Comparison = {
  /** By the monotonic clock. */
  readonly at: number;
  readonly other?: string | undefined;
  readonly not?: NotCompared | undefined;
};

const planOf = (topic: TopicSpec, found: TopicOnBrokers | undefined, brokers: number): TopicPlan => ({
  topic,
  found,
  problems:
    found === undefined
      ? [{ code: 'missing', message: `does not exist; ${CREATE_COMMAND} creates it` }]
      : [...problemsOf(topic, found), ...copiesOf(found, brokers)],
});

/** What is confirmed must outlive one broker, where there is more than one. */
const copiesOf = ({ replicas, minInsync }: TopicOnBrokers, brokers: number): readonly TopicProblem[] => {
  const wanted = Math.min(REPLICAS, brokers);
  if (replicas < wanted)
    return [
      {
        code: 'replicas',
        message: `has ${counted(replicas, 'replica')} on ${counted(brokers, 'broker')}: with a broker records may be lost; reassign it to ${wanted}`,
      },
    ];
  // NaN: what the brokers do not tell us cannot be judged.
  if (!(minInsync < insyncOf(wanted))) return [];
  const message = `has min.insync.replicas=${minInsync}, so that what is confirmed may be on one broker only; set min.insync.replicas=${insyncOf(wanted)}`;
  return [{ code: 'insync', message }];
};

/**
 * Fewer partitions are the operator's choice, and more where every record is kept. On a compacted topic keys that moved
 * to another partition leave their last document behind, where nothing ever removes it.
 */
const problemsOf = (topic: TopicSpec, found: TopicOnBrokers): readonly TopicProblem[] => {
  const problems: TopicProblem[] = [];
  const compacts = found.cleanup.split(',').includes('compact');
  const deletes = found.cleanup.split(',').includes('delete');
  // What the brokers do not tell us cannot be judged.
  if (found.cleanup !== '' && (topic.cleanup === 'compact' ? deletes || !compacts : compacts))
    problems.push({
      code: 'cleanup',
      message: `has cleanup.policy=${found.cleanup}, by which it loses ${
        topic.cleanup === 'compact' ? 'documents that do not change' : 'all but the newest record of each key'
      }; set cleanup.policy=${topic.cleanup}`,
    });
  const keeps = found.retentionMs < 0 ? Number.POSITIVE_INFINITY : found.retentionMs;
  const wanted = topic.retentionMs < 0 ? Number.POSITIVE_INFINITY : topic.retentionMs;
  if (topic.cleanup === 'delete' && keeps < wanted)
    problems.push({
      code: 'retention',
      message: `keeps records for ${found.retentionMs} ms only; set retention.ms=${topic.retentionMs}`,
    });
  if (topic.cleanup === 'compact' && found.partitions > topic.partitions)
    problems.push({
      code: 'partitions',
      message: `has ${counted(found.partitions, 'partition')} instead of ${topic.partitions}: documents whose key has moved are there twice, the old one for ever; make it again, or read a replay instead`,
    });
  return problems;
};

const counted = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`;
