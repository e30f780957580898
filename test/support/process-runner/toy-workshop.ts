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
  /** What a look at the shop shows. */
  colour(shop: string, colour: string): void;
  looks(shop: string): number;
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
  const look = (shop: string): EffectOutcome => {
    looks.set(shop, (looks.get(shop) ?? 0) + 1);
    return { outcome: 'done', result: { colour: colours.get(shop) ?? 'plain' } };
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
    colour: (shop, colour) => void colours.set(shop, colour),
    looks: (shop) => looks.get(shop) ?? 0,
    busiest: (shop) => most.get(shop) ?? 0,
    port: async (operation, args, call) => {
      const shop = args['shop'] as string;
      if (operation === 'look') return look(shop);
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
