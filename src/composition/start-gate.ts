import type { EventStore } from '../app/event-store.ts';
import { StoreUnavailable } from '../app/event-store.ts';
import type { Timers } from '../app/ports.ts';
import type { Authenticate } from '../http/authenticate.ts';
import { ApiError } from '../http/errors.ts';
import type { System } from './system.ts';

/** Milliseconds that a request waits for a start that is nearly done, before it is told to come back. */
const WAIT_MS = 5_000;
const ASK_AGAIN_MS = 500;

export type StartGate = {
  /** Resolves when the read models have applied everything that was in the log when the service started. */
  readonly passed: Promise<void>;
  /** The same check of tokens, which lets nobody onto OSAC's surfaces before that. */
  guard(authenticate: Authenticate): Authenticate;
};

/**
 * Read models that are still being built know neither tenants nor catalogue: what is answered from them would refuse
 * valid requests for good. Until they know the log as it stood at the start, such a request waits for a moment and is
 * then told 503. Admin routes stay open, since they show how far the start is.
 */
export const createStartGate = ({
  system,
  store,
  timers,
  signal,
}: {
  readonly system: Pick<System, 'readModels'>;
  readonly store: Pick<EventStore, 'lastPosition'>;
  readonly timers: Timers;
  readonly signal: AbortSignal;
}): StartGate => {
  let open = false;
  const pause = (ms: number): Promise<void> => new Promise((resolve) => void timers.after(ms, resolve));

  const end = async (): Promise<string | undefined> => {
    for (;;) {
      try {
        return await store.lastPosition(signal);
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        signal.throwIfAborted();
        await pause(ASK_AGAIN_MS);
      }
    }
  };
  const pass = async (): Promise<void> => {
    const position = await end();
    while (
      position !== undefined &&
      !(await system.readModels.waitFor('resources', position, { timeoutMs: 60_000, signal }))
    )
      signal.throwIfAborted();
    open = true;
  };
  const passed = pass();
  passed.catch(() => undefined);

  const wait = async (): Promise<void> => {
    await Promise.race([passed.catch(() => undefined), pause(WAIT_MS)]);
    if (!open)
      throw new ApiError('UNAVAILABLE', 'the service is starting: its read models are not built yet', {
        reason: 'STARTING',
        retryAfterSeconds: 2,
      });
  };

  return {
    passed,
    guard: (authenticate) => (authorization, method) =>
      open || !method.startsWith('/osac.')
        ? authenticate(authorization, method)
        : wait().then(() => authenticate(authorization, method)),
  };
};
