import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError, errorHeaders, invalid, osacErrorBody } from './errors.ts';

/** Milliseconds that a caller who was refused has to read the answer and to stop sending. */
const LINGER_MS = 1_000;

/**
 * What Node's parser refuses before there is a request (no HTTP, too large a header, too slow) is answered by a bare
 * status line by default. Here it gets the error body of OSAC's surfaces, and the connection ends. `headerBytes`: the
 * server's limit, for the text.
 */
export const answerParserErrors = (server: Server, headerBytes: number): void => {
  const open = new WeakMap<Duplex, Set<ServerResponse>>();
  const note = ({ socket }: IncomingMessage, response: ServerResponse): void => {
    const responses = open.get(socket) ?? new Set();
    open.set(socket, responses.add(response));
    response.once('close', () => responses.delete(response));
  };
  server.prependListener('request', note);
  // Without a listener Node answers these itself.
  server.on('checkExpectation', (request, response) => server.emit('request', request, response));
  server.on('clientError', (error: Error & { readonly code?: string }, socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) {
      socket.destroy();
      return;
    }
    // Refused before; what still comes is not read.
    if (!socket.writable) return;
    // In the middle of an answer, another one would look like a part of it.
    if ([...(open.get(socket) ?? [])].some(({ headersSent }) => headersSent)) {
      socket.destroy(error);
      return;
    }
    socket.end(answerText(refusalOf(error.code, headerBytes)));
    const late = setTimeout(() => socket.destroy(), LINGER_MS);
    late.unref();
    socket.once('close', () => clearTimeout(late));
  });
};

const refusalOf = (code: string | undefined, headerBytes: number): ApiError => {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError(
        'HEADERS_TOO_LARGE',
        `the URL and the header fields of a request may have at most ${headerBytes} bytes together`,
      );
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('BODY_TOO_LARGE', 'the chunk extensions of the request body are too large');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError('REQUEST_TIMEOUT', 'the request did not arrive in time; nothing was carried out');
    default:
      return invalid('not an HTTP request: its first line, a header field or the form of its body is wrong');
  }
};

const answerText = (error: ApiError): string => {
  const body = JSON.stringify(osacErrorBody(error));
  const headers = {
    ...errorHeaders(error),
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status] ?? ''}\r\n${lines.join('')}\r\n${body}`;
};

/** How often a field was sent; `rawHeaders` holds names and values in turn. */
const timesGiven = (rawHeaders: readonly string[], name: string): number =>
  rawHeaders.filter(
    (text, index) => index % 2 === 0 && text.length === name.length && text.toLowerCase() === name,
  ).length;

/** Node would take the first: a proxy that checked another one would have checked for nothing. */
const ONCE = { host: 'Host', authorization: 'Authorization' } as const;

/**
 * Refusals of whole requests that Node would answer without a body; undefined: none. What asks for something that this
 * server does not do must not be carried out without it.
 */
export const headerRefusal = (
  { headers, rawHeaders, httpVersion }: Pick<IncomingMessage, 'headers' | 'rawHeaders' | 'httpVersion'>,
  maxFields: number,
): ApiError | undefined => {
  const close = { headers: { connection: 'close' } };
  // Node would drop the surplus without a word, and with it a precondition perhaps.
  if (rawHeaders.length > 2 * maxFields)
    return new ApiError('HEADERS_TOO_LARGE', `a request may have at most ${maxFields} header fields`, close);
  if (headers.host === undefined && httpVersion === '1.1')
    return new ApiError('INVALID_ARGUMENT', "a request must have the header 'Host'", close);
  for (const [name, shown] of Object.entries(ONCE))
    if (timesGiven(rawHeaders, name) > 1)
      return new ApiError('INVALID_ARGUMENT', `header '${shown}' may be given once`, close);
  if (headers.expect !== undefined && headers.expect.toLowerCase() !== '100-continue')
    return new ApiError('EXPECTATION_FAILED', "only '100-continue' can be expected here", close);
  return undefined;
};
