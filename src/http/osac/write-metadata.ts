import { invalid } from '../errors.ts';
import type { Exchange } from '../exchange.ts';
import {
  isDryRun,
  MAX_TICKET,
  readCommandId,
  readIdempotencyKey,
  readIfMatch,
  ticketOf,
  type CallMetadata,
} from './call.ts';

export type WriteMetadata = Pick<
  CallMetadata,
  'idempotencyKey' | 'commandId' | 'ifRevision' | 'ticket' | 'dryRun'
>;

/** What is known of every call, also of one that only reads; `route`: its path with its ids. */
export const readMetadata = (
  { request, requestId, traceparent }: Pick<Exchange, 'request' | 'requestId' | 'traceparent'>,
  route: string,
): CallMetadata => {
  const remoteAddress = request.socket.remoteAddress;
  const userAgent = request.headers['user-agent'];
  return {
    requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
    verb: request.method ?? '',
    route,
    ...(remoteAddress === undefined ? {} : { remoteAddress }),
    ...(userAgent === undefined ? {} : { userAgent }),
    ...ticketOf(request.headers),
  };
};

/** What headers say of a write, checked before anything else is done. Throws ApiError 400 or 412. */
export const writeMetadata = (
  { request }: { readonly request: Pick<Exchange['request'], 'headers'> },
  kind: string,
): WriteMetadata => {
  const { headers } = request;
  const idempotencyKey = readIdempotencyKey(one(headers['idempotency-key']));
  const commandId = readCommandId(one(headers['x-ledger-command-id']), idempotencyKey);
  const ifRevision = readIfMatch(headers['if-match'], kind);
  const ticket = one(headers['x-ledger-ticket']);
  if (ticket !== undefined && ticket.length > MAX_TICKET)
    throw invalid(`header 'X-Ledger-Ticket' must be at most ${MAX_TICKET} characters`, 'X-Ledger-Ticket');
  return {
    ...(isDryRun(headers) ? { dryRun: true } : {}),
    ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
    ...(commandId === undefined ? {} : { commandId }),
    ...(ifRevision === undefined ? {} : { ifRevision }),
    ...(ticket === undefined || ticket === '' ? {} : { ticket }),
  };
};

const one = (header: string | string[] | undefined): string | undefined =>
  Array.isArray(header) ? header.join(', ') : header;
