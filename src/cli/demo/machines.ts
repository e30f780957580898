import { setTimeout as pause } from 'node:timers/promises';
import type { ApiClient } from '../api-client.ts';
import { isGone, makePool, PRIVATE, PUBLIC, shows, type Shown } from './addresses.ts';
import { askConsole } from './console.ts';
import { ClaimFailed } from './narrator.ts';
import { readHubFiles } from './on-hubs.ts';
import type { Stage } from './stage.ts';

const MACHINES = `${PUBLIC}/compute_instances`;

const QUICK = { simulation: 'factor=0.1' };

/** A virtual machine with an external IP in a subnet of its tenant: asked at its console, stopped, started and deleted. */
export const showMachine = async (stage: Stage, user: ApiClient, subnet: string): Promise<void> => {
  const { narrator } = stage;
  narrator.chapter('Machine: a virtual machine with an external IP, stopped and started');
  const { status } = await stage.admin().get<Shown>(`${PRIVATE}/subnets/${subnet}`);
  const pool = await makePool(stage, 'demo-machines', '198.51.100.0/28', status?.hub ?? '');
  const { id } = await user.send<{ id: string }>('POST', MACHINES, {
    metadata: { name: 'demo-vm', annotations: QUICK },
    spec: {
      template: { name: 'vm' },
      network_attachments: [{ subnet: { id: subnet } }],
      auto_external_ip_attachment: true,
      user_data: '#cloud-config',
    },
  });
  const path = `${MACHINES}/${id}`;
  await shows(stage, user, path, 'RUNNING');
  const address = await addressOf(stage, user, path);
  narrator.check('it runs, with an external IP of its own', address.startsWith('198.51.100.'), address);
  const answer = await askConsole(stage, user, id, 'uname');
  narrator.check("its serial console answers 'uname'", answer !== '', answer);
  for (const [strategy, state] of [
    ['Halted', 'STOPPED'],
    ['Always', 'RUNNING'],
  ] as const) {
    await user.send('PATCH', path, { spec: { run_strategy: strategy } });
    await shows(stage, user, path, state);
    narrator.check(`it is ${state}`, true);
  }
  await user.send('DELETE', path);
  await isGone(stage, user, path);
  await stage.admin().send('DELETE', pool);
  await isGone(stage, stage.admin(), pool);
  narrator.say('taken down again: the attachment, the address, then the machine and its user data');
  for (const kind of ['ComputeInstance', 'UserDataSecret']) {
    const { objectsOf } = readHubFiles(stage.dataDir, kind);
    narrator.check(
      `the hub's journal holds exactly one ${kind}`,
      objectsOf.get(id) === 1 && objectsOf.size === 1,
    );
  }
};

const addressOf = async (stage: Stage, user: ApiClient, path: string): Promise<string> => {
  const deadline = performance.now() + stage.patienceMs;
  for (;;) {
    const { status } = await user.get<Shown>(path);
    if (status?.external_ip_address !== undefined) return status.external_ip_address;
    if (performance.now() > deadline) throw new ClaimFailed(`${path} shows no external IP`);
    await pause(100);
  }
};
