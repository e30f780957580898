import { call, life, settingTable, type Given, type Settings } from '../../simulation/settings.ts';

/**
 * How a simulated hub behaves: durations of its work and faults on purpose. Given per object by the annotation
 * `simulation` of an object and per hub by `configure`.
 */
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
} as const;

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

export type GivenSettings = Given<typeof SIMULATION_KEYS>;
const table = settingTable(SIMULATION_KEYS, ALIASES);
export const { parseSettings, givenSettings } = table;

/** Everything that decides an object's life. Stored with the object: its future does not change under it. */
export type LifeSettings = Settings<typeof SIMULATION_KEYS, 'life'>;
export type CallSettings = Settings<typeof SIMULATION_KEYS, 'call'>;

/** Settings of a new object: its own before the hub's before the defaults. */
export const lifeSettings = (own: GivenSettings, hub: GivenSettings): LifeSettings =>
  table.settingsOf('life', [own, hub], Number(table.pick('factor', [own, hub])));

/** Faults of single calls, from one source (an object's annotation, or the hub). */
export const callSettings = (given: GivenSettings): CallSettings => table.settingsOf('call', [given]);
