import { createHash } from 'node:crypto';
import { own } from '../../domain/json-tools.ts';

/** Settings of simulated systems: one table declares every key, README.md beside it shows it, a test keeps both in step. */
export type Span = number | 'forever';

type KeyKind =
  | 'duration'
  | 'span'
  | 'calls'
  | 'count'
  | 'factor'
  | 'text'
  | { readonly oneOf: readonly string[] };
export type SettingScope = 'life' | 'call';
export type SettingKey<Kind extends KeyKind = KeyKind, Scope extends string = SettingScope> = {
  readonly kind: Kind;
  readonly default: string;
  /** `life` is frozen into an object when it is created; `call` is asked at every call. */
  readonly scope: Scope;
  readonly meaning: string;
};

const key =
  <Scope extends SettingScope>(scope: Scope) =>
  <const Kind extends KeyKind>(kind: Kind, value: string, meaning: string): SettingKey<Kind, Scope> => ({
    kind,
    default: value,
    scope,
    meaning,
  });
export const life = key('life');
export const call = key('call');

type SettingKeys = { readonly [key: string]: SettingKey };

/** What was given, checked; values stay texts so that they can be stored and merged. */
export type Given<Keys extends SettingKeys> = { readonly [Name in keyof Keys]?: string };

type Value<Kind> = Kind extends 'duration' | 'factor'
  ? number
  : Kind extends 'span'
    ? Span
    : Kind extends 'count'
      ? number | null
      : Kind extends { readonly oneOf: readonly (infer One)[] }
        ? One
        : string;
export type Settings<Keys extends SettingKeys, Scope> = {
  readonly [Name in keyof Keys as Keys[Name]['scope'] extends Scope ? Name : never]: Value<
    Keys[Name]['kind']
  >;
};

export class BadSimulationSetting extends Error {
  override readonly name = 'BadSimulationSetting';
}

/** `aliases`: short names that people know keys by. */
export const settingTable = <const Keys extends SettingKeys>(
  keys: Keys,
  aliases: { readonly [alias: string]: keyof Keys & string } = {},
) => {
  type Name = keyof Keys & string;
  const isKey = (name: string): name is Name => Object.hasOwn(keys, name);
  const keyOf = (name: Name): SettingKey => keys[name] as SettingKey;
  const namesOf = (scope: SettingScope): readonly Name[] =>
    Object.keys(keys)
      .filter(isKey)
      .filter((name) => keyOf(name).scope === scope);
  const names = { life: namesOf('life'), call: namesOf('call') };

  /** Checks an object of settings. Throws BadSimulationSetting. */
  const givenSettings = (values: { readonly [key: string]: unknown }): Given<Keys> => {
    const given: { [name: string]: string } = {};
    for (const [name, raw] of Object.entries(values)) {
      const found = own<string>(aliases, name) ?? name;
      if (!isKey(found)) throw new BadSimulationSetting(`unknown simulation key "${name}"`);
      if (typeof raw !== 'string' && typeof raw !== 'number') {
        throw new BadSimulationSetting(`simulation key "${name}" needs a text or a number`);
      }
      const value = String(raw).trim();
      checkValue(name, keyOf(found).kind, value);
      given[found] = value;
    }
    return given as Given<Keys>;
  };

  /** Reads one key from the first of the given settings that has it, else its default. */
  const pick = (name: Name, given: readonly Given<Keys>[]): string =>
    given.find((settings) => settings[name] !== undefined)?.[name] ?? keyOf(name).default;

  return {
    givenSettings,
    pick,
    /**
     * Reads an annotation: a JSON object, or `key=value` pairs separated by commas or semicolons.
     * Throws BadSimulationSetting naming the key: a misspelt fault that silently does nothing would prove nothing.
     */
    parseSettings: (text: string): Given<Keys> => {
      const trimmed = text.trim();
      return givenSettings(trimmed.startsWith('{') ? parseJsonObject(trimmed) : parsePairs(trimmed));
    },
    /** Those of a scope, from the first of `given` that has each. Durations in milliseconds; an empty count is null. */
    settingsOf: <Scope extends SettingScope>(
      scope: Scope,
      given: readonly Given<Keys>[],
      factor = 1,
    ): Settings<Keys, Scope> => {
      const read = (name: Name): unknown => {
        const { kind } = keyOf(name);
        const value = pick(name, given);
        if (kind === 'count') return value === '' ? null : Number(value);
        if (kind === 'factor') return Number(value);
        if (kind !== 'duration' && kind !== 'span') return value;
        return value === 'forever' ? value : Math.round(milliseconds(value) * factor);
      };
      return Object.fromEntries(names[scope].map((name) => [name, read(name)])) as Settings<Keys, Scope>;
    },
  };
};

const parseJsonObject = (text: string): { readonly [key: string]: unknown } => {
  try {
    // It starts with a brace, so what parses is an object.
    return JSON.parse(text) as { [key: string]: unknown };
  } catch (error) {
    throw new BadSimulationSetting('the simulation settings are not valid JSON', { cause: error });
  }
};

const parsePairs = (text: string): { readonly [key: string]: string } => {
  const pairs = text
    .split(/[,;\n]/)
    .map((pair) => pair.trim())
    .filter((pair) => pair !== '')
    .map((pair): [string, string] => {
      const at = pair.indexOf('=');
      if (at < 1) throw new BadSimulationSetting(`"${pair}" is not key=value`);
      return [pair.slice(0, at).trim(), pair.slice(at + 1)];
    });
  return Object.fromEntries(pairs);
};

const DURATION = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h)?$/;
const CALLS = /^(all|\d{1,9}(-\d{1,9})?(\+\d{1,9}(-\d{1,9})?)*|\d{1,3}(\.\d{1,6})?%)?$/;

const checkValue = (name: string, kind: KeyKind, value: string): void => {
  if (isValid(kind, value)) return;
  const expected = typeof kind === 'object' ? kind.oneOf.join(' or ') : EXPECTED[kind];
  throw new BadSimulationSetting(`simulation key "${name}" needs ${expected}, not "${value.slice(0, 40)}"`);
};

const isValid = (kind: KeyKind, value: string): boolean => {
  if (typeof kind === 'object') return kind.oneOf.includes(value);
  switch (kind) {
    case 'duration':
      return DURATION.test(value);
    case 'span':
      return value === 'forever' || DURATION.test(value);
    case 'calls':
      return CALLS.test(value);
    case 'count':
      return /^\d{0,6}$/.test(value);
    case 'factor':
      return /^\d{1,4}(\.\d{1,6})?$/.test(value);
    case 'text':
      return value.length <= 500;
  }
};

const EXPECTED = {
  duration: 'a duration such as 250ms, 2s or 1m (a bare number is milliseconds)',
  span: 'a duration or "forever"',
  calls: 'which calls: 1, 2-4, 1+3, all or a percentage such as 10%',
  count: 'a whole number',
  factor: 'a number',
  text: 'a text of at most 500 characters',
} as const;

const UNIT_MS: { readonly [unit: string]: number } = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds of a checked duration. */
const milliseconds = (value: string): number => {
  const [, amount = '0', unit = 'ms'] = DURATION.exec(value) ?? [];
  return Math.round(Number(amount) * (UNIT_MS[unit] ?? 1));
};

/**
 * Is the `n`-th call (from 1) among `calls`? A percentage is decided by a hash of `dice` and `n`, so the same seed
 * gives the same faults in every run.
 */
export const isAmong = (calls: string, n: number, dice: string): boolean => {
  if (calls === '') return false;
  if (calls === 'all') return true;
  if (calls.endsWith('%')) return fraction(`${dice}/${n}`) * 100 < Number(calls.slice(0, -1));
  return calls.split('+').some((range) => {
    const [from = 0, to = from] = range.split('-').map(Number);
    return n >= from && n <= to;
  });
};

/** A number in [0, 1) that depends on the text only. */
const fraction = (text: string): number =>
  createHash('sha256').update(text).digest().readUInt32BE(0) / 2 ** 32;
