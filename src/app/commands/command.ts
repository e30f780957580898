import { createHmac, createSecretKey } from 'node:crypto';
import canonicalize from 'canonicalize';
import { parseItem } from 'structured-headers';
import type { Decider, DomainEvent, Rejection } from '../../domain/decider.ts';
import type { Appended, ExpectedRevision, Position, ReadForward } from '../log/event-store.ts';
import type { CommandContext } from '../log/metadata.ts';
export type { CommandContext } from '../log/metadata.ts';

/** What the command runner needs to know of an aggregate. */
export type Aggregate<State, Command extends { readonly type: string }, Event extends DomainEvent> = {
  /** Stream category, `[a-z][a-zA-Z0-9]*`; the stream is `<category>-<encoded id>`. */
  readonly category: string;
  readonly decider: Decider<State, Command, Event>;
  /** Bump when `evolve` or the state's shape changes: snapshots of another version are ignored. */
  readonly stateVersion: number;
};

/** What is needed of an aggregate to fold its stream, whatever its commands are. */
export type Fold<State> = Pick<Aggregate<State, never, never>, 'category' | 'stateVersion'> & {
  readonly decider: Pick<Decider<State, never, never>, 'initialState' | 'evolve'>;
};

/** A folded stream. */
export type Loaded<State> = {
  readonly state: State;
  readonly revision: ExpectedRevision;
  /** OSAC's `metadata.version`: appends that changed the document, minus one; -1 for an empty stream. */
  readonly version: number;
  /** Type of the last event; absent: there is none. */
  readonly lastType?: string;
  readonly position?: Position;
};

export type CommandOutcome<State> =
  | {
      readonly outcome: 'accepted';
      readonly loaded: Loaded<State>;
      /** The new events; empty when the command changed nothing. */
      readonly events: readonly DomainEvent[];
      /** True when this command id had been carried out before: `loaded` is the state as of then. */
      readonly replayed: boolean;
    }
  | { readonly outcome: 'rejected'; readonly rejection: Rejection; readonly loaded: Loaded<State> };

/**
 * The outcome of a command that `beforeAppend` did not let be appended now, for reasons of its caller: it is
 * no refusal, and is neither recorded nor counted.
 */
export type Withheld = { readonly outcome: 'withheld' };

/** An append of a command that the store may not have answered yet. */
export type SentAppend = {
  /** As the store returned it, for `AppendOptions.after`. */
  readonly first: Promise<Appended>;
  /** The same, once repeated where its outcome was not known. */
  readonly settled: Promise<Appended>;
};

/** An append that the command's own follows. */
export type AppendAhead = SentAppend & {
  /** Asked when nothing was stored because that append found a conflict: what came of it in the end. */
  readonly outcome: () => Promise<Rejection | undefined>;
};

/** What `beforeAppend` may say; undefined: go on. */
export type Before = Rejection | AppendAhead | Withheld | undefined;

export type ExecuteOptions<State, Event extends DomainEvent, Said extends Before = undefined> = {
  /**
   * Runs after every decision that appends something, with the state that it was taken from, and before the
   * append, which succeeds only at that state's revision. Whatever it makes sure of (a reserved name)
   * therefore holds for this append. A returned rejection refuses the command; a returned append need not be
   * stored yet, and this one is stored after it or not at all; what withholds the command is its outcome.
   * Must not run a command on the same stream: it would wait for itself.
   */
  readonly beforeAppend?: (loaded: Loaded<State>, events: readonly Event[]) => Promise<Said>;
  /** Called with each append as it is given to the store. */
  readonly onSent?: (sent: SentAppend) => void;
  /** True: the stream most likely does not exist, so that reading it first would be wasted. Only a hint. */
  readonly likelyNew?: boolean;
  /** True: a step of a larger command; its rejection is not recorded on its own. */
  readonly step?: boolean;
  /** Milliseconds that the append may wait for others (`AppendOptions`). Default 0. */
  readonly patienceMs?: number;
  /**
   * True: need not wait for the commit of the commands before it on the same stream (see `AppendLines`). For streams that
   * many write at the same time. Default false.
   */
  readonly inLine?: boolean;
};

export type CommandRunner = {
  /**
   * Load, decide, append; on a conflict reload and decide again (at most 5 times).
   * Throws OutcomeUnknown, StoreUnavailable, EventTooLarge, and IdempotencyMismatch when the command id
   * was used before with another request hash.
   */
  execute<S, C extends { readonly type: string }, E extends DomainEvent, B extends Before = undefined>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    command: C,
    context: CommandContext,
    options?: ExecuteOptions<S, E, B>,
  ): Promise<CommandOutcome<S> | NoInfer<Extract<B, Withheld>>>;
  /**
   * Folds a stream: cached state, snapshot and tail. `asOfRevision` folds only up to there, uncached; with `read` every event
   * of it, as read there, and nothing that was folded before.
   */
  load<S>(
    aggregate: Fold<S>,
    id: string,
    options?: { asOfRevision?: number; signal?: AbortSignal; read?: ReadForward },
  ): Promise<Loaded<S>>;
  /**
   * Folds a stream up to where its document last had a version. Undefined: it never had it, an earlier object with the
   * same id had it, or the store no longer has its events.
   */
  loadVersion<S, C extends { readonly type: string }, E extends DomainEvent>(
    aggregate: Aggregate<S, C, E>,
    id: string,
    version: number,
    options?: { signal?: AbortSignal },
  ): Promise<Loaded<S> | undefined>;
  /**
   * The state of a stream without waiting for commands under way on it, so that commands on other streams may ask. With
   * `remembered`, what is in memory is good enough, although another instance may have written since; with `asOf`,
   * when it holds all that the log does up to there.
   */
  peek<S>(
    aggregate: Fold<S>,
    id: string,
    options?: { remembered?: boolean; asOf?: Position | undefined; signal?: AbortSignal | undefined },
  ): Promise<Loaded<S>>;
  /**
   * Where a stream says that this command was carried out on it, also while no index knows of it yet; waits for one
   * that is being carried out. Undefined: it was not.
   */
  find<S>(
    aggregate: Fold<S>,
    id: string,
    commandId: string,
    options?: { signal?: AbortSignal },
  ): Promise<{ readonly revision: number; readonly requestHash: string } | undefined>;
};

export class IdempotencyMismatch extends Error {
  override readonly name = 'IdempotencyMismatch';
  readonly commandId: string;
  constructor(commandId: string) {
    super(`the idempotency key was used before with another request (command ${commandId})`);
    this.commandId = commandId;
  }
}

/** Header `Idempotency-Key`: a structured-field string (RFC 8941), or a bare token as many clients send it. */
export const MAX_IDEMPOTENCY_KEY = 255;

type ParsedKey =
  | { readonly ok: true; readonly key: string | undefined }
  | { readonly ok: false; readonly message: string };

const BARE = /^[A-Za-z0-9!#$%&'*+\-.^_`|~:/=@]+$/;
const HOW = 'send it as a quoted string, for example Idempotency-Key: "order-4711"';

/** `header` is the value as received; undefined and several lines of it (joined by commas) are dealt with. */
export const parseIdempotencyKey = (header: string | undefined): ParsedKey => {
  if (header === undefined) return { ok: true, key: undefined };
  const text = header.trim();
  const key = text.startsWith('"') ? quoted(text) : BARE.test(text) ? text : undefined;
  if (key === undefined) return { ok: false, message: `header Idempotency-Key cannot be read: ${HOW}` };
  if (key.length === 0) return { ok: false, message: `header Idempotency-Key is empty: ${HOW}` };
  if (key.length > MAX_IDEMPOTENCY_KEY)
    return {
      ok: false,
      message: `header Idempotency-Key has ${key.length} characters; at most ${MAX_IDEMPOTENCY_KEY} are allowed`,
    };
  return { ok: true, key };
};

/** Parameters behind the string are allowed by the format and mean nothing here. */
const quoted = (text: string): string | undefined => {
  try {
    const [value] = parseItem(text);
    return typeof value === 'string' ? value : undefined;
  } catch {
    return undefined;
  }
};

/** What makes two requests the same: method, path and body, but no headers. */
type HashedRequest = {
  readonly method: string;
  readonly route: string;
  /** The request as parsed; equal for bodies that differ only in spelling (RFC 8785). */
  readonly body: unknown;
};

/**
 * HMAC-SHA-256 (hex) over the RFC 8785 form of a request: a bare hash of a small body could be guessed from the log,
 * and a body may hold secrets.
 */
export type RequestHash = (request: HashedRequest) => string;

/** `key` is a key of the deployment, the same for all instances: they must recognise each other's requests. */
export const createRequestHash = (key: Uint8Array): RequestHash => {
  // Made once: bytes would be looked at and copied for every request, which costs five times the hash.
  const secret = createSecretKey(key);
  return (request) =>
    createHmac('sha256', secret)
      .update(
        canonicalize({ method: request.method, route: request.route, body: request.body ?? null }) ?? '',
      )
      .digest('hex');
};
