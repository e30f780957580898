import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/**
 * A way to the broker on which an answer can be lost after the write: clients that are given its address stay on it,
 * since the broker's own address is replaced in every answer (both are `127.0.0.1` and a port).
 */
export type CuttingProxy = {
  /** `127.0.0.1:<port>`. */
  readonly address: string;
  /** The next answer to a Produce request is not passed on: every connection is cut, and none is let in until `mend`. */
  cutNextAnswer(): void;
  mend(): void;
  /** Answers to Produce requests that were lost so far. */
  lost(): number;
  close(): Promise<void>;
};

const PRODUCE = 0;
const HOST = '127.0.0.1';

export const startCuttingProxy = async (broker: string): Promise<CuttingProxy> => {
  const brokerPort = Number(broker.split(':')[1]);
  const open = new Set<Socket>();
  let armed = false;
  let isCut = false;
  let lost = 0;
  const cut = (): void => {
    for (const socket of open) socket.destroy();
  };
  const server = createServer((client) => {
    if (isCut) return client.destroy();
    const upstream = connect(brokerPort, HOST);
    const produces = new Set<number>();
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      open.add(one);
      one.on('error', () => undefined);
      one.once('close', () => {
        open.delete(one);
        other.destroy();
      });
    }
    const forward = framed((frame) => {
      // Size, api key, version, correlation id.
      if (frame.readInt16BE(4) === PRODUCE) produces.add(frame.readInt32BE(8));
      upstream.write(frame);
    });
    const back = framed((frame) => {
      if (armed && produces.has(frame.readInt32BE(4))) {
        armed = false;
        isCut = true;
        lost += 1;
        return cut();
      }
      client.write(withPort(frame, brokerPort, port));
    });
    client.on('data', forward);
    upstream.on('data', back);
  });
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `${HOST}:${port}`,
    cutNextAnswer: () => {
      armed = true;
    },
    mend: () => {
      isCut = false;
    },
    lost: () => lost,
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

/** Whole messages of the protocol: four bytes of size, then as many bytes. */
const framed = (onFrame: (frame: Buffer) => void): ((part: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0);
  return (part) => {
    rest = Buffer.concat([rest, part]);
    while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
      const length = 4 + rest.readInt32BE(0);
      onFrame(rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  };
};

/** The frame with the broker's address replaced by the proxy's. */
const withPort = (frame: Buffer, from: number, to: number): Buffer => {
  const address = (port: number): Buffer => {
    const bytes = Buffer.alloc(2 + HOST.length + 4);
    bytes.writeInt16BE(HOST.length, 0);
    bytes.write(HOST, 2);
    bytes.writeInt32BE(port, 2 + HOST.length);
    return bytes;
  };
  const [wanted, other] = [address(from), address(to)];
  const copy = Buffer.from(frame);
  for (let at = copy.indexOf(wanted); at >= 0; at = copy.indexOf(wanted, at + other.length))
    other.copy(copy, at);
  return copy;
};
