import type { KafkaFault, KafkaFaultReason } from '../../app/publisher/ports.ts';
import { ApiError } from '../errors.ts';

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
    : new ApiError('UNAVAILABLE', `the brokers do not answer: ${message}`, {
        reason: code,
        cause: fault,
        retryAfterSeconds: 5,
      });
};
