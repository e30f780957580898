import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Fetch } from './api-client.ts';
import { CliFailure, EXIT } from './exit.ts';
import { fileFailure } from './file-errors.ts';

/** What is shown to a service that asks for a certificate, PEM. */
export type ClientCertificate = { readonly cert: string; readonly key: string };

/** Throws CliFailure where a file cannot be used. */
export const readCertificate = async (certFile?: string, keyFile?: string): Promise<ClientCertificate> => {
  if (certFile === undefined || keyFile === undefined)
    throw new CliFailure(EXIT.usage, '--client-cert and --client-key belong together: name both files');
  const [cert = '', key = ''] = await Promise.all([certFile, keyFile].map(readText));
  assertPair([certFile, cert], [keyFile, key]);
  return { cert, key };
};

/** A `fetch` that shows a certificate: Node's shows none. */
export const fetchWithCertificate = (certificate: ClientCertificate): Fetch => {
  const agent = new Agent({ ...certificate, keepAlive: true });
  return async (url, { method, headers, body, signal }) => {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(url, { agent, method, headers, signal: signal ?? undefined }, resolve);
      asked.once('error', (error) => reject(new TypeError('fetch failed', { cause: error })));
      asked.end(body);
    });
    const { statusCode: status = 0, headersDistinct } = answer;
    const shown = new Headers();
    for (const [name, values = []] of Object.entries(headersDistinct))
      for (const value of values) shown.append(name, value);
    const isEmpty = status === 204 || status === 304;
    const content = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream<Uint8Array>);
    return new Response(content, { status, headers: shown });
  };
};

const readText = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    throw fileFailure(error, `cannot read ${file}`);
  });

type File = readonly [name: string, text: string];

const assertPair = ([certFile, cert]: File, [keyFile, key]: File): void => {
  const certificate = parsed(() => new X509Certificate(cert), `${certFile} holds no certificate (PEM)`);
  const wrong = `${keyFile} is not the key of ${certFile}, or has a passphrase`;
  if (!certificate.checkPrivateKey(parsed(() => createPrivateKey(key), wrong)))
    throw new CliFailure(EXIT.usage, wrong);
};

/** The text of the error may come from within the key. */
const parsed = <T>(parse: () => T, wrong: string): T => {
  try {
    return parse();
  } catch {
    throw new CliFailure(EXIT.usage, wrong);
  }
};
