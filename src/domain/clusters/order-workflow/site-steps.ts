import type { DelegatedStep } from '../../hubs/hub-facts.ts';
import { defined, isObject, listAt, sameJson, stringAt } from '../../json-tools.ts';
import type { JsonObject } from '../../json.ts';
import type { Call } from '../../process/declaration.ts';
import { isUnresolved, OWN_BACKOFF, type Backoff } from '../../process/effects.ts';
import type { ClusterCommand } from '../commands.ts';
import { orderOf, type OrderRun } from './run.ts';
import {
  agentIds,
  bindingOf,
  does,
  holder,
  isUndoneOnFailure,
  l3NetworkOf,
  natsOf,
  networkOf,
  ownerOf,
  portsOf,
  recordsOf,
  resultOf,
  siteOf,
  waitOf,
  wantedAgents,
} from './site-run.ts';
import type { Step } from './work.ts';

/**
 * What an order takes and has configured before it is sent to its hub, where that is the ledger's and not the hub's. What
 * a step took it gives back in its `undo`, after its absence was observed.
 */
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const SITE_BACKOFF: Backoff = { firstMs: 2 * SECOND, maxMs: MINUTE };
const UNDO_BACKOFF: Backoff = { firstMs: 2 * SECOND, maxMs: 10 * MINUTE };
const ADDRESSES_MS = 10 * MINUTE;
const PROPAGATION_MS = 30 * MINUTE;
/** Until what was taken shows: as long as all attempts of it may take. */
const SWITCHES_MS = 10 * MINUTE;
const ROUTERS_MS = 25 * MINUTE;
const RECORDS_MS = 5 * MINUTE;

/** In `after` of what is undone once the hub holds nothing of the order any more. */
export const HOSTED_GONE = 'hosted-gone';

const call = (port: string, lane: string, operation: string, args: JsonObject): Call => ({
  port,
  lane,
  operation,
  args,
});

const zoneOf = (run: OrderRun): string => siteOf(run)?.zone ?? '';
const hubIdOf = (run: OrderRun): string => siteOf(run)?.hub ?? '';

const onSite = (run: OrderRun, operation: string, args: JsonObject): Call => {
  const zone = zoneOf(run);
  return call('site', `site:${zone}`, operation, { zone, hub: hubIdOf(run), ...args });
};

const ofPools = (run: OrderRun, operation: string, args: JsonObject = {}): Call =>
  call('pools', 'pools', operation, { holder: holder(run), ...args });

/** A look at pools lists all that the order has; anything else is an answer about one of them. */
const heldIn = (answer: JsonObject, list: 'vlans' | 'prefixes'): JsonObject => {
  if (!('vlans' in answer)) return answer;
  const [held] = listAt(answer, list);
  return isObject(held) ? held : {};
};

/** All of it where no answer has told what it was given: a refusal may follow an attempt that came through. */
const releasing = (run: OrderRun, what: 'vlan' | 'prefix'): Call => {
  const { pool, generation } = resultOf(run, what);
  return ofPools(run, `release-${what}`, defined({ pool, generation }));
};

const ofAgents = (run: OrderRun, operation: string, args: JsonObject = {}): Call =>
  call('agents', `site:${zoneOf(run)}`, operation, { holder: holder(run), hub: hubIdOf(run), ...args });

const isOfCycle = ({ done, cycle }: OrderRun, kind: string): boolean =>
  done[kind]?.instance.startsWith(`${cycle}.`) === true;

type Asked = Omit<Step, 'work' | 'done'> & {
  readonly call: (run: OrderRun) => Call;
  /** What it is asked for: it is asked again where that differs from what the last answer was for. */
  readonly of?: (run: OrderRun) => JsonObject;
  /** Its answer holds for one cycle only. */
  readonly everyCycle?: true;
};

/** Asks for what may have to wait; once it was told to wait, not before something may have changed. */
const asking = ({ call: callOf, of, everyCycle, ...row }: Asked): Step => {
  const { name } = row;
  return {
    rules: { backoff: OWN_BACKOFF },
    ...row,
    done: (run) =>
      run.done[name] !== undefined &&
      !isUnresolved(run.effects[name]) &&
      waitOf(run, name) === undefined &&
      (of === undefined || sameJson(run.done[name].facts, of(run))) &&
      (everyCycle !== true || isOfCycle(run, name)),
    work: (run) =>
      waitOf(run, name)?.isOver === false && !isUnresolved(run.effects[name])
        ? undefined
        : {
            call: callOf(run),
            instance: `${run.cycle}.${run.done[name]?.times ?? 0}`,
            ...(of === undefined ? {} : { facts: of(run) }),
          },
  };
};

type Configured = Pick<Step, 'name' | 'after' | 'rule' | 'needed' | 'mayBeSkipped' | 'deadline'> & {
  readonly make: string;
  readonly remove: string;
  /** Name of these things in a look. */
  readonly shownAs: string;
  readonly of: (run: OrderRun) => JsonObject;
};

/**
 * Has something configured on the site. What is removed is what was sent, whatever has become of what it was made of; the
 * removal is repeated until nothing is left.
 */
const configured = ({ make, remove, shownAs, of, ...row }: Configured): Step => ({
  ...asking({
    ...row,
    of,
    rules: { backoff: SITE_BACKOFF, attempts: 5 },
    call: (run) => onSite(run, make, of(run)),
  }),
  undo: {
    call: (run) => onSite(run, remove, run.effects[row.name]?.facts ?? of(run)),
    look: (run) => onSite(run, 'look', { order: run.id }),
    // An answer that names neither is that of the step itself: it was taken.
    absent: (_run, answer) => {
      const told = 'left' in answer ? 'left' : shownAs;
      return told in answer && listAt(answer, told).length === 0;
    },
    after: [HOSTED_GONE],
    rules: { backoff: UNDO_BACKOFF },
  },
});

/** It fails for good unless somebody wants to look at it first. */
export const failing = (run: OrderRun, at: string, reason: string, message: string): ClusterCommand => ({
  type: 'RecordFailure',
  at,
  reason,
  message,
  permanent: true,
  ...(isUndoneOnFailure(run) ? { aborts: true } : {}),
});

const late = (ms: number, reason: string, message: string): NonNullable<Step['deadline']> => ({
  ms,
  onOverdue: (run, { at }) => failing(run, at, reason, message),
});

/** Ports are bound a second time where no address shows; a third time would show no other. */
const mayBindAgain = ({ memo: { rebinds = 0 } }: OrderRun): boolean => rebinds < 2;

const onSiteStep = (rule: DelegatedStep, step: Omit<Step, 'needed' | 'rule'>): Step => ({
  ...step,
  rule,
  needed: does(rule),
});

/** Room for the nodes twice, and for what else has an address: a cluster grows, and its prefix does not. */
const prefixLength = (run: OrderRun): number => {
  const nodes = Object.values(wantedAgents(run)).reduce<number>((sum, count) => sum + Number(count), 0);
  const addresses = 2 * nodes + 16;
  return 32 - Math.max(6, Math.ceil(Math.log2(addresses)));
};

export const SITE_STEPS: readonly Step[] = [
  onSiteStep('agents', {
    ...asking({
      name: 'agents',
      after: ['place', 'resize-up'],
      rules: { backoff: OWN_BACKOFF, attempts: 10 },
      call: (run) => ofAgents(run, 'select', { wanted: wantedAgents(run) }),
      of: (run) => ({ wanted: wantedAgents(run) }),
    }),
    // What it has while it waits for more.
    keep: (run, result) => {
      const { agents } = resultOf(run, 'agents');
      return agents === undefined || 'agents' in result ? result : { ...result, agents };
    },
    undo: {
      call: (run) => ofAgents(run, 'return'),
      look: (run) => ofAgents(run, 'look'),
      absent: (_run, answer) =>
        'agents' in answer
          ? listAt(answer, 'agents').length === 0 && answer['waiting'] === undefined
          : answer['held'] === false,
      after: [HOSTED_GONE],
      rules: { backoff: UNDO_BACKOFF },
    },
  }),
  onSiteStep('l2', {
    ...asking({
      name: 'vlan',
      after: ['agents'],
      rules: { backoff: OWN_BACKOFF, attempts: 5 },
      call: (run) => ofPools(run, 'vlan', { zone: zoneOf(run), purpose: 'cluster' }),
    }),
    keep: (_run, result) => heldIn(result, 'vlans'),
    undo: {
      call: (run) => releasing(run, 'vlan'),
      look: (run) => ofPools(run, 'look'),
      absent: (_run, answer) => stringAt(heldIn(answer, 'vlans'), 'pool') === '',
      after: [HOSTED_GONE],
      rules: { backoff: UNDO_BACKOFF },
    },
  }),
  configured({
    name: 'l2',
    rule: 'l2',
    after: ['vlan'],
    needed: does('l2'),
    make: 'l2-create',
    remove: 'l2-delete',
    shownAs: 'networks',
    of: (run) => ({ network: networkOf(run), owner: ownerOf(run, 'vlan') }),
    deadline: late(SWITCHES_MS, 'NetworkTimedOut', 'the switches do not show the network of the order'),
  }),
  configured({
    name: 'ports',
    rule: 'l2',
    after: ['agents', 'l2'],
    needed: does('l2'),
    make: 'ports-bind',
    remove: 'ports-reset',
    shownAs: 'ports',
    // Bound once more where no address shows.
    of: (run) => ({
      ports: portsOf(run),
      owner: ownerOf(run, 'vlan'),
      ...((run.memo.rebinds ?? 0) === 0 ? {} : { again: true }),
    }),
    deadline: late(SWITCHES_MS, 'PortsTimedOut', 'the switches do not show the ports of the order'),
  }),
  onSiteStep('l2', {
    ...asking({
      name: 'agent-addresses',
      after: ['ports'],
      call: (run) => ofAgents(run, 'addresses'),
      of: (run) => ({ agents: agentIds(run) }),
      everyCycle: true,
    }),
    mayBeSkipped: true,
    deadline: {
      ms: ADDRESSES_MS,
      onOverdue: (run, { at }) =>
        mayBindAgain(run)
          ? undefined
          : failing(run, at, 'AddressesNotObserved', 'the nodes of the order show no address'),
    },
  }),
  onSiteStep('l3', {
    ...asking({
      name: 'prefix',
      after: ['agent-addresses', 'agents'],
      rules: { backoff: OWN_BACKOFF, attempts: 5 },
      call: (run) =>
        ofPools(run, 'prefix', {
          zone: zoneOf(run),
          purpose: 'cluster',
          lengths: { v4: prefixLength(run) },
        }),
    }),
    keep: (_run, result) => heldIn(result, 'prefixes'),
    undo: {
      call: (run) => releasing(run, 'prefix'),
      look: (run) => ofPools(run, 'look'),
      absent: (_run, answer) => stringAt(heldIn(answer, 'prefixes'), 'pool') === '',
      after: [HOSTED_GONE],
      rules: { backoff: UNDO_BACKOFF },
    },
  }),
  configured({
    name: 'l3',
    rule: 'l3',
    after: ['prefix'],
    needed: does('l3'),
    make: 'l3-create',
    remove: 'l3-delete',
    shownAs: 'l3networks',
    of: (run) => ({ network: l3NetworkOf(run), owner: ownerOf(run, 'prefix') }),
    deadline: late(ROUTERS_MS, 'PrefixTimedOut', 'the routers do not show the prefix of the order'),
  }),
  configured({
    name: 'l3-bind',
    rule: 'l3',
    after: ['l3', 'l2'],
    needed: (run) => does('l2')(run) && does('l3')(run),
    make: 'l3-bind',
    remove: 'l3-unbind',
    shownAs: 'bindings',
    of: (run) => ({ binding: bindingOf(run), owner: ownerOf(run, 'prefix') }),
    deadline: late(SWITCHES_MS, 'BindingTimedOut', 'the prefix of the order does not reach its network'),
  }),
  {
    // Made with the order; waited for here.
    ...asking({
      name: 'public-addresses',
      after: ['l3-bind'],
      call: (run) => {
        const { ids } = orderOf(run).externalIps ?? {};
        const objects = [ids?.API.ip, ids?.INGRESS.ip].flatMap((id) =>
          id === undefined ? [] : [{ kind: 'externalIp', id }],
        );
        return call('made-objects', 'made-objects', 'values', { objects, path: 'status.address' });
      },
    }),
    rule: 'floating-ip',
    needed: (run) => does('floating-ip')(run) && orderOf(run).externalIps !== undefined,
  },
  configured({
    name: 'nat',
    rule: 'floating-ip',
    after: ['public-addresses', 'l3-bind'],
    needed: (run) => does('floating-ip')(run) && does('l3')(run) && orderOf(run).externalIps !== undefined,
    make: 'nat-ensure',
    remove: 'nat-remove',
    shownAs: 'nats',
    of: (run) => ({ nats: natsOf(run), owner: ownerOf(run, 'prefix') }),
    deadline: late(SWITCHES_MS, 'NatTimedOut', 'the public addresses of the order do not lead to it'),
  }),
  configured({
    name: 'dns',
    rule: 'dns',
    after: ['nat', 'l3-bind'],
    needed: does('dns'),
    mayBeSkipped: true,
    make: 'dns-ensure',
    remove: 'dns-remove',
    shownAs: 'records',
    of: (run) => ({ records: recordsOf(run), owner: ownerOf(run, 'prefix') }),
    deadline: late(RECORDS_MS, 'DnsTimedOut', 'the name servers do not take the records of the order'),
  }),
  {
    ...asking({
      name: 'dns-propagated',
      after: ['dns'],
      call: (run) => onSite(run, 'dns-propagated', { records: recordsOf(run) }),
      everyCycle: true,
    }),
    rule: 'dns',
    needed: (run) => does('dns')(run) && run.skipped['dns'] === undefined,
    mayBeSkipped: true,
    deadline: late(
      PROPAGATION_MS,
      'DnsTimedOut',
      'the name servers do not answer with the records of the order',
    ),
  },
];

/** What an order waits for before it is sent to its hub. */
export const BEFORE_APPLY: readonly string[] = [
  'agents',
  'ports',
  'agent-addresses',
  'l3-bind',
  'nat',
  'dns-propagated',
];
