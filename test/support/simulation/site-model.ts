import type { JsonObject } from '../../../src/domain/json.ts';
import { isObject, listAt, numberAt, objectAt, stringAt, textOf } from '../../../src/domain/json-tools.ts';
import type { PendingEffect } from '../../../src/domain/workflow.ts';

/**
 * Pools, agents and site of one order as its steps meet them: the far side reduced to what may never be left behind, and
 * in which order it may go. It holds what it was told, whatever becomes of the answer.
 */
type Kept = { readonly key: string; readonly spec: JsonObject };

export const createSiteModel = () => {
  const parts: { readonly [part: string]: Map<string, JsonObject> } = Object.fromEntries(
    ['networks', 'ports', 'l3networks', 'bindings', 'nats', 'records'].map((part) => [part, new Map()]),
  );
  const journal: string[] = [];
  const wrongs: string[] = [];
  let agents = 0;
  let vlan: { generation: number; quarantined: boolean } | undefined;
  let prefix: { generation: number } | undefined;
  let addresses = false;
  let hub: 'nothing' | 'order' = 'nothing';
  let place = false;
  let generation = 0;
  /** How many answers each step gives before it does not have to wait any more. */
  const patience = new Map<string, number>();

  const all = (part: string): Map<string, JsonObject> => parts[part] ?? new Map<string, JsonObject>();
  const expect = (holds: boolean, what: string): void => void (holds || wrongs.push(what));
  const isEmpty = (...names: readonly string[]): boolean => names.every((name) => all(name).size === 0);

  /** A release names what it was given, or nothing: then it is for all that there is. */
  const isNamed = (args: JsonObject, held: { readonly generation: number } | undefined): boolean =>
    args['generation'] === undefined || numberAt(args, 'generation') === held?.generation;

  const itemsOf = (args: JsonObject, part: string): readonly Kept[] => {
    const one = args['network'] ?? args['binding'];
    const many = isObject(one) ? [one] : [...listAt(args, part)];
    return many.map((spec) => ({ key: keyOf(part, spec as JsonObject), spec: spec as JsonObject }));
  };
  const keyOf = (part: string, spec: JsonObject): string => {
    const { vlanId: _vlanId, ...port } = spec;
    return JSON.stringify(part === 'ports' ? port : spec);
  };
  const ensure = (part: string, args: JsonObject): JsonObject => {
    const items = itemsOf(args, part);
    expect(items.length > 0, `${part}: nothing to make`);
    for (const { key, spec } of items) all(part).set(key, spec);
    return {};
  };
  const remove = (part: string, args: JsonObject): JsonObject => {
    // What was taken away may show for a while.
    if (!waits(`remove ${part}`)) for (const { key } of itemsOf(args, part)) all(part).delete(key);
    return { left: [...all(part).keys()] };
  };
  /** Told to wait so many times first. */
  const waits = (name: string): boolean => {
    const left = patience.get(name) ?? 0;
    patience.set(name, left - 1);
    return left > 0;
  };
  const shownAgents = (): JsonObject[] =>
    Array.from({ length: agents }, (_, i) => ({
      id: `agent-${i}`,
      hub: 'sim-east-1',
      hostClass: 'fc430',
      links: [{ fabric: 'f1', switch: `s${i % 2}`, port: `p${i}`, mac: '' }],
    }));
  const vlanShown = (): JsonObject =>
    vlan === undefined
      ? {}
      : { pool: 'v', fabric: 'f1', vlanId: 100 + vlan.generation, generation: vlan.generation };
  const prefixShown = (): JsonObject =>
    prefix === undefined
      ? {}
      : {
          pool: 'p',
          vrf: 'r1',
          prefixes: [`10.20.${prefix.generation}.0/24`],
          gateways: [`10.20.${prefix.generation}.1`],
          generation: prefix.generation,
        };

  const operations: { readonly [operation: string]: (args: JsonObject) => JsonObject } = {
    'scheduler.place': () => {
      place = true;
      return {};
    },
    'scheduler.release': () => {
      // Addresses are made with the order, before it has a place.
      const holdsNothing =
        agents === 0 && vlan === undefined && prefix === undefined && isEmpty(...Object.keys(parts));
      expect(holdsNothing && hub === 'nothing', 'the place was given back before the rest');
      place = false;
      return {};
    },
    'made-objects.make': () => {
      addresses = true;
      return {};
    },
    'made-objects.values': ({ objects }) => {
      const ids = listAt({ objects: objects ?? [] }, 'objects').map((one) => stringAt(one, 'id'));
      return { values: Object.fromEntries(ids.map((id, i) => [id, `203.0.113.${10 + i}`])) };
    },
    'made-objects.remove': () => {
      expect(isEmpty('records', 'nats'), 'addresses were given back while something led to them');
      addresses = false;
      return {};
    },
    'management-cluster.applyObject': () => {
      for (const part of ['ports', 'bindings', 'records'])
        expect(all(part).size > 0, `the order was sent before its ${part} were there`);
      hub = 'order';
      return { uid: 'uid-1' };
    },
    'management-cluster.deleteObject': () => {
      const existed = hub === 'order';
      hub = 'nothing';
      return { existed };
    },
    'agents.select': ({ wanted }) => {
      if (waits('agents')) return { waiting: 'waits for agents', have: {}, want: wanted ?? {} };
      if (agents === 0) generation += 1;
      agents = Object.values(wanted as JsonObject).reduce<number>((sum, n) => sum + Number(n), 0);
      return { agents: shownAgents(), generation };
    },
    'agents.addresses': () =>
      waits('addresses') ? { waiting: 'no address seen yet' } : { addresses: { 'agent-0': ['10.20.0.9'] } },
    'agents.return': () => {
      expect(isEmpty('ports') && hub === 'nothing', 'agents were given back while they were in use');
      agents = 0;
      return { held: false };
    },
    'agents.look': () => ({ agents: shownAgents() }),
    'pools.vlan': () => {
      if (waits('vlan')) return { waiting: 'no VLAN is free' };
      if (vlan === undefined) vlan = { generation: (generation += 1), quarantined: false };
      return vlanShown();
    },
    'pools.release-vlan': (args) => {
      expect(isEmpty('networks', 'ports', 'bindings'), 'a VLAN was given back while it was configured');
      if (isNamed(args, vlan)) vlan = undefined;
      return {};
    },
    'pools.prefix': () => {
      if (prefix === undefined) prefix = { generation: (generation += 1) };
      return prefixShown();
    },
    'pools.release-prefix': (args) => {
      expect(isEmpty('l3networks', 'bindings'), 'a prefix was given back while it was configured');
      if (isNamed(args, prefix)) prefix = undefined;
      return {};
    },
    'pools.look': () => ({
      vlans: vlan === undefined ? [] : [vlanShown()],
      prefixes: prefix === undefined ? [] : [prefixShown()],
    }),
    'site.l2-create': (args) => ensure('networks', args),
    'site.l2-delete': (args) => {
      expect(isEmpty('ports', 'bindings'), 'a network was removed before its ports and its prefix');
      return remove('networks', args);
    },
    'site.ports-bind': (args) => {
      expect(all('networks').size > 0, 'ports were bound to no network');
      return ensure('ports', args);
    },
    'site.ports-reset': (args) => {
      expect(hub === 'nothing', 'ports were reset while the cluster was there');
      return remove('ports', args);
    },
    'site.l3-create': (args) => ensure('l3networks', args),
    'site.l3-delete': (args) => remove('l3networks', args),
    'site.l3-bind': (args) => ensure('bindings', args),
    'site.l3-unbind': (args) => remove('bindings', args),
    'site.nat-ensure': (args) => ensure('nats', args),
    'site.nat-remove': (args) => {
      expect(isEmpty('records'), 'NAT was removed before the records that lead to it');
      return remove('nats', args);
    },
    'site.dns-ensure': (args) => ensure('records', args),
    'site.dns-remove': (args) => remove('records', args),
    'site.dns-propagated': () => (waits('dns') ? { waiting: 'not everywhere yet', missing: ['a'] } : {}),
    'site.task': ({ task }) => {
      expect(hub === 'order', 'a task ran on a cluster that is not there');
      return waits(stringAt(task, 'name'))
        ? { passed: false, message: 'not yet', evidence: {} }
        : {
            passed: true,
            message: '',
            evidence: { checked: textOf(objectAt({ task: task ?? {} }, 'task')['name']) },
          };
    },
    'site.look': () =>
      Object.fromEntries(
        Object.entries(parts).map(([part, items]) => [part, [...items.values()].map((spec) => ({ spec }))]),
      ),
  };

  return {
    patience,
    journal,
    wrongs,
    /** Carries it out. Undefined: it is for somebody else. */
    perform: ({
      port,
      operation,
      args,
    }: Pick<PendingEffect, 'port' | 'operation' | 'args'>): JsonObject | undefined => {
      const name = `${port}.${operation}`;
      const done = operations[name]?.(args);
      if (done !== undefined) journal.push(name);
      return done;
    },
    hasOrder: (): boolean => hub === 'order',
    /** Everything that somebody still holds. */
    held: (): readonly string[] => [
      ...(place ? ['place'] : []),
      ...(agents === 0 ? [] : ['agents']),
      ...(vlan === undefined ? [] : ['vlan']),
      ...(prefix === undefined ? [] : ['prefix']),
      ...(addresses ? ['addresses'] : []),
      ...(hub === 'order' ? ['order'] : []),
      ...Object.keys(parts).filter((part) => !isEmpty(part)),
    ],
  };
};
