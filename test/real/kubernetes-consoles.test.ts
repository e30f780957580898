import { expect } from 'chai';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { installDefinitions } from '../../ops/real/kube-apiserver/play.ts';
import { startKubeServers, type KubeServers } from '../../ops/real/kube-apiserver/servers.ts';
import type { MachineConsole } from '../../src/app/consoles/console-line.ts';
import { COMPUTE_INSTANCE } from '../../src/domain/compute/hub-objects.ts';
import type { ConsoleType } from '../../src/domain/consoles.ts';
import { by, NS, placeOf } from '../integration/management-cluster/kubernetes-stage.ts';
import { failure } from '../integration/management-cluster/contract-kit.ts';
import {
  aggregateConsoles,
  CONSOLE_API,
  startConsoleServer,
  type ConsoleServer,
} from '../support/consoles/console-server.ts';
import { eventually } from '../support/eventually.ts';
import { grantHubAccess, kubernetesHub, type KubernetesFixture } from '../support/hubs/kubernetes-hub.ts';
import { kubeClient, type KubeClient } from '../support/kube-apiserver/client.ts';
import { notRunHere } from '../support/not-run-here.ts';

const binary = kubeBinary((line) => console.log(`  ${line}`));

/** Consoles through the aggregated API of a real kube-apiserver, with exactly the rights of ops/rbac/hub-access.yaml. */
describe('consoles through a real kube-apiserver', function () {
  this.timeout(120_000);
  let servers: KubeServers;
  let admin: KubeClient;
  let machines: ConsoleServer;
  let hub: KubernetesFixture;

  before(async function () {
    if ('missing' in binary) return notRunHere(this, 'kube-apiserver', binary.missing);
    servers = await startKubeServers(binary.path);
    admin = kubeClient({ url: servers.url, ca: servers.ca, token: servers.adminToken });
    machines = await startConsoleServer();
    await installDefinitions(admin);
    const token = await grantHubAccess(admin.call, NS);
    await aggregateConsoles(admin.call, NS, machines.port);
    hub = kubernetesHub({ kubeconfigs: { '1': servers.kubeconfig(token) }, namespace: NS });
    const { sample, idLabel } = COMPUTE_INSTANCE;
    const wanted = { ...placeOf('vm-1'), labels: { [idLabel]: 'vm-1' }, annotations: {} };
    await hub.hub.create(COMPUTE_INSTANCE, { ...wanted, spec: sample.spec as never }, by());
  });
  after(async () => {
    await hub?.clusters.close();
    machines?.close();
    admin?.close();
    await servers?.close();
  });

  const open = async (type: ConsoleType, of = hub) => {
    const call = by({ deadlineMs: 20_000 });
    const line = await of.hub.openConsole?.(COMPUTE_INSTANCE, placeOf('vm-1'), type, call);
    return heard(line as MachineConsole);
  };
  const heard = (line: MachineConsole) => {
    let said = '';
    const ended = (async () => {
      for await (const piece of line.incoming) said += Buffer.from(piece).toString('latin1');
    })().catch(() => undefined);
    const hears = (text: string) =>
      eventually(
        () => `hears '${text}': ${said}`,
        () => said.includes(text),
      );
    return { line, ended, hears };
  };

  it('answer at the prompt and show the screen, with the rights of the account of the hub', async () => {
    const serial = await open('serial');
    await serial.hears('# ');
    await serial.line.send(Buffer.from('echo through the API server\r'));
    await serial.hears('\r\nthrough the API server\r\n');
    serial.line.close();
    await serial.ended;
    const screen = await open('vnc');
    await screen.hears('RFB 003.008\n');
    screen.line.close();
    const machine = `${CONSOLE_API}/namespaces/${NS}/computeinstances/vm-1`;
    const user = `system:serviceaccount:${NS}:hub-access`;
    expect(machines.asked).to.deep.equal([
      { path: `${machine}/console`, user },
      { path: `${machine}/vnc`, user },
    ]);
  });

  it('are refused to an account without these rights', async () => {
    const account = `/api/v1/namespaces/${NS}/serviceaccounts`;
    await admin.post(account, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'nobody' } });
    const { body } = await admin.post(`${account}/nobody/token`, {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3_600 },
    });
    const { token } = body['status'] as { readonly token: string };
    const other = kubernetesHub({ kubeconfigs: { '1': servers.kubeconfig(token) }, namespace: NS });
    try {
      expect(await failure(open('serial', other))).to.include({ kind: 'unauthorized' });
    } finally {
      await other.clusters.close();
    }
  });
});
