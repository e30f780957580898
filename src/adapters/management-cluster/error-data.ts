import { HubError, type HubErrorKind, type ObservedClusterOrder } from '../../app/management-cluster.ts';
import type { JsonObject } from '../../domain/json.ts';

/** A HubError as plain data: errors lose their class and fields between threads. Its cause stays where it was. */
export type HubErrorData = {
  readonly kind: HubErrorKind;
  readonly message: string;
  readonly retryAfterMs?: number;
  readonly order?: ObservedClusterOrder;
  readonly facts?: JsonObject;
};

export const errorData = (error: HubError): HubErrorData => ({
  kind: error.kind,
  message: error.message,
  ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
  ...(error.order === undefined ? {} : { order: error.order }),
  facts: error.facts,
});

export const hubError = (data: HubErrorData): HubError =>
  new HubError(data.kind, data.message, {
    ...(data.retryAfterMs === undefined ? {} : { retryAfterMs: data.retryAfterMs }),
    ...(data.order === undefined ? {} : { order: data.order }),
    ...(data.facts === undefined ? {} : { facts: data.facts }),
  });
