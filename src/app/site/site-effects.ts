import type { EffectOutcome } from '../../domain/workflow.ts';
import type { CallOptions } from '../hubs/management-cluster.ts';
import { callOptionsOf, done, effectPort, Ended, failed, refused } from '../hubs/hub-effects.ts';
import type { EffectCall, EffectPort } from '../process-runner/types.ts';
import {
  SiteError,
  type BoundPort,
  type ClusterTask,
  type DnsRecord,
  type FabricNetwork,
  type FabricPort,
  type L3Binding,
  type L3Network,
  type Marked,
  type Nat,
  type OwnerMark,
  type Site,
  type SiteErrorKind,
} from './ports.ts';
import type { SiteRegistry } from './site-registry.ts';

export const SITE_PORT = 'site';

/** Operations that change something at a site: not tried while another service drives the hub that `hub` names. */
export const SITE_WRITES: readonly string[] = [
  'l2-create',
  'l2-delete',
  'ports-bind',
  'ports-reset',
  'l3-create',
  'l3-delete',
  'l3-bind',
  'l3-unbind',
  'nat-ensure',
  'nat-remove',
  'dns-ensure',
  'dns-remove',
  'task',
];

/** How long one call at a site may take. */
const CALL_DEADLINE_MS = 20_000;

type At = { readonly zone: string };
type Owned = At & { readonly owner: OwnerMark };
type Given = { readonly site: Site; readonly options: CallOptions };

/** What one item is called, for people and for comparison: two items of one name are the same thing. */
const nameOfNetwork = ({ fabric, vlanId }: FabricNetwork): string => `VLAN ${vlanId} of fabric ${fabric}`;
const nameOfPort = (port: FabricPort): string =>
  `port ${port.port} of switch ${port.switch} (${port.fabric})`;
const nameOfL3 = ({ vrf, prefixes }: Pick<L3Network, 'vrf' | 'prefixes'>): string =>
  `network ${prefixes.join(', ')} in VRF ${vrf}`;
const nameOfBinding = (binding: L3Binding): string => `${nameOfL3(binding)} on ${nameOfNetwork(binding)}`;
const nameOfNat = ({ address }: Nat): string => `NAT of ${address}`;
const nameOfRecord = ({ name, type, values }: DnsRecord): string =>
  `${type} record ${name} (${values.toSorted().join(', ')})`;

/**
 * Effect port `site`: what an order asks of the site of a zone. All of it may be repeated; `observe` mode does the same
 * as `perform`, since each write changes nothing where it has been done.
 *
 * Every operation names {zone, owner}, and what it is about: `l2-…` {network}, `ports-…` {ports}, `l3-create` and `l3-delete`
 * {network}, `l3-bind` and `l3-unbind` {binding}, `nat-…` {nats}, `dns-…` {records}, `task` {task}.
 *
 * - `l2-create`, `ports-bind`, `l3-create`, `l3-bind`, `nat-ensure`, `dns-ensure` → {} once the site shows it, or
 *   {waiting, missing}. `dns-propagated` → {} once every server answers, or {waiting, missing}.
 * - `l2-delete`, `ports-reset`, `l3-delete`, `l3-unbind`, `nat-remove`, `dns-remove` → {left}: what the site still shows of
 *   it. Nothing is given back before `left` is empty.
 * - `task` → {passed, message, evidence}, or {waiting, since} while it runs.
 * - `look` {zone, order} → {networks, ports, l3networks, bindings, nats, records}.
 */
export const createSiteEffects = ({
  sites,
  callDeadlineMs = CALL_DEADLINE_MS,
}: {
  readonly sites: Pick<SiteRegistry, 'siteOf' | 'ready'>;
  readonly callDeadlineMs?: number;
}): EffectPort => {
  const at = async ({ zone }: At, call: EffectCall): Promise<Given> => {
    await sites.ready(call.signal);
    const site = sites.siteOf(zone);
    if (site === undefined)
      throw new Ended(failed('NoSite', `nothing in this release reaches the site of zone '${zone}'`));
    return { site, options: callOptionsOf(call, callDeadlineMs) };
  };

  /** Writes each, then looks: what was taken works once it is shown. */
  const created =
    <Args extends Owned, Item>(parts: {
      readonly items: (args: Args) => readonly Item[];
      readonly write: (given: Given, item: Item, owner: OwnerMark) => Promise<void>;
      readonly shown: (given: Given, order: string) => Promise<readonly Marked<Item>[]>;
      readonly nameOf: (item: Item) => string;
    }) =>
    async (args: Args, call: EffectCall): Promise<EffectOutcome> => {
      const given = await at(args, call);
      const items = parts.items(args);
      await all(items.map((item) => parts.write(given, item, args.owner)));
      const shown = namesIn(await parts.shown(given, args.owner.order), args.owner, parts.nameOf);
      return settled(items.map(parts.nameOf).filter((name) => !shown.has(name)));
    };

  /** Takes each away, then looks what is left of them. */
  const removed =
    <Args extends Owned, Item, Shown extends Item = Item>(parts: {
      readonly items: (args: Args) => readonly Item[];
      readonly write: (given: Given, item: Item, owner: OwnerMark) => Promise<void>;
      readonly shown: (given: Given, order: string) => Promise<readonly Marked<Shown>[]>;
      readonly nameOf: (item: Item) => string;
    }) =>
    async (args: Args, call: EffectCall): Promise<EffectOutcome> => {
      const given = await at(args, call);
      const items = parts.items(args);
      await all(items.map((item) => parts.write(given, item, args.owner)));
      const shown = namesIn(await parts.shown(given, args.owner.order), args.owner, parts.nameOf);
      return done({ left: items.map(parts.nameOf).filter((name) => shown.has(name)) });
    };

  const networks = {
    items: ({ network }: Owned & { readonly network: FabricNetwork }) => [network],
    shown: async ({ site, options }: Given, order: string) =>
      (await site.fabric.observe({ order }, options)).networks,
    nameOf: nameOfNetwork,
  };
  const ports = {
    shown: async ({ site, options }: Given, order: string) =>
      (await site.fabric.observe({ order }, options)).ports,
    nameOf: nameOfPort,
  };
  const l3Networks = {
    items: ({ network }: Owned & { readonly network: L3Network }) => [network],
    shown: async ({ site, options }: Given, order: string) =>
      (await site.l3.observe({ order }, options)).networks,
    nameOf: nameOfL3,
  };
  const bindings = {
    items: ({ binding }: Owned & { readonly binding: L3Binding }) => [binding],
    shown: async ({ site, options }: Given, order: string) =>
      (await site.l3.observe({ order }, options)).bindings,
    nameOf: nameOfBinding,
  };
  const nats = {
    items: ({ nats: wanted }: Owned & { readonly nats: readonly Nat[] }) => wanted,
    shown: async ({ site, options }: Given, order: string) =>
      (await site.l3.observe({ order }, options)).nats,
    nameOf: nameOfNat,
  };

  const records = async (given: Given, { owner, records: wanted }: DnsArgs): Promise<readonly string[]> => {
    const shown = await given.site.dns.observe({ order: owner.order }, given.options);
    const here = new Set(shown.map(({ spec }) => nameOfRecord(spec)));
    return wanted.map(nameOfRecord).filter((name) => here.has(name));
  };

  return effectPort(
    {
      'l2-create': created({
        ...networks,
        write: ({ site, options }, item, owner) => site.fabric.createNetwork(item, owner, options),
      }),
      'l2-delete': removed({
        ...networks,
        write: ({ site, options }, item, owner) => site.fabric.deleteNetwork(item, owner, options),
      }),
      'ports-bind': created({
        ...ports,
        items: (args: Owned & { readonly ports: readonly BoundPort[] }) => args.ports,
        write: ({ site, options }, item, owner) => site.fabric.bindPort(item, owner, options),
      }),
      'ports-reset': removed<Owned & { readonly ports: readonly FabricPort[] }, FabricPort, BoundPort>({
        ...ports,
        items: (args) => args.ports,
        write: ({ site, options }, { fabric, switch: at_, port }, owner) =>
          site.fabric.resetPort({ fabric, switch: at_, port }, owner, options),
      }),
      'l3-create': created({
        ...l3Networks,
        write: ({ site, options }, item, owner) => site.l3.createNetwork(item, owner, options),
      }),
      'l3-delete': removed({
        ...l3Networks,
        write: ({ site, options }, item, owner) => site.l3.deleteNetwork(item, owner, options),
      }),
      'l3-bind': created({
        ...bindings,
        write: ({ site, options }, item, owner) => site.l3.bind(item, owner, options),
      }),
      'l3-unbind': removed({
        ...bindings,
        write: ({ site, options }, item, owner) => site.l3.unbind(item, owner, options),
      }),
      'nat-ensure': created({
        ...nats,
        write: ({ site, options }, item, owner) => site.l3.ensureNat(item, owner, options),
      }),
      'nat-remove': removed({
        ...nats,
        write: ({ site, options }, item, owner) => site.l3.removeNat(item, owner, options),
      }),
      'dns-ensure': async (args: DnsArgs, call: EffectCall) => {
        const given = await at(args, call);
        await given.site.dns.ensure(args.records, args.owner, given.options);
        const here = await records(given, args);
        return settled(args.records.map(nameOfRecord).filter((name) => !here.includes(name)));
      },
      'dns-remove': async (args: DnsArgs, call: EffectCall) => {
        const given = await at(args, call);
        await given.site.dns.remove(args.records, args.owner, given.options);
        return done({ left: await records(given, args) });
      },
      'dns-propagated': async (args: At & Pick<DnsArgs, 'records'>, call: EffectCall) => {
        const { site, options } = await at(args, call);
        return settled((await site.dns.propagated(args.records, options)).missing);
      },
      task: async (args: Owned & { readonly task: ClusterTask }, call: EffectCall) => {
        const { site, options } = await at(args, call);
        const { state, ...told } = await site.tasks.run(args.task, args.owner, options);
        return done(
          state === 'running'
            ? { waiting: `${args.task.name} runs`, ...told }
            : { passed: state === 'passed', ...told },
        );
      },
      look: async (args: At & { readonly order: string }, call: EffectCall) => {
        const { site, options } = await at(args, call);
        const of = { order: args.order };
        const [fabric, l3, shown] = await Promise.all([
          site.fabric.observe(of, options),
          site.l3.observe(of, options),
          site.dns.observe(of, options),
        ]);
        const { networks: l3networks, ...rest } = l3;
        return done({ ...fabric, l3networks, ...rest, records: shown });
      },
    },
    outcomeOfSite,
  );
};

type DnsArgs = Owned & { readonly records: readonly DnsRecord[] };

/** What carries another mark is not this owner's: it is neither there nor left. */
const namesIn = <Item>(
  shown: readonly Marked<Item>[],
  { generation }: OwnerMark,
  nameOf: (item: Item) => string,
): ReadonlySet<string> =>
  new Set(shown.filter(({ owner }) => owner.generation === generation).map(({ spec }) => nameOf(spec)));

const settled = (missing: readonly string[]): EffectOutcome =>
  done(missing.length === 0 ? {} : { waiting: `not in effect yet: ${missing.join('; ')}`, missing });

/** All of them end before the effect does: none goes on behind its back. The worst outcome is that of all. */
const all = async (writes: readonly Promise<void>[]): Promise<void> => {
  const ended = await Promise.allSettled(writes);
  const errors = ended.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  if (errors.length === 0) return;
  throw (
    WORST_FIRST.flatMap((kind) =>
      errors.filter((error) => error instanceof SiteError && error.kind === kind),
    )[0] ?? errors[0]
  );
};

const WORST_FIRST: readonly SiteErrorKind[] = ['unknown-outcome', 'unavailable', 'conflict', 'refused'];

const outcomeOfSite = (error: unknown): EffectOutcome | undefined => {
  if (error instanceof Ended) return error.outcome;
  if (!(error instanceof SiteError)) return undefined;
  const { kind, message, retryAfterMs } = error;
  switch (kind) {
    case 'refused':
      return refused('SiteRefused', message);
    case 'conflict':
      return refused('SiteConflict', message);
    case 'unavailable':
      return failed('SiteUnavailable', message, retryAfterMs);
    case 'unknown-outcome':
      return { outcome: 'unknown', reason: 'OutcomeUnknown', message };
  }
};
