import { CLUSTER_ORDER, CLUSTER_ORDER_UUID_LABEL } from '../../../src/domain/clusters/hub-objects.ts';
import { createSimulatedHub } from '../../../src/adapters/management-cluster/simulated/simulated-hub.ts';
import { systemClock, systemTimers } from '../../../src/adapters/system/system-ports.ts';

/**
 * A process that writes to a simulated hub until it is killed: `hub-writer.ts <file> <prefix>`. It prints the name
 * of every order after the hub has answered for it. Each order is created, patched and, every third, deleted.
 */
const [file = '', prefix = ''] = process.argv.slice(2);
const hub = createSimulatedHub({
  hubId: 'sim-kill',
  file,
  clock: systemClock(),
  timers: systemTimers(),
  instance: prefix,
});
const signal = new AbortController().signal;

for (let number = 0; ; number += 1) {
  const name = `order-${prefix}-${number}`;
  const ref = { namespace: 'osac-hub', name };
  const by = (what: string) => ({ effectId: `${name}/${what}`, deadlineMs: 60_000, signal });
  await hub.create(
    CLUSTER_ORDER,
    {
      ...ref,
      labels: { [CLUSTER_ORDER_UUID_LABEL]: `id-of-${name}` },
      annotations: {},
      spec: { templateID: 'small', templateParameters: '{}', nodeRequests: [] },
    },
    by('create'),
  );
  process.stdout.write(`${name}\n`);
  await hub.patch(CLUSTER_ORDER, ref, { sshPublicKey: 'ssh-ed25519 AAAA' }, by('patch'));
  if (number % 3 === 0) await hub.delete(CLUSTER_ORDER, ref, by('delete'));
}
