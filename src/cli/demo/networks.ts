import { isGone, PRIVATE, PUBLIC, refusal, shows } from './addresses.ts';
import { showMachine } from './machines.ts';
import { ClaimFailed } from './narrator.ts';
import { readHubFiles } from './on-hubs.ts';
import { showServer } from './servers.ts';
import type { Stage } from './stage.ts';

const CLASSES = `${PRIVATE}/network_classes`;
const TENANTS = `${PRIVATE}/tenants`;
const TENANT = 'hooli';
/** What a tenant has from the start, each after what it lies in, and what it is on a hub. */
const DEFAULTS = [
  ['virtual_networks', 'VirtualNetwork'],
  ['subnets', 'Subnet'],
  ['security_groups', 'SecurityGroup'],
] as const;

type Listed = { readonly items?: readonly { readonly id: string }[] };

/** A tenant with the network that its class gives it and a subnet of its own, and back: each is one object on the hub. */
export const showNetworks = async (stage: Stage): Promise<void> => {
  const { narrator, request } = stage;
  // What networks are made of on a real hub, only its operator can say.
  if (request.hub !== undefined) return;
  narrator.chapter('Network: a tenant with default networking, and a subnet of its own');
  const admin = stage.admin();
  const networkClass = await admin.send<{ id: string }>('POST', CLASSES, {
    title: 'Networks of the demo',
    implementation_strategy: 'phys_net',
    fabric_manager: 'netris',
    is_default: true,
    capabilities: { supports_ipv4: true },
    spec: { defaults: { virtual_network_ipv4_cidr: '10.0.0.0/16', subnet_ipv4_cidr: '10.0.0.0/24' } },
  });
  const tenant = await admin.send<{ id: string }>('POST', TENANTS, { metadata: { name: TENANT } });
  const user = await stage.userOf(TENANT);
  const made: { readonly path: string; readonly object: string; readonly id: string }[] = [];
  for (const [collection, object] of DEFAULTS) {
    const { items: [part] = [] } = await user.get<Listed>(`${PUBLIC}/${collection}`);
    if (part === undefined) throw new ClaimFailed(`tenant ${TENANT} has no default in ${collection}`);
    made.push({ path: `${PUBLIC}/${collection}/${part.id}`, object, id: part.id });
  }
  await Promise.all(made.map(({ path }) => shows(stage, user, path, 'READY')));
  narrator.check('the new tenant has a network, a subnet and a security group, all READY', true, TENANT);
  const [network] = made;
  if (network === undefined) return;
  narrator.check('nobody deletes these', (await refusal(user, 'DELETE', network.path)) === 400);
  const subnet = (cidr: string): object => ({
    metadata: { name: 'demo-own', annotations: { simulation: 'factor=0.1' } },
    spec: { virtual_network: { id: network.id }, ipv4_cidr: cidr },
  });
  const subnets = `${PUBLIC}/subnets`;
  narrator.check(
    'a subnet that overlaps another one is refused',
    (await refusal(user, 'POST', subnets, subnet('10.0.0.128/25'))) === 409,
  );
  const own = await user.send<{ id: string }>('POST', subnets, subnet('10.0.1.0/24'));
  const ownPath = `${subnets}/${own.id}`;
  await shows(stage, user, ownPath, 'READY');
  narrator.check('a subnet of its own in the network is READY', true, '10.0.1.0/24');
  await showMachine(stage, user, own.id);
  await showServer(stage, user, own.id);
  await user.send('DELETE', ownPath);
  await isGone(stage, user, ownPath);
  await admin.send('DELETE', `${TENANTS}/${tenant.id}`);
  await isGone(stage, admin, `${TENANTS}/${tenant.id}`);
  await admin.send('DELETE', `${CLASSES}/${networkClass.id}`);
  narrator.say('taken down again: the subnet, then the tenant, whose network went before it');
  const wanted = Map.groupBy([...made, { object: 'Subnet', id: own.id }], ({ object }) => object);
  for (const [kind, each] of wanted) {
    const { objectsOf } = readHubFiles(stage.dataDir, kind);
    narrator.check(
      `the hub's journal holds exactly one ${kind} for each that was made`,
      objectsOf.size === each.length && each.every(({ id }) => objectsOf.get(id) === 1),
      String(each.length),
    );
  }
};
