import { createHmac, randomUUID, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { JsonValue } from '../../../src/domain/json.ts';
import type { LoopbackTls } from '../http/loopback-tls.ts';
import { behaviours, bodyOf, sleep, standInServer } from '../stand-in/server.ts';

/** An event as the rules and the playbooks see it (OSAC's operator): every header but Authorization. */
export type RulebookEvent = {
  readonly payload: JsonValue;
  readonly meta: {
    readonly endpoint: string;
    readonly headers: IncomingHttpHeaders;
    readonly uuid: string;
    readonly received_at: string;
    readonly source: { readonly name: string; readonly type: string };
  };
};

/**
 * How a request is met. `work`: 200, the rule's playbook runs. `forget`: 200, and nothing ever happens. `twice`:
 * 200, and
 * the playbook runs twice. `cut`: queued, but the connection breaks before the answer. `drop`: the connection breaks
 * and
 * nothing is queued. `late`: queued, answered after so many milliseconds. `status`: refused with it, nothing is queued.
 */
export type RulebookBehaviour =
  | 'work'
  | 'forget'
  | 'twice'
  | 'cut'
  | 'drop'
  | { readonly late: number }
  | { readonly status: number; readonly text?: string };

export type RulebookRequest = {
  readonly endpoint: string;
  readonly status: number | 'cut';
  readonly headers: IncomingHttpHeaders;
  readonly bytes: number;
};

export type RulebookStandIn = {
  readonly url: string;
  next(behaviour: RulebookBehaviour, times?: number): void;
  always(behaviour: RulebookBehaviour): void;
  /** Every request, in order of arrival, with how it was answered. */
  readonly requests: readonly RulebookRequest[];
  /** Events for which a playbook was begun, in order. */
  readonly runs: readonly RulebookEvent[];
  /** Most requests that were open at once, over all and for one endpoint and order. */
  readonly most: { readonly open: number; readonly ofOneOrder: number };
  /** Accepted, but no playbook was begun for them yet. */
  queued(): number;
  /** Holds back playbooks: what is accepted stays queued. */
  hold(): void;
  release(): void;
  /** As kill -9: connections break and everything queued is lost. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  close(): Promise<void>;
};

export type RulebookOptions = {
  readonly token?: string;
  readonly hmacSecret?: string;
  readonly tls?: LoopbackTls;
  readonly port?: number;
  /** Endpoints that a rule is about. Default: those of our rulebook. */
  readonly rules?: readonly string[];
  /** What a playbook does. */
  readonly playbook?: (event: RulebookEvent) => Promise<void>;
};

const MAX_BODY = 1_048_576;
const RULES = ['create-hosted-cluster', 'delete-hosted-cluster'];

type Refusal = readonly [status: number, text: string, reason?: string];

/** ansible-rulebook's webhook as it really answers, on a server of our own that can be made to fail. */
export const startRulebook = async (options: RulebookOptions = {}): Promise<RulebookStandIn> => {
  const { token, hmacSecret, rules = RULES, playbook = () => Promise.resolve() } = options;
  const manners = behaviours<RulebookBehaviour>('work');
  const requests: RulebookRequest[] = [];
  const runs: RulebookEvent[] = [];
  const open = new Map<string, number>();
  const most = { open: 0, ofOneOrder: 0 };
  let queue: RulebookEvent[] = [];
  let held = false;

  const work = (): void => {
    while (!held) {
      const event = queue.shift();
      if (event === undefined) return;
      runs.push(event);
      // A playbook that fails is the playbook's business; the listener goes on.
      playbook(event).catch(() => undefined);
    }
  };

  const accept = (event: RulebookEvent, times = 1): void => {
    // No rule is about it: accepted, and nothing happens.
    if (!rules.includes(event.meta.endpoint)) return;
    for (let n = 0; n < times; n += 1) queue.push(event);
    setImmediate(work);
  };

  const meet = async (event: RulebookEvent, response: ServerResponse): Promise<number | 'cut'> => {
    const behaviour = manners.take();
    if (behaviour === 'drop' || behaviour === 'cut') {
      if (behaviour === 'cut') accept(event);
      response.destroy();
      return 'cut';
    }
    if (typeof behaviour === 'object' && 'status' in behaviour) {
      return say(response, [behaviour.status, behaviour.text ?? `status ${behaviour.status}`]);
    }
    if (behaviour !== 'forget') accept(event, behaviour === 'twice' ? 2 : 1);
    if (typeof behaviour === 'object') await sleep(behaviour.late);
    return say(response, [200, event.meta.endpoint]);
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const endpoint = new URL(request.url ?? '/', 'http://listener').pathname.slice(1);
    const note = (status: number | 'cut', bytes: number): void =>
      void requests.push({ endpoint, status, headers: request.headers, bytes });
    const body = await bodyOf(request, MAX_BODY);
    const refused = refusalOf(request, body, { token, hmacSecret });
    if (refused !== undefined || body === undefined) {
      note(say(response, refused ?? [413, '']), body?.byteLength ?? 0);
      return;
    }
    const payload = JSON.parse(body.toString('utf8')) as JsonValue;
    const key = `${endpoint}/${nameIn(payload)}`;
    const leave = enter(key);
    try {
      note(await meet(eventOf(endpoint, payload, request.headers), response), body.byteLength);
    } finally {
      leave();
    }
  };

  const enter = (key: string): (() => void) => {
    open.set(key, (open.get(key) ?? 0) + 1);
    most.open = Math.max(
      most.open,
      [...open.values()].reduce((sum, n) => sum + n, 0),
    );
    most.ofOneOrder = Math.max(most.ofOneOrder, open.get(key) ?? 0);
    return () => {
      open.set(key, (open.get(key) ?? 1) - 1);
    };
  };

  const server = await standInServer(handle, options);
  return {
    url: server.url,
    next: manners.next,
    always: manners.always,
    requests,
    runs,
    most,
    queued: () => queue.length,
    hold: () => {
      held = true;
    },
    release: () => {
      held = false;
      work();
    },
    kill: async () => {
      queue = [];
      held = false;
      await server.close();
    },
    restart: server.listen,
    close: async () => {
      queue = [];
      await server.close();
    },
  };
};

/** In the order of the real one: token, size, signature, JSON; another method is refused last. */
const refusalOf = (
  request: IncomingMessage,
  body: Buffer | undefined,
  { token, hmacSecret }: { readonly token: string | undefined; readonly hmacSecret: string | undefined },
): Refusal | undefined => {
  if (token !== undefined) {
    const header = request.headers.authorization;
    if (header === undefined) return [401, '401: Missing authorization token', 'Missing authorization token'];
    if (!header.startsWith('Bearer ')) return [401, 'Only Bearer type is accepted'];
    if (header !== `Bearer ${token}`) return [401, 'Invalid authorization token'];
  }
  if (body === undefined)
    return [413, `Maximum request body size ${MAX_BODY} exceeded.`, 'Request Entity Too Large'];
  if (hmacSecret !== undefined) {
    const header = request.headers['x-hub-signature-256'];
    if (typeof header !== 'string') return [400, 'Signature header not found'];
    const right = createHmac('sha256', hmacSecret).update(body).digest('hex');
    if (!same(header.replace(/^sha256=/, ''), right)) return [401, 'HMAC verification failed'];
  }
  if (request.method !== 'POST') return [405, '405: Method Not Allowed'];
  try {
    JSON.parse(body.toString('utf8'));
    return undefined;
  } catch {
    return [400, 'Invalid JSON payload'];
  }
};

const same = (left: string, right: string): boolean =>
  left.length === right.length && timingSafeEqual(Buffer.from(left), Buffer.from(right));

const say = (response: ServerResponse, [status, text, reason]: Refusal): number => {
  const headers = {
    'Content-Type': 'text/plain; charset=utf-8',
    ...(status === 405 ? { Allow: 'POST' } : {}),
  };
  if (reason === undefined) response.writeHead(status, headers);
  else response.writeHead(status, reason, headers);
  response.end(text);
  return status;
};

const nameIn = (payload: JsonValue): string =>
  typeof payload === 'object' && payload !== null && !Array.isArray(payload)
    ? JSON.stringify((payload as { metadata?: { name?: string } }).metadata?.name ?? '')
    : '';

const eventOf = (
  endpoint: string,
  payload: JsonValue,
  { authorization: _hidden, ...headers }: IncomingHttpHeaders,
): RulebookEvent => ({
  payload,
  meta: {
    endpoint,
    headers,
    // New per request: equal bodies are different events.
    uuid: randomUUID(),
    received_at: new Date().toISOString(),
    source: { name: 'webhook', type: 'eda.builtin.webhook' },
  },
});
