import type { Holder } from './holder.ts';
import type { JsonObject } from './json.ts';
import type { Call } from './process/declaration.ts';
import type { Backoff } from './process/effects.ts';

/** An object that the service makes for another one and removes with it. */
export type MadeObject = Holder & { readonly name: string; readonly document: JsonObject };

const PORT = 'made-objects';
/** Between two looks whether what has to go first is gone. */
export const GONE_SOON: Backoff = { firstMs: 1_000, maxMs: 15_000 };

/** A refusal passes when somebody makes room or detaches something. */
export const MAKING_BACKOFF: Backoff = { firstMs: 1_000, maxMs: 10 * 60_000 };

/** What of one object the steps of another one ask for (`app/hubs/made-object-effects.ts`). */
export const makeObjects = (owner: Holder, objects: readonly MadeObject[]): Call => ({
  port: PORT,
  lane: PORT,
  operation: 'make',
  args: { owner: { ...owner }, objects: objects.map((each): JsonObject => ({ ...each })) },
});

/** Each group once nothing is left of the one before. */
export const removeObjects = (owner: Holder, groups: readonly (readonly Holder[])[]): Call => ({
  port: PORT,
  lane: PORT,
  operation: 'remove',
  args: {
    owner: { ...owner },
    groups: groups.map((group) => group.map(({ kind, id }): JsonObject => ({ kind, id }))),
  },
});
