import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https, { type RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import type { Timers } from '../../../app/ports.ts';
import type { KubeAccess } from './kubeconfig.ts';
import { defined } from '../../../domain/json-tools.ts';

/**
 * HTTP to one API server. TLS, proxies and credentials are those of @kubernetes/client-node's KubeConfig; requests are
 * made with node:https, because of what its typed API and Watch do (2.0.1): a new dispatcher and so a TLS handshake
 * per request, no way to abort one, an ApiException that holds headers and bodies as text, redirects that are followed,
 * watches without bookmarks that drop lines they cannot parse and end after 30 s of silence.
 */
export type ApiRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: { readonly [name: string]: string };
  /** JSON text. */
  readonly body?: string;
  readonly contentType?: string;
  /** Default `application/json`. */
  readonly accept?: string;
  /** Becomes the id in the hub's audit log when it fits there. */
  readonly effectId?: string;
};

export type ApiAnswer = {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
};

/** No complete answer. `sent` false: the API server has certainly not seen the request. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
  readonly sent: boolean;
  /** The connection had been kept from an earlier request: the server may have closed it in the same moment. */
  readonly kept: boolean;
  /** Code of the operating system or of OpenSSL; `TIMEOUT`, `ABORTED` and `TOO_LARGE` are ours. */
  readonly code: string;
  /** `address`: what was tried. `phase`: how far it came. */
  constructor(
    sent: boolean,
    code: string,
    more: { readonly kept?: boolean; readonly address?: string; readonly phase?: Phase } = {},
  ) {
    const { kept = false, address, phase = 'answer' } = more;
    const why = sayOf(code, phase);
    super(address === undefined ? why : `${address}: ${why}`);
    this.sent = sent;
    this.kept = kept;
    this.code = code;
  }
}

/** What a call waits for. */
type Phase = 'connection' | 'handshake' | 'answer';

export type CallLimits = { readonly deadlineMs: number; readonly signal: AbortSignal };

export type ApiConnection = {
  /** Host and port of the API server, and of the proxy before it: never a credential. */
  readonly address: string;
  /** Path of the kubeconfig's `server`, which every path begins with; without a trailing slash. */
  readonly prefix: string;
  /** Throws NoAnswer. */
  call(request: ApiRequest, limits: CallLimits): Promise<ApiAnswer>;
  /** Answers once the headers are there; `deadlineMs` is for those only. Throws NoAnswer; so does its body. */
  stream(
    request: ApiRequest,
    limits: CallLimits,
  ): Promise<{ readonly answer: ApiAnswer; readonly chunks: AsyncIterable<Buffer> | undefined }>;
  close(): void;
};

const MAX_ANSWER_BYTES = 67_108_864;
const USER_AGENT = 'fulfillment-ledger';
/** What the audit log of an API server takes as an id. */
const AUDIT_ID = /^[\x21-\x7e]{1,64}$/;

/** Codes after which no byte of the request was read on the other side. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EADDRNOTAVAIL',
]);
const TLS_CODE = /^(CERT_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|ERR_TLS_|HOSTNAME_MISMATCH)/;
export const isTlsCode = (code: string): boolean => TLS_CODE.test(code) || code.startsWith('ERR_SSL_');

/** No number that differs from call to call: the same trouble is told in the same words. */
const sayOf = (code: string, phase: Phase): string => {
  if (code === 'TIMEOUT') return `no ${phase === 'handshake' ? 'TLS handshake' : phase} within the deadline`;
  if (code === 'ABORTED') return 'given up by the caller';
  if (code === 'TOO_LARGE') return `the answer has more than ${MAX_ANSWER_BYTES} bytes`;
  if (isTlsCode(code)) return `TLS failed (${code}): ${sayOfTls(code)}`;
  return `${WORDS.get(code) ?? (phase === 'answer' ? 'the connection broke' : 'no connection')} (${code})`;
};

const WORDS: ReadonlyMap<string, string> = new Map([
  ['ECONNREFUSED', 'connection refused, nothing listens there'],
  ['ECONNRESET', 'the connection was cut'],
  ['ENOTFOUND', 'the host name is not known'],
  ['EAI_AGAIN', 'the name service does not answer'],
  ['EHOSTUNREACH', 'no route to this host'],
  ['ENETUNREACH', 'no route to this network'],
  ['ETIMEDOUT', 'no connection within the time of the operating system'],
]);

const sayOfTls = (code: string): string => {
  if (code === 'CERT_HAS_EXPIRED') return "the server's certificate has expired";
  if (code === 'CERT_NOT_YET_VALID')
    return "the server's certificate is not valid yet; are the clocks right?";
  if (/ALTNAME|HOSTNAME/.test(code))
    return "the server's certificate is for another name; set tls-server-name or correct the server's URL";
  if (/^(UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|CERT_)/.test(code))
    return 'certificate-authority-data does not fit the server';
  return 'the server speaks no usable TLS';
};

/** Loads the client library on first use: it takes half a second and 90 MB. */
const kubeConfig = async (access: KubeAccess): Promise<KubeConfig> => {
  const { KubeConfig: Config } = await import('@kubernetes/client-node');
  const { server, insecure, token, caData, tlsServerName, proxyUrl, certData, keyData } = access;
  // Plain HTTP counts as unverified TLS there; kubeconfig.ts has refused it but on loopback.
  const skipTLSVerify = insecure || server.startsWith('http:');
  const config = new Config();
  config.loadFromOptions({
    clusters: [{ name: 'hub', server, skipTLSVerify, ...defined({ caData, tlsServerName, proxyUrl }) }],
    users: [{ name: 'user', ...defined({ certData, keyData, token }) }],
    contexts: [{ name: 'context', cluster: 'hub', user: 'user' }],
    currentContext: 'context',
  });
  return config;
};

/** As it is written in a URL, without what else a URL may hold. */
const hostOf = (url: string): string => {
  const { hostname, port, protocol } = new URL(url);
  const usual = protocol === 'https:' ? '443' : protocol === 'http:' ? '80' : '1080';
  return `${hostname}:${port === '' ? usual : port}`;
};

const addressOf = ({ server, proxyUrl }: KubeAccess): string =>
  proxyUrl === undefined ? hostOf(server) : `${hostOf(server)} through proxy ${hostOf(proxyUrl)}`;

export const openConnection = async (access: KubeAccess, timers: Timers): Promise<ApiConnection> => {
  const options: RequestOptions = {};
  await (await kubeConfig(access)).applyToHTTPSOptions(options);
  const { agent } = options;
  const headers = options.headers as http.OutgoingHttpHeaders;
  if (!(agent instanceof http.Agent)) throw new Error('client-node gave no agent');
  // It makes agents that close their connections after each request.
  Object.assign(agent, { keepAlive: true });
  const address = addressOf(access);
  const base = new URL(access.server);
  const { request: open } = base.protocol === 'http:' ? http : https;
  const prefix = base.pathname.replace(/\/+$/, '');

  /** Resolves with the headers of the answer. */
  const start = (
    request: ApiRequest,
    { deadlineMs, signal }: CallLimits,
  ): { head: Promise<IncomingMessage>; failed: (error: unknown) => NoAnswer; finish: () => void } => {
    const query = new URLSearchParams(request.query).toString();
    // Behind a proxy it cannot be seen whether the request got through.
    let sent = access.proxyUrl !== undefined;
    let phase: Phase = sent ? 'answer' : 'connection';
    let reason: string | undefined;
    const outgoing: ClientRequest = open({
      ...tlsOptions(options),
      agent,
      method: request.method,
      hostname: base.hostname.replaceAll(/^\[|\]$/g, ''),
      port: base.port === '' ? (base.protocol === 'http:' ? 80 : 443) : base.port,
      path: `${prefix}${request.path}${query === '' ? '' : `?${query}`}`,
      headers: { ...headers, ...headersOf(request) },
    });
    const giveUp = (code: string): void => {
      reason ??= code;
      outgoing.destroy(new Error(code));
    };
    const onAbort = (): void => giveUp('ABORTED');
    const cancel = timers.after(deadlineMs, () => giveUp('TIMEOUT'));
    const finish = (): void => {
      cancel();
      signal.removeEventListener('abort', onAbort);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    outgoing.on('socket', (socket) => {
      const connected = (): void => {
        sent = true;
        phase = 'answer';
      };
      if (outgoing.reusedSocket || base.protocol === 'http:') connected();
      else {
        socket.once('connect', () => {
          phase = 'handshake';
        });
        socket.once('secureConnect', connected);
      }
    });
    const failed = (error: unknown): NoAnswer => {
      if (error instanceof NoAnswer) return error;
      const code = reason ?? codeOf(error);
      const kept = reason === undefined && outgoing.reusedSocket;
      const maybeSeen = sent && !NOT_SENT.has(code) && !TLS_CODE.test(code);
      return new NoAnswer(maybeSeen, code, { kept, address, phase });
    };
    const head = new Promise<IncomingMessage>((resolve, reject) => {
      outgoing.once('response', resolve);
      outgoing.on('error', (error) => reject(failed(error)));
    });
    if (signal.aborted) onAbort();
    else outgoing.end(request.body);
    return { head, failed, finish };
  };

  return {
    address,
    prefix,
    call: async (request, limits) => {
      const { head, failed, finish } = start(request, limits);
      try {
        const incoming = await head;
        return { ...headOf(incoming), body: await wholeBody(incoming) };
      } catch (error) {
        throw failed(error);
      } finally {
        finish();
      }
    },
    stream: async (request, limits) => {
      const { head, failed, finish } = start(request, limits);
      try {
        const incoming = await head;
        if (incoming.statusCode !== 200)
          return { answer: { ...headOf(incoming), body: await wholeBody(incoming) }, chunks: undefined };
        return {
          answer: { ...headOf(incoming), body: '' },
          chunks: chunksOf(incoming, limits.signal, failed),
        };
      } catch (error) {
        throw failed(error);
      } finally {
        finish();
      }
    },
    close: () => agent.destroy(),
  };
};

/** What a proxy's agent needs once more per request. */
const tlsOptions = ({ ca, cert, key, servername, rejectUnauthorized }: RequestOptions): RequestOptions =>
  defined({ ca, cert, key, servername, rejectUnauthorized });

const headersOf = ({ body, contentType, accept, effectId }: ApiRequest): http.OutgoingHttpHeaders => ({
  'User-Agent': USER_AGENT,
  Accept: accept ?? 'application/json',
  ...(body === undefined
    ? {}
    : { 'Content-Type': contentType ?? 'application/json', 'Content-Length': Buffer.byteLength(body) }),
  ...(effectId !== undefined && AUDIT_ID.test(effectId) ? { 'Audit-Id': effectId } : {}),
});

const headOf = (incoming: IncomingMessage) => ({
  status: incoming.statusCode ?? 0,
  headers: incoming.headers,
});

const wholeBody = async (incoming: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) {
      incoming.destroy();
      throw new NoAnswer(true, 'TOO_LARGE');
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
};

async function* chunksOf(
  incoming: IncomingMessage,
  signal: AbortSignal,
  failed: (error: unknown) => NoAnswer,
): AsyncGenerator<Buffer> {
  const end = (): void => {
    incoming.destroy(new NoAnswer(true, 'ABORTED'));
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    if (signal.aborted) return;
    yield* incoming as AsyncIterable<Buffer>;
  } catch (error) {
    throw failed(error);
  } finally {
    signal.removeEventListener('abort', end);
    incoming.destroy();
  }
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'ERROR';
