import { KafkaFault, type KafkaFaultReason } from '../../app/publisher/ports.ts';

/** Error types of the protocol (kafkajs `error.type`) whose cause we can name; all others are `refused`. */
const REASONS: ReadonlyMap<string, KafkaFaultReason> = new Map([
  ['UNKNOWN_TOPIC_OR_PARTITION', 'topic-missing'],
  ['MESSAGE_TOO_LARGE', 'too-large'],
  ['RECORD_LIST_TOO_LARGE', 'too-large'],
  ['INVALID_RECORD', 'invalid'],
  ['CORRUPT_MESSAGE', 'invalid'],
  ['NOT_ENOUGH_REPLICAS', 'full'],
  ['NOT_ENOUGH_REPLICAS_AFTER_APPEND', 'full'],
  ['KAFKA_STORAGE_ERROR', 'full'],
  ['LOG_DIR_NOT_FOUND', 'full'],
  ['TOPIC_AUTHORIZATION_FAILED', 'unauthorized'],
  ['CLUSTER_AUTHORIZATION_FAILED', 'unauthorized'],
  ['SASL_AUTHENTICATION_FAILED', 'unauthorized'],
  ['UNSUPPORTED_SASL_MECHANISM', 'unauthorized'],
  ['ILLEGAL_SASL_STATE', 'unauthorized'],
  ['LEADER_NOT_AVAILABLE', 'unreachable'],
  ['NOT_LEADER_FOR_PARTITION', 'unreachable'],
  ['BROKER_NOT_AVAILABLE', 'unreachable'],
  ['REQUEST_TIMED_OUT', 'unreachable'],
  ['NETWORK_EXCEPTION', 'unreachable'],
  ['NOT_CONTROLLER', 'unreachable'],
]);

const UNREACHABLE: ReadonlySet<string> = new Set([
  'KafkaJSConnectionError',
  'KafkaJSConnectionClosedError',
  'KafkaJSRequestTimeoutError',
  'KafkaJSBrokerNotFound',
  'KafkaJSNoBrokerAvailableError',
  'KafkaJSMetadataNotLoaded',
  'KafkaJSTopicMetadataNotLoaded',
  'KafkaJSLockTimeout',
]);

/** How deep causes are followed: `NumberOfRetriesExceeded` wraps what went wrong. */
const DEPTH = 8;

/** What kafkajs threw, in our words; `secret` is in no text. */
export const faultOf = (error: unknown, secret?: string): KafkaFault => {
  if (error instanceof KafkaFault) return error;
  const { reason, isAnswer } = reasonOf(error);
  const options = { cause: undefined, ...(isAnswer ? { isAnswer } : {}) };
  return new KafkaFault(reason, withoutSecret(textOf(error), secret), options);
};

const reasonOf = (error: unknown): { readonly reason: KafkaFaultReason; readonly isAnswer?: boolean } => {
  let each = error;
  for (let depth = 0; depth < DEPTH && each instanceof Error; depth += 1) {
    const { type } = each as { type?: unknown };
    const known = typeof type === 'string' ? REASONS.get(type) : undefined;
    // An error of the protocol is what a broker has answered.
    if (known !== undefined) return { reason: known, isAnswer: true };
    if (each.name === 'KafkaJSSASLAuthenticationError') return { reason: 'unauthorized' };
    // Some wraps keep the text and lose the name of what they wrap.
    if (UNREACHABLE.has(each.name) || UNREACHABLE_TEXT.test(each.message)) return { reason: 'unreachable' };
    const inner = (each as { errors?: unknown }).errors;
    each = each.cause ?? (Array.isArray(inner) ? inner[0] : undefined);
  }
  return { reason: 'refused' };
};

const UNREACHABLE_TEXT = /^(Connection error|Connection timeout|Failed to connect|Broker not connected)/;

/** A list of errors says nothing by itself: its first one does. */
const textOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  const { errors } = error as { errors?: unknown };
  const [first] = Array.isArray(errors) ? (errors as unknown[]) : [];
  const told = first instanceof Error ? first : error;
  const text = told.message === '' ? told.name : told.message;
  const { broker } = told as { broker?: unknown };
  return typeof broker === 'string' && broker !== '' && !text.includes(broker) ? `${broker}: ${text}` : text;
};

export const withoutSecret = (text: string, secret: string | undefined): string =>
  secret === undefined || secret === '' ? text : text.replaceAll(secret, '[redacted]');
