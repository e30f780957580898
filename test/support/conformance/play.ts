import { ensureBuiltIns } from '../../../src/app/tenancy/built-ins.ts';
import { createTenantBelongings } from '../../../src/app/tenancy/tenant-belongings.ts';
import { startTestService, type TestService, type TokenOptions } from '../http/service.ts';
import { difference, fill, type Captures } from './match.ts';
import type { Step } from './scenario.ts';

/** Callers of the recordings: users of two tenants, an administrator, tokens that are not good, and nobody. */
const TOKENS: Readonly<Record<string, (service: TestService) => Promise<string> | undefined>> = {
  none: () => undefined,
  user: (service) => service.token({ user: 'alice', tenants: ['t1'] }),
  user2: (service) => service.token({ user: 'bob', tenants: ['t2'] }),
  'tenant-admin': (service) => service.token({ user: 'tina', tenants: ['t1'], roles: ['tenant-admin'] }),
  admin: (service) => service.token({ user: 'root', admin: true }),
  'idp-manager': (service) => service.token({ user: 'ivan', tenants: ['t1'], roles: ['tenant-idp-manager'] }),
  'project-viewer': (service) => service.token({ user: 'vera', ...inProject('viewers') }),
  'project-manager': (service) => service.token({ user: 'mona', ...inProject('managers') }),
  'both-tenants': (service) => service.token({ user: 'carol', tenants: ['t2', 't1'] }),
  'group-admin': (service) => service.token({ user: 'gina', claims: { groups: ['/admins'] } }),
  'service-account': (service) => service.token(account('t1', 'robot')),
  publisher: (service) => service.token(account(DEPLOYMENT, 'template-publisher')),
  newcomer: (service) => service.token({ user: 'nora', tenants: ['t1'] }),
  'other-claims': (service) =>
    service.token({
      claims: {
        preferred_username: undefined,
        username: 'Una.Smith',
        email: 'una@t1.example',
        organization: { t1: { groups: [] } },
      },
    }),
  'id-token': (service) => service.token({ tenants: ['t1'], claims: { typ: 'ID' } }),
  'no-subject': (service) => service.token({ tenants: ['t1'], claims: { sub: '' } }),
  'too-early': (service) =>
    service.token({ tenants: ['t1'], claims: { nbf: Math.floor(Date.now() / 1000) + 3600 } }),
  'csi-driver': (service) => service.token({ user: 'csi', roles: ['osac-csi-driver'] }),
  'no-tenant': (service) => service.token({ user: 'nemo' }),
  'unknown-tenant': (service) => service.token({ user: 'ulla', tenants: ['nowhere'] }),
  expired: (service) => service.token({ user: 'alice', tenants: ['t1'], expiresIn: -3600 }),
};

const DEPLOYMENT = 'osac';

const account = (namespace: string, name: string): TokenOptions => ({
  claims: {
    'kubernetes.io': { namespace },
    sub: `system:serviceaccount:${namespace}:${name}`,
    typ: undefined,
  },
});

/** A user of t1 whose groups name a role in its project `apps`. */
const inProject = (role: string): TokenOptions => ({
  claims: { organization: { t1: { groups: [`/apps/system:${role}`] } } },
});

/** A service as it is after its first start: with built-in roles and the default project of `shared`. */
const startService = async (): Promise<TestService> => {
  const service = await startTestService({
    provisionUsers: true,
    cors: { origins: ['*'] },
    deploymentNamespace: DEPLOYMENT,
  });
  const { provisioning, logger, models } = service;
  const position = await ensureBuiltIns({
    ...provisioning,
    logger,
    belongings: createTenantBelongings({ ...provisioning, idsOf: () => [] }),
    tenants: async function* () {},
    signal: AbortSignal.timeout(LINES_WITHIN_MS),
  });
  if (position !== undefined) await models.waitFor('resources', position, { timeoutMs: LINES_WITHIN_MS });
  return service;
};

const LINES_WITHIN_MS = 5_000;

type OpenStream = {
  readonly of: Omit<Seen, 'text'>;
  readonly next: () => Promise<string>;
  readonly close: () => void;
};

/** An answer as it came, a line of a stream included. */
export type Seen = {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
};

/** Plays steps against a service of its own. `seen` is told of every answer and line, whatever was expected. */
export const openStage = async (seen: (answer: Seen) => void = () => undefined) => {
  const service = await startService();
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
        ...fill(step.headers ?? {}, new Map([...captures, ['BEARER', token ?? '']])),
      },
      ...(body === undefined ? {} : { body }),
      ...(step.opens === undefined ? { signal: AbortSignal.timeout(LINES_WITHIN_MS) } : {}),
    });
  };

  const ask = async (step: Step): Promise<string | undefined> => {
    const response = await send(step);
    const expected = step.answer ?? { status: 200 };
    const head = headDifference(expected, response, captures);
    const [method = ''] = (step.request ?? '').split(' ');
    const of = {
      method,
      path: new URL(response.url).pathname,
      status: response.status,
      contentType: response.headers.get('content-type') ?? '',
    };
    if (step.opens !== undefined && response.ok) {
      streams.set(step.opens, linesOf(response, of));
      return head;
    }
    const text = await response.text();
    seen({ ...of, text });
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

  /** Sends one request as often as the step says, counted as `{N}`; the first answer that is wrong ends it. */
  const askOften = async (step: Step): Promise<string | undefined> => {
    for (let n = 1; n <= (step.times ?? 1); n += 1) {
      captures.set('N', String(n));
      const found = await ask(step);
      if (found !== undefined) return step.times === undefined ? found : `time ${n}: ${found}`;
    }
    return undefined;
  };

  const listen = async ({ stream = '', lines = [] }: Step): Promise<string | undefined> => {
    const open = streams.get(stream);
    if (open === undefined) return `no stream is called ${stream}`;
    for (const [i, expected] of lines.entries()) {
      const line = await open.next();
      seen({ ...open.of, text: line });
      const found = difference(expected, JSON.parse(line), captures, `line ${i + 1}`);
      if (found !== undefined) return found;
    }
    return undefined;
  };

  return {
    /** What is different from what the step expects; undefined: nothing. */
    play: (step: Step): Promise<string | undefined> =>
      step.stream === undefined ? askOften(step) : listen(step),
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
const linesOf = (response: Response, of: OpenStream['of']): OpenStream => {
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
    of,
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
