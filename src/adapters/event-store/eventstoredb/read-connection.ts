import type { AllStreamResolvedEvent, ResolvedEvent, StreamingRead } from '@eventstore/db-client';
import type { LedgerClient } from './client.ts';
import { betterCause, isTransient, isUnauthenticated } from './errors.ts';
import { createGate } from './gate.ts';
import { pull } from './pull.ts';
import { backoff, isDead, pause } from './waiting.ts';

export type Resolved = ResolvedEvent | AllStreamResolvedEvent;

/** Asked for the rest of a read at each attempt; undefined: nothing is left. */
export type OpenRead = (api: LedgerClient['api']) => StreamingRead<Resolved> | undefined;

export type ReadConnectionOptions = {
  readonly connect: () => LedgerClient;
  /** Milliseconds of silence after which a read counts as failed. */
  readonly deadlineMs: number;
  readonly closing: AbortSignal;
  /** Told when the server does not accept the credentials. */
  readonly unauthenticated: () => void;
};

/** How a read gets in, and for how long it waits. */
export type ReadTurn = {
  /** Milliseconds without progress, from its start: not from its place in the queue. Default: the deadline. */
  readonly patienceMs?: number;
  /** `ahead`: before those who wait. `beside`: without a place, for the few whose answer must not wait for others. */
  readonly turn?: 'ahead' | 'beside';
};

/** Reads at once on one connection. Servers take 100 streams on it, and are fast with far fewer. */
const MAX_READS = 32;
/** First and longest wait between two attempts, in milliseconds. */
const FIRST_WAIT_MS = 20;
const LONGEST_WAIT_MS = 500;

type Connection = { readonly client: LedgerClient; lastAnswerAt: number };

/** The one connection for reads. It is replaced when nothing on it is answered. */
export const createReadConnection = (options: ReadConnectionOptions) => {
  const { deadlineMs, closing } = options;
  const gate = createGate(MAX_READS);
  let current: Connection | undefined;
  const retired = new Set<LedgerClient>();

  /** The next read gets a new connection. */
  const replace = (failed: Connection): void => {
    if (current !== failed) return;
    current = undefined;
    const { client } = failed;
    retired.add(client);
    // Reads that still run on it are silent too, or end within their patience.
    setTimeout(() => {
      retired.delete(client);
      void client.dispose().catch(() => {});
    }, deadlineMs).unref();
  };

  /**
   * Runs a read, and runs it again from where it stopped when the connection breaks, when nothing comes, and when its
   * place was lent while the consumer took its time; what was yielded is never repeated. It gives up after its patience
   * without progress, half of which is for the first connection.
   */
  async function* resilient(
    what: string,
    open: OpenRead,
    signal: AbortSignal | undefined,
    { patienceMs = deadlineMs, turn }: ReadTurn = {},
  ): AsyncGenerator<Resolved, void, undefined> {
    const signals = [signal, closing];
    const entry = { what, patienceMs, patience: 'shared', urgent: turn === 'ahead', signals } as const;
    let place = turn === 'beside' ? undefined : await gate.enter(entry);
    let failures = 0;
    let cause: unknown;
    let progressAt = performance.now();
    const patienceLeft = (): number => progressAt + patienceMs - performance.now();
    try {
      for (;;) {
        for (const one of signals) one?.throwIfAborted();
        if (place?.isLent) {
          place = await gate.enter(entry);
          progressAt = performance.now();
        }
        current ??= { client: options.connect(), lastAnswerAt: 0 };
        const used = current;
        const stream = open(used.client.api);
        if (stream === undefined) return;
        // What has come already is still yielded, and the items end behind it.
        if (place !== undefined) place.onLent = () => void stream.cancel().catch(() => {});
        const answered = (): void => {
          used.lastAnswerAt = performance.now();
          gate.progressed();
        };
        try {
          for await (const item of pull<Resolved>(stream as never, {
            what,
            patienceMs: () => Math.min(patienceMs / 2, patienceLeft()),
            signals,
            cancel: () => stream.cancel(),
          })) {
            answered();
            // While the consumer works on an item, the server waits for it.
            if (place !== undefined) place.restingSince = performance.now();
            yield item;
            if (place !== undefined) place.restingSince = undefined;
            failures = 0;
            cause = undefined;
            progressAt = performance.now();
          }
          if (place?.isLent) continue;
          answered();
          return;
        } catch (error) {
          if (signals.some((one) => one?.aborted)) throw error;
          if (isDead(error, used.lastAnswerAt)) replace(used);
          if (isUnauthenticated(error)) options.unauthenticated();
          if (!isTransient(error)) {
            // An answer, though not the one that was hoped for.
            answered();
            throw error;
          }
          cause = betterCause(cause, error);
          failures += 1;
          const wait = backoff(failures, FIRST_WAIT_MS, LONGEST_WAIT_MS);
          if (wait >= patienceLeft()) throw cause;
          await pause(wait, ...signals);
        }
      }
    } finally {
      place?.leave();
    }
  }

  return {
    resilient,
    close: async (): Promise<void> => {
      await Promise.allSettled(
        [...(current ? [current.client] : []), ...retired].map((one) => one.dispose()),
      );
    },
  };
};
