import type { L3Binding, L3Network, Nat } from '../../../../app/site/ports.ts';
import { addressText, parseAddress, parseRange, type Range } from '../../../../domain/ranges.ts';
import { vlanName, vlanOf } from './fabric.ts';
import {
  conflict,
  EVERYBODY,
  make,
  operation,
  refusal,
  sameMark,
  shown,
  takeAway,
  whose,
  type Act,
  type Of,
  type Operation,
  type Result,
} from './part.ts';

/** The physics of routers: prefixes of one VRF do not overlap, an address is translated once, and what is in use stays. */
type Prefixes = Pick<L3Network, 'vrf' | 'prefixes'>;
const networkName = ({ vrf, prefixes }: Prefixes): string => `${vrf} ${prefixes.toSorted().join(' ')}`;
const bindingName = (binding: L3Binding): string => `${vlanName(binding)} ${networkName(binding)}`;

const rangesOf = (network: L3Network): readonly Range[] => {
  const ranges = network.prefixes.map((text) => {
    const range = parseRange(text);
    if (range?.text !== text) throw refusal(`prefix ${text} is not a CIDR without host bits`);
    return range;
  });
  const families = new Set(ranges.map(({ family }) => family));
  if (ranges.length === 0 || families.size < ranges.length)
    throw refusal('a network has one prefix of each family at most, and one at least');
  for (const gateway of network.gateways) {
    const address = parseAddress(gateway);
    const isInside = ranges.some(
      ({ from, to }) => address?.length === from.length && from <= address && address <= to,
    );
    if (!isInside) throw refusal(`gateway ${gateway} is in none of ${network.prefixes.join(', ')}`);
  }
  return ranges;
};

/** IPv4 and IPv6 addresses of one VRF are not compared with each other. */
const placeOf = (vrf: string, { family }: Range): string => `${vrf}/${family}`;

const createNetwork = (network: L3Network, act: Act): Result => {
  const { file, now, owner, effectId, life } = act;
  const { vrf, prefixes, gateways, dhcp } = network;
  const ranges = rangesOf(network);
  for (const range of ranges) {
    const other = file.itemIn('prefix', placeOf(vrf, range), now, range);
    if (other !== undefined && !(other.name === `${vrf} ${range.text}` && sameMark(other.owner, owner)))
      throw conflict(`prefix ${range.text} overlaps ${other.name}, which belongs to ${whose(other)}`);
  }
  const readyAt = now + life.router;
  const spec = { vrf, prefixes, gateways, dhcp };
  const made = make(act, `network ${networkName(network)}`, {
    sort: 'l3-network',
    name: networkName(network),
    readyAt,
    spec,
    place: vrf,
  });
  if (made.text !== 'created') return made;
  for (const range of ranges)
    file.addItem({
      sort: 'prefix',
      name: `${vrf} ${range.text}`,
      owner,
      effectId,
      createdAt: now,
      readyAt,
      spec: {},
      place: placeOf(vrf, range),
      low: range.from,
      high: range.to,
    });
  return made;
};

const deleteNetwork = (network: L3Network, act: Act): Result => {
  const { file, now, owner, life } = act;
  const name = networkName(network);
  const there = file.itemAt('l3-network', name, now);
  if (there === undefined || !sameMark(there.owner, owner)) return { text: 'absent' };
  if (there.goneAt === undefined) {
    const inside =
      file.itemsOf<L3Binding>('binding', owner.order, now).find(({ spec }) => networkName(spec) === name) ??
      file.itemsOf<Nat>('nat', owner.order, now).find(({ spec }) => spec.vrf === network.vrf);
    if (inside !== undefined) throw conflict(`network ${name} is in use by ${inside.name}`);
    for (const prefix of network.prefixes) takeAway(act, 'prefix', `${network.vrf} ${prefix}`, life.router);
  }
  return takeAway(act, 'l3-network', name, life.router);
};

/** The network of the order, or why nothing can be done with it. */
const networkOf = ({ file, now, owner }: Act, { vrf, prefixes }: Prefixes): void => {
  const name = networkName({ vrf, prefixes });
  const network = file.itemAt('l3-network', name, now);
  if (network === undefined || network.goneAt !== undefined)
    throw refusal(`network ${name} is not on the routers`);
  if (network.owner.order !== owner.order) throw conflict(`network ${name} belongs to ${whose(network)}`);
};

const bind = (binding: L3Binding, act: Act): Result => {
  vlanOf(act, binding);
  networkOf(act, binding);
  const { fabric, vlanId, vrf, prefixes } = binding;
  const other = act.file.itemIn<L3Binding>('binding', vlanName(binding), act.now);
  if (other !== undefined && other.name !== bindingName(binding))
    throw conflict(`VLAN ${vlanId} of fabric ${fabric} has the network of ${other.name}`);
  return make(act, `binding ${bindingName(binding)}`, {
    sort: 'binding',
    name: bindingName(binding),
    readyAt: act.now + act.life.router,
    spec: { fabric, vlanId, vrf, prefixes },
    place: vlanName(binding),
  });
};

const ensureNat = ({ address, endpoint, vrf }: Nat, act: Act): Result => {
  const { file, now, owner, life } = act;
  const parsed = parseAddress(address);
  if (parsed === undefined || addressText(parsed) !== address) throw refusal(`${address} is no address`);
  const isThere = file
    .itemsOf<L3Network>('l3-network', owner.order, now)
    .some(({ spec, goneAt }) => spec.vrf === vrf && goneAt === undefined);
  if (!isThere && file.itemAt('nat', address, now) === undefined)
    throw refusal(`the order has no network in VRF ${vrf} that ${address} could lead to`);
  const spec = { address, endpoint, vrf };
  return make(act, `NAT of ${address}`, { sort: 'nat', name: address, readyAt: now + life.router, spec });
};

export const L3: { readonly [operation: string]: Operation } = {
  'l3.createNetwork': operation<L3Network>({
    write: true,
    object: networkName,
    undoneBy: 'l3.deleteNetwork',
    run: createNetwork,
  }),
  'l3.deleteNetwork': operation<L3Network>({ write: true, object: networkName, run: deleteNetwork }),
  'l3.bind': operation<L3Binding>({ write: true, object: bindingName, undoneBy: 'l3.unbind', run: bind }),
  'l3.unbind': operation<L3Binding>({
    write: true,
    object: bindingName,
    run: (binding, act) => takeAway(act, 'binding', bindingName(binding), act.life.router),
  }),
  'l3.ensureNat': operation<Nat>({
    write: true,
    object: ({ address }) => address,
    undoneBy: 'l3.removeNat',
    run: ensureNat,
  }),
  'l3.removeNat': operation<Nat>({
    write: true,
    object: ({ address }) => address,
    run: ({ address }, act) => takeAway(act, 'nat', address, act.life.router),
  }),
  'l3.observe': operation<Of>({
    write: false,
    object: ({ order }) => order ?? EVERYBODY,
    run: ({ order }, act) => {
      const networks = shown<L3Network>(act, 'l3-network', order);
      const bindings = shown<L3Binding>(act, 'binding', order);
      const nats = shown<Nat>(act, 'nat', order);
      const count = networks.length + bindings.length + nats.length;
      return { value: { networks, bindings, nats }, text: `found ${count}` };
    },
  }),
};
