import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject } from '../json.ts';
import { objectAt, stringAt } from '../json-tools.ts';
import { parseRange, type Range } from '../ranges.ts';

/** The ranges of a network or a subnet: one of each family at most (OSAC). */
export type Family = Range['family'];
export const FAMILIES: readonly Family[] = ['ipv4', 'ipv6'];
export const FAMILY_WORDS: Readonly<Record<Family, string>> = { ipv4: 'IPv4', ipv6: 'IPv6' };
const EXAMPLES: Readonly<Record<Family, string>> = { ipv4: '10.0.0.0/16', ipv6: 'fd00::/48' };
const BITS: Readonly<Record<Family, number>> = { ipv4: 32, ipv6: 128 };
/** IPv4 addresses written as IPv6: nobody routes them. */
const MAPPED = '00000000000000000000ffff';
/** Characters of a caller's text that an answer repeats. */
const MAX_SHOWN = 64;

export const fieldOf = (family: Family): string => `${family}_cidr`;

/** Those that are given, as they are written. */
export const rangeTexts = (spec: JsonObject): readonly { readonly family: Family; readonly text: string }[] =>
  FAMILIES.map((family) => ({ family, text: stringAt(spec, fieldOf(family)) })).filter(
    ({ text }) => text !== '',
  );

export const rangesOf = (spec: JsonObject): readonly Range[] =>
  rangeTexts(spec).flatMap(({ text }) => parseRange(text) ?? []);

/** Without host bits (RFC 4632), IPv6 in its one spelling (RFC 5952); what is no range stays for `rangesRejection`. */
export const withPlainRanges = (spec: JsonObject): JsonObject => {
  const { ipv4_cidr: _ipv4, ipv6_cidr: _ipv6, ...others } = spec;
  const plain = rangeTexts(spec).map(({ family, text }) => [fieldOf(family), parseRange(text)?.text ?? text]);
  return { ...others, ...(Object.fromEntries(plain) as JsonObject) };
};

/** So that the same range, sent again in another spelling, is no change. */
export const plainDocument = (document: JsonObject): JsonObject => ({
  ...document,
  spec: withPlainRanges(objectAt(document, 'spec')),
});

/** What is wrong with one range, where it is written in `field`. */
export const rangeRejection = (text: string, family: Family, field: string): Rejection | undefined => {
  const range = parseRange(text);
  const isPlain =
    range?.family === family && !text.endsWith('/0') && !(family === 'ipv6' && range.from.startsWith(MAPPED));
  return isPlain
    ? undefined
    : invalid(
        'INVALID_CIDR',
        field,
        `field '${field}' must be an ${FAMILY_WORDS[family]} range with a prefix length of 1 to ${BITS[family]},` +
          ` such as ${EXAMPLES[family]} (got '${text.slice(0, MAX_SHOWN)}')`,
      );
};

/** One range at least, and each a range of its family. */
export const rangesRejection = (spec: JsonObject): Rejection | undefined => {
  const texts = rangeTexts(spec);
  if (texts.length === 0)
    return invalid('CIDR_REQUIRED', 'spec', "one of 'spec.ipv4_cidr' and 'spec.ipv6_cidr' is required");
  for (const { family, text } of texts) {
    const wrong = rangeRejection(text, family, `spec.${fieldOf(family)}`);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
};

export const isInside = (inner: Range, outer: Range): boolean =>
  inner.family === outer.family && outer.from <= inner.from && inner.to <= outer.to;
