import type { HubCheckAnswer, HubDetails, HubSummary } from '../../http/ledger/hub-operations.ts';
import { CliFailure, EXIT } from '../exit.ts';
import { printable, table } from '../output.ts';

type Problem = HubCheckAnswer['problems'][number] & { readonly since?: string };
type Tenants = NonNullable<HubDetails['tenants']>;
type Watch = NonNullable<HubDetails['watch']>;

/** One word for the lanes of a hub: closed or paused ones are named. */
export const lanesText = (lanes: HubSummary['lanes']): string | undefined => {
  if (lanes === undefined) return undefined;
  const held = lanes.flatMap(({ lane, breaker, paused }) => {
    const name = lane.startsWith('automation:') ? lane.split(':').slice(0, 2).join(':') : 'hub';
    return paused ? [`${name} paused`] : breaker === 'closed' ? [] : [`${name} closed`];
  });
  return held.length === 0 ? 'open' : held.join(', ');
};

const problemLine = ({ code, message, since }: Problem): string =>
  `  ${code}${since === undefined ? '' : ` since ${since}`}: ${printable(message)}\n`;

const hostLines = (hosts: HubDetails['hosts']): string => {
  const rows = Object.entries(hosts ?? {}).map(([type, { free, ours, foreign }]) => [
    type,
    free,
    ours,
    foreign,
  ]);
  return rows.length === 0
    ? ''
    : `hosts:\n${table(['  class', 'free', 'ours', 'others'], rows.map(indented))}\n`;
};
const indented = ([first, ...rest]: (string | number)[]): (string | number)[] => [
  `  ${first ?? ''}`,
  ...rest,
];

/** Clocks further apart than this are worth a word: certificates and deadlines depend on them. */
const SKEW_MS = 5_000;

export const checkText = (check: HubCheckAnswer): string => {
  const { ok, problems, version, clock_skew_ms: skew = 0 } = check;
  const head = `hub ${check.id}: ${ok ? 'ready for orders' : problems.length === 1 ? '1 problem' : `${problems.length} problems`}`;
  const notes = [
    ...(version === undefined ? [] : [`API server ${version}`]),
    ...(check.cluster === undefined ? [] : [`cluster ${check.cluster}`]),
    ...(Math.abs(skew) > SKEW_MS ? [`its clock is ${Math.round(skew / 1000)} s off ours`] : []),
    ...(check.also_in_namespace === undefined
      ? []
      : [
          `${check.also_in_namespace.join(', ')} keeps orders in this namespace, too: its hosts count twice; take another one`,
        ]),
    ...(check.recommendation === undefined ? [] : [`recommended: ${check.recommendation}`]),
    ...(check.can_read_agents === false ? ['hosts cannot be read: declare --nodes to limit orders'] : []),
  ];
  return [
    `${head}\n`,
    ...problems.map(problemLine),
    ...notes.map((note) => `  ${note}\n`),
    hostLines(check.hosts),
  ].join('');
};

/** Nothing is done while something is wrong, unless it is wanted all the same. Throws CliFailure. */
export const refuse = (problems: readonly Problem[], force: boolean, consequence: string): void => {
  if (problems.length > 0 && !force)
    throw new CliFailure(EXIT.failed, `${consequence}; mend it, or give --force`);
};

/** What is taken and what is left of each host class, on one line: `h100 3/5`; `-` is left where nothing limits it. */
export const roomText = ({ limits: most, used: taken }: Pick<HubSummary, 'limits' | 'used'>): string => {
  const classes = Object.keys({ ...most.nodes, ...taken.nodes }).toSorted();
  const rows: [string, number, number | undefined][] = classes.map((type) => [
    type,
    taken.nodes?.[type] ?? 0,
    most.nodes === undefined ? undefined : (most.nodes[type] ?? 0),
  ]);
  if (most.controlPlanes !== undefined)
    rows.push(['control-planes', taken.controlPlanes ?? 0, most.controlPlanes]);
  return rows
    .filter(([, count, limit]) => count > 0 || (limit ?? 0) > 0)
    .map(
      ([name, count, limit]) => `${name} ${count}/${limit === undefined ? '-' : Math.max(0, limit - count)}`,
    )
    .join(', ');
};

export const hubText = (hub: HubDetails): string => {
  const { orders, problems, lane } = hub;
  const counted = Object.entries(orders).map(([state, count]) => `${count} ${state}`);
  const lines: [string, string | undefined][] = [
    ['hub', hub.id],
    ['adapter', hub.adapter],
    ['mode', `${hub.mode}, orders are reconciled by ${hub.controller}`],
    ['former', formerText(hub.former_automation)],
    ['namespace', hub.namespace],
    ['zone', hub.zone],
    ['new orders', hub.scheduling],
    ['health', hub.health],
    ['version', hub.version],
    ['cluster', hub.cluster],
    ['limits', capacityText(hub.limits)],
    ['used', capacityText(hub.used)],
    ['orders', counted.length === 0 ? 'none' : counted.join(', ')],
    ['tenants', hub.tenants === undefined ? undefined : tenantsText(hub.tenants)],
    ['ghosts', ghostText(hub.ghosts)],
    ['unknown', hub.watch === undefined ? undefined : unknownText(hub.watch)],
    ['watch', hub.watch === undefined ? 'not by this instance' : watchText(hub.watch)],
    ['last error', hub.watch === undefined ? undefined : errorText(hub.watch)],
    ['lane', lane === undefined ? undefined : laneText(lane)],
  ];
  const text = lines.map(([name, value]) =>
    value === undefined ? '' : `${`${name}:`.padEnd(12)}${value}\n`,
  );
  const told = problems.length === 0 ? '' : `problems:\n${problems.map(problemLine).join('')}`;
  return `${text.join('')}${told}${lackingText(hub.lacking)}${hostLines(hub.hosts)}${waitingText(hub.tenants)}`;
};

const tenantsText = ({ ready, waiting }: Tenants): string =>
  `${ready} ready${waiting.length === 0 ? '' : `, ${waiting.length} wait`}`;

const waitingText = (tenants: Tenants | undefined): string => {
  const lines = (tenants?.waiting ?? []).map(
    ({ tenant, state, since, reason, message }) =>
      `  ${tenant}: ${state} since ${since}${reason === undefined ? '' : `: ${reason}: ${printable(message ?? '')}`}\n`,
  );
  return lines.length === 0 ? '' : `tenants that wait:\n${lines.join('')}`;
};

const lackingText = (lacking: HubDetails['lacking'] = []): string =>
  lacking.length === 0
    ? ''
    : `cannot carry:\n${lacking.map(({ kind, code, message }) => `  ${kind}: ${code}: ${printable(message)}\n`).join('')}`;

const formerText = (former: HubDetails['former_automation'] = {}): string | undefined => {
  const modes = Object.entries(former).map(([mode, url]) => `${mode} at ${url}`);
  return modes.length === 0 ? undefined : `${modes.join(', ')}, for orders that were begun in it`;
};

const ghostText = (ghosts: number): string =>
  ghosts === 0
    ? 'none'
    : `${ghosts} orders whose cluster has vanished (ledgerctl orders list --state failed)`;

const unknownText = ({ unknown }: Watch): string | undefined =>
  unknown === 0 ? undefined : `${unknown} ClusterOrders that nobody here ever ordered; they are left alone`;

const watchText = ({ synced, namespaces, orders, orphans, failures, ...others }: Watch): string => {
  const { not_synced: open = [], kinds_not_synced: kinds = [] } = others;
  return [
    synced ? 'follows every change' : `${failures === 0 ? 'still lists' : 'broken in'} ${open.join(', ')}`,
    `${orders} orders in ${namespaces === 1 ? '1 namespace' : `${namespaces} namespaces`}`,
    ...(orphans === 0 ? [] : [`orphans removed: ${orphans}`]),
    ...(failures === 0 ? [] : [`opened again: ${failures}`]),
    ...kinds.map((kind) => `not followed: ${printable(kind)}`),
  ].join(', ');
};

/** Of the watch; it stays when the watch is well again, so its time goes with it. */
const errorText = ({ last_error: error, last_error_at: at }: Watch): string | undefined =>
  error === undefined ? undefined : `${at === undefined ? '' : `${at} `}${printable(error)}`;

const laneText = ({ breaker, paused, waiting }: NonNullable<HubDetails['lane']>): string =>
  `${paused ? 'paused' : breaker === 'closed' ? 'working' : `breaker ${breaker}`}, ${waiting} waiting`;

const capacityText = ({ controlPlanes, nodes }: HubDetails['limits']): string => {
  const parts = [
    ...(controlPlanes === undefined ? [] : [`${controlPlanes} control planes`]),
    ...Object.entries(nodes ?? {}).map(([type, count]) => `${count} ${type}`),
  ];
  return parts.length === 0 ? 'unlimited' : parts.join(', ');
};
