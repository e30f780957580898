import { KafkaFault, type KafkaFaultReason, type TroubleAbout } from '../../app/publisher/ports.ts';
import type { KafkaSettings } from './kafkajs-client.ts';

/** What became of each broker that was asked, so that whoever waits is told of all of them. */
export type Tried = {
  note(problem: string, about?: TroubleAbout): void;
  /** The fault, with every broker that was tried and what was wrong with it, where none could be reached or let us in. */
  explained(fault: unknown): unknown;
};

export const NO_ANSWER = 'no answer in time';
const OF_BROKERS: ReadonlySet<KafkaFaultReason> = new Set(['unreachable', 'unauthorized']);

export const createTried = (settings: Pick<KafkaSettings, 'brokers' | 'tlsCa' | 'sasl'>): Tried => {
  const problems = new Map<string, string>();
  return {
    note: (problem, { broker = '' } = {}) => {
      if (broker === '') return;
      const what = problem.replace(`${broker}: `, '').replace(/^Connection error: /, '');
      problems.set(broker, what.replace(`${broker} ended`, 'it ended').replace(` ${broker}`, ''));
    },
    explained: (fault) => {
      if (!(fault instanceof KafkaFault) || !OF_BROKERS.has(fault.reason)) return fault;
      const silent =
        fault.message === NO_ANSWER ? settings.brokers.filter((broker) => !problems.has(broker)) : [];
      const each = [...problems, ...silent.map((broker) => [broker, NO_ANSWER] as const)];
      if (each.length === 0) return fault.reason === 'unreachable' ? anyOf(settings.brokers, fault) : fault;
      const text = each.map(([broker, problem]) => `${broker}: ${problem}${hintOf(problem, settings)}`);
      return new KafkaFault(fault.reason, text.join('; '), { isAnswer: fault.isAnswer });
    },
  };
};

/** Nothing is known of any of them by itself. */
const anyOf = (brokers: readonly string[], { reason, message, isAnswer }: KafkaFault): KafkaFault =>
  new KafkaFault(reason, `${brokers.join(', ')}: ${message}`, { isAnswer });

/** What a setting may have to do with it, where the words do not say so. */
const hintOf = (problem: string, { tlsCa, sasl }: Pick<KafkaSettings, 'tlsCa' | 'sasl'>): string => {
  if (tlsCa !== undefined && /before secure TLS connection|wrong version number/.test(problem))
    return ' (does it speak TLS there? LEDGER_KAFKA_TLS_CA is set)';
  if (/certificate/i.test(problem)) return ' (see LEDGER_KAFKA_TLS_CA)';
  if (!/ended the connection|^Closed connection/.test(problem)) return '';
  const missing = [
    ...(tlsCa === undefined ? ['for TLS (LEDGER_KAFKA_TLS_CA)'] : []),
    ...(sasl === undefined ? ['for a password (LEDGER_KAFKA_SASL_MECHANISM)'] : []),
  ];
  return missing.length === 0 ? '' : ` (does it ask ${missing.join(' or ')}?)`;
};
