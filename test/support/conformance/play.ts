import { startTestService, type TestService } from '../http-service.ts';
import { difference, fill, type Captures } from './match.ts';
import type { Step } from './scenario.ts';

/** Callers of the recordings: users of two tenants, an administrator, tokens that are not good, and nobody. */
const TOKENS: Readonly<Record<string, (service: TestService) => Promise<string> | undefined>> = {
  none: () => undefined,
  user: (service) => service.token({ user: 'alice', tenants: ['t1'] }),
  user2: (service) => service.token({ user: 'bob', tenants: ['t2'] }),
  'tenant-admin': (service) => service.token({ user: 'tina', tenants: ['t1'], roles: ['tenant-admin'] }),
  admin: (service) => service.token({ user: 'root', admin: true }),
  'no-tenant': (service) => service.token({ user: 'nemo' }),
  'unknown-tenant': (service) => service.token({ user: 'ulla', tenants: ['nowhere'] }),
  expired: (service) => service.token({ user: 'alice', tenants: ['t1'], expiresIn: -3600 }),
};

const LINES_WITHIN_MS = 5_000;

type OpenStream = { readonly next: () => Promise<string>; readonly close: () => void };

/** Plays steps against a service of its own. */
export const openStage = async () => {
  const service = await startTestService();
  const captures: Captures = new Map();
  const streams = new Map<string, OpenStream>();
  const tokens = new Map<string, string | undefined>();

  const tokenOf = async (caller: string): Promise<string | undefined> => {
    const mint = TOKENS[caller];
    if (mint === undefined) throw new Error(`nobody is called ${caller}`);
    if (!tokens.has(caller)) tokens.set(caller, await mint(service));
    return tokens.get(caller);
  };

  const send = async (step: Step): Promise<Response> => {
    const [method = '', path = ''] = fill(step.request ?? '', captures).split(' ');
    const query = new URLSearchParams(fill(step.query ?? {}, captures)).toString();
    const separator = path.includes('?') ? '&' : '?';
    const token = await tokenOf(step.caller);
    const body =
      step.text ?? (step.body === undefined ? undefined : JSON.stringify(fill(step.body, captures)));
    return fetch(service.url + path + (query === '' ? '' : separator + query), {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...fill(step.headers ?? {}, captures),
      },
      ...(body === undefined ? {} : { body }),
      ...(step.opens === undefined ? { signal: AbortSignal.timeout(LINES_WITHIN_MS) } : {}),
    });
  };

  const ask = async (step: Step): Promise<string | undefined> => {
    const response = await send(step);
    const expected = step.answer ?? { status: 200 };
    const head = headDifference(expected, response, captures);
    if (step.opens !== undefined && response.ok) {
      streams.set(step.opens, linesOf(response));
      return head;
    }
    const text = await response.text();
    if (head !== undefined) return `${head}; answered: ${text.slice(0, 600)}`;
    if (expected.text !== undefined) return difference(expected.text, text, captures, 'text');
    if (expected.body === undefined) return undefined;
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      return `the answer is not JSON: ${text.slice(0, 600)}`;
    }
    return difference(expected.body, json, captures);
  };

  const listen = async ({ stream = '', lines = [] }: Step): Promise<string | undefined> => {
    const open = streams.get(stream);
    if (open === undefined) return `no stream is called ${stream}`;
    for (const [i, expected] of lines.entries()) {
      const line = await open.next();
      const found = difference(expected, JSON.parse(line), captures, `line ${i + 1}`);
      if (found !== undefined) return found;
    }
    return undefined;
  };

  return {
    /** What is different from what the step expects; undefined: nothing. */
    play: (step: Step): Promise<string | undefined> => (step.stream === undefined ? ask(step) : listen(step)),
    close: async (): Promise<void> => {
      for (const stream of streams.values()) stream.close();
      await service.close();
    },
  };
};

const headDifference = (
  expected: NonNullable<Step['answer']>,
  response: Response,
  captures: Captures,
): string | undefined => {
  if (response.status !== expected.status)
    return `status ${expected.status} was expected, not ${response.status}`;
  for (const [name, value] of Object.entries(expected.headers ?? {})) {
    const actual = response.headers.get(name);
    if (value === null && actual !== null) return `header ${name} was not expected: ${actual}`;
    const found = value === null ? undefined : difference(value, actual, captures, `header ${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
};

/** Lines of a stream one by one; a line that does not come in time is an error. */
const linesOf = (response: Response): OpenStream => {
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  const read = async (): Promise<string> => {
    for (;;) {
      const end = rest.indexOf('\n');
      if (end >= 0) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 1);
        if (line.trim() !== '') return line;
        continue;
      }
      const { value, done } = await reader.read();
      if (done) throw new Error('the stream ended');
      rest += value;
    }
  };
  return {
    next: async () => {
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(
        () => late.reject(new Error(`no line within ${LINES_WITHIN_MS} ms`)),
        LINES_WITHIN_MS,
      );
      try {
        return await Promise.race([read(), late.promise]);
      } finally {
        clearTimeout(timer);
      }
    },
    close: () => void reader.cancel().catch(() => undefined),
  };
};
