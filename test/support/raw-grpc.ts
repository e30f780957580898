import { connect, constants, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2';

/** What came back on one stream: headers and trailers together, the bytes, and the code of a reset. */
export type RawReply = {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly reset: number;
};

export type RawCall = {
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: Uint8Array;
  /** The sender says that more follows, and sends nothing. */
  readonly open?: boolean;
};

/** Calls that no client library would make, on a connection of its own. */
export const rawGrpc = (address: string) => {
  const session: ClientHttp2Session = connect(`http://${address}`);
  session.on('error', () => undefined);
  const call = ({ path = '/osac.public.v1.Clusters/Get', headers = {}, body, open }: RawCall) =>
    new Promise<RawReply>((resolve) => {
      const all: Record<string, string> = {};
      const parts: Buffer[] = [];
      const keep = (got: object): void => {
        for (const [name, value] of Object.entries(got)) all[name] = String(value);
      };
      const stream = session.request({
        ':method': 'POST',
        ':path': path,
        'content-type': 'application/grpc',
        te: 'trailers',
        ...headers,
      });
      stream
        .on('response', keep)
        .on('trailers', keep)
        .on('data', (part: Buffer) => parts.push(part))
        .on('error', () => undefined)
        .on('close', () =>
          resolve({
            headers: all,
            body: Buffer.concat(parts),
            reset: stream.rstCode ?? constants.NGHTTP2_NO_ERROR,
          }),
        );
      if (body !== undefined) stream.write(body);
      if (open !== true) stream.end();
    });
  return { session, call, close: () => session.destroy() };
};

/** A message behind its head; `length` and `flags` may lie. */
export const framed = (message: Uint8Array, { length = message.byteLength, flags = 0 } = {}): Buffer => {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, message]);
};
