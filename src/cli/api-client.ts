/** A small client of the service's own HTTP surfaces, for the command line and the demo. */

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly body: unknown;
  constructor(method: string, url: string, status: number, body: unknown, requestId?: string | null) {
    const request = requestId === undefined || requestId === null ? '' : ` (request ${requestId})`;
    super(`${method} ${url} answered ${status}: ${describe(body)}${request}`);
    this.status = status;
    this.body = body;
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

export type ApiClient = {
  get<T>(path: string): Promise<T>;
  text(path: string): Promise<string>;
  send<T>(
    method: 'POST' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<T>;
  /** Newline-delimited JSON, line by line, until the server ends it or the signal fires. */
  lines<T>(method: 'GET' | 'POST', path: string, signal?: AbortSignal): AsyncIterable<T>;
};

export const createApiClient = (baseUrl: string, token: string): ApiClient => {
  const call = async (method: string, path: string, init: Init = {}): Promise<Response> => {
    const url = new URL(path, baseUrl);
    const response = await fetch(url, {
      ...init,
      method,
      headers: { authorization: `Bearer ${token}`, ...init.headers },
    }).catch((error: unknown) => {
      throw new Error(`cannot reach ${url.origin}: is the service running there?`, { cause: error });
    });
    if (!response.ok) {
      const body = parse(await response.text());
      throw new ApiError(method, url.pathname, response.status, body, response.headers.get('x-request-id'));
    }
    return response;
  };
  return {
    get: async (path) => parse(await (await call('GET', path)).text()) as never,
    text: async (path) => (await call('GET', path)).text(),
    send: async (method, path, body, headers = {}) => {
      const init: Init = body === undefined ? { headers } : jsonBody(body, headers);
      return parse(await (await call(method, path, init)).text()) as never;
    },
    async *lines(method, path, signal) {
      const response = await call(method, path, signal === undefined ? {} : { signal });
      if (response.body === null) return;
      let rest = '';
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + chunk).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) if (line.trim() !== '') yield JSON.parse(line) as never;
      }
      if (rest.trim() !== '') yield JSON.parse(rest) as never;
    },
  };
};

type Init = Omit<RequestInit, 'headers'> & { readonly headers?: Record<string, string> };

const jsonBody = (body: unknown, headers: Record<string, string>): Init => ({
  body: JSON.stringify(body),
  headers: { 'content-type': 'application/json', ...headers },
});

const parse = (text: string): unknown => {
  if (text === '') return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
};
