import { HubError, type HubErrorKind } from '../../../app/hubs/management-cluster.ts';
import type { JsonObject } from '../../../domain/json.ts';
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

type RefusalKey = 'unavailable' | 'unauthorized' | 'forbidden' | 'throttle' | 'conflict' | 'invalid';
/** Answers of a hub that carries nothing out; of several the first one counts. */
const REFUSALS: {
  readonly [Key in RefusalKey]: readonly [kind: HubErrorKind, message: string, facts?: JsonObject];
} = {
  unavailable: ['unavailable', '503, the hub is down'],
  unauthorized: ['unauthorized', '401, the hub refuses our credential', { status: 401 }],
  forbidden: ['unauthorized', '403, the hub denies us this', { status: 403 }],
  throttle: ['throttled', '429, too many requests'],
  conflict: ['conflict', '409, the object has been modified; read it again'],
  invalid: [
    'invalid',
    '422, a rule of the hub refuses this object',
    { causes: [{ field: 'spec', reason: 'FieldValueInvalid', message: 'simulated' }] },
  ],
};
const REFUSING = Object.keys(REFUSALS) as readonly RefusalKey[];
const OF_WRITES: readonly string[] = ['late', 'lostAnswer', 'conflict', 'invalid'];

const faultOf = ({ given, counts, defaultSeed }: FaultSource, now: number, isWrite: boolean): Fault => {
  const settings = callSettings(given);
  const seed = settings.seed === '' ? defaultSeed : settings.seed;
  const among = (key: RefusalKey | 'slowCalls' | 'late' | 'lostAnswer'): boolean =>
    OF_WRITES.includes(key)
      ? isWrite && isAmong(settings[key], counts.writes, `${seed}/${key}`)
      : isAmong(settings[key], counts.calls, `${seed}/${key}`);
  const refusing = lasts(settings.dead, counts.firstAt, now) ? 'unavailable' : REFUSING.find(among);
  return {
    silent: lasts(settings.silent, counts.firstAt, now),
    refusal: refusing && refusalOf(refusing, settings.retryAfter),
    lateMs: among('late') ? settings.lateBy : 0,
    lostAnswer: among('lostAnswer'),
    delayMs: settings.slow > 0 && among('slowCalls') ? settings.slow : 0,
  };
};

const lasts = (span: Span, since: number, now: number): boolean =>
  span === 'forever' || (span > 0 && now < since + span);

const refusalOf = (refusing: RefusalKey, retryAfterMs: number): HubError => {
  const [kind, message, facts = {}] = REFUSALS[refusing];
  const later = refusing === 'unavailable' || refusing === 'throttle' ? { retryAfterMs } : {};
  return new HubError(kind, `simulated: ${message}`, { facts, ...later });
};
