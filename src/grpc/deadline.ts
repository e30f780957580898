import type { ServerHttp2Stream } from 'node:http2';
import { ApiError, invalid } from '../http/errors.ts';

/** Milliseconds of each unit of `grpc-timeout`. */
const UNITS: Readonly<Record<string, number>> = {
  H: 3_600_000,
  M: 60_000,
  S: 1_000,
  m: 1,
  u: 0.001,
  n: 0.000_001,
};
/** Node's timers count to it; who waits for weeks has no deadline worth keeping. */
const LONGEST_MS = 2 ** 31 - 1;

export type Deadline = {
  /** Aborted when the deadline passes or the caller goes away; made on first use. */
  readonly signal: () => AbortSignal;
  /** Called back once when the deadline passes. */
  readonly onPassed: (listener: () => void) => void;
  /** Throws ApiError: malformed, or passed already. */
  readonly begin: () => void;
};

export const createDeadline = (
  stream: ServerHttp2Stream,
  header: string | string[] | undefined,
): Deadline => {
  let controller: AbortController | undefined;
  let gone = false;
  let passed = (): void => {};
  const abort = (): void => {
    gone = true;
    controller?.abort();
  };
  // Aborting costs as much as the rest of a call; one that was answered has nothing to be ended.
  stream.once('close', () => {
    if (!stream.writableFinished) abort();
  });
  return {
    signal: () => {
      controller ??= new AbortController();
      if (gone) controller.abort();
      return controller.signal;
    },
    onPassed: (listener) => {
      passed = listener;
    },
    begin: () => {
      if (header === undefined) return;
      const ms = millisecondsOf(header);
      if (ms > LONGEST_MS) return;
      const pass = (): void => {
        passed();
        abort();
      };
      if (ms < 1) {
        pass();
        throw new ApiError('CANCELLED', 'the deadline of the call has passed');
      }
      const timer = setTimeout(pass, ms);
      stream.once('close', () => clearTimeout(timer));
    },
  };
};

const millisecondsOf = (header: string | string[]): number => {
  const match = /^(\d{1,8})([HMSmun])$/.exec(String(header));
  if (match === null)
    throw invalid("'grpc-timeout' must be at most eight digits and a unit, for example 10S");
  return Number(match[1]) * (UNITS[match[2] ?? ''] ?? 1);
};
