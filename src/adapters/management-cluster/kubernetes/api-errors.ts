import { HubError, type HubErrorKind } from '../../../app/hubs/management-cluster.ts';
import { SECRET_FIELD, withoutSecretFields } from '../../../domain/hubs/hub-codecs.ts';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isObject, listAt, numberAt, objectAt, stringAt } from '../../../domain/json-tools.ts';
import type { ApiAnswer, NoAnswer } from './connection.ts';

/** Takes known secrets out of a text of the hub. */
export type Redact = (text: string) => string;

const MAX_MESSAGE = 600;
const MAX_CAUSES = 10;
const MAX_RETRY_AFTER_MS = 600_000;
/** Both as they are and as they look inside a quoted text; short ones would blank out ordinary words. */
export const redactor = (secrets: readonly (string | undefined)[]): Redact => {
  const known = secrets
    .filter((secret) => secret !== undefined)
    .flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
    .filter(({ length }) => length >= 6);
  return (text) =>
    cut(withoutSecretFields(known.reduce((left, secret) => left.replaceAll(secret, '***'), text)));
};

const cut = (text: string): string =>
  text.length <= MAX_MESSAGE ? text : `${text.slice(0, MAX_MESSAGE - 1).toWellFormed()}…`;

/** The `Status` object of an answer; an empty object when it is something else (a proxy's page, plain text). */
export const statusOf = (body: string): JsonObject => {
  try {
    const value = JSON.parse(body) as JsonValue;
    return isObject(value) && stringAt(value, 'kind') === 'Status' ? value : {};
  } catch {
    return {};
  }
};

/** The list or watch has to start anew: its version is no longer there. */
export const isExpired = (code: number, status: JsonObject): boolean =>
  code === 410 || stringAt(status, 'reason') === 'Expired' || stringAt(status, 'reason') === 'Gone';

/** Milliseconds of a Retry-After header: seconds or a date. */
export const retryAfterMs = ({ headers }: Pick<ApiAnswer, 'headers'>): number | undefined => {
  const text = headers['retry-after'];
  if (text === undefined) return undefined;
  const seconds = Number(text);
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(text) - Date.parse(headers.date ?? '');
  return Number.isFinite(ms) && ms >= 0 ? Math.min(ms, MAX_RETRY_AFTER_MS) : undefined;
};

/** An answer that is no success, by what a caller can do about it. `what` names call and object. */
export const refusal = (answer: ApiAnswer, what: string, write: boolean, redact: Redact): HubError => {
  const status = statusOf(answer.body);
  const details = objectAt(status, 'details');
  const kind = kindOf(answer.status, status, write);
  const causes = causesOf(details, redact);
  const words =
    causes.length > 0
      ? causes.map(({ field, message }) => `${field}: ${message}`).join('; ')
      : redact(stringAt(status, 'message')) || `HTTP ${answer.status}`;
  const after = retryAfterMs(answer) ?? secondsOf(details);
  return new HubError(kind, cut(`${what}: ${words}`), {
    facts: {
      status: answer.status,
      ...(stringAt(status, 'reason') === '' ? {} : { reason: stringAt(status, 'reason') }),
      ...(stringAt(details, 'kind') === '' ? {} : { of: stringAt(details, 'kind') }),
      ...(causes.length === 0 ? {} : { causes }),
    },
    ...(after === undefined ? {} : { retryAfterMs: after }),
  });
};

const kindOf = (code: number, status: JsonObject, write: boolean): HubErrorKind => {
  switch (code) {
    case 401:
      return 'unauthorized';
    case 403:
      return forbidden(status);
    case 404:
      return isObjectMissing(status) ? 'not-found' : 'not-ready';
    case 409:
      return stringAt(status, 'reason') === 'AlreadyExists' ? 'already-exists' : 'conflict';
    case 429:
      return 'throttled';
    case 410:
    case 503:
      return 'unavailable';
    default:
      if (code >= 400 && code < 500) return 'invalid';
      // 500, 502 and 504 also come when the store behind the server was slow to say that it had written.
      return write && code >= 500 ? 'unknown-outcome' : 'unavailable';
  }
};

/** What admission webhooks and policies of a hub say; RBAC says that a user cannot do something. */
const DENIED = /^admission webhook .* denied the request|ValidatingAdmissionPolicy .* denied request/;

/**
 * Not every 403 is about credentials: a namespace that ends and a full quota are not mended by new ones, and what a
 * hub's
 * own rules deny is one order's fault, which must not park the work of all others there.
 */
const forbidden = (status: JsonObject): HubErrorKind => {
  const causes = listAt(objectAt(status, 'details'), 'causes');
  if (causes.some((cause) => stringAt(cause, 'reason') === 'NamespaceTerminating')) return 'conflict';
  const message = stringAt(status, 'message');
  if (DENIED.test(message)) return 'invalid';
  return message.includes('exceeded quota') ? 'throttled' : 'unauthorized';
};

/** Of an object (or its namespace): the answer names it. An unknown kind gets plain text or a Status without a name. */
const isObjectMissing = (status: JsonObject): boolean =>
  stringAt(status, 'reason') === 'NotFound' && stringAt(objectAt(status, 'details'), 'name') !== '';

/** Type faults come with a cause about the field `<nil>` that says nothing (OSAC's operator). */
const causesOf = (
  details: JsonObject,
  redact: Redact,
): { field: string; reason: string; message: string }[] =>
  listAt(details, 'causes')
    .filter((cause) => stringAt(cause, 'field') !== '' && stringAt(cause, 'field') !== '<nil>')
    .slice(0, MAX_CAUSES)
    .map((cause) => {
      const field = cut(stringAt(cause, 'field'));
      const reason = cut(stringAt(cause, 'reason'));
      const message = SECRET_FIELD.test(field) ? reason : redact(stringAt(cause, 'message'));
      return { field, reason, message };
    });

const secondsOf = (details: JsonObject): number | undefined => {
  const seconds = numberAt(details, 'retryAfterSeconds');
  return seconds > 0 ? Math.min(seconds * 1000, MAX_RETRY_AFTER_MS) : undefined;
};

/** A call without an answer. What a write did is then known only when it was certainly not sent. */
export const silence = (error: NoAnswer, what: string, write: boolean): HubError =>
  new HubError(write && error.sent ? 'unknown-outcome' : 'unavailable', `${what}: ${error.message}`, {
    facts: { code: error.code },
  });
