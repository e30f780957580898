import { parseCidr, type Cidr } from '../cidr.ts';
import { invalid, type Rejection } from '../decider.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { isObject, listAt, stringAt, textOf, withoutEmpty } from '../json-tools.ts';

/**
 * Rules of security groups (OSAC): each allows one protocol to or from a range of addresses, of one family or of both. On a
 * hub a rule is about one family.
 */
export const DIRECTIONS = ['ingress', 'egress'] as const;
type Direction = (typeof DIRECTIONS)[number];
const PROTOCOLS: { readonly [name: string]: 'tcp' | 'udp' | 'icmp' | 'all' } = {
  PROTOCOL_TCP: 'tcp',
  PROTOCOL_UDP: 'udp',
  PROTOCOL_ICMP: 'icmp',
  PROTOCOL_ALL: 'all',
};
const WITH_PORTS: readonly string[] = ['PROTOCOL_TCP', 'PROTOCOL_UDP'];
const PORTS = ['port_from', 'port_to'] as const;
const MAX_PORT = 65_535;
/** A hub takes no longer list. */
export const MAX_RULES = 100;
const FAMILIES: { readonly [field: string]: Cidr['family'] } = { ipv4_cidr: 'ipv4', ipv6_cidr: 'ipv6' };
/** Characters of a text that an answer repeats. */
const MAX_SHOWN = 64;

/** IPv4 addresses written as IPv6 ones mean nothing on a network. */
const MAPPED = /^::ffff:[\da-f]+:[\da-f]+\//;

const rangeIn = (rule: JsonObject, field: string): string | undefined => {
  const range = parseCidr(stringAt(rule, field));
  return range?.family === FAMILIES[field] && !MAPPED.test(range?.text ?? '') ? range?.text : undefined;
};

/** With every range in its one spelling; one that cannot be read stays as it is, to be refused. */
export const normalizedRules = (spec: JsonObject): JsonObject =>
  withoutEmpty({ ...spec, ...Object.fromEntries(DIRECTIONS.map((way) => [way, rulesOf(spec, way)])) });

const rulesOf = (spec: JsonObject, way: Direction): JsonValue[] =>
  listAt(spec, way).map((rule) => {
    if (!isObject(rule)) return rule;
    const ranges = Object.keys(FAMILIES).flatMap((field) => {
      const text = rangeIn(rule, field);
      return text === undefined ? [] : [[field, text]];
    });
    return { ...rule, ...Object.fromEntries(ranges) };
  });

/** What is wrong with them, the first of all. */
export const rulesRejection = (spec: JsonObject): Rejection | undefined => {
  for (const way of DIRECTIONS) {
    const rules = listAt(spec, way).map((rule) => (isObject(rule) ? rule : {}));
    const count = rules.flatMap((rule) =>
      Object.keys(FAMILIES).filter((field) => stringAt(rule, field) !== ''),
    );
    if (Math.max(rules.length, count.length) > MAX_RULES)
      return wrong(
        `spec.${way}`,
        `must hold at most ${MAX_RULES} rules, of which one with both address families counts twice ` +
          `(got ${Math.max(rules.length, count.length)})`,
      );
    for (const [i, rule] of rules.entries()) {
      const refused = ruleRejection(rule, `spec.${way}.${i}`);
      if (refused !== undefined) return refused;
    }
  }
  return undefined;
};

const wrong = (field: string, text: string): Rejection =>
  invalid('INVALID_SECURITY_RULE', field, `field '${field}' ${text}`);

const ruleRejection = (rule: JsonObject, at: string): Rejection | undefined => {
  const protocol = stringAt(rule, 'protocol');
  if (!Object.hasOwn(PROTOCOLS, protocol))
    return wrong(`${at}.protocol`, `must be one of ${Object.keys(PROTOCOLS).join(', ')}`);
  return portsRejection(rule, protocol, at) ?? rangesRejection(rule, at);
};

const portsRejection = (rule: JsonObject, protocol: string, at: string): Rejection | undefined => {
  const given = PORTS.filter((field) => rule[field] !== undefined);
  const [one] = given;
  if (one === undefined) return undefined;
  if (!WITH_PORTS.includes(protocol))
    return wrong(`${at}.${one}`, `is for ${WITH_PORTS.join(' and ')} only: leave it out`);
  const missing = PORTS.find((field) => rule[field] === undefined);
  if (missing !== undefined) return wrong(`${at}.${missing}`, `is required beside '${one}'`);
  for (const field of given) {
    const port = rule[field];
    if (typeof port !== 'number' || port < 1 || port > MAX_PORT)
      return wrong(`${at}.${field}`, `must be between 1 and ${MAX_PORT} (got ${textOf(port)})`);
  }
  const [from = 0, to = 0] = PORTS.map((field) => Number(rule[field]));
  return from <= to
    ? undefined
    : wrong(`${at}.port_to`, `must be at least ${from}, as 'port_from' is (got ${to})`);
};

const rangesRejection = (rule: JsonObject, at: string): Rejection | undefined => {
  const given = Object.keys(FAMILIES).filter((field) => stringAt(rule, field) !== '');
  if (given.length === 0) return wrong(at, "must have 'ipv4_cidr', 'ipv6_cidr' or both");
  const bad = given.find((field) => rangeIn(rule, field) === undefined);
  if (bad === undefined) return undefined;
  const [family, such] = bad === 'ipv4_cidr' ? ['IPv4', '10.0.0.0/16'] : ['IPv6', 'fd00::/48'];
  const shown = stringAt(rule, bad).slice(0, MAX_SHOWN);
  return wrong(`${at}.${bad}`, `must be an ${family} range such as ${such} (got '${shown}')`);
};

export type HubRule = {
  readonly protocol: 'tcp' | 'udp' | 'icmp' | 'all';
  readonly portFrom?: number;
  readonly portTo?: number;
  readonly sourceCidr?: string;
  readonly destinationCidr?: string;
};

/**
 * The same on a hub. Where packets come from is the source there, where they go to the destination: the original writes
 * IPv4 ranges into the one and IPv6 ranges into the other.
 */
export const hubRules = (spec: JsonObject, way: Direction): readonly HubRule[] =>
  listAt(spec, way).flatMap((rule) =>
    Object.keys(FAMILIES).flatMap((family): readonly HubRule[] => {
      const range = stringAt(rule, family);
      const protocol = PROTOCOLS[stringAt(rule, 'protocol')];
      if (!isObject(rule) || range === '' || protocol === undefined) return [];
      const [portFrom, portTo] = PORTS.map((field) => Number(rule[field] ?? 0));
      return [
        {
          protocol,
          ...(portFrom === 0 || portTo === 0 ? {} : { portFrom, portTo }),
          ...(way === 'ingress' ? { sourceCidr: range } : { destinationCidr: range }),
        } as HubRule,
      ];
    }),
  );
