import type { JsonObject } from '../../json.ts';

/** Plain data that TypeScript knows as a readonly type, as JSON. */
export const asJson = (value: object): JsonObject => value as JsonObject;
