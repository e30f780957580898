import { HubError } from '../../app/hubs/management-cluster.ts';
import { defined } from '../../domain/json-tools.ts';

/** A HubError as plain data: errors lose their class and fields between threads. Its cause stays where it was. */
export type HubErrorData = Pick<HubError, 'kind' | 'message'> & Partial<HubErrorDetails>;
type HubErrorDetails = Pick<HubError, 'retryAfterMs' | 'object' | 'facts'>;

export const errorData = ({ kind, message, retryAfterMs, object, facts }: HubError): HubErrorData => ({
  kind,
  message,
  retryAfterMs,
  object,
  facts,
});

export const hubError = ({ kind, message, retryAfterMs, object, facts = {} }: HubErrorData): HubError =>
  new HubError(kind, message, {
    facts,
    ...defined({ retryAfterMs, object }),
  });
