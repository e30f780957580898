import type { EventStore } from '../app/event-store.ts';
import { StoreUnavailable } from '../app/event-store.ts';
import type { Timers } from '../app/ports.ts';
import { pause } from '../app/process-runner/pause.ts';
import type { Authenticate } from '../http/authenticate.ts';
import { ApiError } from '../http/errors.ts';
import type { System } from './system.ts';

/** Milliseconds that a request waits for a start that is nearly done, before it is told to come back. */
const WAIT_MS = 5_000;
const ASK_AGAIN_MS = 500;

export type StartGate = {
  /** Resolves when the read model `resources` has applied everything that was in the log when the service started. */
  readonly passed: Promise<void>;
  /** The same check of tokens, which lets nobody at what is read from them before that. */
  guard(authenticate: Authenticate): Authenticate;
};

/** Which read models a method needs before it can be answered, by its name. */
const needs = (method: string): readonly View[] => {
  if (method.startsWith('/osac.')) return method.endsWith('/GetTimeline') ? BOTH : RESOURCES;
  if (/^\/ledger\.v1\/usage\b/.test(method)) return USAGE;
  return /^\/ledger\.v1\/(orders|clusters)\b/.test(method) ? BOTH : NONE;
};
type View = 'resources' | 'timeline' | 'usage';
const NONE: readonly View[] = [];
const RESOURCES: readonly View[] = ['resources'];
const BOTH: readonly View[] = ['resources', 'timeline'];
/** A bill of half a history would be wrong without a word. */
const USAGE: readonly View[] = ['usage'];
const ALL = 3;

/**
 * Read models that are still being built know neither tenants nor catalogue: what is answered from them would refuse
 * valid requests for good. Until they know the log as it stood at the start, such a request waits for a moment and is
 * then told 503. Admin routes of store, log and projections stay open, since they show how far the start is.
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
  const built = new Set<View>();

  const end = async (): Promise<string | undefined> => {
    for (;;) {
      try {
        return await store.lastPosition(signal);
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        signal.throwIfAborted();
        await pause(timers, ASK_AGAIN_MS, signal);
      }
    }
  };
  const atStart = end();
  const build = async (view: View): Promise<void> => {
    const position = await atStart;
    while (
      position !== undefined &&
      !(await system.readModels.waitFor(view, position, { timeoutMs: 60_000, signal }))
    )
      signal.throwIfAborted();
    built.add(view);
  };
  const passed: Readonly<Record<View, Promise<void>>> = {
    resources: build('resources'),
    timeline: build('timeline'),
    usage: build('usage'),
  };
  for (const one of Object.values(passed)) one.catch(() => undefined);

  const isOpen = (views: readonly View[]): boolean =>
    built.size === ALL || views.every((view) => built.has(view));
  const wait = async (views: readonly View[]): Promise<void> => {
    const all = Promise.all(views.map((view) => passed[view]));
    await Promise.race([all.catch(() => undefined), pause(timers, WAIT_MS, signal)]);
    if (!isOpen(views))
      throw new ApiError('UNAVAILABLE', 'the service is starting: its read models are not built yet', {
        reason: 'STARTING',
        retryAfterSeconds: 2,
      });
  };

  return {
    passed: passed.resources,
    guard: (authenticate) => (authorization, method, how) => {
      const views = built.size === ALL ? NONE : needs(method);
      return isOpen(views)
        ? authenticate(authorization, method, how)
        : wait(views).then(() => authenticate(authorization, method, how));
    },
  };
};
