import { Agent, request, type IncomingHttpHeaders } from 'node:http';
import { connect } from 'node:net';

/** Requests as fetch would never send them: odd paths, wrong lengths, bytes that are no text. */
export type RawReply = {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
};

export const rawClient = (url: string, connections = 16) => {
  const { hostname, port } = new URL(url);
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  return {
    send: (
      method: string,
      path: string,
      options: { headers?: Record<string, string>; body?: string | Uint8Array | Iterable<Uint8Array> } = {},
    ): Promise<RawReply> =>
      new Promise((resolve, reject) => {
        const { headers = {}, body } = options;
        const call = request({ hostname, port, method, path, agent, headers }, (response) => {
          const parts: Buffer[] = [];
          response.on('data', (part: Buffer) => parts.push(part));
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              headers: response.headers,
              text: Buffer.concat(parts).toString('utf8'),
            }),
          );
          response.on('error', reject);
        });
        call.on('error', reject);
        if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) call.end(body);
        else {
          for (const part of body) call.write(part);
          call.end();
        }
      }),
    close: () => agent.destroy(),
  };
};

/** Writes bytes to the port and returns all that comes back until the other side hangs up. */
export const rawExchange = (url: string, text: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const parts: Buffer[] = [];
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.on('data', (part) => parts.push(part));
    socket.on('close', () => resolve(Buffer.concat(parts).toString('latin1')));
    socket.on('error', reject);
  });
