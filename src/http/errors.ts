import { ERROR_OF } from '../app/commands/refusals.ts';
import type { Rejection } from '../domain/decider.ts';
import type { JsonObject, JsonValue } from '../domain/json.ts';

/**
 * The one catalogue of public errors: what a caller can act on, its gRPC code and its HTTP status (OSAC).
 * OSAC surfaces answer `{"code","message","details"}`, our own answer RFC 9457 problem documents; both are rendered
 * from the same ApiError. The names are part of the public contract.
 */
export const ERRORS = {
  CANCELLED: { code: 1, http: 499, title: 'The caller went away' },
  INVALID_ARGUMENT: { code: 3, http: 400, title: 'The request is wrong' },
  BODY_TOO_LARGE: { code: 3, http: 413, title: 'The request body is too large' },
  UNSUPPORTED_MEDIA_TYPE: { code: 3, http: 415, title: 'The content type is not understood' },
  IDEMPOTENCY_MISMATCH: { code: 3, http: 422, title: 'The idempotency key belongs to another request' },
  OUTCOME_UNKNOWN: { code: 4, http: 504, title: 'The outcome of the request is unknown' },
  NOT_FOUND: { code: 5, http: 404, title: 'Object not found' },
  ALREADY_EXISTS: { code: 6, http: 409, title: 'The id or name is taken' },
  HEADERS_TOO_LARGE: {
    code: 3,
    http: 431,
    title: 'The request has too many header fields, or too large ones',
  },
  EXPECTATION_FAILED: { code: 3, http: 417, title: 'The expectation of the request is not supported' },
  REQUEST_TIMEOUT: { code: 4, http: 408, title: 'The request did not arrive in time' },
  METHOD_NOT_ALLOWED: { code: 12, http: 405, title: 'The verb is not allowed here' },
  PERMISSION_DENIED: { code: 7, http: 403, title: 'The caller may not do this' },
  RESOURCE_EXHAUSTED: { code: 8, http: 429, title: 'Too much at once' },
  FAILED_PRECONDITION: { code: 9, http: 400, title: 'The object is not in the right state' },
  STALE_ETAG: { code: 9, http: 412, title: 'The object has changed since it was read' },
  ABORTED: { code: 10, http: 409, title: 'Another write came first' },
  OUT_OF_RANGE: { code: 11, http: 410, title: 'The data is no longer kept' },
  RANGE_NOT_SATISFIABLE: { code: 11, http: 416, title: 'The file has no such bytes' },
  UNIMPLEMENTED: { code: 12, http: 501, title: 'This is not implemented' },
  INTERNAL: { code: 13, http: 500, title: 'Internal error' },
  UNAVAILABLE: { code: 14, http: 503, title: 'The service cannot do this now' },
  DATA_LOSS: { code: 15, http: 500, title: 'The stored history is not the recorded one' },
  UNAUTHENTICATED: { code: 16, http: 401, title: 'Authentication required' },
} as const;

export type ErrorName = keyof typeof ERRORS;

export type ApiErrorOptions = ErrorOptions & {
  /** Stable code in CONSTANT_CASE, finer than the name; default: the name. */
  readonly reason?: string;
  /** What is wrong where, for `google.rpc.BadRequest`. */
  readonly violations?: readonly { readonly field: string; readonly description: string }[];
  /** Facts for programs, for `google.rpc.ErrorInfo`. Shown only when a reason is given. */
  readonly facts?: Readonly<Record<string, string>>;
  /** Seconds after which trying again makes sense. */
  readonly retryAfterSeconds?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** True when the refusal is recorded already, or the call as such: by the command runner, or as a look at the history. */
  readonly recorded?: boolean;
  /** True when the message repeats nothing of what the caller sent: it may be kept of callers whom nobody knows. */
  readonly plain?: true;
};

/** A refusal as a caller sees it. Its message never holds a secret or a value of the request body. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly error: ErrorName;
  readonly reason: string;
  readonly options: ApiErrorOptions;
  constructor(error: ErrorName, message: string, options: ApiErrorOptions = {}) {
    super(message, options);
    this.error = error;
    this.reason = options.reason ?? error;
    this.options = options;
  }
  get status(): number {
    return ERRORS[this.error].http;
  }
}

/** The same refusal of a call that is on record already. */
export const asRecorded = (error: ApiError): ApiError =>
  new ApiError(error.error, error.message, { ...error.options, reason: error.reason, recorded: true });

export const invalid = (message: string, field?: string, reason?: string): ApiError =>
  new ApiError('INVALID_ARGUMENT', message, {
    ...(reason === undefined ? {} : { reason }),
    ...(field === undefined ? {} : { violations: [{ field, description: message }] }),
  });

/** What is asked for does not fit the state that things are in. */
export const unfit = (message: string, reason: string): ApiError =>
  new ApiError('FAILED_PRECONDITION', message, { reason });

/** Too much at once: again in so many seconds. */
export const tooMuch = (message: string, reason: string, retryAfterSeconds: number): ApiError =>
  new ApiError('RESOURCE_EXHAUSTED', message, { reason, retryAfterSeconds });

export const denied = (message = 'permission denied'): ApiError => new ApiError('PERMISSION_DENIED', message);

/** What may be over in so many seconds. */
export const unavailable = (
  message: string,
  reason: string,
  retryAfterSeconds: number,
  cause?: unknown,
): ApiError =>
  new ApiError('UNAVAILABLE', message, {
    reason,
    retryAfterSeconds,
    ...(cause === undefined ? {} : { cause }),
  });

/** This instance is behind what was stored. */
export const notReached = (message: string): ApiError => unavailable(message, 'POSITION_NOT_REACHED', 1);

/**
 * An empty value is most often a variable that was not set. `what`: as the caller calls it, for example `field
 * 'tenant'`;
 * `without`: what there is without it.
 */
export const mustNotBeEmpty = (what: string, field: string, without: string): ApiError =>
  invalid(`${what} must not be empty; leave it out for ${without}`, field);

/** The answer for absent objects and for objects of other tenants alike (OSAC). */
export const objectNotFound = (id: string): ApiError =>
  new ApiError('NOT_FOUND', `object with identifier '${id}' not found`);

export const urlNotFound = (): ApiError => new ApiError('NOT_FOUND', 'Not Found');

/** Known URL, wrong verb: 501 on OSAC's surfaces. */
export const methodNotAllowed = (): ApiError => new ApiError('UNIMPLEMENTED', 'Method Not Allowed');

export const unauthenticated = (
  message: string,
  tokenPresented: boolean,
  { plain = true }: { readonly plain?: boolean } = {},
): ApiError =>
  new ApiError('UNAUTHENTICATED', message, {
    ...(plain ? { plain: true } : {}),
    headers: {
      'www-authenticate': `Bearer ${tokenPresented ? 'error="invalid_token", ' : ''}error_description="${message.replaceAll(/["\\]/g, '')}"`,
    },
  });

/** A "no" of the domain. Fact `description` is the text of the field's violation where it differs from the message. */
export const rejected = ({ kind, code, message, field, facts = {} }: Rejection): ApiError => {
  const { description = message, ...rest } = facts;
  const shown = Object.entries(rest).map(([name, fact]) => [name, String(fact)] as const);
  return new ApiError(ERROR_OF[kind], message, {
    reason: code,
    recorded: true,
    ...(field === undefined ? {} : { violations: [{ field, description: String(description) }] }),
    ...(shown.length === 0 ? {} : { facts: Object.fromEntries(shown) }),
  });
};

/** What a program can learn from an error beside its code, as OSAC's surfaces and gRPC carry it. */
export const errorDetails = (error: ApiError): JsonObject[] => {
  const details: JsonObject[] = [];
  const { violations, facts } = error.options;
  if (violations !== undefined) {
    details.push({
      '@type': 'type.googleapis.com/google.rpc.BadRequest',
      field_violations: violations.map(({ field, description }) => ({ field, description })),
    });
  }
  if (facts !== undefined) {
    details.push({
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: error.reason,
      domain: 'fulfillment-ledger',
      metadata: { ...facts },
    });
  }
  return details;
};

/** Error body of OSAC's surfaces; `details` is left out when empty. The reason travels in a header of its own. */
export const osacErrorBody = (error: ApiError): JsonObject => {
  const details: JsonValue[] = errorDetails(error);
  return {
    code: ERRORS[error.error].code,
    message: error.message,
    ...(details.length === 0 ? {} : { details }),
  };
};

export const problemBody = (error: ApiError, instance: string): JsonObject => ({
  type: `urn:fulfillment-ledger:problem:${error.reason.toLowerCase().replaceAll('_', '-')}`,
  title: ERRORS[error.error].title,
  status: error.status,
  detail: error.message,
  instance,
  code: error.reason,
  ...(error.options.violations === undefined
    ? {}
    : { errors: error.options.violations.map(({ field, description }) => ({ field, description })) }),
  ...(error.options.facts === undefined ? {} : { facts: { ...error.options.facts } }),
});

export const errorHeaders = (error: ApiError): Record<string, string> => ({
  'x-ledger-reason': error.reason,
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  ...error.options.headers,
  ...(error.options.retryAfterSeconds === undefined
    ? {}
    : { 'retry-after': String(Math.max(1, Math.ceil(error.options.retryAfterSeconds))) }),
});
