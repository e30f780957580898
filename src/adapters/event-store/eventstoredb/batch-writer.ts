import { randomUUID } from 'node:crypto';
import type { Logger } from '../../../app/ports.ts';
import { StoreUnavailable } from '../../../app/event-store.ts';
import type { LedgerClient } from './client.ts';
import { isNotLeader, messageOf } from './errors.ts';
import { Silence, timed } from './waiting.ts';
import {
  batchAppendMethod,
  batchMessages,
  bytesOf,
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
 * appends belongs to the whole module: a drop of one connection rejects the appends of all others (B4), their answers
 * then throw inside a data handler, and a drop while writes are queued raises unhandled rejections, each of them fatal
 * in Node (eventstore-client.md §3.3; the last is reproduced in test/integration/event-store/eventstoredb-library.test.ts).
 * So the messages, channel, discovery, TLS and credentials are the library's; the table is ours.
 */
export type BatchWriter = {
  /**
   * Sends one append and waits for its answer. `not-sent` means that no byte of it left this process. `unknown` covers
   * everything between: no answer in time, a broken call, an answer that settles nothing, an aborted signal.
   */
  send(request: AppendRequest, timeoutMs: number, signal?: AbortSignal): Promise<SendOutcome>;
  /** Whether an append would go out on a connection that is open now. */
  isConnected(): boolean;
  close(): Promise<void>;
};

export type SendOutcome = Answer | { readonly kind: 'not-sent'; readonly error: unknown };

export type BatchWriterOptions = {
  readonly connect: () => LedgerClient;
  /** Milliseconds until a connection attempt counts as failed. */
  readonly connectTimeoutMs: number;
  readonly logger?: Logger | undefined;
};

/** More appends or bytes than this waiting for answers at once: further ones are turned away unsent. */
const MAX_PENDING = 4096;
const MAX_PENDING_BYTES = 64 * 1024 * 1024;

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
  readonly pending: Map<string, (answer: Answer) => void>;
  /** Monotonic time of the last answer, to tell a slow append from a dead connection. */
  lastAnswerAt: number;
  over: boolean;
};

export const createBatchWriter = ({ connect, connectTimeoutMs, logger }: BatchWriterOptions): BatchWriter => {
  let current: Promise<Connection> | undefined;
  let connected = false;
  let waiting = 0;
  let waitingBytes = 0;
  /** A client that was sent on to the leader and goes on being used. */
  let leader: LedgerClient | undefined;
  let closed = false;

  const abandon = (connection: Connection, error: Error): void => {
    if (connection.over) return;
    connection.over = true;
    current = undefined;
    connected = false;
    const { pending } = connection;
    if (!closed)
      logger?.warn({ pending: pending.size, reason: messageOf(error) }, 'lost the append connection');
    for (const settle of pending.values()) settle({ kind: 'unknown', error });
    pending.clear();
    // After not-leader the library reconnects to the leader it was told; a new client would not know it.
    if (!isNotLeader(error) || closed) dispose(connection.client);
    else leader = connection.client;
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
      return listen({ client, call, pending: new Map(), lastAnswerAt: performance.now(), over: false });
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
    connected = true;
    const { call, pending } = connection;
    call.on('data', (message) => {
      connection.lastAnswerAt = performance.now();
      const id = correlationIdOf(message);
      // Late answers, and answers to nobody: the append was settled as unknown before, or is not ours.
      const settle = pending.get(id);
      pending.delete(id);
      settle?.(readAnswer(message));
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
  ): Promise<Answer> => {
    const id = randomUUID();
    const sentAt = performance.now();
    const answered = new Promise<Answer>((resolve) => connection.pending.set(id, resolve));
    for (const message of batchMessages(request, id, Date.now())) connection.call.write(message);
    try {
      return await timed(`append to ${request.stream}`, answered, timeoutMs, signal);
    } catch (error) {
      connection.pending.delete(id);
      const silent = connection.lastAnswerAt < sentAt;
      if (error instanceof Silence && silent) abandon(connection, error);
      return { kind: 'unknown', error: error as Error };
    }
  };

  const send = async (
    request: AppendRequest,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<SendOutcome> => {
    if (closed) return { kind: 'not-sent', error: new Error('closed') };
    if (waiting >= MAX_PENDING || waitingBytes >= MAX_PENDING_BYTES)
      return { kind: 'not-sent', error: new Error(`${waiting} appends wait for their answers already`) };
    const bytes = bytesOf(request);
    waiting += 1;
    waitingBytes += bytes;
    try {
      const started = performance.now();
      let connection: Connection;
      try {
        connection = await timed('connecting', opened(), timeoutMs, signal);
      } catch (error) {
        return { kind: 'not-sent', error };
      }
      if (connection.over) return { kind: 'not-sent', error: new Error('the connection was lost') };
      return await exchange(connection, request, timeoutMs - (performance.now() - started), signal);
    } finally {
      waiting -= 1;
      waitingBytes -= bytes;
    }
  };

  return {
    send,
    isConnected: () => connected,
    close: async () => {
      closed = true;
      const connection = await current?.catch(() => undefined);
      if (connection !== undefined) abandon(connection, new Error('the event store is closing'));
      if (leader !== undefined) dispose(leader);
    },
  };
};

const dispose = (client: LedgerClient): void => void client.dispose().catch(() => {});
