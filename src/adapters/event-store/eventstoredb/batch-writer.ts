import { randomUUID } from 'node:crypto';
import type { Logger } from '../../../app/ports.ts';
import { StoreUnavailable } from '../../../app/log/event-store.ts';
import type { LedgerClient } from './client.ts';
import { isNotLeader, isRefusal, messageOf } from './errors.ts';
import { isDead, timed } from './waiting.ts';
import {
  batchAppendMethod,
  batchMessage,
  correlationIdOf,
  readAnswer,
  StreamsClient,
  type Answer,
  type AppendRequest,
  type BatchAnswer,
  type BatchRequest,
} from './wire.ts';

/**
 * One duplex BatchAppend call that all appends of this store share. The library has one too, but its table of pending
 * appends belongs to the whole module: a drop of one connection rejects the appends of all others, their answers then
 * throw inside a data handler, and a drop while writes are queued raises unhandled rejections, each of them fatal in
 * Node (reproduced in test/integration/event-store/eventstoredb-library.test.ts). So the messages, channel, discovery,
 * TLS and credentials are the library's; the table is ours.
 */
export type BatchWriter = {
  /**
   * Sends one append and waits for its answer. `not-sent` means that nothing of it was stored. `unknown` covers
   * everything between: no answer in time, a broken call, an answer that settles nothing, an aborted signal.
   */
  send(request: AppendRequest, timeoutMs: number, signal?: AbortSignal): Promise<SendOutcome>;
  /** Whether an append would go out on a connection that is open now. */
  isConnected(): boolean;
  /**
   * The credentials are not accepted any more. The server checks them when a call opens, so that the open one would go
   * on: it ends when what is on its way is answered, and the next append opens another one.
   */
  retire(): void;
  close(): Promise<void>;
};

export type SendOutcome = Answer | { readonly kind: 'not-sent'; readonly error: unknown };

export type BatchWriterOptions = {
  readonly connect: () => LedgerClient;
  /** Milliseconds until a connection attempt counts as failed. */
  readonly connectTimeoutMs: number;
  readonly logger?: Logger | undefined;
};

type Call = {
  write(message: BatchRequest): boolean;
  cancel(): void;
  on(event: 'data', listener: (answer: BatchAnswer) => void): Call;
  on(event: 'error', listener: (error: Error) => void): Call;
  on(event: 'end' | 'close', listener: () => void): Call;
};

type Connection = {
  readonly client: LedgerClient;
  readonly call: Call;
  readonly pending: Map<string, (outcome: SendOutcome) => void>;
  /** Of the last answer (`performance.now()`), to tell a slow append from a dead connection; 0: none came. */
  lastAnswerAt: number;
  retiring: boolean;
  over: boolean;
};

export const createBatchWriter = ({ connect, connectTimeoutMs, logger }: BatchWriterOptions): BatchWriter => {
  let current: Promise<Connection> | undefined;
  let established: Connection | undefined;
  /** A client that was sent on to the leader and goes on being used. */
  let leader: LedgerClient | undefined;
  let closed = false;

  /** The next append opens another connection. */
  const forget = (connection: Connection): void => {
    if (established !== connection) return;
    established = undefined;
    current = undefined;
  };

  const abandon = (connection: Connection, error: Error): void => {
    if (connection.over) return;
    connection.over = true;
    forget(connection);
    const { pending } = connection;
    if (!closed && !connection.retiring)
      logger?.warn({ pending: pending.size, reason: messageOf(error) }, 'lost the append connection');
    // A server that refuses the call as such has looked at nothing that was sent on it.
    const kind = isRefusal(error) && connection.lastAnswerAt === 0 ? 'not-sent' : 'unknown';
    for (const settle of pending.values()) settle({ kind, error });
    pending.clear();
    // After not-leader the library reconnects to the leader it was told; a new client would not know it.
    if (!isNotLeader(error) || closed) dispose(connection.client);
    else leader = connection.client;
  };
  const endWhenAnswered = (connection: Connection): void => {
    if (connection.retiring && connection.pending.size === 0)
      abandon(connection, new Error('the credentials are not accepted any more'));
  };

  const open = async (): Promise<Connection> => {
    const client = leader ?? connect();
    leader = undefined;
    try {
      // Until the server has answered this call nothing of any append has been sent.
      const supported = await timed('connecting', client.supports(batchAppendMethod), connectTimeoutMs);
      if (!supported)
        throw new StoreUnavailable('the event store does not support BatchAppend (21.10 or later is needed)');
      const opening = client.openStream(StreamsClient, 'batchAppend', (grpc, metadata, options) =>
        grpc.batchAppend(metadata, options),
      );
      const call = (await timed('opening the append call', opening, connectTimeoutMs)) as Call;
      return listen({
        client,
        call,
        pending: new Map(),
        lastAnswerAt: 0,
        retiring: false,
        over: false,
      });
    } catch (error) {
      dispose(client);
      throw error;
    }
  };
  const opened = (): Promise<Connection> => {
    if (current !== undefined) return current;
    const opening = open();
    current = opening;
    opening.catch(() => {
      if (current === opening) current = undefined;
    });
    return opening;
  };

  const listen = (connection: Connection): Connection => {
    established = connection;
    const { call, pending } = connection;
    call.on('data', (message) => {
      connection.lastAnswerAt = performance.now();
      const id = correlationIdOf(message);
      // Late answers, and answers to nobody: the append was settled as unknown before, or is not ours.
      const settle = pending.get(id);
      pending.delete(id);
      settle?.(readAnswer(message));
      endWhenAnswered(connection);
    });
    call.on('error', (error) => abandon(connection, error));
    const ended = (): void => abandon(connection, new Error('the event store ended the append call'));
    call.on('end', ended).on('close', ended);
    return connection;
  };

  /** Writes the append and waits. The first write happens in the order in which callers asked. */
  const exchange = async (
    connection: Connection,
    request: AppendRequest,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<SendOutcome> => {
    const { call, pending } = connection;
    const id = randomUUID();
    const answered = new Promise<SendOutcome>((resolve) => pending.set(id, resolve));
    call.write(batchMessage(request, id, Date.now()));
    try {
      return await timed(`append to ${request.stream}`, answered, timeoutMs, signal);
    } catch (error) {
      pending.delete(id);
      // One append that is not answered, or had hardly any time left, says nothing of those of others.
      if (isDead(error, connection.lastAnswerAt)) abandon(connection, error as Error);
      endWhenAnswered(connection);
      return { kind: 'unknown', error: error as Error };
    }
  };

  const send = async (
    request: AppendRequest,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<SendOutcome> => {
    if (closed) return { kind: 'not-sent', error: new Error('closed') };
    const started = performance.now();
    let connection: Connection;
    try {
      connection = established ?? (await timed('connecting', opened(), timeoutMs, signal));
    } catch (error) {
      return { kind: 'not-sent', error };
    }
    if (connection.over) return { kind: 'not-sent', error: new Error('the connection was lost') };
    return exchange(connection, request, timeoutMs - (performance.now() - started), signal);
  };

  return {
    send,
    isConnected: () => established !== undefined,
    retire: () => {
      if (established === undefined) return;
      const connection = established;
      connection.retiring = true;
      forget(connection);
      endWhenAnswered(connection);
    },
    close: async () => {
      closed = true;
      const connection = await current?.catch(() => undefined);
      if (connection !== undefined) abandon(connection, new Error('the event store is closing'));
      if (leader !== undefined) dispose(leader);
    },
  };
};

const dispose = (client: LedgerClient): void => void client.dispose().catch(() => {});
