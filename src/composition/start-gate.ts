import type { EventStore } from '../app/log/event-store.ts';
import { StoreUnavailable } from '../app/log/event-store.ts';
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
  /** Whether this read model has not applied everything yet that was in the log when the service started. */
  isBuilding(view: string): boolean;
  /** The same check of tokens, which lets nobody at what is read from them before that. */
  guard(authenticate: Authenticate): Authenticate;
};

/** Which read models a method needs before it can be answered, by its name. */
const needs = (method: string): readonly View[] => {
  if (HEADS.has(method)) return RESOURCES;
  if (method.startsWith('/audit.v1/')) return AUDIT;
  if (method.startsWith('/osac.')) return method.endsWith('/GetTimeline') ? BOTH : RESOURCES;
  if (/^\/ledger\.v1\/usage\b/.test(method)) return USAGE;
  return /^\/ledger\.v1\/(orders|clusters)\b/.test(method) ? BOTH : NONE;
};
export type View = 'resources' | 'timeline' | 'usage' | 'audit';
const NONE: readonly View[] = [];
const RESOURCES: readonly View[] = ['resources'];
const BOTH: readonly View[] = ['resources', 'timeline'];
/** A bill of half a history would be wrong without a word. */
const USAGE: readonly View[] = ['usage'];
/** Of a history that is not read yet an auditor would be told that nothing happened. Who may look is told by `resources`. */
const AUDIT: readonly View[] = ['resources', 'audit'];
/** These are read from the log itself. */
const HEADS: ReadonlySet<string> = new Set([
  '/audit.v1/checkpoint',
  '/audit.v1/checkpoints',
  '/audit.v1/trust.json',
]);

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
  hasAudit,
}: {
  readonly system: Pick<System, 'readModels'>;
  readonly store: Pick<EventStore, 'lastPosition'>;
  readonly timers: Timers;
  readonly signal: AbortSignal;
  /** Whether this instance has the read model `audit` (role `auditor`); without it nothing waits for that. */
  readonly hasAudit: boolean;
}): StartGate => {
  const built = new Set<string>();

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
    audit: hasAudit ? build('audit') : Promise.resolve(),
  };
  for (const one of Object.values(passed)) one.catch(() => undefined);

  const names = Object.keys(passed).filter((view) => view !== 'audit' || hasAudit);
  const isBuilding = (view: string): boolean => names.includes(view) && !built.has(view);
  const isOpen = (views: readonly View[]): boolean => built.size === names.length || !views.some(isBuilding);
  const wait = async (views: readonly View[]): Promise<void> => {
    const all = Promise.all(views.map((view) => passed[view]));
    await Promise.race([all.catch(() => undefined), pause(timers, WAIT_MS, signal)]);
    if (!isOpen(views))
      throw new ApiError('UNAVAILABLE', startingText(views.filter(isBuilding)), {
        reason: 'STARTING',
        retryAfterSeconds: 2,
      });
  };

  return {
    passed: passed.resources,
    isBuilding,
    guard: (authenticate) => (authorization, method, how) => {
      const views = built.size === names.length ? NONE : needs(method);
      return isOpen(views)
        ? authenticate(authorization, method, how)
        : wait(views).then(() => authenticate(authorization, method, how));
    },
  };
};

const startingText = (views: readonly View[]): string =>
  `the service is starting: what this is read from (${views.join(', ')}) has not applied all that was recorded before; ` +
  'try again, /readyz says how far it is';
