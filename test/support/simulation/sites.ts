import { POOL_KINDS } from '../../../src/app/pools/pool-kinds.ts';
import { agentsIn } from '../../../src/domain/agents/queue.ts';
import { agentPoolAggregate } from '../../../src/domain/kinds.ts';
import { stringAt } from '../../../src/domain/json-tools.ts';
import { commandContext } from '../hubs/hub-fixture.ts';
import { Violation } from './invariants.ts';
import { ZONE, type World } from './world.ts';

const runnerOf = (world: World) => {
  const [first] = world.living();
  if (first === undefined) throw new Violation('nobody lives');
  return first.system.runner;
};

/** A pool of VLANs and one of prefixes, without quarantine. Resolves when everybody knows them. */
export const makePools = async (world: World): Promise<void> => {
  const common = { zone: ZONE, reserved: [], quarantineSeconds: 0 };
  const definitions = {
    vlan: { ...common, fabric: ZONE, ranges: ['100-199'] },
    prefix: { ...common, vrf: 'tenants', ranges: ['10.20.0.0/16'] },
  } as const;
  const make = async (kind: 'vlan' | 'prefix'): Promise<void> => {
    const at = new Date(world.agenda.now()).toISOString();
    const command = { type: 'CreatePool', at, reason: 'drill', definition: definitions[kind] } as const;
    const asked = commandContext(`create-${kind}`);
    const context = { ...asked, actor: { ...asked.actor, via: 'http' } };
    await runnerOf(world).execute(POOL_KINDS[kind].aggregate, `${kind}s`, command, context);
  };
  const areKnown = (): boolean =>
    world.living().length > 0 && world.living().every(({ system }) => system.pools.pools().length === 2);
  while (!areKnown()) {
    // The store may be away, and whoever is asked may die.
    void Promise.all([make('vlan'), make('prefix')]).catch(() => undefined);
    await world.agenda.sleep('client', 3_000);
  }
};

/** What the site, read on its own, and the pools still have for an order. */
export const leftOnSite = async (world: World): Promise<readonly string[]> => {
  const by = { effectId: 'check', deadlineMs: 1_000, signal: new AbortController().signal };
  const { fabric, l3, dns, agents } = world.site;
  const [networks, routed, records] = [
    await fabric.observe({}, by),
    await l3.observe({}, by),
    await dns.observe({}, by),
  ];
  const shown = {
    ...networks,
    l3networks: routed.networks,
    bindings: routed.bindings,
    nats: routed.nats,
    records,
  };
  const marked = (await Promise.all(world.plan.hubs.map(({ id }) => agents.observe({ hub: id }, by)))).flat();
  const pooled = await Promise.all(
    world.plan.hubs.map(async ({ id }) =>
      agentsIn((await runnerOf(world).load(agentPoolAggregate, id)).state),
    ),
  );
  const given = (['vlan', 'prefix'] as const).flatMap((kind) => {
    const events = world.ledger.events(`${kind}Pool-${kind}s`);
    const count = (type: string): number => events.filter((event) => event.type.endsWith(type)).length;
    return count('Allocated') === count('Released') ? [] : [`a ${kind} is not given back`];
  });
  return [
    ...Object.entries(shown).flatMap(([part, all]) =>
      all.length === 0 ? [] : [`${part}: ${JSON.stringify(all)}`],
    ),
    ...marked.filter(({ owner }) => owner !== undefined).map(({ id, state }) => `agent ${id} is ${state}`),
    ...pooled
      .flat()
      .filter(({ holder }) => holder !== undefined)
      .map(({ id, state }) => `pooled agent ${id} is ${state}`),
    ...given,
  ];
};

/** What an order had configured is named in the log of its run. */
export const stepsOf = (world: World, clusterId: string): readonly string[] =>
  world.ledger
    .events(`clusterOrder-${clusterId}`)
    .filter(({ type }) => type === 'EffectSucceeded')
    .map(({ data }) => stringAt(data, 'effectId').replace(/:.*/, ''));
