import { createServer, type Server } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { createWebSocketStream, WebSocketServer } from 'ws';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { installDefinitions } from '../../ops/real/kube-apiserver/play.ts';
import { startKubeServers, type KubeServers } from '../../ops/real/kube-apiserver/servers.ts';
import { serialPrompt } from '../../src/adapters/management-cluster/simulated/consoles/serial.ts';
import { vncServer } from '../../src/adapters/management-cluster/simulated/consoles/vnc.ts';
import type { MachineConsole } from '../../src/app/consoles/console-line.ts';
import { COMPUTE_INSTANCE } from '../../src/domain/compute/hub-objects.ts';
import type { ConsoleType } from '../../src/domain/consoles.ts';
import { by, NS, placeOf } from '../integration/management-cluster/kubernetes-stage.ts';
import { failure } from '../integration/management-cluster/contract-kit.ts';
import { eventually } from '../support/eventually.ts';
import { loopbackTls } from '../support/http/loopback-tls.ts';
import { grantHubAccess, kubernetesHub, type KubernetesFixture } from '../support/hubs/kubernetes-hub.ts';
import { kubeClient, type KubeClient } from '../support/kube-apiserver/client.ts';
import { notRunHere } from '../support/not-run-here.ts';

const binary = kubeBinary((line) => console.log(`  ${line}`));
const GROUP = 'console.osac.openshift.io';
const VERSION = `${GROUP}/v1alpha1`;

/** What OSAC's operator serves behind the API server: discovery, and a machine's prompt or screen at its subresources. */
const startConsoleServer = async () => {
  const asked: { readonly path: string; readonly user: string }[] = [];
  const sockets = new WebSocketServer({ noServer: true });
  const resources = ['computeinstances/console', 'computeinstances/vnc'].map((name) => ({
    name,
    namespaced: true,
    kind: 'ComputeInstance',
    verbs: ['get'],
  }));
  const list = { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: VERSION, resources };
  const server: Server = createServer(await loopbackTls(), (request, response) => {
    response.writeHead(request.url?.startsWith(`/apis/${VERSION}`) === true ? 200 : 404, {
      'content-type': 'application/json',
    });
    response.end(JSON.stringify(list));
  });
  server.on('upgrade', (request: IncomingMessage, socket, head) => {
    asked.push({ path: request.url ?? '', user: String(request.headers['x-remote-user']) });
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const name = 'vm-1';
      const machine =
        request.url?.endsWith('/vnc') === true
          ? vncServer({ name })
          : serialPrompt({ name, now: () => Date.now() });
      const client = createWebSocketStream(webSocket);
      client.on('error', () => machine.destroy()).on('close', () => machine.destroy());
      client.pipe(machine).pipe(client);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    close: () => {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
    },
  };
};

/** Consoles through the aggregated API of a real kube-apiserver, with exactly the rights of ops/rbac/hub-access.yaml. */
describe('consoles through a real kube-apiserver', function () {
  this.timeout(120_000);
  let servers: KubeServers;
  let admin: KubeClient;
  let machines: Awaited<ReturnType<typeof startConsoleServer>>;
  let hub: KubernetesFixture;

  before(async function () {
    if ('missing' in binary) return notRunHere(this, 'kube-apiserver', binary.missing);
    servers = await startKubeServers(binary.path);
    admin = kubeClient({ url: servers.url, ca: servers.ca, token: servers.adminToken });
    machines = await startConsoleServer();
    await installDefinitions(admin);
    const token = await grantHubAccess(admin.call, NS);
    const post = async (path: string, body: object): Promise<void> => {
      const { code, text } = await admin.post(path, body as never);
      expect(code, text).to.equal(201);
    };
    await post(`/api/v1/namespaces/${NS}/services`, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'console', namespace: NS },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });
    await post('/apis/apiregistration.k8s.io/v1/apiservices', {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: `v1alpha1.${GROUP}` },
      spec: {
        group: GROUP,
        version: 'v1alpha1',
        groupPriorityMinimum: 1_000,
        versionPriority: 15,
        insecureSkipTLSVerify: true,
        service: { name: 'console', namespace: NS, port: machines.port },
      },
    });
    hub = kubernetesHub({ kubeconfigs: { '1': servers.kubeconfig(token) }, namespace: NS });
    const { sample, idLabel } = COMPUTE_INSTANCE;
    const wanted = { ...placeOf('vm-1'), labels: { [idLabel]: 'vm-1' }, annotations: {} };
    await hub.hub.create(COMPUTE_INSTANCE, { ...wanted, spec: sample.spec as never }, by());
    let last = '';
    await eventually(
      () => `the API is available: ${last}`,
      async () => {
        const { code, text } = await admin.get(`/apis/${VERSION}`);
        last = text;
        return code === 200;
      },
      60_000,
      100,
    );
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
    const machine = `/apis/${VERSION}/namespaces/${NS}/computeinstances/vm-1`;
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
