import { HubError } from '../../../app/management-cluster.ts';
import type { Counts } from './hub-file.ts';
import { callSettings, isAmong, type GivenSettings, type Span } from './settings.ts';

/** Settings from one source (an object's annotation, or the hub) with the calls counted for that source. */
export type FaultSource = {
  readonly given: GivenSettings;
  readonly counts: Counts;
  readonly defaultSeed: string;
};

export type Fault = {
  /** Nothing is carried out and nobody answers. */
  readonly silent: boolean;
  /** Nothing is carried out; the answer says so. */
  readonly refusal: HubError | undefined;
  /** The call arrives only after so long. */
  readonly lateMs: number;
  /** Carried out, answer lost. */
  readonly lostAnswer: boolean;
  /** Carried out, answered after so long. */
  readonly delayMs: number;
};

export const NO_FAULT: Fault = {
  silent: false,
  refusal: undefined,
  lateMs: 0,
  lostAnswer: false,
  delayMs: 0,
};

/** Decides by settings and counts alone, so that a seed gives the same faults again. The first source that objects wins. */
export const decideFault = (sources: readonly FaultSource[], now: number, isWrite: boolean): Fault =>
  sources
    .filter(({ given }) => Object.keys(given).length > 0)
    .map((source) => faultOf(source, now, isWrite))
    .reduceRight(
      (later, first) => ({
        silent: first.silent || later.silent,
        refusal: first.refusal ?? later.refusal,
        lateMs: Math.max(first.lateMs, later.lateMs),
        lostAnswer: first.lostAnswer || later.lostAnswer,
        delayMs: Math.max(first.delayMs, later.delayMs),
      }),
      NO_FAULT,
    );

const faultOf = ({ given, counts, defaultSeed }: FaultSource, now: number, isWrite: boolean): Fault => {
  const settings = callSettings(given);
  const seed = settings.seed === '' ? defaultSeed : settings.seed;
  const among = (key: 'slowCalls' | 'unavailable' | 'unauthorized' | 'forbidden' | 'throttle'): boolean =>
    isAmong(settings[key], counts.calls, `${seed}/${key}`);
  const writeAmong = (key: 'late' | 'lostAnswer' | 'conflict' | 'invalid'): boolean =>
    isWrite && isAmong(settings[key], counts.writes, `${seed}/${key}`);
  return {
    silent: lasts(settings.silent, counts.firstAt, now),
    refusal: refusalOf({
      unavailable: lasts(settings.dead, counts.firstAt, now) || among('unavailable'),
      unauthorized: among('unauthorized'),
      forbidden: among('forbidden'),
      throttle: among('throttle'),
      conflict: writeAmong('conflict'),
      invalid: writeAmong('invalid'),
      retryAfterMs: settings.retryAfter,
    }),
    lateMs: writeAmong('late') ? settings.lateBy : 0,
    lostAnswer: writeAmong('lostAnswer'),
    delayMs: settings.slow > 0 && among('slowCalls') ? settings.slow : 0,
  };
};

const lasts = (span: Span, since: number, now: number): boolean =>
  span === 'forever' || (span > 0 && now < since + span);

const refusalOf = (fault: {
  unavailable: boolean;
  unauthorized: boolean;
  forbidden: boolean;
  throttle: boolean;
  conflict: boolean;
  invalid: boolean;
  retryAfterMs: number;
}): HubError | undefined => {
  const { retryAfterMs } = fault;
  if (fault.unavailable)
    return new HubError('unavailable', 'simulated: 503, the hub is down', { retryAfterMs });
  if (fault.unauthorized)
    return new HubError('unauthorized', 'simulated: 401, the hub refuses our credential', {
      facts: { status: 401 },
    });
  if (fault.forbidden)
    return new HubError('unauthorized', 'simulated: 403, the hub denies us this', { facts: { status: 403 } });
  if (fault.throttle) return new HubError('throttled', 'simulated: 429, too many requests', { retryAfterMs });
  if (fault.conflict) {
    return new HubError('conflict', 'simulated: 409, the object has been modified; read it again');
  }
  if (fault.invalid) {
    return new HubError('invalid', 'simulated: 422, a rule of the hub refuses this object', {
      facts: { causes: [{ field: 'spec', reason: 'FieldValueInvalid', message: 'simulated' }] },
    });
  }
  return undefined;
};
