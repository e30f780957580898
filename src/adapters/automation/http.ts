import { request as plainRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { request as secureRequest } from 'node:https';
import { AutomationError } from '../../app/automation/automation.ts';
import type { CallOptions } from '../../app/hubs/management-cluster.ts';

export type HttpCall = {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  /** PEM of the only authority trusted; absent: the system's. */
  readonly ca?: string;
  /** `write`: a lost answer leaves the outcome unknown. */
  readonly kind: 'read' | 'write';
  /** Bytes of the answer that are kept, its first ones or its last ones. Default: the first MAX_ANSWER. */
  readonly keep?: { readonly end: 'head' | 'tail'; readonly bytes: number };
};

export type HttpAnswer = {
  readonly status: number;
  readonly reason: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** Some of the answer was dropped. */
  readonly cut: boolean;
};

const MAX_ANSWER = 32 * 1024 * 1024;
/** No output is read further than this, not even to find its end. */
const MAX_READ = 256 * 1024 * 1024;

/**
 * One request on a connection of its own: a kept one that the far side has just closed would leave a write's outcome
 * unknown for nothing. Redirects are not followed, since credentials would go with them. Throws AutomationError:
 * `unavailable` while nothing was sent, after that `unknown-outcome` for a write.
 */
export const send = async (
  call: HttpCall,
  { deadlineMs, signal: stop }: Pick<CallOptions, 'deadlineMs' | 'signal'>,
): Promise<HttpAnswer> => {
  const { host } = new URL(call.url);
  const late = AbortSignal.timeout(deadlineMs);
  const signal = AbortSignal.any([stop, late]);
  const progress = { sent: false };
  try {
    signal.throwIfAborted();
    return await readAnswer(await answerTo(call, signal, progress), call);
  } catch (error) {
    const why = late.aborted ? `no answer within ${deadlineMs} ms` : textOfFault(error);
    const unknown = progress.sent && call.kind === 'write';
    throw new AutomationError(
      unknown ? 'unknown-outcome' : 'unavailable',
      progress.sent ? `the answer of ${host} was lost: ${why}` : `${host} cannot be reached: ${why}`,
      { cause: error },
    );
  }
};

const answerTo = (
  { method, url, headers, body, ca }: HttpCall,
  signal: AbortSignal,
  progress: { sent: boolean },
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const secure = url.startsWith('https:');
    const options = {
      method,
      signal,
      agent: false,
      headers: { ...headers, ...(body === undefined ? {} : { 'Content-Length': String(body.byteLength) }) },
    } as const;
    const request = secure
      ? secureRequest(url, { ...options, ...(ca === undefined ? {} : { ca }) }, resolve)
      : plainRequest(url, options, resolve);
    // Until the connection stands (TLS included) no byte of the request can have been read.
    request.once('socket', (socket) => {
      socket.once(secure ? 'secureConnect' : 'connect', () => {
        progress.sent = true;
      });
    });
    // Later errors come from the answer's stream; without a listener they would end the process.
    request.on('error', reject);
    request.end(body);
  });

const readAnswer = async (answer: IncomingMessage, { keep }: HttpCall): Promise<HttpAnswer> => {
  const { end, bytes } = keep ?? { end: 'head', bytes: MAX_ANSWER };
  const parts: Buffer[] = [];
  let held = 0;
  let read = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    read += part.byteLength;
    if (end === 'head' && held >= bytes) break;
    parts.push(part);
    held += part.byteLength;
    while (end === 'tail' && held - (parts[0]?.byteLength ?? 0) >= bytes)
      held -= parts.shift()?.byteLength ?? 0;
    if (read > MAX_READ) break;
  }
  const all = Buffer.concat(parts);
  const kept = end === 'head' ? all.subarray(0, bytes) : all.subarray(Math.max(0, all.byteLength - bytes));
  return {
    status: answer.statusCode ?? 0,
    reason: answer.statusMessage ?? '',
    headers: answer.headers,
    text: kept.toString('utf8'),
    cut: read > kept.byteLength,
  };
};

/** What happened on the wire, in its own words: they hold addresses and codes, never what was sent. */
const textOfFault = (error: unknown): string => {
  if (!(error instanceof Error)) return 'the connection failed';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  if (error.name === 'AbortError') return 'it was stopped';
  if (error instanceof AggregateError && error.message === '')
    return error.errors.map(textOfFault).join('; ') || 'the connection failed';
  return code === undefined || error.message.includes(code) ? error.message : `${error.message} (${code})`;
};

/** Milliseconds of a Retry-After header: seconds or a date. */
export const retryAfterOf = (headers: IncomingHttpHeaders): { readonly retryAfterMs?: number } => {
  const value = headers['retry-after'];
  if (value === undefined) return {};
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(ms) ? { retryAfterMs: Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS) } : {};
};
const MAX_RETRY_AFTER_MS = 3_600_000;
