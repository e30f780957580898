import type { Clock } from '../ports.ts';
import {
  KafkaFault,
  type KafkaAdmin,
  type KafkaCluster,
  type KafkaProducers,
  type OnTrouble,
} from './ports.ts';

/** What is known of the brokers from what is asked of them anyway: nothing is sent to find out. */
export type ContactStatus = {
  /** When they answered last; undefined: they have not yet. */
  readonly lastAnswerAt: string | undefined;
  /** What has gone wrong with them since then, and since when. */
  readonly trouble: BrokerTrouble | undefined;
};

export type BrokerTrouble = {
  readonly message: string;
  readonly since: string;
  /** Nobody answers, or whoever does refuses us. */
  readonly reason: 'unreachable' | 'unauthorized';
};

export type Contact = {
  /** The same brokers, listened to. */
  readonly cluster: KafkaCluster;
  status(): ContactStatus;
};

export const createContact = (
  { producers, admin }: KafkaCluster,
  {
    clock,
    onTrouble: tell = () => undefined,
  }: {
    readonly clock: Pick<Clock, 'now'>;
    /** Told of each trouble; undefined: it is over. */
    readonly onTrouble?: (trouble: BrokerTrouble | undefined) => void;
  },
): Contact => {
  let lastAnswerAt: string | undefined;
  let trouble: ContactStatus['trouble'];

  const answered = (): void => {
    lastAnswerAt = clock.now();
    if (trouble === undefined) return;
    trouble = undefined;
    tell(undefined);
  };
  const troubled = (message: string, reason: BrokerTrouble['reason']): void => {
    trouble = { message, reason, since: trouble?.since ?? clock.now() };
    tell(trouble);
  };
  const heard = async <Answer>(call: Promise<Answer>): Promise<Answer> => {
    try {
      const answer = await call;
      answered();
      return answer;
    } catch (error) {
      if (error instanceof KafkaFault) {
        // A refusal of credentials is an answer, and the same trouble with every further try.
        if (error.reason === 'unauthorized') lastAnswerAt = clock.now();
        else if (error.isAnswer) answered();
        if (error.reason === 'unauthorized' || (error.reason === 'unreachable' && !error.isAnswer))
          troubled(error.message, error.reason);
      }
      throw error;
    }
  };

  const heardProducers: KafkaProducers = {
    open: async (signal, mayWrite, onTrouble) => {
      const listen: OnTrouble = (problem, about) => {
        // A refusal is no trouble of the brokers: what is refused says so.
        if (about?.isAnswer !== true) troubled(problem, trouble?.reason ?? 'unreachable');
        onTrouble?.(problem, about);
      };
      const producer = await heard(producers.open(signal, mayWrite, listen));
      return { send: (records) => heard(producer.send(records)), close: () => producer.close() };
    },
  };
  const heardAdmin: KafkaAdmin = {
    describe: (topics, signal) => heard(admin.describe(topics, signal)),
    endsOf: (topics, signal) => heard(admin.endsOf(topics, signal)),
    lastRecords: (topics, signal) => heard(admin.lastRecords(topics, signal)),
    create: (topics, signal) => heard(admin.create(topics, signal)),
  };
  return {
    cluster: { producers: heardProducers, admin: heardAdmin },
    status: () => ({ lastAnswerAt, trouble }),
  };
};
