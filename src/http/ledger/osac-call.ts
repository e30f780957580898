import { readIdempotencyKey, type Call } from '../osac/call.ts';
import { writeMetadata } from '../osac/served.ts';
import type { LedgerCall } from './serve.ts';

/** Operators act through the same command contexts as everybody else: repeatable, and recorded with who and why. */
export const osacCall = (call: LedgerCall, kind = ''): Call<Readonly<Record<string, string>>> => {
  const { principal, path, requestId, traceparent, idempotencyKey, verb, route, signal } = call;
  const { headers = {}, remoteAddress, fields } = call;
  const key = readIdempotencyKey(idempotencyKey);
  const userAgent = headers['user-agent'];
  return {
    surface: 'private',
    method: route,
    principal,
    message: path,
    metadata: {
      requestId,
      verb,
      route,
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(remoteAddress === undefined ? {} : { remoteAddress }),
      ...(userAgent === undefined ? {} : { userAgent }),
      ...(key === undefined ? {} : { idempotencyKey: key }),
      ...(fields === undefined ? {} : { fields }),
      ...writeMetadata({ request: { headers } }, kind),
    },
    signal,
  };
};

/** The call without what makes writes repeatable or conditional: each look and each download is one of its own. */
export const once = (call: LedgerCall): LedgerCall => {
  const headers: NonNullable<LedgerCall['headers']> = {};
  for (const name of ['user-agent', 'x-ledger-ticket']) {
    const value = call.headers?.[name];
    if (value !== undefined) headers[name] = value;
  }
  return { ...call, idempotencyKey: undefined, headers };
};
