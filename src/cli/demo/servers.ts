import type { ApiClient } from '../api-client.ts';
import { isGone, PUBLIC, shows } from './addresses.ts';
import { readHubFiles } from './on-hubs.ts';
import type { Stage } from './stage.ts';

const SERVERS = `${PUBLIC}/baremetal_instances`;
const STRATEGY = 'BARE_METAL_INSTANCE_RUN_STRATEGY_';

/** A whole server in a subnet of its tenant: powered off and on, and returned. */
export const showServer = async (stage: Stage, user: ApiClient, subnet: string): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Server: a bare-metal instance in the subnet, powered off and on');
  const { id } = await user.send<{ id: string }>('POST', SERVERS, {
    metadata: { name: 'demo-server', annotations: { simulation: 'factor=0.1' } },
    spec: { catalog_item: { name: 'gpu-server' }, network_attachments: [{ subnet: { id: subnet } }] },
  });
  const path = `${SERVERS}/${id}`;
  await shows(stage, user, path, 'RUNNING');
  for (const [strategy, state] of [
    ['HALTED', 'STOPPED'],
    ['ALWAYS', 'RUNNING'],
  ] as const) {
    await user.send('PATCH', path, { spec: { run_strategy: STRATEGY + strategy } });
    await shows(stage, user, path, state);
    narrator.check(`it is ${state}`, true);
  }
  await user.send('DELETE', path);
  await isGone(stage, user, path);
  const { objectsOf } = readHubFiles(stage.dataDir, 'BareMetalInstance');
  narrator.check(
    "it is returned; the hub's journal holds exactly one BareMetalInstance",
    objectsOf.get(id) === 1 && objectsOf.size === 1,
  );
};
