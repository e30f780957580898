import type { IncomingMessage, ServerResponse } from 'node:http';
import type { TLSSocket } from 'node:tls';
import type { Access } from '../access/rbac.ts';
import { ANONYMOUS, type Identities } from '../access/identities.ts';
import { StatusError, statusBody, unauthorized, type StatusBody } from '../errors.ts';
import type { Watches } from '../read/watch.ts';
import type { Store } from '../store.ts';
import type { JsonObject, Kind, User } from '../types.ts';
import { discoveryDocument } from './discovery.ts';
import { faultStatus, type Fault, type Faults } from './faults.ts';
import { attemptOf, targetOf, type Target } from './request.ts';
import type { Answer, createResources } from './resources.ts';
import { review } from './reviews.ts';
import type { serviceAccountTokens } from './token-request.ts';

/** One request as the audit log has it. */
export type AuditEntry = {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly user: string;
  readonly verb: string;
  readonly resource: string;
  readonly contentType: string;
  readonly agent: string;
  /** Empty until it has arrived. */
  body: string;
  /** 0 while it runs, and when it was never answered. */
  code: number;
};

export type HttpParts = {
  readonly store: Store;
  readonly identities: Identities;
  readonly access: Access;
  readonly resources: ReturnType<typeof createResources>;
  readonly watches: Watches;
  readonly faults: Faults;
  readonly tokens: ReturnType<typeof serviceAccountTokens>;
  readonly now: () => Date;
  readonly gitVersion: string;
  readonly audit: (entry: AuditEntry) => void;
};

/** What is asked, however it came. */
type Asked = {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly target: Target | undefined;
  readonly user: User;
  readonly agent: string;
  readonly contentType: string;
  readonly body: string;
};

type Call = Asked & { readonly request: IncomingMessage; readonly response: ServerResponse };

const BODY_LIMIT = 3 * 1024 * 1024;
const NO_PAGE: Answer = { code: 404, body: '404 page not found\n' };

/** The request handler: who is it, is a fault waiting, may he, and then what he asked for. */
export const createHandler = (parts: HttpParts) => {
  const answer = (call: Pick<Call, 'response'>, { code, body, headers = {} }: Answer): void => {
    const { response } = call;
    if (response.destroyed || response.headersSent) return;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const type = typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json';
    response.writeHead(code, { 'content-type': type, date: parts.now().toUTCString(), ...headers }).end(text);
  };

  const work = (call: Asked): Answer => {
    const { path, target, user } = call;
    if (path === '/healthz' || path === '/readyz' || path === '/livez') return { code: 200, body: 'ok' };
    if (target === undefined) {
      if (user.name === ANONYMOUS.name && path !== '/version') throw closedTo(user, path);
      const document = discoveryDocument(parts.store, path, parts.gitVersion);
      return document === undefined ? NO_PAGE : { code: 200, body: document };
    }
    if (target.verb === 'create' && target.name === undefined) {
      const reviewed = REVIEW_GROUPS.has(target.group)
        ? review(parts.access, user, target.resource, call.body)
        : undefined;
      if (reviewed !== undefined) return { code: 201, body: reviewed };
    }
    parts.access.require(user, attemptOf(target));
    const kind = served(parts.store, target);
    if (kind === undefined) return NO_PAGE;
    if (target.subresource === 'token' && kind.plural === 'serviceaccounts') {
      return { code: 201, body: parts.tokens.request(target, call.body) };
    }
    return parts.resources.handle({ ...call, kind, target });
  };

  const watch = async (call: Call, target: Target, fault: Fault | undefined): Promise<void> => {
    const { response, user, query } = call;
    parts.access.require(user, attemptOf(target));
    const kind = served(parts.store, target);
    if (kind === undefined) return answer(call, NO_PAGE);
    const selected = new URLSearchParams(query);
    if (target.name !== undefined) selected.set('fieldSelector', `metadata.name=${target.name}`);
    const request = { kind, namespace: target.namespace, query: selected, user: user.name };
    const plan = parts.watches.plan(request);
    response.writeHead(200, {
      'content-type': 'application/json',
      date: parts.now().toUTCString(),
      'transfer-encoding': 'chunked',
    });
    response.flushHeaders();
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    if (fault?.kind === 'stream-error') {
      response.end(`${JSON.stringify({ type: 'ERROR', object: faultStatus(fault) })}\n`);
    } else if (fault?.kind === 'torn-line') {
      response.write('{"type":"ADDED","object":{"apiVersion":"', () => response.destroy());
    } else if (fault?.kind === 'silent') {
      await new Promise((resolve) => gone.signal.addEventListener('abort', resolve));
    } else {
      await parts.watches.run(request, plan, { send: (line) => send(response, line), closed: gone.signal });
      response.end();
    }
  };

  const serve = async (call: Call, entry: AuditEntry): Promise<void> => {
    const taken = parts.faults.take(subjectOf(call));
    const fault = taken?.fault;
    if (fault?.kind === 'cut') return void call.request.socket.destroy();
    if (fault?.kind === 'answer') {
      const after = fault.retryAfterSeconds;
      const headers = after === undefined ? {} : { 'retry-after': String(after) };
      const body = fault.text ?? (faultStatus(fault) as unknown as JsonObject);
      return answer(call, { code: (entry.code = fault.code), body, headers });
    }
    const left = new Promise<void>((resolve) => call.response.once('close', resolve));
    if (fault?.kind === 'hang') await taken?.wait(left);
    if (fault?.kind === 'slow') await new Promise((resolve) => setTimeout(resolve, fault.ms));
    if (call.response.destroyed) return;
    const streamed = call.target?.verb === 'watch' ? call.target : undefined;
    if (streamed !== undefined) {
      entry.code = 200;
      return await watch(call, streamed, fault);
    }
    const done = work(call);
    entry.code = done.code;
    if (fault?.kind === 'lost-answer') return void call.request.socket.destroy();
    if (fault?.kind === 'held-answer') await taken?.wait(left);
    answer(call, done);
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = URL.parse(request.url ?? '/', 'https://stand-in');
    if (url === null) return answer({ response }, NO_PAGE);
    const method = request.method ?? 'GET';
    const target = targetOf(method, url.pathname, url.searchParams);
    const user = parts.identities.identify(request.headers.authorization, request.socket as TLSSocket);
    const entry = auditEntry(request, target, user);
    parts.audit(entry);
    try {
      const body = await read(request);
      entry.body = body;
      if (user === undefined) throw unauthorized();
      const { agent, contentType } = entry;
      const asked = { method, path: url.pathname, query: url.searchParams, target, user, body };
      const type = contentType.split(';')[0]?.trim() ?? '';
      await serve({ request, response, ...asked, agent: agentOf(agent), contentType: type }, entry);
    } catch (error) {
      const status = statusOf(error);
      entry.code = status.code;
      answer({ response }, { code: status.code, body: status as unknown as JsonObject });
    }
  };

  /** The same without a connection, for players in this process: no TLS, no faults, no audit. */
  const direct = (user: User, method: string, url: URL, contentType: string, body: string): Answer => {
    const target = targetOf(method, url.pathname, url.searchParams);
    const asked = { method, path: url.pathname, query: url.searchParams, target, user, body };
    try {
      return work({ ...asked, agent: user.name, contentType });
    } catch (error) {
      const status = statusOf(error);
      return { code: status.code, body: status as unknown as JsonObject };
    }
  };

  return { handle, direct };
};

const closedTo = (user: User, path: string): StatusError =>
  new StatusError(403, 'Forbidden', `forbidden: User "${user.name}" cannot get path "${path}"`, {});

const REVIEW_GROUPS = new Set(['authorization.k8s.io', 'authentication.k8s.io']);

const served = (store: Store, { group, version, resource, namespace, verb }: Target): Kind | undefined => {
  const kind = store.find(group, resource);
  if (kind?.version !== version) return undefined;
  const collection = verb === 'list' || verb === 'watch';
  const placed = kind.namespaced ? namespace !== undefined || collection : namespace === undefined;
  return placed ? kind : undefined;
};

const auditEntry = (
  { method = 'GET', url = '/', headers }: IncomingMessage,
  target: Target | undefined,
  user: User | undefined,
): AuditEntry => ({
  method,
  path: url,
  user: user?.name ?? '',
  verb: target?.verb ?? method.toLowerCase(),
  resource: target === undefined ? '' : [target.resource, target.subresource].filter(Boolean).join('/'),
  contentType: headers['content-type'] ?? '',
  agent: headers['user-agent'] ?? '',
  body: '',
  code: 0,
});

const subjectOf = ({ target, user, path, method }: Call) => ({
  verb: target?.verb ?? method.toLowerCase(),
  resource: target?.resource ?? '',
  subresource: target?.subresource ?? '',
  namespace: target?.namespace ?? '',
  name: target?.name ?? '',
  user: user.name,
  path,
});

/** The first part of the User-Agent, as the real server names a manager that named itself nowhere. */
const agentOf = (agent: string | undefined): string => {
  const [name = ''] = (agent ?? '').split('/');
  return name === '' ? 'unknown' : name;
};

const read = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= BODY_LIMIT) chunks.push(chunk);
  }
  if (size > BODY_LIMIT) {
    const message = `Request entity too large: limit is ${BODY_LIMIT}`;
    throw new StatusError(413, 'RequestEntityTooLarge', message);
  }
  return Buffer.concat(chunks).toString('utf8');
};

const statusOf = (error: unknown): StatusBody => {
  if (error instanceof StatusError) return error.body;
  const message = `Internal error occurred: ${error instanceof Error ? error.message : String(error)}`;
  return statusBody(500, 'InternalError', message);
};

const send = async (response: ServerResponse, line: string): Promise<void> => {
  if (response.destroyed || response.write(line)) return;
  await new Promise<void>((resolve) => {
    const go = (): void => {
      response.off('drain', go);
      response.off('close', go);
      resolve();
    };
    response.once('drain', go);
    response.once('close', go);
  });
};
