import { defined } from '../../domain/json-tools.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { EffectOutcome } from '../../domain/workflow.ts';
import { createSlices } from '../fairness/slicer.ts';
import { type Actor, type Item, isSpent, newActor, underWay } from './actor.ts';
import { cause, createDecisions } from './decisions.ts';
import type { Slot } from './lanes.ts';
import { createPlanner } from './planner.ts';
import { createRounds } from './rounds.ts';
import { isIndexError, type Revisions } from './run-index.ts';
import { Stopped } from './run-log.ts';
import { isOver, pendingOf, type Run } from './run.ts';
import type { RunsOptions } from './runs-options.ts';
import { contextOf } from './work.ts';

/**
 * Runs that wait for their turn, in order of arrival but for one rule: when there is more to do than the thread can do,
 * runs whose next step somebody waits for go before those that are only to look at what a hub shows. The newest
 * observation takes the place of an older one (see `Item`), so that looking later is looking less often; a step that
 * comes later only makes an order slower. Of each `SHARE` turns one goes to those who wait longer, so that nobody waits
 * for ever.
 */
type ReadyRuns = {
  /** To be called again when more comes for one that waits. */
  add(actor: Actor): void;
  next(): Actor | undefined;
  readonly size: number;
};

const SHARE = 4;

export const createReadyRuns = (): ReadyRuns => {
  const soon = new Set<Actor>();
  const later = new Set<Actor>();
  let passed = 0;

  return {
    add: (actor) => {
      if (soon.has(actor)) return;
      if (actor.mailbox.every(canWait)) {
        later.add(actor);
        return;
      }
      later.delete(actor);
      soon.add(actor);
    },
    next: () => {
      const isTheirs = later.size > 0 && (soon.size === 0 || passed >= SHARE - 1);
      passed = isTheirs || later.size === 0 ? 0 : passed + 1;
      const from = isTheirs ? later : soon;
      const [actor] = from;
      if (actor !== undefined) from.delete(actor);
      return actor;
    },
    get size() {
      return soon.size + later.size;
    },
  };
};

/** What a hub shows by itself, or showed when it was read. */
const canWait = (item: Item): boolean =>
  item.kind === 'observation' ||
  ((item.kind === 'effect-result' || item.kind === 'look') && item.read !== undefined);

export type Runs = {
  post(key: string, item: Item): void;
  /** False: no such run is known, or nothing is taken in any more. */
  observe(key: string, observation: JsonObject): boolean;
  /** Makes all timed reads of a run at once. False: none is open under this key, or nothing is taken in any more. */
  lookNow(key: string): boolean;
  /** Looks at a parked run again; false when there is no such run. */
  unpark(key: string): boolean;
  /** Why this run is parked; undefined: it is not. */
  parkedFor(key: string): string | undefined;
  /** True while a run holds anything in memory. */
  isActive(key: string): boolean;
  /** Items that wait for their run's turn. */
  queued(): number;
  /** Runs that hold anything in memory. */
  active(): number;
  /** A lane works again: what rests after failures in it is tried at once. */
  wakeLane(lane: string, howMany: 'all' | 'one'): void;
  /** Stops a run whose history cannot be folded, or whose state cannot be kept. */
  poison(key: string, error: unknown): void;
  /** Nothing is started any more; what is under way is still recorded. */
  drain(): void;
  /** True when nothing is under way. */
  idle(): boolean;
  /** The index is about to be closed: whatever still ends is not recorded. */
  close(): void;
  isClosing(): boolean;
};

export const createRuns = (options: RunsOptions): Runs => {
  const { index, memory, log, work, clock, steady, logger, hooks, failpoint, settings } = options;
  const { decide, settle, observe, carryOut, recordStart } = createDecisions(options);
  const actors = new Map<string, Actor>();
  const ready = createReadyRuns();
  /** What a run does until it first waits for something is work that holds the thread. */
  const slice = createSlices(clock);
  let resting = false;
  let driving = 0;
  let queued = 0;
  let draining = false;
  let closed = false;
  const parked = new Map(index.parked().map(({ run, error }) => [run, error]));
  const rounds = createRounds({ ...options, post: (key, item) => post(key, item) });
  const planner = createPlanner({
    ...options,
    rounds,
    post: (key, item) => post(key, item),
    isDraining: () => draining,
  });

  const actorOf = (key: string): Actor => {
    const known = actors.get(key);
    if (known !== undefined) return known;
    const actor = newActor(key);
    actors.set(key, actor);
    return actor;
  };

  const post = (key: string, item: Item): void => {
    if (closed) return;
    const actor = actorOf(key);
    actor.mailbox.push(item);
    queued += 1;
    if (!actor.driving) ready.add(actor);
    pump();
  };

  const pump = (): void => {
    if (resting) return;
    while (driving < settings.concurrency) {
      const actor = ready.next();
      if (actor === undefined) return;
      const rest = slice(() => start(actor));
      if (rest === undefined) continue;
      resting = true;
      void rest.then(() => {
        resting = false;
        pump();
      });
      return;
    }
  };

  const start = (actor: Actor): void => {
    actor.driving = true;
    driving += 1;
    void drive(actor).then(() => {
      driving -= 1;
      actor.driving = false;
      if (actor.mailbox.length > 0) ready.add(actor);
      else if (isSpent(actor)) actors.delete(actor.key);
      pump();
    });
  };

  /** Never rejects. */
  const drive = async (actor: Actor): Promise<void> => {
    let item: Item | undefined;
    let run: Run | 'closed' | undefined;
    try {
      if (parked.has(actor.key)) return keepParked(actor, undefined);
      run = memory.get(actor.key);
      for (;;) {
        for (item = take(actor); item !== undefined; item = take(actor)) {
          if (run === 'closed') ignore(actor, item);
          else await handle(actor, run, item);
        }
        if (run === 'closed') return;
        if (run.unsettled && !draining && !isOver(run)) {
          await settle(actor, run);
          continue;
        }
        const pending = pendingOf(run);
        const command = planner.nextCommand(actor, run, pending);
        if (command === undefined) return planner.plan(actor, run, pending);
        await carryOut(actor, run, command);
      }
    } catch (error) {
      if (closed || error instanceof Stopped)
        logger.debug({ run: actor.key }, 'stopped before the result was recorded');
      else giveUp(actor, item, error, run);
    }
  };

  const giveUp = (actor: Actor, item: Item | undefined, error: unknown, run?: Run | 'closed'): void => {
    try {
      if (isIndexError(error)) options.broken(error);
      else park(actor, item, error, run === 'closed' ? undefined : run);
    } catch (failure) {
      options.broken(failure);
    }
  };

  const take = (actor: Actor): Item | undefined => {
    const item = actor.mailbox.shift();
    if (item !== undefined) queued -= 1;
    return item;
  };

  /** Takes an item of this kind back that still waits. */
  const withdraw = ({ mailbox }: Actor, kind: Item['kind']): void => {
    const at = mailbox.findIndex((item) => item.kind === kind);
    if (at === -1) return;
    mailbox.splice(at, 1);
    queued -= 1;
  };

  const handle = async (actor: Actor, run: Run, item: Item): Promise<void> => {
    switch (item.kind) {
      case 'subject':
        await log.take(run, item.event);
        actor.offset = steady.offset();
        return item.settled();
      case 'observation':
        await observe(actor, run, item.observation);
        return;
      case 'timer': {
        const { timerId } = item;
        await failpoint('before-timer');
        await decide(actor, run, cause(run, 'timer-due', timerId), (now) => ({
          kind: 'timer-due',
          timerId,
          now,
        }));
        return;
      }
      case 'effect-result': {
        const { effectId, attempt, outcome } = item;
        if (item.read !== undefined) return takeRead(actor, run, effectId, outcome, item.read);
        const why = cause(run, 'effect-result', effectId, attempt);
        const causationId = run.started[effectId]?.id ?? why.causationId;
        await decide(actor, run, { ...why, causationId }, (now) => ({
          kind: 'effect-result',
          effectId,
          outcome,
          now,
        }));
        actor.busy.delete(effectId);
        return;
      }
      case 'start-effect':
        return startEffect(actor, run, item.effectId, item.slot);
      case 'refold':
        if (item.revision === undefined || run.revision < item.revision) await log.refold(run);
        actor.offset = steady.offset();
        return item.settled();
      case 'look':
        if (item.start === true) run.unsettled = true;
        if (item.read !== undefined) actor.read.set(item.read, 'due');
        if (item.now === true) readNow(actor, run);
        return;
    }
  };

  /** One that is under way may have looked too early, so another one follows it; one that waits for its lane has not. */
  const readNow = (actor: Actor, run: Run): void => {
    rounds.release(run);
    for (const { effectId, everyMs } of pendingOf(run).effects)
      if (everyMs !== undefined && actor.busy.get(effectId) !== 'waiting') actor.read.set(effectId, 'due');
  };

  /** What a read shows is an observation; one that failed is only made again, in its time. */
  const takeRead = async (
    actor: Actor,
    run: Run,
    effectId: string,
    outcome: EffectOutcome,
    upon: Revisions,
  ): Promise<void> => {
    const isNews = outcome.outcome !== 'done' || (await observe(actor, run, outcome.result));
    // An answer from before the run was folded further says less than the next one.
    const isIdle = !isNews && run.revision === upon.revision && run.subjectRevision === upon.subjectRevision;
    if (actor.read.get(effectId) !== 'due') actor.read.set(effectId, isIdle ? 'idle' : 'news');
    actor.busy.delete(effectId);
  };

  /** The lane has room: record the attempt first, then perform it. The loser of a race does nothing. */
  const startEffect = async (actor: Actor, run: Run, effectId: string, slot: Slot): Promise<void> => {
    const effect = pendingOf(run).effects.find((each) => each.effectId === effectId);
    const unwanted = effect === undefined || effect.lane !== slot.lane || draining;
    const read = effect?.everyMs === undefined ? undefined : revisionsIn(run);
    if (unwanted || (read === undefined && !(await recordStart(actor, run, effect)))) {
      slot.release('unused');
      actor.busy.delete(effectId);
      return;
    }
    actor.busy.set(effectId, 'running');
    const context = contextOf(run);
    void work.effect(context, effect).then(
      (outcome) => {
        slot.release(outcome);
        const { attempt } = effect;
        post(run.key, { kind: 'effect-result', effectId, attempt, outcome, ...defined({ read }) });
      },
      (error: unknown) => {
        slot.release('unused');
        actor.busy.delete(effectId);
        logger.error(
          {
            err: error,
            run: run.key,
            effect: effectId,
            tenant: run.tenant,
            correlationId: run.correlationId,
          },
          'effect result lost',
        );
      },
    );
  };

  /** An item for a run that has nothing to do any more. */
  const ignore = (actor: Actor, item: Item): void => {
    if (item.kind === 'subject' || item.kind === 'refold') item.settled();
    if (item.kind === 'start-effect') {
      item.slot.release('unused');
      actor.busy.delete(item.effectId);
    }
    if (item.kind === 'effect-result') actor.busy.delete(item.effectId);
  };

  /** A bug or poison stops this run alone: it is shown, and looked at again at the next start or on request. */
  const park = (actor: Actor, item: Item | undefined, error: unknown, run: Run | undefined): void => {
    const message = error instanceof Error ? error.message : String(error);
    logger.error(
      { err: error, run: actor.key, tenant: run?.tenant, correlationId: run?.correlationId },
      'run parked',
    );
    parked.set(actor.key, message);
    keepParked(actor, item);
    hooks.runParked?.(actor.key, message);
  };

  /** A parked run is folded again before it goes on, so that the checkpoint may pass its events. */
  const keepParked = (actor: Actor, item: Item | undefined): void => {
    index.park(actor.key, parked.get(actor.key) ?? '');
    for (let each = item ?? take(actor); each !== undefined; each = take(actor)) ignore(actor, each);
  };

  const unpark = (key: string): boolean => {
    if (!parked.delete(key)) return false;
    post(key, { kind: 'refold', settled: () => index.unpark(key) });
    return true;
  };

  const takesIn = (key: string): boolean =>
    !draining &&
    !closed &&
    memory.revisionsOf(key) !== undefined &&
    !parked.has(key) &&
    !memory.isClosed(key);

  return {
    post,
    lookNow: (key) => {
      if (!takesIn(key)) return false;
      post(key, { kind: 'look', now: true });
      return true;
    },
    observe: (key, observation) => {
      if (!takesIn(key)) return false;
      // Behind what was told meanwhile: in the older one's place it would be taken before the answer of an earlier look.
      withdraw(actorOf(key), 'observation');
      post(key, { kind: 'observation', observation });
      return true;
    },
    unpark,
    parkedFor: (key) => parked.get(key),
    isActive: (key) => actors.has(key),
    queued: () => queued,
    active: () => actors.size,
    wakeLane: planner.wakeLane,
    poison: (key, error) => (parked.has(key) ? undefined : giveUp(actorOf(key), undefined, error)),
    drain: () => {
      draining = true;
      rounds.close();
    },
    close: () => {
      closed = true;
    },
    isClosing: () => closed,
    idle: () => driving === 0 && ready.size === 0 && [...actors.values()].every((actor) => !underWay(actor)),
  };
};

const revisionsIn = ({ revision, subjectRevision }: Run): Revisions => ({ revision, subjectRevision });
