import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Fault, FaultHandle, FaultMatch } from './server/faults.ts';
import type { KubeApiServer, WatchMatch } from './start.ts';
import type { JsonObject } from './types.ts';

/**
 * Commands to a stand-in in another process: POST /<command> with a JSON body.
 * fault {match, fault, times?} → {id}; fault-hits {id} → {hits, held}; release {id?}; fail-watches {match?, code?};
 * silence-watches {match?}; cut; compact; expire-pages; pause; resume; seed <object>; clock {skewMs}; memory; stop.
 */
export const startControl = async (server: KubeApiServer, stop: () => Promise<void>) => {
  const handles = new Map<string, FaultHandle>();

  const commands: { readonly [name: string]: (body: JsonObject) => unknown } = {
    fault: ({ match, fault, times }) => {
      const handle = server.faults.next(
        (match ?? {}) as FaultMatch,
        fault as Fault,
        typeof times === 'number' ? times : Number.POSITIVE_INFINITY,
      );
      const id = String(handles.size + 1);
      handles.set(id, handle);
      return { id };
    },
    'fault-hits': ({ id }) => {
      const handle = handles.get(id as string);
      return { hits: handle?.hits() ?? 0, held: handle?.held() ?? 0 };
    },
    release: ({ id }) => (id === undefined ? server.faults.clear() : handles.get(id as string)?.release()),
    'fail-watches': ({ match, code }) =>
      server.failWatches((match ?? {}) as WatchMatch, typeof code === 'number' ? code : 410),
    'silence-watches': ({ match }) => server.silenceWatches((match ?? {}) as WatchMatch),
    cut: () => server.cutConnections(),
    compact: () => server.compact(),
    'expire-pages': () => server.expirePages(),
    pause: () => server.pause(),
    resume: () => server.resume(),
    seed: (body) => server.seed(body),
    clock: ({ skewMs }) => server.setClockSkew(Number(skewMs)),
    memory: () => ({ rss: process.memoryUsage().rss, version: server.version() }),
    stop: () => void setImmediate(() => void stop()),
  };

  const http = createServer((request, response) => {
    const answer = (code: number, body: unknown): void => {
      response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body ?? {}));
    };
    const run = async (): Promise<void> => {
      const name = (request.url ?? '/').slice(1);
      const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
      if (command === undefined) answer(404, { error: `no command ${name}` });
      else answer(200, await command(await read(request)));
    };
    run().catch((error: unknown) =>
      answer(400, { error: error instanceof Error ? error.message : 'failed' }),
    );
  });
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    close: (): Promise<void> =>
      new Promise((resolve) => {
        http.close(() => resolve());
        http.closeIdleConnections();
      }),
  };
};

/**
 * What a stand-in's own process does once the server is there: prints the line {url, ca, token, kubeconfig, control} and
 * serves until it is told to stop, by command or by signal.
 *
 * @param first ended before the server is
 */
export const serveAsProcess = async (
  server: KubeApiServer,
  first: () => Promise<void> = () => Promise.resolve(),
): Promise<void> => {
  const stop = async (): Promise<void> => {
    await first();
    await control.close();
    await server.close();
  };
  const control = await startControl(server, stop);
  const { url, ca, adminToken: token } = server;
  const line = { url, ca, token, kubeconfig: server.kubeconfig(), control: control.url };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  process.once('SIGTERM', () => void stop());
  process.once('SIGINT', () => void stop());
};

const read = async (request: IncomingMessage): Promise<JsonObject> => {
  let text = '';
  for await (const chunk of request as AsyncIterable<Buffer>) text += chunk.toString('utf8');
  return text === '' ? {} : (JSON.parse(text) as JsonObject);
};
