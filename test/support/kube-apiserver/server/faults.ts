import { statusBody, type StatusBody } from '../errors.ts';

/** Which requests a fault is for: every part that is given must be equal. */
export type FaultMatch = {
  readonly verb?: string;
  readonly resource?: string;
  /** `''`: only the main resource. */
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly user?: string;
  /** Begin of the path. */
  readonly path?: string;
};

export type Fault =
  /** Answers this instead of doing anything. */
  | {
      readonly kind: 'answer';
      readonly code: number;
      readonly reason?: string;
      readonly message?: string;
      readonly retryAfterSeconds?: number;
      /** A body that is no Status: what a proxy in front of the server might say. */
      readonly text?: string;
    }
  /** Cuts the connection; nothing was done. */
  | { readonly kind: 'cut' }
  /** Does the work, then cuts the connection: the caller cannot know. */
  | { readonly kind: 'lost-answer' }
  /** Does nothing and does not answer until `release`; then it is done as if it had just arrived. */
  | { readonly kind: 'hang' }
  /** Does the work and keeps the answer back until `release`. */
  | { readonly kind: 'held-answer' }
  /** Waits, then does the work. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** Watches: the stream begins (HTTP 200), then carries this ERROR event and ends. */
  | {
      readonly kind: 'stream-error';
      readonly code: number;
      readonly reason?: string;
      readonly message?: string;
    }
  /** Watches: the stream begins, and the connection is cut in the middle of its first line. */
  | { readonly kind: 'torn-line' }
  /** Watches: the stream begins and nothing ever comes. */
  | { readonly kind: 'silent' };

export type FaultSubject = {
  readonly verb: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  readonly user: string;
  readonly path: string;
};

export type FaultHandle = {
  /** Requests that met it. */
  readonly hits: () => number;
  /** Requests that hang on it now. */
  readonly held: () => number;
  /** Lets everything that hangs on it go on, and meets nobody any more. */
  release(): void;
};

export type TakenFault = {
  readonly fault: Fault;
  /** Until the fault is released, or the caller has left. */
  readonly wait: (left: Promise<void>) => Promise<void>;
};

export type Faults = ReturnType<typeof createFaults>;

/** Faults on command: each meets the next `times` requests that match. */
export const createFaults = () => {
  const active = new Set<{ take(subject: FaultSubject): TakenFault | undefined; release(): void }>();

  const next = (match: FaultMatch, fault: Fault, times = 1): FaultHandle => {
    let [hits, held] = [0, 0];
    const released = Promise.withResolvers<void>();
    const entry = {
      take: (subject: FaultSubject): TakenFault | undefined => {
        if (hits >= times || !matches(match, subject)) return undefined;
        hits += 1;
        const wait = async (left: Promise<void>): Promise<void> => {
          held += 1;
          await Promise.race([released.promise, left]);
          held -= 1;
        };
        return { fault, wait };
      },
      release: (): void => {
        active.delete(entry);
        released.resolve();
      },
    };
    active.add(entry);
    return { hits: () => hits, held: () => held, release: entry.release };
  };

  return {
    next,
    /** Every matching request, until `release`. */
    always: (match: FaultMatch, fault: Fault): FaultHandle => next(match, fault, Number.POSITIVE_INFINITY),
    take: (subject: FaultSubject): TakenFault | undefined => {
      for (const entry of active) {
        const taken = entry.take(subject);
        if (taken !== undefined) return taken;
      }
      return undefined;
    },
    /** Ends all faults; what hangs goes on. */
    clear: (): void => {
      for (const entry of active) entry.release();
    },
  };
};

const matches = ({ path, ...match }: FaultMatch, subject: FaultSubject): boolean =>
  (path === undefined || subject.path.startsWith(path)) &&
  (Object.entries(match) as [keyof FaultSubject, string][]).every(
    ([field, value]) => subject[field] === value,
  );

/** The Status that an `answer` or `stream-error` fault carries. */
export const faultStatus = (fault: Extract<Fault, { kind: 'answer' | 'stream-error' }>): StatusBody => {
  const [reason, message] = WORDS[fault.code] ?? ['InternalError', 'Internal error occurred: on command'];
  const after = fault.kind === 'answer' ? fault.retryAfterSeconds : undefined;
  const details = after === undefined ? undefined : { retryAfterSeconds: after };
  return statusBody(fault.code, fault.reason ?? reason, fault.message ?? message, details);
};

const WORDS: { readonly [code: number]: readonly [string, string] } = {
  401: ['Unauthorized', 'Unauthorized'],
  403: ['Forbidden', 'forbidden on command'],
  409: [
    'Conflict',
    'the object has been modified; please apply your changes to the latest version and try again',
  ],
  410: ['Expired', 'too old resource version: 1 (2)'],
  429: ['TooManyRequests', 'the server has received too many requests and has asked us to try again later'],
  500: ['InternalError', 'Internal error occurred: on command'],
  503: ['ServiceUnavailable', 'apiserver is shutting down'],
  504: ['Timeout', 'Timeout: request did not complete within the allotted timeout'],
};
