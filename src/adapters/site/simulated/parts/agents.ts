import { SiteError, type L3Binding, type SiteAgent } from '../../../../app/site/ports.ts';
import { addressText, moved, parseRange } from '../../../../domain/ranges.ts';
import { isAmong } from '../../../simulation/settings.ts';
import type { Item } from '../site-file.ts';
import { portName, vlanName, type PortItem } from './fabric.ts';
import {
  conflict,
  EVERYBODY,
  operation,
  refusal,
  sameMark,
  whose,
  type Act,
  type Of,
  type Operation,
  type Result,
} from './part.ts';

/** The label of an agent. `wipe`: its wipe was begun; one that fails leaves the agent failed, with its mark. */
type Label = {
  readonly wipe?: { readonly number: number; readonly endsAt: number; readonly fails: boolean };
};
type Host = SiteAgent & { readonly number: number };

const hostsIn = (rows: readonly Record<string, unknown>[]): Host[] =>
  rows.map((row) => ({
    id: String(row['id']),
    number: Number(row['number']),
    hub: String(row['hub']),
    hostClass: String(row['class']),
    links: JSON.parse(String(row['links'])) as SiteAgent['links'],
  }));

const hostCalled = ({ file, now }: Act, agent: string): Host => {
  const [host] = hostsIn(file.sql('SELECT * FROM hosts WHERE id = ? AND found_at <= ?').all(agent, now));
  if (host === undefined) throw refusal(`there is no agent ${agent}`);
  return host;
};

const label = ({ agent }: { readonly agent: string }, act: Act): Result => {
  const { file, now, owner, effectId } = act;
  hostCalled(act, agent);
  const there = file.itemAt<Label>('agent', agent, now);
  if (there === undefined) {
    file.addItem({ sort: 'agent', name: agent, owner, effectId, createdAt: now, readyAt: now, spec: {} });
    return { text: 'created' };
  }
  if (!sameMark(there.owner, owner)) throw conflict(`agent ${agent} belongs to ${whose(there)}`);
  if (there.spec.wipe !== undefined)
    throw new SiteError('unavailable', `agent ${agent} is being wiped`, there.spec.wipe.endsAt - now);
  return { text: 'unchanged' };
};

/** The wipe of what is not labelled any more has ended: to ask for it again is no second one. */
const clean = ({ agent }: { readonly agent: string }, act: Act): Result => {
  const { file, now, owner, effectId, life } = act;
  hostCalled(act, agent);
  const last = file.lastItem<Label>('agent', agent);
  const isThere = last !== undefined && (last.goneAt === undefined || last.goneAt > now);
  if (isThere && !sameMark(last.owner, owner)) throw conflict(`agent ${agent} belongs to ${whose(last)}`);
  if (!isThere && last !== undefined && sameMark(last.owner, owner)) return { text: 'absent' };
  const wiped = isThere ? last.spec.wipe : undefined;
  // One that fails is begun anew once it has failed.
  if (wiped !== undefined && !(wiped.fails && wiped.endsAt <= now)) return { text: 'removed' };
  const number = (wiped?.number ?? 0) + 1;
  const fails = isAmong(life.failCleaning, number, `${agent}/cleaning`);
  const spec = { wipe: { number, endsAt: now + life.cleaning, fails } };
  if (isThere) file.changeItem(last, { generation: owner.generation, readyAt: last.readyAt, spec });
  else file.addItem({ sort: 'agent', name: agent, owner, effectId, createdAt: now, readyAt: now, spec });
  const begun = file.itemAt<Label>('agent', agent, now);
  if (begun !== undefined && !fails) file.endItem(begun, spec.wipe.endsAt);
  return { text: 'removed' };
};

/** Of an agent whose ports are in a VLAN: of the network that the VLAN has, otherwise link-local by its MAC. */
const addressesOf = ({ file, now }: Act, host: Host): readonly string[] =>
  host.links.flatMap((link) => {
    const port = file.itemAt<PortItem>('port', portName(link), now);
    const { seenAt } = port?.spec ?? {};
    if (port === undefined || seenAt === undefined || seenAt > now) return [];
    const network = file.itemIn<L3Binding>('binding', vlanName(port.spec), now);
    const prefixes = network === undefined || network.readyAt > now ? [] : network.spec.prefixes;
    const given = prefixes.flatMap((text) => {
      const range = parseRange(text);
      if (range === undefined) return [];
      // Behind network and gateway, by the agent's number: the same one at each look.
      const room = BigInt(`0x${range.last}`) - BigInt(`0x${range.first}`);
      return room < 2n ? [] : [addressText(moved(range.first, 1n + (BigInt(host.number) % (room - 1n))))];
    });
    return given.length === 0 ? [linkLocal(link.mac)] : given;
  });

/** EUI-64 (RFC 4291). */
const linkLocal = (mac: string): string => {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = mac
    .split(':')
    .map((octet) => Number.parseInt(octet, 16));
  const group = (high: number, low: number): string => (high * 256 + low).toString(16);
  return `fe80::${group(a ^ 2, b)}:${group(c, 0xff)}:${group(0xfe, d)}:${group(e, f)}`;
};

const stateOf = (
  there: Item<Label> | undefined,
  now: number,
): 'free' | 'labelled' | 'cleaning' | 'failed' => {
  if (there === undefined) return 'free';
  const { wipe } = there.spec;
  if (wipe === undefined) return 'labelled';
  return wipe.fails && wipe.endsAt <= now ? 'failed' : 'cleaning';
};

const cleanedOf = (last: Item<Label> | undefined, now: number) =>
  last?.goneAt === undefined || last.goneAt > now
    ? {}
    : {
        cleaned: {
          at: new Date(last.goneAt).toISOString(),
          evidence: `wipe ${last.spec.wipe?.number ?? 1} of the order ${last.owner.order} ended without error`,
        },
      };

const observe = ({ hub, order }: Of & { readonly hub: string }, act: Act): Result => {
  const { file, now } = act;
  const hosts = hostsIn(
    order === undefined
      ? file.sql('SELECT * FROM hosts WHERE hub = ? AND found_at <= ? ORDER BY number').all(hub, now)
      : file
          .itemsOf('agent', order, now)
          .flatMap(({ name }) => file.sql('SELECT * FROM hosts WHERE id = ? AND hub = ?').all(name, hub)),
  );
  const value = hosts.map(({ number, ...host }) => {
    const last = file.lastItem<Label>('agent', host.id);
    const there = last?.goneAt === undefined || last.goneAt > now ? last : undefined;
    return {
      ...host,
      state: stateOf(there, now),
      ...(there === undefined ? {} : { owner: there.owner }),
      addresses: addressesOf(act, { number, ...host }),
      ...cleanedOf(last, now),
    };
  });
  return { value, text: `found ${value.length}` };
};

type Agent = { readonly agent: string };
export const AGENTS: { readonly [operation: string]: Operation } = {
  'agents.label': operation<Agent>({
    write: true,
    object: ({ agent }) => agent,
    undoneBy: 'agents.clean',
    run: label,
  }),
  'agents.clean': operation<Agent>({ write: true, object: ({ agent }) => agent, run: clean }),
  'agents.observe': operation<Of & { readonly hub: string }>({
    write: false,
    object: ({ order }) => order ?? EVERYBODY,
    run: observe,
  }),
};
