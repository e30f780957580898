import { request, type RequestOptions } from 'node:https';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { rootCertificates } from 'node:tls';

export type HttpsFetchOptions = {
  /** Certificates (PEM) that are trusted beside the usual ones. */
  readonly ca: string;
  /** Headers of every request, asked for each time: a mounted token is renewed. */
  readonly headers?: () => Promise<Readonly<Record<string, string>>>;
};

/** As much of `fetch` as issuer keys need, with certificates of its own. Redirects are never followed. */
export type JsonFetch = (
  url: string,
  init: {
    readonly headers: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
    readonly redirect: 'error';
  },
) => Promise<Response>;

export const createHttpsFetch =
  ({ ca, headers }: HttpsFetchOptions): JsonFetch =>
  async (url, init) => {
    const own = (await headers?.()) ?? {};
    const options: RequestOptions = {
      ca: [...rootCertificates, ca],
      headers: { ...init.headers, ...own },
      signal: init.signal,
      agent: false,
    };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request(url, options, resolve).once('error', reject).end();
    });
    const status = answer.statusCode ?? 0;
    if (status >= 300 && status < 400) {
      answer.destroy();
      throw new Error(`${url} answered with a redirect`);
    }
    return new Response(Readable.toWeb(answer) as ReadableStream<Uint8Array>, { status });
  };
