import { HubError, type HubErrorKind } from '../../app/management-cluster.ts';
import type { OwnedShown } from '../../domain/hubs/hub-object.ts';
import type { JsonObject } from '../../domain/json.ts';

/** A HubError as plain data: errors lose their class and fields between threads. Its cause stays where it was. */
export type HubErrorData = {
  readonly kind: HubErrorKind;
  readonly message: string;
  readonly retryAfterMs?: number;
  readonly object?: OwnedShown;
  readonly facts?: JsonObject;
};

export const errorData = (error: HubError): HubErrorData => ({
  kind: error.kind,
  message: error.message,
  ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
  ...(error.object === undefined ? {} : { object: error.object }),
  facts: error.facts,
});

export const hubError = (data: HubErrorData): HubError =>
  new HubError(data.kind, data.message, {
    ...(data.retryAfterMs === undefined ? {} : { retryAfterMs: data.retryAfterMs }),
    ...(data.object === undefined ? {} : { object: data.object }),
    ...(data.facts === undefined ? {} : { facts: data.facts }),
  });
