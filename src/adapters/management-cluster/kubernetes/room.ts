import { HubError } from '../../../app/hubs/management-cluster.ts';
import { errorData } from '../error-data.ts';
import { createHubClient, type HubClient, type HubClientOptions } from './hub-client.ts';
import type { Answer, Ask, Note } from './protocol.ts';
import type { ObjectWatch } from './watch.ts';

type Occupant = {
  readonly client: HubClient;
  readonly watches: Map<number, ObjectWatch>;
  readonly calls: Map<number, AbortController>;
};

export type RoomOptions = Omit<HubClientOptions, 'note'> & { readonly note: (note: Note) => void };

/** The clients of all hubs of a thread, by number; answers questions, also several at once. Never rejects. */
export const createRoom = (options: RoomOptions) => {
  const hubs = new Map<number, Occupant>();
  let watches = 0;

  const open = async (hub: number, question: Extract<Ask, { do: 'open' }>): Promise<undefined> => {
    const known = hubs.get(hub);
    const occupant = known ?? {
      client: createHubClient({ ...options, note: noteOf(hub, options.note) }),
      watches: new Map<number, ObjectWatch>(),
      calls: new Map<number, AbortController>(),
    };
    if (known === undefined) hubs.set(hub, occupant);
    await occupant.client.open(question.needs, question.kubeconfig);
    return undefined;
  };

  const call = async (occupant: Occupant, question: Extract<Ask, { do: 'call' }>): Promise<unknown> => {
    const abort = new AbortController();
    occupant.calls.set(question.call, abort);
    const { effectId, deadlineMs } = question;
    try {
      const by = { effectId, deadlineMs, signal: abort.signal };
      return await occupant.client.call(question.op, question.args, by);
    } finally {
      occupant.calls.delete(question.call);
    }
  };

  const tell = async (hub: number, question: Ask): Promise<Answer> => {
    if (question.do === 'open') return { ok: true, value: await open(hub, question) };
    const occupant = hubs.get(hub);
    if (occupant === undefined) return { ok: false, notOpen: true };
    const value = (answer?: unknown): Answer => ({ ok: true, value: answer });
    switch (question.do) {
      case 'call':
        return value(await call(occupant, question));
      case 'abort':
        return value(occupant.calls.get(question.call)?.abort());
      case 'watch':
        watches += 1;
        occupant.watches.set(watches, occupant.client.watch(question.kind, question.namespace));
        return value(watches);
      case 'next':
        return value(await occupant.watches.get(question.watch)?.next());
      case 'unwatch':
        occupant.watches.get(question.watch)?.close();
        occupant.watches.delete(question.watch);
        return value();
      case 'close':
        occupant.client.close();
        for (const abort of occupant.calls.values()) abort.abort();
        hubs.delete(hub);
        return value();
    }
  };

  return {
    answer: async (hub: number, question: Ask): Promise<Answer> => {
      try {
        return await tell(hub, question);
      } catch (error) {
        if (error instanceof HubError) return { ok: false, error: errorData(error) };
        return {
          ok: false,
          fault: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
        };
      }
    },
  };
};

/** Errors become texts: what they carry besides must not reach a log. */
const noteOf =
  (hub: number, send: (note: Note) => void) =>
  (level: Note['level'], fields: object, message: string): void => {
    const plain = Object.entries(fields).map(([name, value]: [string, unknown]) => [
      name,
      typeof value === 'number' ? value : value instanceof Error ? value.message : String(value),
    ]);
    send({ hub, level, fields: Object.fromEntries(plain) as Note['fields'], message });
  };
