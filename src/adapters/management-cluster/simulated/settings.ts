import { createHash } from 'node:crypto';
import { own } from '../../../domain/json-tools.ts';

/**
 * How a simulated hub behaves: durations of its work and faults on purpose. Given per object by the annotation
 * `simulation` of an object and per hub by `configure`. One table declares every key; README.md shows it and a
 * test keeps both in step.
 */
export type Span = number | 'forever';

type KeyKind =
  | 'duration'
  | 'span'
  | 'calls'
  | 'count'
  | 'factor'
  | 'text'
  | { readonly oneOf: readonly string[] };
type Key<Kind extends KeyKind = KeyKind, Scope extends string = 'life' | 'call'> = {
  readonly kind: Kind;
  readonly default: string;
  /** `life` is frozen into the object when it is created; `call` is asked at every call. */
  readonly scope: Scope;
  readonly meaning: string;
};

const key =
  <Scope extends 'life' | 'call'>(scope: Scope) =>
  <const Kind extends KeyKind>(kind: Kind, value: string, meaning: string): Key<Kind, Scope> => ({
    kind,
    default: value,
    scope,
    meaning,
  });
const life = key('life');
const call = key('call');

export const SIMULATION_KEYS = {
  factor: life('factor', '1', 'multiplies every duration of the life below'),
  accept: life('duration', '300ms', 'creation until the operator shows a phase'),
  controlPlane: life('duration', '1500ms', 'start of a job until the HostedCluster is Available'),
  perNode: life('duration', '200ms', 'between two nodes of one class; classes run side by side'),
  operators: life('duration', '600ms', 'last node until ClusterVersionSucceeding'),
  finish: life('duration', '300ms', 'end of the work until the job is Succeeded'),
  delete: life('duration', '1s', 'deletion request until HostedCluster and `infrastructure` are gone'),
  namespace: life('duration', '300ms', 'from there until the namespace and the order are gone'),
  retry: life(
    'duration',
    '1s',
    'failed or canceled job until the next one; doubles with each failed one, to 30 min (a real operator starts at 2 min)',
  ),
  noPhase: life('span', '0', 'the operator does nothing for so long: status empty, no phase'),
  tenantNotReady: life(
    'span',
    '0',
    'the operator waits so long for the tenant of an object that is no cluster',
  ),
  noHosts: life(
    'span',
    '0',
    'status of a cluster order stays frozen for so long, for want of hosts; a bare-metal instance says that there is none',
  ),
  hosts: life(
    'text',
    '',
    'labels of the bare-metal hosts, as `class:gpu rack:r1`, with a bar between two; each serves one machine at a time; empty: enough for everybody',
  ),
  failInstall: life('calls', '', 'provision jobs (counted from 1) that end Failed'),
  failWhen: life({ oneOf: ['early', 'late'] }, 'early', 'before or after the HostedCluster exists'),
  failText: life('text', 'simulated: task failed', 'text of a failed job'),
  cancelJob: life('calls', '', 'provision jobs that somebody cancels'),
  nodesStuckAt: life('count', '', 'no class gets more ready nodes than this'),
  degraded: life('count', '0', 'how often the HostedCluster turns Degraded after the first Ready'),
  degradedAfter: life('duration', '1s', 'healthy time before each of them'),
  degradedFor: life('duration', '1s', 'length of each of them'),
  stuckDeletion: life('span', '0', 'deletion hangs for so long after its request'),
  stuckAt: life(
    { oneOf: ['infrastructure', 'namespace', 'job'] },
    'infrastructure',
    'step at which a deletion hangs',
  ),
  vanishOrder: life('duration', '0', 'the order disappears so long after its creation; 0 = never'),
  vanishHostedCluster: life('duration', '0', 'the HostedCluster does; 0 = never'),
  slow: call('duration', '0', 'delay of the answer (the work is done at once)'),
  slowCalls: call('calls', 'all', 'calls that are slow'),
  dead: call('span', '0', 'every call fails as unavailable, counted from the first call'),
  silent: call('span', '0', 'no call is answered or carried out, counted from the first call'),
  unavailable: call('calls', '', 'calls that answer 503, nothing done'),
  unauthorized: call('calls', '', 'calls that answer 401'),
  forbidden: call('calls', '', 'calls that answer 403'),
  throttle: call('calls', '', 'calls that answer 429'),
  retryAfter: call('duration', '1s', 'Retry-After of a 429 or 503'),
  conflict: call('calls', '', 'writes that answer 409 Conflict, nothing done'),
  invalid: call('calls', '', 'writes that answer 422, nothing done'),
  late: call('calls', '', 'writes that arrive at the hub only after `lateBy`'),
  lateBy: call('duration', '1s', 'see `late`'),
  lostAnswer: call('calls', '', 'writes that are done and whose answer is lost'),
  seed: call('text', '', 'seed of the calls given as a percentage; default: the name of the object'),
} as const satisfies { [key: string]: Key };

export type SimulationKey = keyof typeof SIMULATION_KEYS;

/** Short names that people know the faults by. */
const ALIASES: { readonly [alias: string]: SimulationKey } = {
  '401': 'unauthorized',
  '403': 'forbidden',
  '409': 'conflict',
  '422': 'invalid',
  '429': 'throttle',
  '503': 'unavailable',
};

/** What was given, checked; values stay texts so that they can be stored and merged. */
export type GivenSettings = { readonly [key in SimulationKey]?: string };

export class BadSimulationSetting extends Error {
  override readonly name = 'BadSimulationSetting';
}

/**
 * Reads an annotation: a JSON object, or `key=value` pairs separated by commas or semicolons.
 * Throws BadSimulationSetting naming the key: a misspelt fault that silently does nothing would prove nothing.
 */
export const parseSettings = (text: string): GivenSettings => {
  const trimmed = text.trim();
  return givenSettings(trimmed.startsWith('{') ? parseJsonObject(trimmed) : parsePairs(trimmed));
};

/** Checks an object of settings. Throws BadSimulationSetting. */
export const givenSettings = (values: { readonly [key: string]: unknown }): GivenSettings => {
  const given: { [key in SimulationKey]?: string } = {};
  for (const [name, raw] of Object.entries(values)) {
    const key = own<string>(ALIASES, name) ?? name;
    if (!isKey(key)) throw new BadSimulationSetting(`unknown simulation key "${name}"`);
    if (typeof raw !== 'string' && typeof raw !== 'number') {
      throw new BadSimulationSetting(`simulation key "${name}" needs a text or a number`);
    }
    const value = String(raw).trim();
    checkValue(name, SIMULATION_KEYS[key].kind, value);
    given[key] = value;
  }
  return given;
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

const isKey = (name: string): name is SimulationKey => Object.hasOwn(SIMULATION_KEYS, name);

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

/** Reads one key from the first of the given settings that has it, else its default. */
const pick = (key: SimulationKey, given: readonly GivenSettings[]): string =>
  given.find((settings) => settings[key] !== undefined)?.[key] ?? SIMULATION_KEYS[key].default;

type Value<Kind> = Kind extends 'duration' | 'factor'
  ? number
  : Kind extends 'span'
    ? Span
    : Kind extends 'count'
      ? number | null
      : Kind extends { readonly oneOf: readonly (infer One)[] }
        ? One
        : string;
type Keys = typeof SIMULATION_KEYS;
type Settings<Scope> = {
  readonly [Name in keyof Keys as Keys[Name]['scope'] extends Scope ? Name : never]: Value<
    Keys[Name]['kind']
  >;
};

/** Everything that decides an object's life. Stored with the object: its future does not change under it. */
export type LifeSettings = Settings<'life'>;
export type CallSettings = Settings<'call'>;

const namesOf = (scope: string): readonly SimulationKey[] =>
  Object.keys(SIMULATION_KEYS)
    .filter(isKey)
    .filter((name) => SIMULATION_KEYS[name].scope === scope);
const NAMES = { life: namesOf('life'), call: namesOf('call') };

/** Those of a scope, from the first of `given` that has each. Durations in milliseconds; an empty count is null. */
const settingsOf = <Scope extends 'life' | 'call'>(
  scope: Scope,
  given: readonly GivenSettings[],
  factor: number,
): Settings<Scope> => {
  const read = (name: SimulationKey): unknown => {
    const { kind } = SIMULATION_KEYS[name];
    const value = pick(name, given);
    if (kind === 'count') return value === '' ? null : Number(value);
    if (kind === 'factor') return Number(value);
    if (kind !== 'duration' && kind !== 'span') return value;
    return value === 'forever' ? value : Math.round(milliseconds(value) * factor);
  };
  return Object.fromEntries(NAMES[scope].map((name) => [name, read(name)])) as Settings<Scope>;
};

/** Settings of a new object: its own before the hub's before the defaults. */
export const lifeSettings = (own: GivenSettings, hub: GivenSettings): LifeSettings =>
  settingsOf('life', [own, hub], Number(pick('factor', [own, hub])));

/** Faults of single calls, from one source (an object's annotation, or the hub). */
export const callSettings = (given: GivenSettings): CallSettings => settingsOf('call', [given], 1);

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
