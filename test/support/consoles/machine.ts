import { ok } from '../hubs/network-story.ts';
import { eventually } from '../eventually.ts';
import { PRIVATE, PUBLIC, textAt, type Caller } from '../http/service.ts';

const QUICK = { simulation: 'factor=0.05' };

/** A machine of a tenant that runs on a simulated hub, with the network that it needs; its id. */
export const startMachine = async (admin: Caller, user: Caller, name: string): Promise<string> => {
  const settled = async (path: string, state: string): Promise<void> => {
    let last = '';
    await eventually(
      () => `${path} is ${state}: ${last}`,
      async () => {
        last = JSON.stringify((await admin('GET', path)).json);
        return last.includes(`_STATE_${state}"`);
      },
      60_000,
      50,
    );
  };
  const make = async (collection: string, spec: object, state: string): Promise<string> => {
    const metadata = { name, annotations: QUICK };
    const id = textAt(ok(await user('POST', `${PUBLIC}/${collection}`, { metadata, spec })), 'id');
    await settled(`${PRIVATE}/${collection}/${id}`, state);
    return id;
  };
  ok(
    await admin('POST', `${PRIVATE}/network_classes`, {
      title: 'Networks',
      implementation_strategy: 'phys_net',
      fabric_manager: 'netris',
      is_default: true,
      capabilities: { supports_ipv4: true },
    }),
  );
  const network = await make('virtual_networks', { ipv4_cidr: '10.0.0.0/16' }, 'READY');
  const within = { virtual_network: { id: network }, ipv4_cidr: '10.0.1.0/24' };
  const subnet = await make('subnets', within, 'READY');
  const spec = { template: { id: 'osac.templates.vm' }, network_attachments: [{ subnet: { id: subnet } }] };
  return make('compute_instances', spec, 'RUNNING');
};
