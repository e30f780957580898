import { isAmong, type Span } from './settings.ts';

/** Calls counted for one source of settings, from `firstAt` on. */
export type Counts = { readonly firstAt: number; readonly calls: number; readonly writes: number };

/** Settings from one source (an object, an operation, the whole system) with the calls counted for that source. */
export type CountedFaults<Settings> = {
  readonly settings: Settings;
  readonly counts: Counts;
  readonly defaultSeed: string;
};

export type Fault<Refusal> = {
  /** Nothing is carried out and nobody answers. */
  readonly silent: boolean;
  /** Nothing is carried out; the answer says so. */
  readonly refusal: Refusal | undefined;
  /** The call arrives only after so long. */
  readonly lateMs: number;
  /** Carried out, answer lost. */
  readonly lostAnswer: boolean;
  /** Carried out, answered after so long. */
  readonly delayMs: number;
};

export const NO_FAULT: Fault<never> = {
  silent: false,
  refusal: undefined,
  lateMs: 0,
  lostAnswer: false,
  delayMs: 0,
};

type FaultSettings<Refusing extends string> = {
  readonly [Key in Refusing | 'slowCalls' | 'late' | 'lostAnswer']: string;
} & {
  readonly dead: Span;
  readonly silent: Span;
  readonly slow: number;
  readonly lateBy: number;
  readonly retryAfter: number;
  readonly seed: string;
};

/** Decides by settings and counts alone, so that a seed gives the same faults again. The first source that objects wins. */
export const faultDecider = <Refusing extends string, Refusal>(options: {
  /** Keys of calls that are refused; of several the first one counts. */
  readonly refusing: readonly Refusing[];
  /** Keys that count writes alone. */
  readonly ofWrites: readonly string[];
  readonly refusalOf: (refusing: Refusing, retryAfterMs: number) => Refusal;
  /** What a dead one answers. */
  readonly whenDead: Refusing;
}) => {
  const faultOf = (
    { settings, counts, defaultSeed }: CountedFaults<FaultSettings<Refusing>>,
    now: number,
    isWrite: boolean,
  ): Fault<Refusal> => {
    const seed = settings.seed === '' ? defaultSeed : settings.seed;
    const among = (key: Refusing | 'slowCalls' | 'late' | 'lostAnswer'): boolean =>
      options.ofWrites.includes(key)
        ? isWrite && isAmong(settings[key], counts.writes, `${seed}/${key}`)
        : isAmong(settings[key], counts.calls, `${seed}/${key}`);
    const refusing = lasts(settings.dead, counts.firstAt, now)
      ? options.whenDead
      : options.refusing.find(among);
    return {
      silent: lasts(settings.silent, counts.firstAt, now),
      refusal: refusing && options.refusalOf(refusing, settings.retryAfter),
      lateMs: among('late') ? settings.lateBy : 0,
      lostAnswer: among('lostAnswer'),
      delayMs: settings.slow > 0 && among('slowCalls') ? settings.slow : 0,
    };
  };

  return (
    sources: readonly CountedFaults<FaultSettings<Refusing>>[],
    now: number,
    isWrite: boolean,
  ): Fault<Refusal> =>
    sources
      .map((source) => faultOf(source, now, isWrite))
      .reduceRight<Fault<Refusal>>(
        (later, first) => ({
          silent: first.silent || later.silent,
          refusal: first.refusal ?? later.refusal,
          lateMs: Math.max(first.lateMs, later.lateMs),
          lostAnswer: first.lostAnswer || later.lostAnswer,
          delayMs: Math.max(first.delayMs, later.delayMs),
        }),
        NO_FAULT,
      );
};

const lasts = (span: Span, since: number, now: number): boolean =>
  span === 'forever' || (span > 0 && now < since + span);
