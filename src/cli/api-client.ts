/** A small client of the service's own HTTP surfaces, for the command line and the demo. */
import { setTimeout as sleep } from 'node:timers/promises';

export type Violation = { readonly field: string; readonly description: string };

/** The service refused. The message names the request, every field that is wrong, and the request id of the log. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly body: unknown;
  get violations(): readonly Violation[] {
    return violationsOf(this.body);
  }
  constructor(method: string, path: string, status: number, body: unknown, requestId?: string | null) {
    const request = requestId === undefined || requestId === null ? '' : ` (request ${requestId})`;
    super(`${method} ${path} answered ${status}: ${describe(body)}${request}${fields(body)}`);
    this.method = method;
    this.path = path;
    this.status = status;
    this.body = body;
  }
}

/** There was no answer at all, within the time and the number of tries that were allowed. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
  /** The request may have arrived all the same. */
  readonly sent: boolean;
  constructor(message: string, { sent = true, ...options }: ErrorOptions & { readonly sent?: boolean } = {}) {
    super(message, options);
    this.sent = sent;
  }
}

/** Problem documents say `detail`, OSAC's error bodies `message`. */
const describe = (body: unknown): string => {
  if (typeof body === 'object' && body !== null) {
    const { detail, title, message } = body as { detail?: unknown; title?: unknown; message?: unknown };
    for (const text of [detail, message, title]) if (typeof text === 'string') return text;
  }
  return typeof body === 'string' ? body.slice(0, 500) : JSON.stringify(body);
};

/** Which fields are wrong: `errors` of problem documents, `google.rpc.BadRequest` of OSAC's bodies. */
const violationsOf = (body: unknown): readonly Violation[] => {
  if (typeof body !== 'object' || body === null) return [];
  const { errors, details } = body as { errors?: unknown; details?: unknown };
  const lists = [
    errors,
    ...(Array.isArray(details) ? details : []).map(
      (detail) => (detail as { field_violations?: unknown } | null)?.field_violations,
    ),
  ];
  return lists.flatMap((list) => (Array.isArray(list) ? list : [])).filter(isViolation);
};

const isViolation = (value: unknown): value is Violation =>
  typeof value === 'object' &&
  value !== null &&
  typeof (value as Partial<Violation>).field === 'string' &&
  typeof (value as Partial<Violation>).description === 'string';

const fields = (body: unknown): string => {
  const said = describe(body);
  return violationsOf(body)
    .map(({ field, description }) => `\n  field ${field}${description === said ? '' : `: ${description}`}`)
    .join('');
};

export type ApiClient = {
  get<T>(path: string): Promise<T>;
  text(path: string): Promise<string>;
  send<T>(
    method: 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<T>;
  /** One object with the tag of its state, for `If-Match`. */
  tagged<T>(path: string): Promise<{ readonly value: T; readonly etag?: string }>;
  /** Newline-delimited JSON, line by line, until the server ends it or the signal fires. */
  lines<T>(method: 'GET' | 'POST', path: string, signal?: AbortSignal, body?: unknown): AsyncIterable<T>;
  /** The same, connected already when the promise resolves: what happens from then on is among the lines. */
  open<T>(method: 'GET' | 'POST', path: string, signal?: AbortSignal, body?: unknown): Promise<Stream<T>>;
  /** The bytes of a file as they come, or of the part that the headers ask for. */
  bytes(path: string, headers?: Record<string, string>): Promise<Response>;
};

export type Stream<T> = { readonly headers: Headers; readonly lines: AsyncIterable<T> };

/** `?a=1&b=2` of what is given; empty where nothing is. */
export const queryText = (values: { readonly [name: string]: string | number | undefined }): string => {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query.toString()}`;
};

/** As much of `fetch` as the client needs. */
export type Fetch = (
  url: URL,
  init: Omit<RequestInit, 'headers' | 'body'> & {
    readonly headers: Record<string, string>;
    readonly body?: string;
  },
) => Promise<Response>;

export type ClientOptions = {
  /** Default: Node's own, which shows no certificate. */
  readonly fetch?: Fetch;
  /** Tries of one call: reads, and writes that carry an idempotency key. Default 1, no repetition. */
  readonly attempts?: number;
  /** Milliseconds for one call, its repetitions included; of a stream, until it begins. Default: no bound. */
  readonly timeoutMs?: number;
  /** Waits that many milliseconds; for specs. */
  readonly pause?: (ms: number) => Promise<unknown>;
};

const FIRST_DELAY_MS = 200;

export const createApiClient = (baseUrl: string, token: string, options: ClientOptions = {}): ApiClient => {
  const { attempts = 1, timeoutMs, pause = sleep, fetch = globalThis.fetch } = options;
  // Another instance may answer the next call: it must show what was written by then, or say that it cannot yet, which
  // only a client that tries again can bear.
  let written: string | undefined;

  const once = async (
    method: string,
    url: URL,
    init: Init,
    leftMs: number | undefined,
  ): Promise<Response> => {
    const late = new AbortController();
    const timer = leftMs === undefined ? undefined : setTimeout(() => late.abort(), Math.max(0, leftMs));
    const { signal: given, ...rest } = init;
    const signal =
      given === undefined || given === null ? late.signal : AbortSignal.any([given, late.signal]);
    try {
      const response = await fetch(url, {
        ...rest,
        method,
        signal,
        headers: {
          authorization: `Bearer ${token}`,
          ...(written === undefined ? {} : { 'x-ledger-min-position': written }),
          ...init.headers,
        },
      });
      if (init.streams === true && response.ok) return response;
      // Read here, so that an answer that breaks off counts as none.
      const text = await response.text();
      return new Response([204, 304].includes(response.status) ? null : text, response);
    } catch (error) {
      if (given?.aborted === true) throw error;
      if (late.signal.aborted)
        throw new Unreachable(`no answer from ${url.origin} within ${(timeoutMs ?? 0) / 1000} s`, {
          cause: error,
        });
      throw new Unreachable(whyUnreachable(url, codeOf(error)), {
        cause: error,
        sent: BROKEN.includes(codeOf(error)),
      });
    } finally {
      clearTimeout(timer);
    }
  };

  const call = async (method: string, path: string, init: Init = {}): Promise<Response> => {
    const url = new URL(path, baseUrl);
    const began = performance.now();
    const left = (): number | undefined =>
      timeoutMs === undefined ? undefined : timeoutMs - (performance.now() - began);
    const repeatable = method === 'GET' || init.headers?.['idempotency-key'] !== undefined;
    let sent = false;
    for (let attempt = 1; ; attempt += 1) {
      const last = !repeatable || attempt >= attempts;
      const outcome = await once(method, url, init, left()).catch((error: unknown) => {
        if (!(error instanceof Unreachable)) throw error;
        sent ||= error.sent;
        if (last || !passing(error)) throw new Unreachable(error.message, { cause: error.cause, sent });
        return undefined;
      });
      if (outcome?.ok === true) {
        if (attempts > 1) written = outcome.headers.get('x-ledger-position') ?? written;
        return outcome;
      }
      const delay = delayOf(outcome, attempt);
      const inTime = (left() ?? Number.POSITIVE_INFINITY) > delay;
      if (outcome !== undefined && (last || !repeats(outcome) || !inTime))
        throw await refusal(method, url, outcome);
      if (!inTime)
        throw new Unreachable(`no answer from ${url.origin} within ${(timeoutMs ?? 0) / 1000} s`, { sent });
      await pause(delay);
    }
  };

  const open = async <T>(
    method: 'GET' | 'POST',
    path: string,
    signal?: AbortSignal,
    body?: unknown,
  ): Promise<Stream<T>> => {
    const response = await call(method, path, {
      ...(body === undefined ? {} : jsonBody(body, {})),
      streams: true,
      ...(signal === undefined ? {} : { signal }),
    });
    return { headers: response.headers, lines: linesOf<T>(response) };
  };

  return {
    get: async (path) => parse(await (await call('GET', path)).text()) as never,
    text: async (path) => (await call('GET', path)).text(),
    tagged: async (path) => {
      const response = await call('GET', path);
      const etag = response.headers.get('etag');
      return { value: parse(await response.text()) as never, ...(etag === null ? {} : { etag }) };
    },
    send: async (method, path, body, headers = {}) => {
      const init: Init = body === undefined ? { headers } : jsonBody(body, headers);
      return parse(await (await call(method, path, init)).text()) as never;
    },
    async *lines(method, path, signal, body) {
      yield* (await open<never>(method, path, signal, body)).lines;
    },
    open,
    bytes: (path, headers = {}) => call('GET', path, { headers, streams: true }),
  };
};

const linesOf = async function* <T>(response: Response): AsyncGenerator<T> {
  if (response.body === null) return;
  let rest = '';
  for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as T;
  }
  if (rest.trim() !== '') yield JSON.parse(rest) as T;
};

type Init = Omit<RequestInit, 'headers' | 'body'> & {
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly streams?: boolean;
};

const refusal = async (method: string, url: URL, response: Response): Promise<ApiError> =>
  new ApiError(
    method,
    url.pathname,
    response.status,
    parse(await response.text()),
    response.headers.get('x-request-id'),
  );

/** Too many calls, not ready, or done with an unknown outcome, which a repetition with the same key settles. */
const repeats = ({ status }: Response): boolean => status === 429 || status === 503 || status === 504;

const codeOf = (error: unknown): string => {
  const { code } = ((error as { cause?: unknown } | undefined)?.cause ?? {}) as { code?: unknown };
  return typeof code === 'string' ? code : '';
};

/** What a server says of the certificate that it was shown, or was not. */
const CLIENT_CERTIFICATE = /_ALERT_(CERTIFICATE|BAD_CERTIFICATE|UNKNOWN_CA)/;

/** OpenSSL's codes of certificates that are not trusted, are over, or are of another host. */
const CERTIFICATE = /CERT|UNABLE_TO_/;

export const whyUnreachable = ({ origin, protocol }: URL, code: string): string => {
  if (CLIENT_CERTIFICATE.test(code))
    return `${origin} asks for a client certificate (${code}): name one that it trusts with --client-cert`;
  if (CERTIFICATE.test(code))
    return `the certificate of ${origin} is refused (${code}): name its authority with --service-ca`;
  if (/^ERR_SSL_(WRONG_VERSION|PACKET_LENGTH)/.test(code)) return `${origin} speaks no TLS: is it http://?`;
  const more = !BROKEN.includes(code)
    ? ''
    : protocol === 'http:'
      ? ', without TLS'
      : ', and does it ask for a client certificate (--client-cert)';
  return `cannot reach ${origin}: is the service running there${more}?`;
};

const BROKEN = ['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'];

/** What may be over in a moment: a connection that was refused or broke, not an address that cannot be right. */
const passing = ({ cause }: Unreachable): boolean => ['ECONNREFUSED', ...BROKEN].includes(codeOf(cause));

/** Milliseconds until the next try: what the service asks for, or longer each time. */
const delayOf = (response: Response | undefined, attempt: number): number => {
  const asked = Number(response?.headers.get('retry-after') ?? Number.NaN);
  return Number.isFinite(asked) && asked >= 0 ? asked * 1000 : FIRST_DELAY_MS * 2 ** (attempt - 1);
};

const jsonBody = (body: unknown, headers: Record<string, string>): Init => ({
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json', ...headers },
});

export const parse = (text: string): unknown => {
  if (text === '') return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};
