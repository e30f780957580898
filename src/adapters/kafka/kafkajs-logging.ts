import type { logCreator } from 'kafkajs';
import { LRUCache } from 'lru-cache';
import type { Clock, Logger } from '../../app/ports.ts';
import type { OnTrouble } from '../../app/publisher/ports.ts';
import { logLevel } from './kafkajs-library.ts';
import { withoutSecret } from './faults.ts';

/** Milliseconds in which one message is written once: a broker that is away makes kafkajs repeat itself every second. */
const ONCE_IN_MS = 60_000;
/** Messages that are remembered. */
const REMEMBERED = 200;

/** Whoever speaks of a connection, of which the publisher tells by itself: once when it begins, and when it is over. */
const OF_CONNECTIONS = /^(Connection|BrokerPool|RequestQueue|SaslAuthenticator.*)$/;
/** What this one says of a connection, the other one has said. */
const REPEATS = 'BrokerPool';
/** Here a broker has answered, and does not let us in. */
const REFUSES = 'SaslAuthenticator';
/** A broker has answered, with an error. */
const ANSWER = /^Response /;

/** Said of every idempotent producer whose tries are bounded; of no account for at-least-once. */
const HARMLESS = 'Limiting retries for the idempotent producer';

export type LoggedClient = {
  readonly secret: string | undefined;
  readonly isCut: () => boolean;
  /** Told of each try that was in vain, also where nothing is written. */
  readonly onTrouble?: OnTrouble | undefined;
};

/**
 * kafkajs' log lines as ours. What it calls an error it tries again by itself, so that it is a warning here, and of
 * connections not even that: whether it is in vain the publisher says, once for all of them. What a connection that
 * we ended
 * says means nothing. Of its fields only those with words and numbers are kept, and no secret.
 */
export const createKafkaLogging = (
  logger: Logger,
  clock: Pick<Clock, 'monotonicMs'>,
): ((client: LoggedClient) => logCreator) => {
  const told = new LRUCache<string, { at: number; more: number }>({ max: REMEMBERED });

  /** How often the message was held back since it was last written; undefined: it is held back now. */
  const repeats = (message: string): number | undefined => {
    const now = clock.monotonicMs();
    const known = told.peek(message);
    if (known !== undefined && now - known.at < ONCE_IN_MS) {
      known.more += 1;
      return undefined;
    }
    told.set(message, { at: now, more: 0 });
    return known?.more ?? 0;
  };

  return ({ secret, isCut, onTrouble }) =>
    () =>
    ({ namespace: from, level, log }) => {
      // What the client says as a whole comes without one.
      const namespace = (from as string | undefined) ?? '';
      const message = withoutSecret(String(log.message), secret);
      const { broker, topic, retryCount, error } = log as Readonly<Record<string, unknown>>;
      const text = typeof error === 'string' ? withoutSecret(error, secret) : undefined;
      const fields = {
        kafkajs: namespace,
        ...plain('broker', broker),
        ...plain('topic', topic),
        ...plain('retryCount', retryCount),
        ...(text === undefined ? {} : { error: text }),
      };
      if (level >= logLevel.INFO || isCut() || message.startsWith(HARMLESS))
        return logger.debug(fields, message);
      if (namespace !== REPEATS) {
        const about = {
          ...ofBroker(broker),
          isAnswer: ANSWER.test(message) || namespace.startsWith(REFUSES),
        };
        onTrouble?.(named(text ?? message, about.broker), about);
      }
      if (OF_CONNECTIONS.test(namespace)) return logger.debug(fields, message);
      const held = repeats(message);
      if (held !== undefined) logger.warn(held > 0 ? { ...fields, repeated: held } : fields, message);
    };
};

const ofBroker = (broker: unknown): { readonly broker?: string } =>
  typeof broker === 'string' ? { broker } : {};

/** Which broker it is about, where the text does not say so. */
const named = (text: string, broker: string | undefined): string =>
  broker === undefined || text.includes(broker) ? text : `${broker}: ${text}`;

const plain = (name: string, value: unknown): object =>
  typeof value === 'string' || typeof value === 'number' ? { [name]: value } : {};
