/** How the peer misbehaves. Plain data, so that the control port can take it as JSON. */

export type Target = 'append' | 'read' | 'subscribe' | 'gossip' | 'features' | 'delete';

export type Refusal =
  | 'busy'
  | 'unknown'
  | 'timeout'
  | 'access-denied'
  | 'unauthenticated'
  | 'unavailable'
  | 'not-leader';

export type Behaviour =
  /** Nothing is stored and nothing is said. */
  | { readonly kind: 'never-answer' }
  /** Does its work at once and answers after `ms`. */
  | { readonly kind: 'late'; readonly ms: number }
  /** Does its work and answers after `ms`: a request that waited in a queue. */
  | { readonly kind: 'late-work'; readonly ms: number }
  /** Appends: stored, never answered. With `cut` the connection goes down instead of staying silent. */
  | { readonly kind: 'lose-answer'; readonly cut?: boolean }
  /** Refused before anything is stored. `unavailable`, `unauthenticated`, `not-leader` end the call with an error. */
  | { readonly kind: 'refuse'; readonly as: Refusal; readonly leader?: { host: string; port: number } }
  /** Ends with an error after `events` messages (reads, subscriptions) or at once (appends: nothing stored). */
  | { readonly kind: 'drop'; readonly events?: number; readonly code?: number }
  /** Ends with OK after `events` messages or at once. */
  | { readonly kind: 'end-ok'; readonly events?: number }
  /** Sends nothing more after `events` messages, and keeps the call open. */
  | { readonly kind: 'stall'; readonly events?: number }
  /** Cuts the TCP connection of the call after `events` messages or at once. */
  | { readonly kind: 'cut'; readonly events?: number }
  /**
   * A node whose log lacks the newest `records` of the log. Reads answer from what it has. A subscription is taken also
   * from a position above its end, is told caught-up, and is then sent all that comes in, as on a real follower.
   */
  | { readonly kind: 'behind'; readonly records: number }
  /** Appends: answers, and sends a second answer with a correlation id that nobody asked with. */
  | { readonly kind: 'stray-answer' }
  /** Appends: stored and answered, but without a position. */
  | { readonly kind: 'no-position' };

export type FaultRule = {
  readonly on: Target;
  readonly do: Behaviour;
  /** How many calls it hits. Default: all until lifted. */
  readonly times?: number;
  /** Only calls about streams whose name begins so (appends, stream reads). */
  readonly stream?: string;
  /** Only appends with an event of this type. */
  readonly event?: string;
};

export const createFaults = () => {
  let rules: { rule: FaultRule; left: number }[] = [];
  let choose: ((on: Target, stream: string) => Behaviour | undefined) | undefined;
  let hits = 0;
  let frozen = false;
  return {
    /** Adds a rule; the returned function lifts it. Earlier rules go first. */
    add: (rule: FaultRule): (() => void) => {
      const entry = { rule, left: rule.times ?? Infinity };
      rules.push(entry);
      return () => {
        rules = rules.filter((other) => other !== entry);
      };
    },
    clear: (): void => {
      rules = [];
      choose = undefined;
    },
    /** Asked for every call that no rule hits: for seeded random faults. */
    chooseWith: (chooser: typeof choose): void => {
      choose = chooser;
    },
    /** How many calls were hit so far. */
    hits: (): number => hits,
    /** While frozen no call of any kind is answered, and running subscriptions send nothing. */
    freeze: (freeze: boolean): void => {
      frozen = freeze;
    },
    isFrozen: (): boolean => frozen,
    /** `types`: of the events of an append. */
    next: (on: Target, stream = '', types: readonly string[] = []): Behaviour | undefined => {
      if (frozen) return { kind: 'never-answer' };
      const fits = ({ stream: prefix = '', event, ...rule }: FaultRule): boolean =>
        rule.on === on && stream.startsWith(prefix) && (event === undefined || types.includes(event));
      const hit = rules.find(({ rule, left }) => left > 0 && fits(rule));
      const behaviour = hit?.rule.do ?? choose?.(on, stream);
      if (hit) hit.left -= 1;
      if (behaviour) hits += 1;
      return behaviour;
    },
  };
};

export type Faults = ReturnType<typeof createFaults>;
