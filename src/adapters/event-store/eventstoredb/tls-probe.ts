import { readFileSync } from 'node:fs';
import { connect } from 'node:tls';
import { isTlsFault } from './errors.ts';

/** Milliseconds for one handshake. */
const PATIENCE_MS = 2000;
const DEFAULT_PORT = 2113;

/**
 * What is wrong with the certificates of a cluster; undefined: nothing, or no host answers. Discovery asks host after
 * host and says only that it found none, so that a wrong certificate authority looks like an outage.
 */
export const tlsFaultOf = async (connectionString: string): Promise<Error | undefined> => {
  const [, discover, hosts = '', query = ''] =
    /^esdb(\+discover)?:\/\/(?:[^@/]+@)?([^/?@]+)\/?(?:\?(.*))?$/.exec(connectionString.trim()) ?? [];
  const endpoints = hosts.split(',');
  const options = new URLSearchParams(query);
  const valueOf = (name: RegExp): string | undefined => [...options].find(([key]) => name.test(key))?.[1];
  // One host alone is connected to at once, and gRPC says itself what is wrong.
  if (valueOf(/^tls$/i) === 'false' || (discover === undefined && endpoints.length === 1)) return undefined;
  const file = valueOf(/^tls[-_]?ca[-_]?file$/i);
  const ca = file === undefined ? undefined : readFileSync(file);
  const answers = await Promise.all(endpoints.map((endpoint) => handshake(endpoint, ca)));
  if (answers.includes('trusted')) return undefined;
  return answers.find((answer): answer is Error => answer instanceof Error && isTlsFault(answer));
};

const handshake = (endpoint: string, ca: Buffer | undefined): Promise<'trusted' | Error> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(`https://${endpoint}`);
    const socket = connect({ host: hostname, port: Number(port) || DEFAULT_PORT, timeout: PATIENCE_MS, ca });
    const end = (answer: 'trusted' | Error): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('secureConnect', () => end('trusted'));
    socket.on('error', end);
    socket.once('timeout', () => end(new Error(`no answer within ${PATIENCE_MS} ms`)));
  });
