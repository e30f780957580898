import type { KafkaFault, KafkaFaultReason } from '../../app/publisher/ports.ts';
import { ApiError, unavailable } from '../errors.ts';

/** Reasons that somebody has to do something about; all others may pass. */
const LASTING: ReadonlySet<KafkaFaultReason> = new Set([
  'unauthorized',
  'topic-missing',
  'too-large',
  'invalid',
  'other-history',
  'refused',
]);

export const refusalOf = (fault: KafkaFault): ApiError => {
  const { reason, message } = fault;
  const code = `KAFKA_${reason.toUpperCase().replaceAll('-', '_')}`;
  return LASTING.has(reason)
    ? new ApiError('FAILED_PRECONDITION', `the brokers refuse it: ${message}`, { reason: code, cause: fault })
    : unavailable(`the brokers do not answer: ${message}`, code, 5, fault);
};
