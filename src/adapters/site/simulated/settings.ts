import { call, life, settingTable, type Given, type Settings } from '../../simulation/settings.ts';

/** How a simulated site behaves: durations of its work and faults on purpose, given by `configure`. */
export const SITE_KEYS = {
  switch: life(
    'duration',
    '200ms',
    'until a VLAN or a port is configured on every switch, or is gone from there',
  ),
  router: life(
    'duration',
    '200ms',
    'until a network, a binding or a NAT works on every router, or is gone from there',
  ),
  propagation: life('duration', '500ms', 'until every authoritative server answers with a new record'),
  address: life('duration', '300ms', 'port in its VLAN until an address of the agent is seen'),
  blindBinding: life('calls', '', 'bindings of a port (counted from 1) after which no address is seen'),
  cleaning: life('duration', '500ms', 'length of the wipe of an agent'),
  failCleaning: life('calls', '', 'wipes of an agent (counted from 1) that fail'),
  discovery: life('duration', '500ms', 'request until the new agent is there'),
  failDiscovery: life('calls', '', 'discoveries of the site (counted from 1) that find nothing'),
  hosts: life(
    'text',
    '64',
    'hosts of each class that a hub has, discovered or not: a number, or `class:number class:number`',
  ),
  links: life('count', '1', 'links of a new agent to switches'),
  fabric: life('text', '', 'fabric of the switches of new agents; empty: the name of the zone'),
  task: life('duration', '200ms', 'length of a task'),
  failTask: life('calls', '', 'runs of a task (counted from 1) that fail'),
  failTaskName: life('text', '', 'only the task of this name fails; empty: every one does'),
  slow: call('duration', '0', 'delay of the answer (the work is done at once)'),
  slowCalls: call('calls', 'all', 'calls that are slow'),
  dead: call('span', '0', 'every call fails as unavailable, counted from the first call'),
  silent: call('span', '0', 'no call is answered or carried out, counted from the first call'),
  unavailable: call('calls', '', 'calls that fail as unavailable, nothing done'),
  retryAfter: call('duration', '1s', 'when to come back after `unavailable`'),
  refused: call('calls', '', 'writes that are refused for good, nothing done'),
  conflict: call('calls', '', 'writes that are refused as a conflict, nothing done'),
  late: call('calls', '', 'writes that arrive only after `lateBy`'),
  lateBy: call('duration', '1s', 'see `late`'),
  lostAnswer: call('calls', '', 'writes that are done and whose answer is lost'),
  seed: call('text', '', 'seed of the calls given as a percentage; default: the zone'),
} as const;

export type SiteSettings = Given<typeof SITE_KEYS>;
export type SiteLife = Settings<typeof SITE_KEYS, 'life'>;

const table = settingTable(SITE_KEYS);
const read = (given: string | { readonly [key: string]: string | number }): SiteSettings =>
  typeof given === 'string' ? table.parseSettings(given) : table.givenSettings(given);

/** By scope: `*` (every call), an operation such as `dns.ensure`, or an operation and an order behind a space. */
export type ScopedSettings = { readonly [scope: string]: SiteSettings };
export type GivenScopes =
  | string
  | { readonly [scope: string]: string | { readonly [key: string]: string | number } };

/** A text alone is meant for every call. Throws BadSimulationSetting. */
export const scopedSettings = (given: GivenScopes): ScopedSettings =>
  typeof given === 'string'
    ? { [EVERYWHERE]: read(given) }
    : Object.fromEntries(Object.entries(given).map(([scope, settings]) => [scope, read(settings)]));

export const EVERYWHERE = '*';

/** Scopes that a call is in, the narrowest first. */
export const scopesOf = (operation: string, order: string | undefined): readonly string[] => [
  ...(order === undefined ? [] : [`${operation} ${order}`]),
  operation,
  EVERYWHERE,
];

export const siteLife = (given: readonly SiteSettings[]): SiteLife => table.settingsOf('life', given);
export const callFaults = (given: SiteSettings) => table.settingsOf('call', [given]);
