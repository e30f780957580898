import { createPoolAdmin, type PoolAdmin } from '../../app/pools/pool-admin.ts';
import { poolKinds, type AnyDefinition, type AnyPool, type PoolKind } from '../../app/pools/pool-kinds.ts';
import type { PoolRegistry } from '../../app/pools/pool-registry.ts';
import type { CommandOutcome } from '../../app/commands/command.ts';
import type { Clock } from '../../app/ports.ts';
import { defined, stringAt, objectAt, textOf, listAt } from '../../domain/json-tools.ts';
import { aggregateOf } from '../../domain/kinds.ts';
import { holdingsOf, type AddressBook } from '../../domain/networks/address-book.ts';
import { addressRules, bookOf, externalIpPool } from '../../domain/networks/external-ip-pool.resource.ts';
import { isStored } from '../../domain/catalog/document.ts';
import type { Placed } from '../../domain/placed-document.ts';
import { isUnderPressure, type PoolCounts } from '../../domain/pools/pool-counts.ts';
import { heldIn } from '../../domain/pools/pool.ts';
import { plainCidrs } from '../../domain/pools/prefix-pool.ts';
import { sizeOf } from '../../domain/ranges.ts';
import type { ResourceRow } from '../../projections/read-models.ts';
import { contextOf, type LookServices } from '../audit-reads.ts';
import { ApiError, rejected } from '../errors.ts';
import type { WriteServices } from '../osac/write-context.ts';
import { fieldsOf, readBody } from './forms.ts';
import { once, osacCall } from './osac-call.ts';
import {
  PREFIX_POOL_BODY,
  RESIZE_BODY,
  RETIRE_BODY,
  VLAN_POOL_BODY,
  type PoolDetails,
  type PoolHolder,
  type PoolSummary,
} from './pool-operations.ts';
import { breathe } from './query.ts';
import type { LedgerAnswer, LedgerCall, LedgerRoute } from './serve.ts';

export type PoolServices = Pick<WriteServices, 'runner' | 'resources'> &
  Pick<LookServices, 'ids' | 'requestHash' | 'personal'> & {
    readonly clock: Clock;
    /** Absent where no pools are followed: none is listed then. */
    readonly pools?: Pick<PoolRegistry, 'ready' | 'pools'>;
  };

/** VLAN and prefix pools are made and changed here; external IP pools are shown as pools of addresses. */
export const poolRoutes = (services: PoolServices): readonly LedgerRoute[] => [
  {
    verb: 'GET',
    path: 'pools',
    handler: async (call) => {
      const listed = await Promise.all(poolKinds.map((kind) => listOf(kind, call, services)));
      return { json: { items: [...listed.flat(), ...(await addressPools(services))] } };
    },
  },
  ...poolKinds.flatMap((kind) => routesOf(kind, services)),
  {
    verb: 'GET',
    path: 'pools/address',
    handler: async () => ({ json: { items: await addressPools(services) } }),
  },
  { verb: 'GET', path: 'pools/address/{id}', handler: (call) => showAddressPool(call, services) },
];

const routesOf = (kind: PoolKind, services: PoolServices): readonly LedgerRoute[] => {
  const admin = createPoolAdmin({ commandRunner: services.runner, clock: services.clock });
  const path = `pools/${kind.name}`;
  const create = kind.name === 'vlan' ? VLAN_POOL_BODY : PREFIX_POOL_BODY;
  const changing =
    (
      body: typeof create | typeof RESIZE_BODY | typeof RETIRE_BODY,
      change: (call: LedgerCall, ...of: Parameters<PoolAdmin['retire']>) => ReturnType<PoolAdmin['retire']>,
    ): LedgerRoute['handler'] =>
    async (call) => {
      const { reason } = readBody(call.body, body);
      const asked = { what: call.route, query: call.body, method: call.verb };
      const context = await contextOf(osacCall(once(call)), asked, services);
      const outcome = await change(call, kind, call.path['id'] ?? '', reason, context);
      return answerOf(kind, call, outcome, services);
    };
  return [
    { verb: 'GET', path, handler: async (call) => ({ json: { items: await listOf(kind, call, services) } }) },
    { verb: 'GET', path: `${path}/{id}`, handler: (call) => showPool(kind, call, services) },
    {
      verb: 'POST',
      path,
      fields: fieldsOf(create),
      handler: changing(create, (call, _kind, _id, reason, context) => {
        const { id, definition } = definitionOf(kind, call);
        return admin.create(kind, id, definition, reason, context);
      }),
    },
    {
      verb: 'POST',
      path: `${path}/{id}/resize`,
      fields: fieldsOf(RESIZE_BODY),
      handler: changing(RESIZE_BODY, (call, _kind, id, reason, context) => {
        const { ranges, reserved, quarantine_seconds: quarantineSeconds } = readBody(call.body, RESIZE_BODY);
        const size = defined({ ranges: ranges && plain(ranges), reserved: reserved && plain(reserved) });
        return admin.resize(kind, id, { ...size, ...defined({ quarantineSeconds }) }, reason, context);
      }),
    },
    {
      verb: 'POST',
      path: `${path}/{id}/retire`,
      fields: fieldsOf(RETIRE_BODY),
      handler: changing(RETIRE_BODY, (_call, ...of) => admin.retire(...of)),
    },
  ];
};

/** Ranges of VLANs are no CIDRs and stay as they are. */
const plain = plainCidrs;

const definitionOf = (
  kind: PoolKind,
  { body }: LedgerCall,
): { readonly id: string; readonly definition: AnyDefinition } => {
  const common = ({ zone, ranges, reserved, quarantine_seconds }: Common): AnyDefinition => ({
    zone,
    ranges: plain(ranges),
    reserved: plain(reserved),
    quarantineSeconds: quarantine_seconds,
  });
  if (kind.name === 'vlan') {
    const { id, fabric, ...given } = readBody(body, VLAN_POOL_BODY);
    return { id, definition: { fabric, ...common(given) } };
  }
  const { id, vrf, ...given } = readBody(body, PREFIX_POOL_BODY);
  return { id, definition: { vrf, ...common(given) } };
};

type Common = {
  readonly zone: string;
  readonly ranges: readonly string[];
  readonly reserved: readonly string[];
  readonly quarantine_seconds: number;
};

const notFound = (kind: string, id: string): ApiError =>
  new ApiError('NOT_FOUND', `${kind} pool '${id.slice(0, 100)}' not found; ledgerctl pools list shows all`);

const answerOf = (
  kind: PoolKind,
  call: LedgerCall,
  outcome: CommandOutcome<{ readonly pool?: AnyPool }>,
  services: PoolServices,
): LedgerAnswer => {
  const id = call.path['id'] ?? stringAt(call.body, 'id');
  if (outcome.outcome === 'rejected') {
    if (outcome.rejection.code === 'NO_SUCH_POOL') throw notFound(kind.name, id);
    throw rejected(outcome.rejection);
  }
  const { pool } = outcome.loaded.state;
  if (pool === undefined) throw notFound(kind.name, id);
  return { json: detailsOf(kind, id, pool, services) };
};

const decimals = (counts: readonly PoolCounts[]): PoolSummary['counts'] =>
  counts.map(({ family, size, free, used, quarantined }) => ({
    ...defined({ family }),
    size: String(size),
    free: String(free),
    used: String(used),
    quarantined: String(quarantined),
  }));

const summaryOf = (kind: PoolKind, id: string, pool: AnyPool, at: string): PoolSummary => {
  const { definition, retired } = pool;
  const { zone, fabric, vrf, ranges, reserved, quarantineSeconds } = definition;
  const counts = kind.countsOf(pool, at);
  return {
    kind: kind.name,
    id,
    state: retired ? 'retired' : 'open',
    zone,
    ...defined({ fabric, vrf }),
    ranges,
    reserved,
    quarantine_seconds: quarantineSeconds,
    counts: decimals(counts),
    pressure: counts.some(isUnderPressure),
  };
};

const listOf = async (
  kind: PoolKind,
  { signal }: LedgerCall,
  { pools, clock }: PoolServices,
): Promise<readonly PoolSummary[]> => {
  await pools?.ready(signal);
  const at = clock.now();
  return (pools?.pools(kind.name) ?? []).map(({ id, pool }) => summaryOf(kind, id, pool, at));
};

const detailsOf = (kind: PoolKind, id: string, pool: AnyPool, { clock }: PoolServices): PoolDetails => {
  const at = clock.now();
  const holders = heldIn(pool).map(({ holder, allocation }): PoolHolder => {
    const { purpose, generation, vlanId, prefixes, gateways } = allocation;
    return { ...holder, purpose, generation, ...defined({ vlan_id: vlanId, prefixes, gateways }) };
  });
  const untils = kind.rules.restingOf(pool.stock).map(([until]) => until);
  const next = untils.filter((until) => until > at).toSorted()[0];
  return {
    ...summaryOf(kind, id, pool, at),
    holders: holders.toSorted((left, right) => left.generation - right.generation),
    ...defined({ next_release: next }),
  };
};

const showPool = async (kind: PoolKind, call: LedgerCall, services: PoolServices): Promise<LedgerAnswer> => {
  const id = call.path['id'] ?? '';
  const { state } = await services.runner.peek(kind.aggregate, id, { signal: call.signal });
  if (state.pool === undefined) throw notFound(kind.name, id);
  return { json: detailsOf(kind, id, state.pool, services) };
};

/** Rows that are looked up before others get their turn. */
const PAGE = 50;
const addressPool = aggregateOf(externalIpPool);

const addressPools = async (services: PoolServices): Promise<readonly PoolSummary[]> => {
  const items: PoolSummary[] = [];
  for (const page of services.resources.pages(externalIpPool.kind, PAGE)) {
    for (const row of page) {
      const found = await addressPoolOf(row.id, services);
      if (found !== undefined) items.push(addressSummary(row.id, found, services));
    }
    await breathe();
  }
  return items.toSorted((left, right) => (left.id < right.id ? -1 : 1));
};

type AddressPool = { readonly state: Placed; readonly book: AddressBook };

const addressPoolOf = async (
  id: ResourceRow['id'],
  { runner }: PoolServices,
): Promise<AddressPool | undefined> => {
  const { state } = await runner.peek(addressPool, id);
  return isStored(state) ? { state: state as Placed, book: bookOf(state) } : undefined;
};

const addressSummary = (id: string, { state, book }: AddressPool, { clock }: PoolServices): PoolSummary => {
  const { document, place, name } = state;
  const { ranges, restMs } = addressRules(state);
  const at = clock.now();
  const size = sizeOf(ranges);
  const used = BigInt(book.count);
  const quarantined = BigInt([...book.resting, ...book.rested].filter(([until]) => until > at).length);
  const counts = { size, used, quarantined, free: size - used - quarantined };
  const family = ranges[0]?.family === 'ipv6' ? 'v6' : 'v4';
  const view = externalIpPool.view(state);
  const status = view.exists ? objectAt(view.document, 'status') : {};
  return {
    kind: 'address',
    id,
    state: stringAt(status, 'state').replace('EXTERNAL_IP_POOL_STATE_', '') || 'PENDING',
    ...defined({ hub: place?.hub, name }),
    ranges: listAt(objectAt(document, 'spec'), 'cidrs').map(textOf),
    reserved: [],
    quarantine_seconds: Math.round(restMs / 1_000),
    counts: decimals([{ family, ...counts }]),
    pressure: isUnderPressure(counts),
  };
};

const showAddressPool = async (call: LedgerCall, services: PoolServices): Promise<LedgerAnswer> => {
  const id = call.path['id'] ?? '';
  const found = await addressPoolOf(id, services);
  if (found === undefined) throw notFound('address', id);
  const at = services.clock.now();
  const holders = holdingsOf(found.book)
    .map(
      ({ holder, generation, address }): PoolHolder => ({ ...holder, generation, ...defined({ address }) }),
    )
    .toSorted((left, right) => left.generation - right.generation);
  const resting = [...found.book.resting, ...found.book.rested].map(([until]) => until);
  const next = resting.filter((until) => until > at).toSorted()[0];
  const json: PoolDetails = {
    ...addressSummary(id, found, services),
    holders,
    ...defined({ next_release: next }),
  };
  return { json };
};
