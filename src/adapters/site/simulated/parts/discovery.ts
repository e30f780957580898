import type { SiteAgent } from '../../../../app/site/ports.ts';
import { isAmong } from '../../../simulation/settings.ts';
import { BadSimulationSetting } from '../../../simulation/settings.ts';
import type { SiteLife } from '../settings.ts';
import { operation, type Act, type Operation, type Result } from './part.ts';

/** Hosts that a hub has, and how they become agents. */
type Wanted = { readonly id: string; readonly hub: string; readonly hostClass: string };

const PORTS_OF_A_SWITCH = 48;

/** How many hosts of a class the setting `hosts` says that a hub has. */
export const hostsOfClass = (hosts: string, hostClass: string): number => {
  const total = /^\d{1,6}$/.exec(hosts);
  if (total !== null) return Number(hosts);
  for (const part of hosts.split(/\s+/).filter((each) => each !== '')) {
    const [, name, count] = /^(.+):(\d{1,6})$/.exec(part) ?? [];
    if (count === undefined) throw new BadSimulationSetting(`"${part}" of hosts is not class:number`);
    if (name === hostClass) return Number(count);
  }
  return 0;
};

const count = ({ file }: Act, text: string, ...values: (string | number)[]): number =>
  Number(file.sql(text).get(...values)?.['n']);

/** Of the class, those that nobody has found or is looking for. */
const remaining = (act: Act, { hub, hostClass }: Omit<Wanted, 'id'>): number =>
  Math.max(
    0,
    hostsOfClass(act.life.hosts, hostClass) -
      count(act, 'SELECT count(*) AS n FROM hosts WHERE hub = ? AND class = ?', hub, hostClass),
  );

const linksOf = (number: number, zone: string, life: SiteLife): SiteAgent['links'] => {
  const fabric = life.fabric === '' ? zone : life.fabric;
  const links = life.links ?? 1;
  return Array.from({ length: links }, (_, link) => {
    const place = (number - 1) * links + link;
    const octets = [place >> 16, place >> 8, place].map((part) => (part & 255).toString(16).padStart(2, '0'));
    return {
      fabric,
      switch: `leaf-${1 + Math.floor(place / PORTS_OF_A_SWITCH)}`,
      port: `eth${1 + (place % PORTS_OF_A_SWITCH)}`,
      mac: `52:54:00:${octets.join(':')}`,
    };
  });
};

const discover = ({ id, hub, hostClass }: Wanted, act: Act): Result => {
  const { file, now, life } = act;
  if (file.sql('SELECT 1 FROM discoveries WHERE id = ?').get(id) !== undefined) return { text: 'unchanged' };
  const number = count(act, 'SELECT count(*) AS n FROM discoveries') + 1;
  const isFound =
    remaining(act, { hub, hostClass }) > 0 && !isAmong(life.failDiscovery, number, `${act.zone}/discovery`);
  const endsAt = now + life.discovery;
  const agent = isFound ? addHost(act, { hub, hostClass }, endsAt) : null;
  file
    .sql('INSERT INTO discoveries (id, number, hub, class, at, ends_at, agent) VALUES (?, ?, ?, ?, ?, ?, ?)')
    .run(id, number, hub, hostClass, now, endsAt, agent);
  return { text: 'created' };
};

/** Taken at once, so that nobody else finds it; it shows itself when the discovery ends. */
const addHost = (act: Act, { hub, hostClass }: Omit<Wanted, 'id'>, foundAt: number): string => {
  const { file, life, zone } = act;
  const number = count(act, 'SELECT count(*) AS n FROM hosts') + 1;
  const id = `${hub}-${hostClass}-${String(number).padStart(3, '0')}`;
  file
    .sql('INSERT INTO hosts (id, number, hub, class, found_at, links) VALUES (?, ?, ?, ?, ?, ?)')
    .run(id, number, hub, hostClass, foundAt, JSON.stringify(linksOf(number, zone, life)));
  return id;
};

export const DISCOVERY: { readonly [operation: string]: Operation } = {
  'discovery.discover': operation<Wanted>({ write: true, object: ({ id }) => id, run: discover }),
  'discovery.remaining': operation<Omit<Wanted, 'id'>>({
    write: false,
    object: ({ hub, hostClass }) => `${hub} ${hostClass}`,
    run: (of, act) => {
      const value = remaining(act, of);
      return { value, text: `found ${value}` };
    },
  }),
  'discovery.observe': operation<{ readonly hub: string }>({
    write: false,
    object: ({ hub }) => hub,
    run: ({ hub }, { file, now }) => {
      const rows = file
        .sql('SELECT id, ends_at, agent FROM discoveries WHERE hub = ? ORDER BY number')
        .all(hub);
      const value = rows.map(({ id, ends_at: endsAt, agent }) => {
        if (Number(endsAt) > now) return { id, state: 'discovering' };
        return agent === null ? { id, state: 'failed' } : { id, state: 'found', agent };
      });
      return { value, text: `found ${value.length}` };
    },
  }),
};
