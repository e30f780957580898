import fc from 'fast-check';

const SURROGATES = 0xd800;
const SURROGATE_COUNT = 0x800;

/** Any code point but surrogates. fast-check's own unit `binary` takes a second of every process to be made. */
const codePoint = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATE_COUNT })
  .map((n) => String.fromCodePoint(n < SURROGATES ? n : n + SURROGATE_COUNT));
const ascii = fc.integer({ min: 0, max: 0x7f }).map((n) => String.fromCodePoint(n));

/** Well-formed text of any characters, control characters among them; half of those are ASCII. */
export const anyText = (bounds: { readonly minLength?: number; readonly maxLength?: number } = {}) =>
  fc.string({ ...bounds, unit: fc.oneof(ascii, codePoint) });
