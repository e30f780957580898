import type { ConsoleEnd } from '../../domain/consoles.ts';

/** Bytes both ways, one piece after the other: a machine's console, or the client at the other end of it. */
export type ConsoleLine = {
  /** What comes from there. Ends when the other side leaves; throws when the line breaks. Read once. */
  readonly incoming: AsyncIterable<Uint8Array>;
  /** Resolves once there is room for more: who waits for it holds one piece at a time. Throws when the line broke. */
  send(data: Uint8Array): Promise<void>;
};

/** A console of a machine on its hub. `close`: nothing more is wanted of it; may be called at any time and again. */
export type MachineConsole = ConsoleLine & { close(): void };

/** What a client connects with, whichever protocol carries it. */
export type ConsoleTransport = ConsoleLine & {
  /** The machine's console is open: what the client sends from now on reaches it. */
  connected(): void;
};

/** No session began. `invalid-ticket`: another ticket may help; `active`: somebody else has this console. */
export type ConsoleRefusal = 'invalid-ticket' | 'active' | 'not-running' | 'unreachable' | 'too-many';

export class ConsoleRefused extends Error {
  override readonly name = 'ConsoleRefused';
  readonly refusal: ConsoleRefusal;
  constructor(refusal: ConsoleRefusal, message: string, options?: ErrorOptions) {
    super(message, options);
    this.refusal = refusal;
  }
}

/** What came with the connection, for the metadata of its events. */
export type ConsoleCall = {
  /** `websocket` or `grpc`. */
  readonly via: string;
  readonly requestId: string;
  readonly remoteAddress?: string;
  readonly userAgent?: string;
  /** The connection is gone. */
  readonly signal: AbortSignal;
};

/**
 * Redeems the ticket, opens the machine's console, and carries bytes until either side, the limit, the machine's end or the
 * service's ends it. Resolves with the reason once the session is recorded as closed. Throws ConsoleRefused when none
 * began.
 */
export type ConnectConsole = (
  ticket: string,
  transport: ConsoleTransport,
  call: ConsoleCall,
) => Promise<ConsoleEnd>;
