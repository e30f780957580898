import type { EffectCall, EffectPort } from '../../../src/app/process-runner/types.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { EffectOutcome } from '../../../src/domain/workflow.ts';

/** What one shop does with its next calls. */
export type ShopMood = 'well' | 'dead' | 'silent' | 'loses-answers' | 'refuses';

export type Workshop = {
  readonly port: EffectPort;
  /** Objects by name; one name is one object, as on a hub. */
  readonly objects: Map<string, { readonly effectId: string }>;
  readonly calls: {
    readonly effectId: string;
    readonly attempt: number;
    readonly mode: string;
    readonly did: string;
  }[];
  mood(shop: string, mood: ShopMood): void;
  /** What a look at the shop shows, or at one of its toys. */
  colour(of: string, colour: string): void;
  /** At the shop, or at one of its toys. */
  looks(of: string): number;
  /** Looks from now on are answered once this is settled. */
  answerLooksAfter(moment: Promise<void>): void;
  /** The toys of each comparison so far. */
  readonly compared: (readonly string[])[];
  /** What comparisons come to from now on, besides an answer. */
  comparing(outcome: EffectOutcome | undefined): void;
  /** Most calls that one shop had at once. */
  busiest(shop: string): number;
};

/** The far side: survives its callers, refuses a second object of the same name. */
export const createWorkshop = (options: { readonly workMs?: number } = {}): Workshop => {
  const objects = new Map<string, { effectId: string }>();
  const calls: Workshop['calls'] = [];
  const moods = new Map<string, ShopMood>();
  const now = new Map<string, number>();
  const most = new Map<string, number>();
  const colours = new Map<string, string>();
  const looks = new Map<string, number>();
  const shown = new Map<string, string>();
  const compared: (readonly string[])[] = [];
  let comparing: EffectOutcome | undefined;
  let lookAnswered = Promise.resolve();
  const colourOf = (shop: string, toy: string): string => colours.get(toy) ?? colours.get(shop) ?? 'plain';
  const look = async (shop: string, toy: string): Promise<EffectOutcome> => {
    for (const key of [shop, toy]) looks.set(key, (looks.get(key) ?? 0) + 1);
    const colour = colourOf(shop, toy);
    shown.set(toy, colour);
    await lookAnswered;
    return { outcome: 'done', result: { colour } };
  };
  const compare = (reads: readonly { readonly shop: string; readonly toy: string }[]): EffectOutcome => {
    compared.push(reads.map(({ toy }) => toy));
    const isAsShown = ({ shop, toy }: { shop: string; toy: string }) =>
      shown.get(toy) === colourOf(shop, toy);
    const unchanged = reads.flatMap((read, index) => (isAsShown(read) ? [index] : []));
    return comparing ?? { outcome: 'done', result: { unchanged } };
  };
  const make = async (args: JsonObject, call: EffectCall): Promise<EffectOutcome> => {
    const shop = args['shop'] as string;
    const name = args['name'] as string;
    const mood = moods.get(shop) ?? 'well';
    const did = (what: string): void => {
      calls.push({ effectId: call.effectId, attempt: call.attempt, mode: call.mode, did: what });
    };
    if (mood === 'silent') {
      did('nothing');
      await new Promise<void>((resolve) =>
        call.signal.addEventListener('abort', () => resolve(), { once: true }),
      );
      return { outcome: 'unknown', reason: 'Silent', message: 'no answer' };
    }
    if (mood === 'dead') {
      did('nothing');
      return { outcome: 'failed', reason: 'Unavailable', message: 'the shop is closed' };
    }
    if (mood === 'refuses') return { outcome: 'refused', reason: 'Invalid', message: 'no such toy' };
    await new Promise<void>((resolve) => setTimeout(resolve, options.workMs ?? 0));
    if (call.mode === 'observe' && objects.has(name)) {
      did('observed');
      return { outcome: 'done', result: { name } };
    }
    if (objects.has(name)) did('created-again');
    else {
      objects.set(name, { effectId: call.effectId });
      did('created');
    }
    if (mood === 'loses-answers') return { outcome: 'unknown', reason: 'LostAnswer', message: 'no answer' };
    return { outcome: 'done', result: { name } };
  };
  return {
    objects,
    calls,
    mood: (shop, mood) => void moods.set(shop, mood),
    colour: (of, colour) => void colours.set(of, colour),
    looks: (of) => looks.get(of) ?? 0,
    answerLooksAfter: (moment) => {
      lookAnswered = moment;
    },
    compared,
    comparing: (outcome) => {
      comparing = outcome;
    },
    busiest: (shop) => most.get(shop) ?? 0,
    port: async (operation, args, call) => {
      if (operation === 'compare') return compare(args['reads'] as { shop: string; toy: string }[]);
      const shop = args['shop'] as string;
      if (operation === 'look') return look(shop, args['toy'] as string);
      if (operation !== 'make') throw new TypeError(`no operation ${operation}`);
      now.set(shop, (now.get(shop) ?? 0) + 1);
      most.set(shop, Math.max(most.get(shop) ?? 0, now.get(shop) ?? 0));
      try {
        return await make(args, call);
      } finally {
        now.set(shop, (now.get(shop) ?? 0) - 1);
      }
    },
  };
};
