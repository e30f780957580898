import type { BoundPort, FabricNetwork, FabricPort } from '../../../../app/site/ports.ts';
import { isAmong } from '../../../simulation/settings.ts';
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

/** The physics of switches: a VLAN has one owner, a port is in one VLAN, and a VLAN with ports in it stays. */
export const vlanName = ({ fabric, vlanId }: FabricNetwork): string => `${fabric}/${vlanId}`;
export const portName = (port: FabricPort): string => `${port.fabric}/${port.switch}/${port.port}`;

/** `seenAt`: when an address of the agent behind it is seen; absent: never, for this binding. `bindings`: how many it had. */
export type PortItem = BoundPort & { readonly bindings: number; readonly seenAt?: number };

/** The VLAN of the order, or why nothing can be done with it. */
export const vlanOf = ({ file, now, owner }: Act, network: FabricNetwork): void => {
  const called = `VLAN ${network.vlanId} of fabric ${network.fabric}`;
  const vlan = file.itemAt('vlan', vlanName(network), now);
  if (vlan === undefined || vlan.goneAt !== undefined) throw refusal(`${called} is not on the switches`);
  if (vlan.owner.order !== owner.order) throw conflict(`${called} belongs to ${whose(vlan)}`);
};

const isVlanId = (id: number): boolean => Number.isInteger(id) && id >= 1 && id <= 4094;

const createNetwork = (network: FabricNetwork, act: Act): Result => {
  if (!isVlanId(network.vlanId)) throw refusal(`VLAN ${network.vlanId} is not between 1 and 4094`);
  const called = `VLAN ${network.vlanId} of fabric ${network.fabric}`;
  const { fabric, vlanId } = network;
  const readyAt = act.now + act.life.switch;
  return make(act, called, { sort: 'vlan', name: vlanName(network), readyAt, spec: { fabric, vlanId } });
};

const deleteNetwork = (network: FabricNetwork, act: Act): Result => {
  const { file, now, owner } = act;
  const name = vlanName(network);
  const vlan = file.itemAt('vlan', name, now);
  if (vlan !== undefined && sameMark(vlan.owner, owner) && vlan.goneAt === undefined) {
    const called = `VLAN ${network.vlanId} of fabric ${network.fabric}`;
    const inside = file.itemIn('port', name, now) ?? file.itemIn('binding', name, now);
    if (inside !== undefined) throw conflict(`${called} is in use by ${inside.name}`);
  }
  return takeAway(act, 'vlan', name, act.life.switch);
};

const bindPort = (port: BoundPort, act: Act): Result => {
  const { file, now, owner, life } = act;
  const name = portName(port);
  const { fabric, switch: at, port: of, vlanId } = port;
  const there = file.itemAt<PortItem>('port', name, now);
  if (there !== undefined) {
    const called = `port ${of} of switch ${at}`;
    if (!sameMark(there.owner, owner)) throw conflict(`${called} belongs to ${whose(there)}`);
    if (there.spec.vlanId !== vlanId)
      throw conflict(`${called} is in VLAN ${there.spec.vlanId} and cannot be in ${vlanId} too`);
  }
  vlanOf(act, port);
  const bindings = (there?.spec.bindings ?? 0) + 1;
  const seen = isAmong(life.blindBinding, bindings, `${name}/blind`)
    ? {}
    : { seenAt: now + life.switch + life.address };
  const spec = { fabric, switch: at, port: of, vlanId, bindings, ...seen };
  // A binding that an address came of stays as it is; another one is tried again.
  if (there === undefined || there.goneAt !== undefined)
    return make(act, name, {
      sort: 'port',
      name,
      readyAt: now + life.switch,
      spec,
      place: vlanName(port),
    });
  const kept = there.spec.seenAt === undefined ? spec : { ...there.spec, bindings };
  file.changeItem(there, { generation: owner.generation, readyAt: there.readyAt, spec: kept });
  return { text: 'unchanged' };
};

export const FABRIC: { readonly [operation: string]: Operation } = {
  'fabric.createNetwork': operation<FabricNetwork>({
    write: true,
    object: vlanName,
    undoneBy: 'fabric.deleteNetwork',
    run: createNetwork,
  }),
  'fabric.deleteNetwork': operation<FabricNetwork>({ write: true, object: vlanName, run: deleteNetwork }),
  'fabric.bindPort': operation<BoundPort>({
    write: true,
    object: portName,
    undoneBy: 'fabric.resetPort',
    run: bindPort,
  }),
  'fabric.resetPort': operation<FabricPort>({
    write: true,
    object: portName,
    run: (port, act) => takeAway(act, 'port', portName(port), act.life.switch),
  }),
  'fabric.observe': operation<Of>({
    write: false,
    object: ({ order }) => order ?? EVERYBODY,
    run: ({ order }, act) => {
      const networks = shown<FabricNetwork>(act, 'vlan', order);
      const ports = shown<PortItem>(act, 'port', order).map(({ owner, spec }) => {
        const { fabric, switch: at, port, vlanId } = spec;
        return { owner, spec: { fabric, switch: at, port, vlanId } };
      });
      return { value: { networks, ports }, text: `found ${networks.length + ports.length}` };
    },
  }),
};
