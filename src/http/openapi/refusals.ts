import type { JsonObject } from '../../domain/json.ts';
import { ERRORS, type ErrorName } from '../errors.ts';
import type { ErrorStyle } from '../exchange.ts';
import { listOf, OPEN, record, TEXT } from './ledger-schemas.ts';
import { componentRef } from './message-schemas.ts';
import { headerRefs, type HeaderName } from './parameters.ts';

/**
 * Error answers, from the one catalogue of errors: OSAC's body on its surfaces, wrapped by its streams, RFC 9457 on ours.
 */
export type Style = ErrorStyle;

const BODIES: { readonly [S in Style]: readonly [prefix: string, type: string, component: string] } = {
  osac: ['Osac', 'application/json', 'OsacError'],
  'osac-stream': ['Stream', 'application/json', 'StreamError'],
  problem: ['Problem', 'application/problem+json', 'Problem'],
};

const NAMES = Object.keys(ERRORS) as ErrorName[];

const CODES = [...new Set(Object.values(ERRORS).map(({ code }) => code))].toSorted((a, b) => a - b);
const VIOLATION = record({ field: TEXT, description: TEXT });
const FACTS: JsonObject = { ...OPEN, additionalProperties: TEXT };

export const ERROR_COMPONENTS: { readonly [name: string]: JsonObject } = {
  OsacError: {
    ...record({
      code: { type: 'integer', enum: CODES },
      message: TEXT,
      'details?': listOf({ oneOf: [componentRef('BadRequest'), componentRef('ErrorInfo')] }),
    }),
    description: 'google.rpc.Status: a gRPC code, a sentence, and details that programs can read.',
  },
  StreamError: {
    ...record({ error: componentRef('OsacError') }),
    description: 'An error as streams tell it, before their first line and as their last one.',
  },
  BadRequest: {
    ...record({
      '@type': { const: 'type.googleapis.com/google.rpc.BadRequest' },
      field_violations: listOf(VIOLATION),
    }),
    description: 'The wrong fields.',
  },
  ErrorInfo: {
    ...record({
      '@type': { const: 'type.googleapis.com/google.rpc.ErrorInfo' },
      reason: TEXT,
      domain: { const: 'fulfillment-ledger' },
      metadata: FACTS,
    }),
    description: 'The reason by its stable name, with facts.',
  },
  Problem: {
    ...record({
      type: { ...TEXT, pattern: '^urn:fulfillment-ledger:problem:' },
      title: TEXT,
      status: { type: 'integer', enum: statusesOf(NAMES) },
      detail: TEXT,
      instance: TEXT,
      code: { ...TEXT, description: 'Stable name of what is wrong, in CONSTANT_CASE.' },
      'errors?': listOf(VIOLATION),
      'facts?': FACTS,
    }),
    description: 'RFC 9457 problem document.',
  },
};

function statusesOf(names: readonly ErrorName[]): number[] {
  return [...new Set(names.map((name) => ERRORS[name].http))].toSorted((left, right) => left - right);
}

const MORE_HEADERS: Partial<Record<number, readonly HeaderName[]>> = {
  401: ['WWW_Authenticate'],
  405: ['Allow'],
  412: ['ETag'],
  429: ['Retry_After', 'RateLimit', 'RateLimit_Policy'],
  503: ['Retry_After'],
  504: ['Retry_After', 'X_Ledger_Command_Id'],
};

const componentOf = (status: number, style: Style): string => `${BODIES[style][0]}${status}`;

export const refusals = (names: readonly ErrorName[], style: Style): JsonObject =>
  Object.fromEntries(
    statusesOf(names).map((status): [string, JsonObject] => [
      String(status),
      { $ref: `#/components/responses/${componentOf(status, style)}` },
    ]),
  );

/** One answer per status and style; errors that share a status are told in one sentence. */
export const refusalComponents = (): { readonly [name: string]: JsonObject } =>
  Object.fromEntries(
    (Object.keys(BODIES) as Style[]).flatMap((style) =>
      statusesOf(NAMES).map((status) => [componentOf(status, style), refusal(status, style)]),
    ),
  );

const refusal = (status: number, style: Style): JsonObject => ({
  description: NAMES.filter((name) => ERRORS[name].http === status)
    .map((name) => ERRORS[name].title)
    .join('. Or: '),
  headers: headerRefs('X_Ledger_Reason', ...(MORE_HEADERS[status] ?? [])),
  content: {
    [BODIES[style][1]]: { schema: componentRef(BODIES[style][2]) },
  },
});

/** What a call that needs no token may be answered. */
export const EVERYBODY: readonly ErrorName[] = [
  'RESOURCE_EXHAUSTED',
  'HEADERS_TOO_LARGE',
  'EXPECTATION_FAILED',
  'REQUEST_TIMEOUT',
  'INTERNAL',
];
/** What any other call may be answered. */
export const ANY_CALL: readonly ErrorName[] = [
  'RESOURCE_EXHAUSTED',
  'HEADERS_TOO_LARGE',
  'EXPECTATION_FAILED',
  'REQUEST_TIMEOUT',
  'INVALID_ARGUMENT',
  'UNAUTHENTICATED',
  'PERMISSION_DENIED',
  'INTERNAL',
  'DATA_LOSS',
  'UNAVAILABLE',
];
export const OF_ONE_OBJECT: readonly ErrorName[] = ['NOT_FOUND'];
export const ANY_WRITE: readonly ErrorName[] = [
  'FAILED_PRECONDITION',
  'ABORTED',
  'IDEMPOTENCY_MISMATCH',
  'OUTCOME_UNKNOWN',
];
export const ANY_BODY: readonly ErrorName[] = ['BODY_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];
