import {
  SiteError,
  type Agents,
  type OwnerMark,
  type Site,
  type SiteAgent,
} from '../../../src/app/site/ports.ts';

type Host = {
  readonly agent: SiteAgent;
  state: 'free' | 'labelled' | 'cleaning' | 'failed';
  owner?: OwnerMark;
  addresses: readonly string[];
  cleaned?: { at: string; evidence: string };
};

/** Agents and discovery of one hub in memory, as far as a test of the pool needs them. Wipes and hosts end when told to. */
export type MemorySite = Pick<Site, 'agents' | 'discovery'> & {
  readonly hosts: Map<string, Host>;
  readonly asked: Map<string, string>;
  /** Whatever is called throws this, while it is set. */
  outage: SiteError | undefined;
  add(id: string, hostClass?: string): void;
  /** All wipes end. */
  wipe(): void;
  /** All hosts that were asked for appear. */
  find(): void;
};

export const memorySite = (hub: string, hardware: { [hostClass: string]: number } = {}): MemorySite => {
  const hosts = new Map<string, Host>();
  const asked = new Map<string, string>();
  const found = new Map<string, string>();
  let wipes = 0;
  const reach = (): void => {
    if (site.outage !== undefined) throw site.outage;
  };
  const hostOf = (id: string, { order }: OwnerMark): Host => {
    reach();
    const host = hosts.get(id);
    if (host === undefined) throw new SiteError('refused', `no agent ${id}`);
    if (host.owner !== undefined && host.owner.order !== order)
      throw new SiteError('conflict', `it is marked for order ${host.owner.order}`);
    return host;
  };
  const agents: Agents = {
    label: async (id, owner) => {
      const host = hostOf(id, owner);
      Object.assign(host, { state: 'labelled', owner, addresses: [`10.0.0.${hosts.size}`] });
    },
    clean: async (id, owner) => void Object.assign(hostOf(id, owner), { state: 'cleaning' }),
    observe: async ({ order }) => {
      reach();
      return [...hosts.values()]
        .filter(({ owner }) => order === undefined || owner?.order === order)
        .map(({ agent, ...seen }) => ({ ...agent, ...seen }));
    },
  };
  const site: MemorySite = {
    hosts,
    asked,
    outage: undefined,
    agents,
    discovery: {
      discover: async ({ id, hostClass }) => {
        reach();
        if (asked.has(id)) return;
        asked.set(id, hostClass);
        hardware[hostClass] = (hardware[hostClass] ?? 1) - 1;
      },
      remaining: async ({ hostClass }) => hardware[hostClass] ?? 0,
      observe: async () => {
        reach();
        return [
          ...[...asked.keys()].map((id) => ({ id, state: 'discovering' as const })),
          ...[...found].map(([id, agent]) => ({ id, state: 'found' as const, agent })),
        ];
      },
    },
    add: (id, hostClass = 'fc430') =>
      void hosts.set(id, { agent: { id, hub, hostClass, links: [] }, state: 'free', addresses: [] }),
    wipe: () => {
      for (const host of hosts.values()) {
        if (host.state !== 'cleaning') continue;
        wipes += 1;
        delete host.owner;
        host.state = 'free';
        host.addresses = [];
        host.cleaned = {
          at: new Date(Date.UTC(2026, 10, 23) + wipes).toISOString(),
          evidence: `wipe ${wipes}`,
        };
      }
    },
    find: () => {
      for (const [id, hostClass] of asked) {
        const agent = `host-${hosts.size + 1}`;
        site.add(agent, hostClass);
        found.set(id, agent);
      }
      asked.clear();
    },
  };
  return site;
};
