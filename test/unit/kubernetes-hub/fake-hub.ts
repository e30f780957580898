import type { Api, ListedPage } from '../../../src/adapters/management-cluster/kubernetes/api.ts';
import { NoAnswer, type ApiAnswer } from '../../../src/adapters/management-cluster/kubernetes/connection.ts';
import { HubError } from '../../../src/app/hubs/management-cluster.ts';
import type { JsonObject } from '../../../src/domain/json.ts';

type Stream = { readonly from: string; push(line: string): void; end(error?: Error): void };

/** An API server as a watch sees it, under the test's control: no sockets, no time of its own. */
export const fakeHub = () => {
  const objects = new Map<string, JsonObject>();
  const streams: Stream[] = [];
  let version = 100;
  let lists = 0;
  /** What the next stream is answered with instead of being opened. */
  const refusals: { code: number; headers?: { [name: string]: string }; body?: string }[] = [];
  let listError: Error | undefined;

  const order = (name: string, uid: string, more: JsonObject = {}): JsonObject => {
    version += 1;
    return {
      kind: 'ClusterOrder',
      metadata: { name, uid, resourceVersion: String(version), managedFields: [{ manager: 'x' }], ...more },
      spec: { templateID: 't' },
    };
  };
  const tell = (type: string, object: JsonObject): void => {
    for (const stream of streams) stream.push(`${JSON.stringify({ type, object })}\n`);
  };

  async function* list(): AsyncGenerator<ListedPage & { first: boolean }> {
    lists += 1;
    if (listError !== undefined) throw listError;
    const items = [...objects.values()];
    yield { first: true, items: items.slice(0, 1), resourceVersion: String(version) };
    if (items.length > 1) yield { first: false, items: items.slice(1), resourceVersion: String(version) };
  }

  const stream: Api['connection']['stream'] = ({ query }, { signal }) => {
    const refused = refusals.shift();
    if (refused !== undefined) {
      const answer: ApiAnswer = {
        status: refused.code,
        headers: refused.headers ?? {},
        body: refused.body ?? JSON.stringify({ kind: 'Status', code: refused.code }),
      };
      return Promise.resolve({ answer, chunks: undefined });
    }
    const waiting: Buffer[] = [];
    let over = false;
    let error: Error | undefined;
    let changed = Promise.withResolvers<void>();
    const wake = (): void => {
      changed.resolve();
      changed = Promise.withResolvers();
    };
    const opened: Stream = {
      from: query?.['resourceVersion'] ?? '',
      push: (line) => {
        waiting.push(Buffer.from(line));
        wake();
      },
      end: (problem) => {
        over = true;
        error = problem;
        forget();
        wake();
      },
    };
    const forget = (): void => {
      if (streams.includes(opened)) streams.splice(streams.indexOf(opened), 1);
    };
    streams.push(opened);
    signal.addEventListener('abort', () => over || opened.end(new NoAnswer(true, 'ABORTED')));
    async function* chunks(): AsyncGenerator<Buffer> {
      try {
        for (;;) {
          const chunk = waiting.shift();
          if (chunk !== undefined) yield chunk;
          else if (error !== undefined) throw error;
          else if (over) return;
          else await changed.promise;
        }
      } finally {
        forget();
      }
    }
    return Promise.resolve({ answer: { status: 200, headers: {}, body: '' }, chunks: chunks() });
  };

  const api = { list, connection: { stream }, redact: (text: string) => text } as unknown as Api;
  return {
    api: () => Promise.resolve(api),
    put: (name: string, uid = `uid-${name}`): void => {
      const type = objects.has(name) ? 'MODIFIED' : 'ADDED';
      const object = order(name, uid);
      objects.set(name, object);
      tell(type, object);
    },
    /** Changes it without telling anybody. */
    putSilently: (name: string, uid = `uid-${name}`): void => void objects.set(name, order(name, uid)),
    remove: (name: string, silently = false): void => {
      const gone = objects.get(name);
      objects.delete(name);
      if (gone !== undefined && !silently) {
        version += 1;
        const metadata = { ...(gone['metadata'] as JsonObject), resourceVersion: String(version) };
        tell('DELETED', { ...gone, metadata });
      }
    },
    bookmark: (): void => tell('BOOKMARK', { metadata: { resourceVersion: String(version) } }),
    /** A line as it is. */
    line: (text: string): void => {
      for (const one of streams) one.push(text);
    },
    errorInStream: (code: number): void => tell('ERROR', { kind: 'Status', code }),
    cut: (error?: Error): void => {
      for (const one of streams.slice()) one.end(error);
    },
    refuseStream: (code: number, headers: { [name: string]: string } = {}): void =>
      void refusals.push({ code, headers }),
    failLists: (error: Error | undefined): void => {
      listError = error;
    },
    /** As after a restore from a backup. */
    goBack: (to: number): void => {
      version = to;
    },
    lists: () => lists,
    streams: () => streams,
    version: () => String(version),
  };
};

export const away = (): Error => new HubError('unavailable', 'no connection');
