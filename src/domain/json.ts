/**
 * JSON as events and documents may hold it: what survives RFC 8785 and a round trip.
 * No `undefined`, no `Date`, no `bigint`: ISO strings and decimal strings instead.
 */
export type JsonPrimitive = string | number | boolean | null;
export type JsonValue = JsonPrimitive | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };
