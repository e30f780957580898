import {
  decideMark,
  MARK_DURATION_MS,
  MARK_RENEW_MS,
  sayRefusal,
  type Driver,
  type HubMark,
  type MarkRefusal,
} from '../../domain/hubs/mark.ts';
import type { HubProblemFact } from '../../domain/hubs/health-events.ts';
import type { Deployment } from '../deployment/deployment.ts';
import type { Epoch, HubEpochs } from './hub-epochs.ts';
import type { HubRegistry, RegisteredHub } from './hub-registry.ts';
import { HubError, type CallOptions, type StoredMark } from './management-cluster.ts';
import type { Lease, Ownership } from '../deployment/ownership.ts';
import type { Clock, Logger, Timers } from '../ports.ts';
import { aborted, pause } from '../process-runner/pause.ts';

/**
 * Keeps the mark of this deployment on the hubs, and says on which of them this instance may write. Only the owner of the
 * processes writes marks; an instance that stands by reads them, so that it need not watch a dead owner's mark for long
 * once it is the owner itself (docs/hubs.md "One driver per hub").
 */
export type HubMarks = {
  /** Reads and renews marks until the signal is aborted. */
  run(signal: AbortSignal): Promise<void>;
  /** The same ownership; while it lasts hubs are marked, and at its end in order their marks are given back. */
  marking(ownership: Ownership): Ownership;
  /** Throws HubError when this instance must not write to the hub now. Looks at the mark where it is not known. */
  assertDriven(hub: string, signal: AbortSignal): Promise<void>;
  /** Why nothing may be done on the hub: another service drives it, or may do so. Undefined: it may. Cheap. */
  heldBack(hub: string): string | undefined;
  /** Begins a new epoch and writes it to the hubs: whatever was copied of the log is behind from then on. */
  beginEpoch(): Promise<void>;
};

export type HubMarksOptions = {
  readonly registry: Pick<HubRegistry, 'get' | 'hubs' | 'onChange'>;
  readonly epochs: HubEpochs;
  readonly deployment: Pick<Deployment, 'deploymentId' | 'name' | 'formerIds'>;
  /** Id of the data directory, which one process at a time locks. */
  readonly holder: string;
  /** Records on the hub's stream what is wrong, or that nothing is any more. */
  readonly report: (hub: RegisteredHub, problems: readonly HubProblemFact[]) => Promise<void>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
  /** Milliseconds after which a new epoch is begun. Default 600,000. */
  readonly epochMs?: number;
};

/** Milliseconds: so far at most a copy of the log's files can be from falling behind. */
const EPOCH_MS = 600_000;
/** Milliseconds that one call may take, and that giving back all marks may. */
const CALL_MS = 4_000;
const RELEASE_MS = 2_000;
/** Milliseconds before a look that failed, or a store that did not take an epoch, is tried again. */
const AGAIN_MS = 1_000;
/** Times that a mark is read again because somebody else wrote it in between. */
const ROUNDS = 3;

type Verdict = 'unknown' | 'driven' | 'waiting' | MarkRefusal;

type Mark = {
  verdict: Verdict;
  message: string;
  /** Ids that the mark before ours kept away: whoever was replaced stays so, whoever drives next. */
  replaced: readonly string[];
  /** What we wrote last: valid for a mark's duration from when it was sent. */
  held: { readonly version: string; readonly sentAt: number } | undefined;
  /** What somebody else wrote, and since when it stands unchanged. */
  seen: { readonly stored: StoredMark; readonly since: number; readonly renewals: number } | undefined;
  /** A look that is under way. */
  looking: Promise<void> | undefined;
  /** Verdict that the hub's document tells; undefined: not known. */
  told: Verdict | undefined;
};

type Term = { readonly lease: Lease; epoch: Epoch | undefined };

export const createHubMarks = (options: HubMarksOptions): HubMarks => {
  const { registry, epochs, deployment, holder, clock, timers, logger } = options;
  const { epochMs = EPOCH_MS } = options;
  const { deploymentId, name, formerIds } = deployment;
  const driver: Driver = { deploymentId, formerIds, holder };
  const marks = new Map<string, Mark>();
  let term: Term | undefined;
  let begun = Promise.withResolvers<void>();

  const markOf = (hub: string): Mark => {
    const known = marks.get(hub);
    if (known !== undefined) return known;
    const mark: Mark = {
      verdict: 'unknown',
      message: '',
      replaced: [],
      held: undefined,
      seen: undefined,
      looking: undefined,
      told: undefined,
    };
    marks.set(hub, mark);
    return mark;
  };

  const owns = (): boolean =>
    term !== undefined && !term.lease.signal.aborted && term.lease.isHeld?.() !== false;

  /** By this instance's own clock alone: one that was suspended wakes and knows that its mark has run out. */
  const isFresh = ({ held }: Mark, durationMs = MARK_DURATION_MS): boolean =>
    held !== undefined && clock.monotonicMs() - held.sentAt < durationMs;

  const markNow = ({ replaced }: Mark, epoch: Epoch, released: boolean): HubMark => ({
    deploymentId,
    name,
    formerIds: [...new Set([...formerIds, ...replaced])],
    ...epoch,
    holder,
    renewedAt: clock.now(),
    released,
  });

  const callOf = (hub: string, signal: AbortSignal, deadlineMs = CALL_MS): CallOptions => ({
    effectId: `mark/${hub}`,
    deadlineMs,
    signal,
  });

  /** False: somebody else was faster. */
  const write = async (
    hub: RegisteredHub,
    mark: Mark,
    epoch: Epoch,
    over: string | undefined,
    signal: AbortSignal,
  ): Promise<boolean> => {
    const sentAt = clock.monotonicMs();
    const { id } = hub.facts;
    const version = await hub.adapter?.writeMark(markNow(mark, epoch, false), over, callOf(id, signal));
    mark.held = version === undefined ? undefined : { version, sentAt };
    return version !== undefined;
  };

  const noteSeen = (mark: Mark, stored: StoredMark | undefined): void => {
    const { seen } = mark;
    if (stored === undefined) mark.seen = undefined;
    else if (seen?.stored.version !== stored.version) {
      const sameDriver =
        seen?.stored.mark.holder === stored.mark.holder &&
        seen.stored.mark.deploymentId === stored.mark.deploymentId;
      const renewals = sameDriver && owns() ? seen.renewals + 1 : 0;
      mark.seen = { stored, since: clock.monotonicMs(), renewals };
    }
  };

  /** Takes or renews the mark, or finds out why not. Throws HubError and what the store throws. */
  const drive = async (hub: RegisteredHub, mark: Mark, epoch: Epoch, signal: AbortSignal): Promise<void> => {
    const { adapter } = hub;
    const { id } = hub.facts;
    if (adapter === undefined) return;
    if (mark.held !== undefined && mark.verdict === 'driven') {
      if (await write(hub, mark, epoch, mark.held.version, signal)) return;
    }
    for (let round = 0; round < ROUNDS; round += 1) {
      const stored = await adapter.readMark(callOf(id, signal));
      noteSeen(mark, stored);
      const { seen } = mark;
      const decision = decideMark(
        driver,
        seen === undefined
          ? undefined
          : {
              mark: seen.stored.mark,
              known: await isKnown(seen.stored.mark),
              unchangedMs: clock.monotonicMs() - seen.since,
              renewals: seen.renewals,
            },
      );
      if (decision.do === 'wait') {
        mark.held = undefined;
        if (mark.verdict !== 'waiting')
          logger.info({ hub: id }, 'waiting to see whether another service drives the hub');
        return judge(mark, 'waiting', `waiting whether ${sayHolder(seen?.stored.mark)} still drives it`);
      }
      if (decision.do === 'stay-away') {
        mark.held = undefined;
        const message = seen === undefined ? '' : sayRefusal(decision.because, seen.stored.mark);
        if (mark.verdict !== decision.because)
          logger.error(
            { hub: id, why: decision.because, mark: seen?.stored.mark },
            `hub left alone: ${message}`,
          );
        return judge(mark, decision.because, message);
      }
      if (decision.over !== undefined)
        logger[decision.over === 'restored' ? 'info' : 'warn'](
          { hub: id, over: decision.over, mark: seen?.stored.mark },
          'the mark on a hub is taken over',
        );
      if (!owns()) return;
      mark.replaced = stored?.mark.formerIds.filter((id) => id !== deploymentId) ?? [];
      if (await write(hub, mark, epoch, stored?.version, signal)) {
        if (mark.verdict !== 'driven')
          logger.info({ hub: id, ...epoch }, 'hub marked; this service drives it');
        return judge(mark, 'driven', '');
      }
    }
    throw new HubError('conflict', `the mark on hub ${id} changes faster than it can be read`);
  };

  const isKnown = async ({ deploymentId: id, epoch, nonce }: HubMark): Promise<boolean> =>
    id === deploymentId && (await epochs.knows({ epoch, nonce }));

  const judge = (mark: Mark, verdict: Verdict, message: string): void => {
    mark.verdict = verdict;
    mark.message = message;
  };

  const tell = async (hub: RegisteredHub, mark: Mark): Promise<void> => {
    const { verdict, message } = mark;
    if (mark.told === verdict || verdict === 'unknown' || verdict === 'waiting') return;
    if (verdict === 'driven') {
      if (hub.health.driver?.ok === false) await options.report(hub, []);
    } else await options.report(hub, [{ code: 'DrivenElsewhere', message, subject: verdict }]);
    mark.told = verdict;
  };

  /** What could not be recorded is told after the next look. */
  const tellLater = (hub: RegisteredHub, mark: Mark): Promise<void> =>
    tell(hub, mark).catch((error: unknown) =>
      logger.warn({ err: error, hub: hub.facts.id }, 'driver of a hub not recorded; retrying'),
    );

  /** One look at a time; who comes meanwhile waits for it. */
  const look = (hub: RegisteredHub, signal: AbortSignal): Promise<void> => {
    const mark = markOf(hub.facts.id);
    const epoch = owns() ? term?.epoch : undefined;
    mark.looking ??= (
      epoch === undefined
        ? readOnly(hub, mark, signal)
        : drive(hub, mark, epoch, signal).then(() => tellLater(hub, mark))
    ).finally(() => {
      mark.looking = undefined;
    });
    return mark.looking;
  };

  const readOnly = async (hub: RegisteredHub, mark: Mark, signal: AbortSignal): Promise<void> =>
    noteSeen(mark, await hub.adapter?.readMark(callOf(hub.facts.id, signal)));

  /** Follows one hub for ever; never rejects. */
  const follow = async (id: string, signal: AbortSignal): Promise<void> => {
    let failing = false;
    while (!signal.aborted) {
      const hub = registry.get(id);
      if (hub === undefined) return;
      // One that begins during the look is not in it.
      const next = begun.promise;
      try {
        await look(hub, signal);
        failing = false;
      } catch (error) {
        if (signal.aborted) return;
        if (!failing) logger.warn({ err: error, hub: id }, 'hub mark not kept; retrying');
        failing = true;
      }
      const rested = new AbortController();
      const waits = AbortSignal.any([signal, rested.signal]);
      const resting = pause(timers, failing ? AGAIN_MS : MARK_RENEW_MS, waits);
      await Promise.race([resting, next]);
      rested.abort();
    }
  };

  const nextEpoch = async (of: Term): Promise<void> => {
    const epoch = await epochs.begin();
    of.epoch = epoch;
    // Loops that rest write it to their hubs.
    const before = begun;
    begun = Promise.withResolvers();
    before.resolve();
  };

  /** Begins the first epoch of a term, and others from time to time. */
  const keepEpochs = async (of: Term, signal: AbortSignal): Promise<void> => {
    while (!signal.aborted) {
      try {
        await nextEpoch(of);
        logger.info({ ...of.epoch, holder }, 'driving epoch begun');
        await pause(timers, epochMs, signal);
      } catch (error) {
        logger.warn({ err: error }, 'driving epoch not begun; retrying');
        await pause(timers, AGAIN_MS, signal);
      }
    }
  };

  const release = async (epoch: Epoch): Promise<void> => {
    const bound = new AbortController();
    const cancel = timers.after(RELEASE_MS, () => bound.abort());
    const given = [...marks].map(async ([id, mark]) => {
      await mark.looking?.catch(() => undefined);
      const { held } = mark;
      mark.held = undefined;
      mark.verdict = 'unknown';
      const adapter = registry.get(id)?.adapter;
      if (held === undefined || adapter === undefined || bound.signal.aborted) return;
      await adapter.writeMark(markNow(mark, epoch, true), held.version, callOf(id, bound.signal, RELEASE_MS));
    });
    // What is not given back runs out by itself.
    await Promise.race([Promise.allSettled(given), aborted(bound.signal)]);
    cancel();
  };

  const sayLeftAlone = (hub: string, { message, verdict }: Mark): string =>
    `hub ${hub} is left alone: ${message || verdict}`;
  const refuse = (hub: string, mark: Mark): HubError =>
    new HubError('driven-elsewhere', sayLeftAlone(hub, mark));

  const heldBack = (id: string): string | undefined => {
    const mark = marks.get(id);
    return mark === undefined || mark.verdict === 'unknown' || mark.verdict === 'driven'
      ? undefined
      : sayLeftAlone(id, mark);
  };

  return {
    run: async (signal) => {
      const running = new Map<string, { readonly stop: AbortController; readonly ended: Promise<void> }>();
      if (signal.aborted) return;
      const unsubscribe = registry.onChange((id, hub) => {
        const known = running.get(id);
        if (hub === undefined) {
          known?.stop.abort();
          running.delete(id);
          marks.delete(id);
        } else if (known === undefined && hub.adapter !== undefined) {
          const stop = new AbortController();
          const until = AbortSignal.any([signal, stop.signal]);
          running.set(id, { stop, ended: follow(id, until) });
        }
      });
      await aborted(signal);
      unsubscribe();
      await Promise.all([...running.values()].map((each) => each.ended));
    },
    marking: (ownership) => ({
      hold: (signal, whileOwner) =>
        ownership.hold(signal, async (lease) => {
          const mine: Term = { lease, epoch: undefined };
          term = mine;
          const done = new AbortController();
          const keeping = keepEpochs(mine, done.signal);
          try {
            await whileOwner(lease);
          } finally {
            done.abort();
            term = undefined;
            await keeping;
            if (mine.epoch !== undefined) await release(mine.epoch);
          }
        }),
    }),
    assertDriven: async (id, signal) => {
      const hub = registry.get(id);
      const mark = markOf(id);
      // What is under way when the lease ends may be finished: others of this log wait until the mark has run out. An owner
      // whose renewal is overdue looks first: it may have been suspended, and replaced by a restored log.
      if (isFresh(mark, owns() ? MARK_RENEW_MS + 1 : MARK_DURATION_MS)) return;
      if (hub?.adapter === undefined || !owns())
        throw new HubError('unavailable', `hub ${id}: this instance does not own the processes`);
      for (let round = 0; round < ROUNDS && heldBack(id) === undefined; round += 1) {
        // The epoch is begun as soon as the processes are owned.
        if (term?.epoch === undefined) await Promise.race([begun.promise, aborted(signal)]);
        await look(hub, signal).catch(asNotSent);
        if (isFresh(mark)) return;
      }
      throw refuse(id, mark);
    },
    heldBack,
    beginEpoch: async () => {
      if (term === undefined || !owns()) return;
      await nextEpoch(term);
      const { signal } = term.lease;
      const hubs = registry.hubs().filter(({ facts }) => marks.get(facts.id)?.verdict === 'driven');
      await Promise.allSettled(
        hubs.map(async (hub) => {
          // One that is under way may still write the epoch before.
          await marks.get(hub.facts.id)?.looking?.catch(() => undefined);
          await look(hub, signal);
        }),
      );
    },
  };
};

const sayHolder = (mark: HubMark | undefined): string =>
  mark === undefined ? 'another service' : `deployment '${mark.name}' (${mark.holder})`;

/** Nothing but the mark was written, whatever became of that. */
const asNotSent = (error: unknown): never => {
  if (error instanceof HubError && error.kind !== 'unknown-outcome') throw error;
  const why = error instanceof Error ? error.message : String(error);
  throw new HubError('unavailable', `the mark of the hub cannot be kept: ${why}`, { cause: error });
};
