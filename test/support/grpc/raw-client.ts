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

/** The bytes of a connection that makes one call, by fields that Node's client would not send. `body`: its frames. */
export const rawRequest = (
  path: string,
  fields: readonly (readonly [name: string, value: string | Buffer])[],
  body: Uint8Array = Buffer.alloc(0),
): Buffer => {
  const text = (value: string | Buffer): Buffer => {
    const bytes = Buffer.from(value as string);
    // A length of HPACK: seven bits, the rest behind them.
    const length = bytes.length < 127 ? [bytes.length] : [127, ...variable(bytes.length - 127)];
    return Buffer.concat([Buffer.from(length), bytes]);
  };
  const all = [
    [':method', 'POST'],
    [':scheme', 'http'],
    [':path', path],
    [':authority', 'here'],
    ['content-type', 'application/grpc'],
    ...fields,
  ] as const;
  const block = Buffer.concat(all.flatMap(([name, value]) => [Buffer.from([0]), text(name), text(value)]));
  const frame = (type: number, flags: number, content: Uint8Array): Buffer => {
    const head = Buffer.from([0, content.length >> 8, content.length & 0xff, type, flags, 0, 0, 0, 1]);
    return Buffer.concat([head, content]);
  };
  const [DATA, HEADERS, END_STREAM, END_HEADERS] = [0, 1, 1, 4];
  return Buffer.concat([HTTP2_HELLO, frame(HEADERS, END_HEADERS, block), frame(DATA, END_STREAM, body)]);
};

/** The preface and empty settings. */
export const HTTP2_HELLO = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]),
]);

const variable = (rest: number): number[] =>
  rest < 128 ? [rest] : [(rest & 0x7f) | 0x80, ...variable(rest >> 7)];
