import { unitInterval } from '../hash.ts';
import type { JsonObject } from '../json.ts';
import { defined } from '../json-tools.ts';
import type { EffectOutcome } from '../workflow.ts';
import type { RunEvent } from './events.ts';

/**
 * Book-keeping of one effect of a run, the same for every workflow: which attempt, what became of it, when
 * to try again and whether to look before. Pure; folded from the run's events.
 */
export type EffectState = {
  /** `<kind>:<instance>`; the same for every attempt. */
  readonly id: string;
  readonly attempt: number;
  /** `started` also stands for a failure that was not recorded because its reason is known. */
  readonly status: 'started' | 'failed' | 'unknown' | 'refused' | 'done' | 'undone';
  readonly startedAt: string;
  /** Id of the event that started this attempt: what the subject records of its success follows from it. */
  readonly startId: string;
  /** What the attempt was started with. */
  readonly facts?: JsonObject;
  /** An attempt before this one may have happened: a failure of this one does not change that. */
  readonly doubt: boolean;
  /** Only after a recorded failure. */
  readonly notBefore?: string;
  /** Reasons of failures that were recorded. */
  readonly reasons: readonly string[];
  readonly stalled: boolean;
};

export type Backoff = { readonly firstMs: number; readonly maxMs: number };
/** 1 s, doubled up to 30 min: what goes on failing rests, and its lane wakes it when the far side works again. */
export const BACKOFF: Backoff = { firstMs: 1_000, maxMs: 30 * 60_000 };
/** Of what fails here, not on a far side: 1 s, doubled up to 60 s. */
export const OWN_BACKOFF: Backoff = { firstMs: 1_000, maxMs: 60_000 };

export const kindOfEffect = (effectId: string): string => effectId.slice(0, effectId.indexOf(':'));
export const instanceOfEffect = (effectId: string): string => effectId.slice(effectId.indexOf(':') + 1);

/** Milliseconds, doubled so many times. */
export const doubled = ({ firstMs, maxMs }: Backoff, times: number): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(times, 30));

/** Milliseconds to wait after attempt n: between half and all of the doubled interval, the same on every machine. */
export const delayAfter = (effectId: string, attempt: number, backoff: Backoff): number =>
  Math.round(doubled(backoff, attempt - 1) * (0.5 + unitInterval(`${effectId}#${attempt}`) / 2));

export const later = (time: string, ms: number): string => new Date(Date.parse(time) + ms).toISOString();

/** Something may have happened, or may still happen, on the far side. */
export const isUnresolved = (effect: EffectState | undefined): effect is EffectState =>
  effect?.status === 'started' ||
  effect?.status === 'unknown' ||
  (effect?.status === 'failed' && effect.doubt);

/** A refusal says nothing of an attempt before it that had no answer: that one is settled before anything else is done. */
export const doubted = (effects: {
  readonly [kind: string]: EffectState;
}): { readonly [kind: string]: EffectState } =>
  Object.fromEntries(
    Object.entries(effects).map(([kind, effect]) => [
      kind,
      effect.status === 'refused' && effect.doubt ? { ...effect, status: 'unknown' } : effect,
    ]),
  );

/** `eventId`: of this event. */
export const evolveEffect = (
  known: EffectState | undefined,
  event: RunEvent,
  eventId: string,
): EffectState | undefined => {
  const { data } = event;
  if (event.type === 'EffectStarted') {
    const { effectId: id, attempt, at, facts } = event.data;
    const same = known?.id === id ? known : undefined;
    return defined({
      id,
      attempt,
      status: 'started',
      startedAt: at,
      startId: eventId,
      facts,
      doubt: isUnresolved(same),
      reasons: same?.reasons ?? [],
      stalled: same?.stalled ?? false,
    });
  }
  if (known === undefined || !('effectId' in data) || data.effectId !== known.id) return known;
  switch (event.type) {
    case 'EffectSucceeded':
      return { ...known, status: 'done' };
    case 'EffectSettled':
      return event.data.found
        ? { ...known, status: 'done' }
        : { ...known, status: 'failed', doubt: false, notBefore: event.data.at };
    case 'EffectRefused':
      return { ...known, status: 'refused' };
    case 'EffectFailed': {
      const { reason, notBefore } = event.data;
      return { ...known, status: 'failed', notBefore, reasons: [...new Set([...known.reasons, reason])] };
    }
    case 'EffectOutcomeUnknown':
      return { ...known, status: 'unknown' };
    case 'EffectStalled':
      return { ...known, stalled: true };
    default:
      return known;
  }
};

export type EffectRules = {
  readonly backoff: Backoff;
  /** Attempts after which people are told; it is tried on. */
  readonly attempts: number;
  /** False: a refusal is a failure like any other, because giving up is no option (undoing). */
  readonly mayBeRefused: boolean;
  /** Default false: a failure of a known reason is not recorded, and looks like an attempt that may have happened. */
  readonly everyFailure?: boolean;
};

/** What to record of an outcome. Nothing when it is late, a duplicate, or a failure of a known reason. */
export const recordOutcome = (
  effect: EffectState | undefined,
  effectId: string,
  outcome: EffectOutcome,
  now: string,
  rules: EffectRules,
): readonly RunEvent[] => {
  if (effect?.id !== effectId || ['done', 'refused', 'undone'].includes(effect.status)) return [];
  const { attempt } = effect;
  if (outcome.outcome === 'done') {
    return [{ type: 'EffectSucceeded', data: { at: now, effectId, attempt, result: outcome.result } }];
  }
  const { reason, message } = outcome;
  if (outcome.outcome === 'refused' && rules.mayBeRefused) {
    return [{ type: 'EffectRefused', data: { at: now, effectId, attempt, reason, message } }];
  }
  const stalled: RunEvent[] =
    attempt >= rules.attempts && !effect.stalled
      ? [{ type: 'EffectStalled', data: { at: now, effectId, attempts: attempt, reason, message } }]
      : [];
  if (outcome.outcome === 'unknown') {
    return effect.status === 'unknown' || effect.doubt
      ? stalled
      : [{ type: 'EffectOutcomeUnknown', data: { at: now, effectId, attempt, reason, message } }, ...stalled];
  }
  const keepsCertainty = rules.everyFailure === true && !effect.doubt;
  if (effect.reasons.includes(reason) && !keepsCertainty) return stalled;
  const asked = outcome.outcome === 'failed' ? (outcome.retryAfterMs ?? 0) : rules.backoff.maxMs;
  const notBefore = later(now, Math.max(asked, delayAfter(effectId, attempt, rules.backoff)));
  return [
    { type: 'EffectFailed', data: { at: now, effectId, attempt, reason, message, notBefore } },
    ...stalled,
  ];
};

/**
 * The next attempt of an effect that is still wanted. Where an earlier one may have happened it is to look first, and
 * to do what is missing after that.
 */
export const nextAttempt = (
  effect: EffectState | undefined,
  effectId: string,
  backoff: Backoff,
): { readonly attempt: number; readonly mode: 'perform' | 'observe'; readonly notBefore?: string } => {
  if (effect?.id !== effectId) return { attempt: 1, mode: 'perform' };
  const { attempt, notBefore, doubt } = effect;
  if (effect.status === 'failed' && notBefore !== undefined) {
    return { attempt: attempt + 1, mode: doubt ? 'observe' : 'perform', notBefore };
  }
  // Where it is not known whether the last attempt happened, a first look may come at once (a crash is over).
  const wait = attempt === 1 && effect.status === 'started' ? 0 : delayAfter(effectId, attempt, backoff);
  return { attempt: attempt + 1, mode: 'observe', notBefore: later(effect.startedAt, wait) };
};
