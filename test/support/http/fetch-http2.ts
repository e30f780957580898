import { connect, constants, type ClientHttp2Session } from 'node:http2';
import { Readable } from 'node:stream';

/** `fetch` over HTTP/2, as browsers have it on TLS and Node's own has not. `ca`: the authority that is trusted. */
export const http2Fetch = (origin: string, ca: string) => {
  const session: ClientHttp2Session = connect(origin, { ca });
  const call: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    const body = Buffer.from(await request.arrayBuffer());
    const stream = session.request({
      ...Object.fromEntries(request.headers),
      ':method': request.method,
      ':path': new URL(request.url).pathname,
    });
    request.signal.addEventListener('abort', () => stream.close(constants.NGHTTP2_CANCEL), { once: true });
    stream.end(body);
    return new Promise((resolve, reject) => {
      stream.once('error', reject);
      stream.once('response', (fields) => {
        const headers = Object.entries(fields).filter(([name]) => !name.startsWith(':'));
        resolve(
          new Response(Readable.toWeb(stream) as ReadableStream<Uint8Array>, {
            status: fields[':status'] ?? 0,
            headers: headers.map(([name, value]): [string, string] => [name, String(value)]),
          }),
        );
      });
    });
  };
  return { fetch: call, close: () => session.destroy() };
};
