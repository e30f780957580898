import { Agent, request as httpsRequest } from 'node:https';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';

/** How to reach an API server: the stand-in or a real one. */
export type KubeAccess = {
  readonly url: string;
  /** PEM of the authority to trust. */
  readonly ca: string;
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
};

export type KubeAnswer = {
  readonly code: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body as an object; empty when it is none. */
  readonly body: JsonObject;
};

export type KubeWatchEvent = { readonly type: string; readonly object: JsonObject };

export type KubeWatch = {
  /** The next event, or undefined when the stream has ended or `ms` have passed without one. */
  next(ms?: number): Promise<KubeWatchEvent | undefined>;
  /** True once the server has ended the stream. */
  ended(): boolean;
  close(): void;
};

export type RequestOptions = {
  readonly body?: JsonValue | string;
  readonly type?: string;
  readonly query?: { readonly [name: string]: string | number | boolean };
  readonly headers?: { readonly [name: string]: string };
  /** Milliseconds until the call is given up; default 10 s. */
  readonly deadlineMs?: number;
};

export type KubeClient = ReturnType<typeof kubeClient>;

export const MERGE = 'application/merge-patch+json';
export const JSON_PATCH = 'application/json-patch+json';
export const APPLY = 'application/apply-patch+yaml';

/** A plain HTTPS client for tests: no library between the test and what the server really said. */
export const kubeClient = (access: KubeAccess) => {
  const agent = new Agent({
    keepAlive: true,
    ca: access.ca,
    ...(access.cert === undefined ? {} : { cert: access.cert }),
    ...(access.key === undefined ? {} : { key: access.key }),
  });
  const open = (method: string, path: string, options: RequestOptions): Promise<IncomingMessage> => {
    const { body, type = 'application/json', query = {}, headers = {}, deadlineMs = 10_000 } = options;
    const url = new URL(path, access.url);
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, String(value));
    const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body);
    const sent = {
      ...(access.token === undefined ? {} : { authorization: `Bearer ${access.token}` }),
      // Node leaves the length of a DELETE's body out.
      ...(text === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(text) }),
      'user-agent': 'kube-client/1',
      ...headers,
    };
    return new Promise((resolve, reject) => {
      const request = httpsRequest(url, { method, agent, headers: sent }, resolve);
      request.setTimeout(deadlineMs, () => request.destroy(new Error(`${method} ${path}: no answer`)));
      request.once('error', reject);
      request.end(text);
    });
  };

  const call = async (method: string, path: string, options: RequestOptions = {}): Promise<KubeAnswer> => {
    const response = await open(method, path, options);
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString('utf8');
    return { code: response.statusCode ?? 0, headers: response.headers, text, body: objectOf(text) };
  };

  return {
    call,
    get: (path: string, query: RequestOptions['query'] = {}): Promise<KubeAnswer> =>
      call('GET', path, { query }),
    post: (path: string, body: JsonValue, query: RequestOptions['query'] = {}): Promise<KubeAnswer> =>
      call('POST', path, { body, query }),
    put: (path: string, body: JsonValue): Promise<KubeAnswer> => call('PUT', path, { body }),
    merge: (path: string, body: JsonValue, query: RequestOptions['query'] = {}): Promise<KubeAnswer> =>
      call('PATCH', path, { body, query, type: MERGE }),
    delete: (path: string, body?: JsonValue): Promise<KubeAnswer> =>
      call('DELETE', path, body === undefined ? {} : { body }),
    /** Server-side apply. */
    apply: (path: string, body: JsonValue, fieldManager: string, force = false): Promise<KubeAnswer> =>
      call('PATCH', path, { body, type: APPLY, query: { fieldManager, force } }),
    /** Opens a watch; an answer that is no stream is thrown with its code and text. */
    watch: async (path: string, query: RequestOptions['query'] = {}): Promise<KubeWatch> => {
      const response = await open('GET', path, { query: { ...query, watch: true }, deadlineMs: 600_000 });
      if (response.statusCode === 200) return watchOf(response);
      const chunks: Buffer[] = [];
      for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
      throw new Error(`watch ${path}: ${response.statusCode} ${Buffer.concat(chunks).toString('utf8')}`);
    },
    /** Closes the idle connections; call it at the end of a test. */
    close: (): void => agent.destroy(),
  };
};

const objectOf = (text: string): JsonObject => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
  } catch {
    return {};
  }
};

const watchOf = (response: IncomingMessage): KubeWatch => {
  const events: KubeWatchEvent[] = [];
  let [rest, over] = ['', false];
  let wake: () => void = () => {};
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    events.push(...lines.filter((line) => line !== '').map((line) => JSON.parse(line) as KubeWatchEvent));
    if (events.length > 0) wake();
  });
  const end = (): void => {
    over = true;
    wake();
  };
  response.on('error', end);
  response.on('close', end);
  return {
    next: async (ms = 5000) => {
      if (events.length === 0 && !over) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      return events.shift();
    },
    ended: () => over,
    close: () => response.destroy(),
  };
};

/** Path of the collection that an object belongs to. Good for kinds whose plural ends in s. */
export const collectionOf = (object: JsonObject): string => {
  const namespace = stringAt(objectAt(object, 'metadata'), 'namespace');
  const apiVersion = stringAt(object, 'apiVersion');
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const plural = `${stringAt(object, 'kind').toLowerCase()}s`;
  return namespace === '' ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
};
