import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { expect } from 'chai';
import type { CliActions } from '../../../src/cli/connection.ts';
import { createCli, runCli } from '../../../src/cli/ledgerctl.ts';

/** What a command asked of the service. */
export type Asked = {
  readonly verb: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: unknown;
};
/** Default: 200 and an empty object. */
export type Answer = {
  readonly status?: number;
  readonly body?: unknown;
  /** Instead of the body: what is no JSON. */
  readonly text?: string | Uint8Array;
  readonly headers?: Record<string, string>;
  /** Milliseconds until it comes; default 0. */
  readonly afterMs?: number;
};

export const CLUSTERS = '/api/fulfillment/v1/clusters';

export const clusterOf = (id: string, name: string, metadata: object = {}) => ({
  id,
  metadata: { name, tenant: 'acme', version: 4, ...metadata },
  spec: { node_sets: { workers: { host_type: { id: 'fc430' }, size: 3 }, gpu: { size: 1 } } },
  status: { state: 'CLUSTER_STATE_READY' },
});
export type StubCluster = ReturnType<typeof clusterOf>;

/** A list answer with everything on one page. */
export const page = (...items: object[]): Answer => ({
  body: items.length === 0 ? {} : { size: items.length, total: items.length, items },
});

const unused = () => Promise.reject(new Error('not in this test'));
const actions: CliActions = {
  serve: unused,
  demo: unused,
  mintToken: async () => 'token',
  checkStore: unused,
  verifyStore: unused,
  showEvent: unused,
  restoreStore: unused,
  defaultDataDir: 'data',
  eventStore: 'sqlite',
  version: '1',
};

export type CliStub = Awaited<ReturnType<typeof startCliStub>>;

/** The command line in this process, against a service that answers as a spec says and remembers what was asked. */
export const startCliStub = async () => {
  const asked: Asked[] = [];
  let answer: (call: Asked) => Answer | undefined = () => undefined;
  const server = createServer((request, response) => {
    void textOf(request).then((body) => {
      const { pathname: path, searchParams: query } = new URL(request.url ?? '', 'http://x');
      const call = {
        verb: request.method ?? '',
        path,
        query,
        headers: request.headers,
        body: body === '' ? undefined : (JSON.parse(body) as unknown),
      };
      asked.push(call);
      const absent: Answer = { status: 404, body: { code: 5, message: 'absent' } };
      const { status = 200, body: reply = {}, text, headers = {}, afterMs = 0 } = answer(call) ?? absent;
      const send = (): void => {
        response.writeHead(status, { 'x-request-id': 'r-1', ...headers }).end(text ?? JSON.stringify(reply));
      };
      if (afterMs === 0) send();
      else setTimeout(send, afterMs);
    });
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const run = async (argv: readonly string[], stdin = '') => {
    let out = '';
    let err = '';
    const io = {
      out: (text: string) => (out += text),
      err: (text: string) => (err += text),
      stdin: async () => stdin,
    };
    const code = await runCli(await createCli(actions, io), ['--url', url, ...argv], io);
    return { code, out, err };
  };
  return {
    url,
    asked,
    /** What the service answers from now on; undefined is a 404. */
    answers: (how: typeof answer): void => {
      answer = how;
    },
    /** The service holds these clusters; a write answers the first. */
    holds: (...objects: StubCluster[]): void => {
      answer = ({ verb, path }) => {
        if (verb !== 'GET') return { body: objects[0] };
        if (path === CLUSTERS) return page(...objects);
        const found = objects.find(({ id }) => path === `${CLUSTERS}/${id}`);
        return found === undefined
          ? undefined
          : { body: found, headers: { etag: `"cluster-${found.metadata.version}"` } };
      };
    },
    run,
    /** Standard output of a command that must succeed. */
    succeeds: async (argv: readonly string[], stdin?: string): Promise<string> => {
      const { code, out, err } = await run(argv, stdin);
      expect(code, `${argv.join(' ')}: ${err}`).to.equal(0);
      return out;
    },
    filters: (): (string | null)[] => asked.map(({ query }) => query.get('filter')),
    calls: (): string[] => asked.map(({ verb, path }) => `${verb} ${path}`),
    close: (): void => {
      server.closeAllConnections();
      server.close();
    },
  };
};
