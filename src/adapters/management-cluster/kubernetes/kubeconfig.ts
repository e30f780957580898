import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createRequire } from 'node:module';
import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import { isLoopback } from '../../../domain/hubs/loopback.ts';
import { isObject, listAt, objectAt, stringAt } from '../../../domain/json-tools.ts';

/** How to reach one API server: everything in memory, nothing that points elsewhere. */
export type KubeAccess = {
  /** Without a trailing slash; may end in a path. */
  readonly server: string;
  /** PEM in base64. Absent: the system's certificate authorities. */
  readonly caData?: string;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  /** The server's certificate is not checked; only on loopback. */
  readonly insecure: boolean;
  readonly token?: string;
  /** PEM in base64; both or none. */
  readonly certData?: string;
  readonly keyData?: string;
};

/** Why a kubeconfig is refused: one sentence that names the field and what to do, never a value of it. */
export class InvalidKubeconfig extends Error {
  override readonly name = 'InvalidKubeconfig';
}

const MAX_BYTES = 1_048_576;
const PROXY_SCHEMES = ['http:', 'https:', 'socks5:', 'socks5h:'];
/** Visible characters only: a header cannot carry others. */
const TOKEN = /^[\x21-\x7e]+$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

const refuse = (reason: string): never => {
  throw new InvalidKubeconfig(`kubeconfig refused: ${reason}`);
};

/**
 * Reads a kubeconfig (YAML or JSON) without touching a file, a program or the network. Throws InvalidKubeconfig.
 *
 * Refused is whatever would make this process read its own disk or run something on behalf of who registered the hub:
 * file references, exec plugins, auth providers. Plain HTTP and `insecure-skip-tls-verify` are refused unless the
 * server is on loopback, because every order carries a pull secret.
 */
export const readKubeconfig = (source: Uint8Array | string): KubeAccess => {
  const config = parsed(source);
  const context = named(config, 'contexts', stringAt(config, 'current-context'), 'current-context');
  const inContext = objectAt(context, 'context');
  const cluster = objectAt(
    named(config, 'clusters', stringAt(inContext, 'cluster'), 'its context'),
    'cluster',
  );
  const user = objectAt(named(config, 'users', stringAt(inContext, 'user'), 'its context'), 'user');
  const access = { ...clusterAccess(cluster), ...userAccess(user) };
  if (new URL(access.server).protocol === 'http:' && access.certData !== undefined)
    refuse('a client certificate needs an https server');
  return access;
};

/** Loaded with the first kubeconfig: one in twenty of the modules that a start would load. */
const yaml = (): typeof import('yaml') => createRequire(import.meta.url)('yaml') as typeof import('yaml');

const parsed = (source: Uint8Array | string): JsonObject => {
  const text = typeof source === 'string' ? source : Buffer.from(source).toString('utf8');
  if (text.length > MAX_BYTES) refuse(`it has more than ${MAX_BYTES} characters`);
  if (text.trim() === '') refuse('it is empty');
  const { LineCounter, parseDocument } = yaml();
  const lineCounter = new LineCounter();
  // Pretty errors quote the source, which holds credentials.
  const document = parseDocument(text, { prettyErrors: false, lineCounter });
  const [error] = document.errors;
  if (error !== undefined) refuse(`it is not YAML or JSON (line ${lineCounter.linePos(error.pos[0]).line})`);
  let value: JsonValue = null;
  try {
    value = document.toJS({ maxAliasCount: 20 }) as JsonValue;
  } catch {
    refuse('it is not YAML or JSON (too many aliases)');
  }
  return isObject(value) ? value : refuse('it is not YAML or JSON with fields');
};

/** An entry of `clusters`, `users` or `contexts` by name. */
const named = (config: JsonObject, list: string, name: string, from: string): JsonObject => {
  if (name === '') refuse(`${from} names no entry of ${list}`);
  const found = listAt(config, list).find((entry) => stringAt(entry, 'name') === name);
  return isObject(found) ? found : refuse(`${from} names an entry of ${list} that is not there`);
};

const noFiles = (holder: JsonObject, fields: readonly string[]): void => {
  for (const field of fields)
    if (stringAt(holder, field) !== '')
      refuse(`${field} points to a file; embed it (kubectl config view --raw --flatten)`);
};

const clusterAccess = (cluster: JsonObject): Omit<KubeAccess, 'token' | 'certData' | 'keyData'> => {
  const server = serverOf(stringAt(cluster, 'server'));
  noFiles(cluster, ['certificate-authority']);
  const local = isLoopback(server.hostname);
  if (server.protocol === 'http:' && !local)
    refuse(
      'server is not https; plain http is taken on loopback only, because every order carries a pull secret',
    );
  const insecure = cluster['insecure-skip-tls-verify'] === true;
  if (insecure && !local) refuse('insecure-skip-tls-verify is set; embed certificate-authority-data instead');
  const caData = pem(cluster, 'certificate-authority-data');
  if (caData !== undefined) certificate(caData, 'certificate-authority-data');
  const tlsServerName = stringAt(cluster, 'tls-server-name');
  const proxyUrl = stringAt(cluster, 'proxy-url');
  if (proxyUrl !== '' && !PROXY_SCHEMES.includes(URL.parse(proxyUrl)?.protocol ?? ''))
    refuse('proxy-url is not an http, https or socks5 address');
  return {
    server: server.href.replace(/\/+$/, ''),
    insecure,
    ...(caData === undefined ? {} : { caData }),
    ...(tlsServerName === '' ? {} : { tlsServerName }),
    ...(proxyUrl === '' ? {} : { proxyUrl }),
  };
};

const serverOf = (text: string): URL => {
  if (text === '') refuse('its cluster has no server');
  const server = URL.parse(text);
  if (server === null || !['http:', 'https:'].includes(server.protocol))
    return refuse('server is not an https address');
  if (server.username !== '' || server.password !== '' || server.search !== '' || server.hash !== '')
    refuse('server holds more than an address');
  return server;
};

const userAccess = (user: JsonObject): Pick<KubeAccess, 'token' | 'certData' | 'keyData'> => {
  if (user['exec'] !== undefined)
    refuse('its user has an exec plugin, and nothing is run here; use a service account token');
  if (user['auth-provider'] !== undefined)
    refuse('its user has an auth-provider; use a service account token');
  if (stringAt(user, 'username') !== '' || stringAt(user, 'password') !== '')
    refuse('its user has a user name and password, which API servers no longer take');
  if (Object.keys(user).some((field) => field === 'as' || field.startsWith('as-')))
    refuse('its user impersonates another one; give that one credentials of its own');
  noFiles(user, ['client-certificate', 'client-key', 'tokenFile']);
  const token = stringAt(user, 'token').trim();
  if (token !== '' && !TOKEN.test(token)) refuse('token has characters that no token has');
  const certData = pem(user, 'client-certificate-data');
  const keyData = pem(user, 'client-key-data');
  checkKeyPair(certData, keyData);
  if (token === '' && certData === undefined) refuse('its user has neither token nor client certificate');
  return {
    ...(token === '' ? {} : { token }),
    ...(certData === undefined || keyData === undefined ? {} : { certData, keyData }),
  };
};

/** Base64 of PEM, as it is in the file. */
const pem = (holder: JsonObject, field: string): string | undefined => {
  const data = stringAt(holder, field).replaceAll(/\s/g, '');
  if (data === '') return undefined;
  if (!BASE64.test(data)) refuse(`${field} is not base64`);
  if (!Buffer.from(data, 'base64').includes('-----BEGIN ')) refuse(`${field} is not PEM in base64`);
  return data;
};

const certificate = (data: string, field: string): X509Certificate => {
  try {
    return new X509Certificate(Buffer.from(data, 'base64'));
  } catch {
    return refuse(`${field} is not a certificate`);
  }
};

const checkKeyPair = (certData: string | undefined, keyData: string | undefined): void => {
  if ((certData === undefined) !== (keyData === undefined))
    refuse('client-certificate-data and client-key-data belong together; one is missing');
  if (certData === undefined || keyData === undefined) return;
  const cert = certificate(certData, 'client-certificate-data');
  const key = (() => {
    try {
      return createPrivateKey(Buffer.from(keyData, 'base64'));
    } catch {
      return refuse('client-key-data is not a private key without a passphrase');
    }
  })();
  if (!cert.checkPrivateKey(key)) refuse('client-key-data does not belong to client-certificate-data');
};
