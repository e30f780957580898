import { ApiError, Unreachable } from '../api-client.ts';
import { CliFailure, EXIT } from '../exit.ts';
import type { OpenSocket, SocketEnd } from '../socket.ts';

export type ConsoleOptions = {
  /** A ticket of its own for each connection: it is of use once. */
  readonly ticket: () => Promise<string>;
  readonly open: (ticket: string) => Promise<OpenSocket>;
  /** Told before it is tried again. */
  readonly retrying: (why: string, ms: number) => void;
  readonly pause: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** Nobody waits for a connection any more. */
  readonly signal: AbortSignal;
};

/** Connections to one console, one after the other. */
export type Console = {
  /** Throws what is not worth another try, and the last failure of several in a row. */
  readonly connect: () => Promise<OpenSocket>;
  /** What the end of a connection means: over, or to be tried again. Throws CliFailure. */
  readonly assess: (end: SocketEnd, lastedMs: number) => 'over' | 'lost';
};

/** As OSAC's client: five more tries, after one second, then after twice as long each time. */
const MOST_RETRIES = 5;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 30_000;
/** A connection that lasted was a good one. */
const GOOD_CONNECTION_MS = 30_000;

export const createConsole = ({ ticket, open, retrying, pause, signal }: ConsoleOptions): Console => {
  let failures = 0;
  let why = '';
  const failed = (reason: string, cause?: unknown): void => {
    failures += 1;
    why = reason;
    if (failures > MOST_RETRIES) throw new CliFailure(EXIT.unavailable, reason, { cause });
  };
  const again = async (): Promise<void> => {
    const ms = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
    retrying(why, ms);
    await pause(ms, signal);
  };
  return {
    connect: async () => {
      for (;;) {
        if (failures > 0) await again();
        signal.throwIfAborted();
        try {
          return await open(await ticket());
        } catch (error) {
          if (!isPassing(error)) throw error;
          failed(error instanceof Error ? error.message : String(error), error);
        }
      }
    },
    assess: (end, lastedMs) => {
      const fatal = fatalOf(end);
      if (fatal !== undefined) throw fatal;
      if (end.code === NORMAL) return 'over';
      if (lastedMs > GOOD_CONNECTION_MS) failures = 0;
      failed(`the connection was lost${detailOf(end)}`);
      return 'lost';
    },
  };
};

const PASSING_STATUSES = [429, 500, 502, 503, 504];

const isPassing = (error: unknown): boolean =>
  error instanceof ApiError ? PASSING_STATUSES.includes(error.status) : error instanceof Unreachable;

const NORMAL = 1000;
/** OSAC's codes. */
const UNAUTHORIZED = 3000;
const ALREADY_ACTIVE = 4409;
/** Going away, no code, cut off, and what a server or a proxy says of trouble of its own. */
const PASSING_CODES = [1001, 1005, 1006, 1011, 1012, 1013, 1014];

const fatalOf = (end: SocketEnd): CliFailure | undefined => {
  const detail = detailOf(end);
  if (end.code === NORMAL || PASSING_CODES.includes(end.code)) return undefined;
  if (end.code === ALREADY_ACTIVE)
    return new CliFailure(EXIT.notFoundOrConflict, `the console is in use by another connection${detail}`);
  if (end.code === UNAUTHORIZED) return new CliFailure(EXIT.failed, `the console was refused${detail}`);
  return new CliFailure(EXIT.failed, `the console was closed with code ${end.code}${detail}`);
};

/** `: the machine was stopped`, where there is a reason. */
export const detailOf = ({ reason }: SocketEnd): string => (reason === '' ? '' : `: ${reason}`);
