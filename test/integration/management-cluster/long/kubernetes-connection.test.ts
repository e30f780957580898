import { createServer, type Server } from 'node:http';
import { connect, createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { createClusters } from '../../../../src/composition/opening.ts';
import { systemClock, systemTimers } from '../../../../src/adapters/system/system-ports.ts';
import type { CallOptions } from '../../../../src/app/hubs/management-cluster.ts';
import { CLUSTER_ORDER } from '../../../../src/domain/clusters/hub-objects.ts';
import { startKubeApiServer, type KubeApiServer } from '../../../support/kube-apiserver/start.ts';
import { failure } from '../contract-kit.ts';
import { connectionOf, kubernetesHub, recordingLogger } from '../../../support/hubs/kubernetes-hub.ts';

const NS = 'osac-hub';
const by = (): CallOptions => ({ effectId: 'x', deadlineMs: 60_000, signal: new AbortController().signal });

describe('connection to a Kubernetes hub', function () {
  this.timeout(20_000);
  let server: KubeApiServer;
  const closers: (() => Promise<void>)[] = [];
  before(async () => {
    server = await startKubeApiServer({ namespaces: [NS] });
  });
  after(() => server.close());
  afterEach(async () => {
    for (const close of closers.splice(0).toReversed()) await close();
  });

  /** A kubeconfig of the administrator with other fields of its cluster. */
  const kubeconfigWith = (cluster: object): string => {
    const config = parse(server.kubeconfig()) as { clusters: { cluster: object }[] };
    const [first] = config.clusters;
    if (first !== undefined) first.cluster = { ...first.cluster, ...cluster };
    return stringify(config);
  };
  const hubWith = (cluster: object) => {
    const fixture = kubernetesHub({ kubeconfigs: { '1': kubeconfigWith(cluster) }, namespace: NS });
    closers.push(() => fixture.clusters.close());
    return fixture.hub;
  };
  const codes = async (cluster: object): Promise<string[]> =>
    (await hubWith(cluster).check(by())).problems.map(({ code, message }) => `${code}: ${message}`);

  /** A proxy that tunnels (CONNECT) and counts. */
  const startProxy = async () => {
    const tunnels: string[] = [];
    const authorizations: (string | undefined)[] = [];
    const sockets = new Set<Socket>();
    const proxy: Server = createServer((_request, response) => response.writeHead(405).end());
    proxy.on('connect', (request, client: Socket) => {
      const [host = '', port = ''] = (request.url ?? '').split(':');
      tunnels.push(request.url ?? '');
      authorizations.push(request.headers['proxy-authorization']);
      const target = connect(Number(port), host, () => {
        client.write('HTTP/1.1 200 Connection established\r\n\r\n');
        target.pipe(client).pipe(target);
      });
      for (const socket of [client, target]) {
        sockets.add(socket);
        socket.on('error', () => socket.destroy());
      }
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    closers.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    });
    return { port: (proxy.address() as AddressInfo).port, tunnels, authorizations };
  };

  it('goes through a proxy, with its password, and keeps the tunnel', async () => {
    const proxy = await startProxy();
    const hub = hubWith({ 'proxy-url': `http://someone:canary@127.0.0.1:${proxy.port}` });
    for (let call = 0; call < 5; call += 1)
      expect(await hub.get(CLUSTER_ORDER, { namespace: NS, name: 'a' }, by())).to.equal(undefined);
    expect(proxy.tunnels).to.deep.equal([new URL(server.url).host]);
    expect(proxy.authorizations).to.deep.equal([`Basic ${Buffer.from('someone:canary').toString('base64')}`]);
  });

  it('says that a proxy is away, and shows none of its password', async () => {
    const [problem = '', ...more] = await codes({ 'proxy-url': 'http://someone:canary@127.0.0.1:1' });
    expect(more).to.deep.equal([]);
    expect(problem)
      .to.equal(
        `Unreachable: get version: ${new URL(server.url).host} through proxy 127.0.0.1:1: connection refused, nothing listens there (ECONNREFUSED)`,
      )
      .and.to.not.include('canary');
  });

  it('checks the name in the server’s certificate, or the one that it is told', async () => {
    const localhost = server.url.replace('127.0.0.1', 'localhost');
    const told = await codes({ server: localhost, 'tls-server-name': 'other.example' });
    expect(told[0]).to.match(
      /^Unreachable: get version: localhost:\d+: TLS failed \(ERR_TLS_CERT_ALTNAME_INVALID\): .* another name/,
    );
    expect(await codes({})).to.deep.equal([]);
  });

  it('without an authority the system’s count; unverified only on loopback and only when told', async () => {
    const none = { 'certificate-authority-data': undefined };
    expect((await codes(none))[0]).to.match(
      /^Unreachable: get version: 127\.0\.0\.1:\d+: TLS failed \(.*certificate-authority-data/,
    );
    expect(await codes({ ...none, 'insecure-skip-tls-verify': true })).to.deep.equal([]);
  });

  it('what accepts connections and says nothing is away: nothing was sent', async () => {
    const sockets = new Set<Socket>();
    const mute = createTcpServer((socket) => void sockets.add(socket));
    await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
    closers.push(async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => mute.close(resolve));
    });
    const { port } = mute.address() as AddressInfo;
    const hub = hubWith({ server: `https://127.0.0.1:${port}` });
    const error = await failure(
      hub.delete(CLUSTER_ORDER, { namespace: NS, name: 'a' }, { ...by(), deadlineMs: 1_000 }),
    );
    expect([error.kind, error.message]).to.deep.equal([
      'unavailable',
      `delete clusterorders osac-hub/a: 127.0.0.1:${port}: no TLS handshake within the deadline`,
    ]);
    expect(sockets.size).to.equal(1);
  });

  it('names what was tried and why it failed, and nothing of the URL besides', async () => {
    const [refused = ''] = await codes({ server: 'https://127.0.0.1:1/canary' });
    expect(refused).to.equal(
      'Unreachable: get version: 127.0.0.1:1: connection refused, nothing listens there (ECONNREFUSED)',
    );
    const [unknown = ''] = await codes({ server: 'https://nowhere.invalid' });
    expect(unknown).to.match(/^Unreachable: get version: nowhere\.invalid:443: .*\((ENOTFOUND|EAI_AGAIN)\)$/);
    server.faults.always({}, { kind: 'hang' });
    const slow = await failure(
      hubWith({}).get(CLUSTER_ORDER, { namespace: NS, name: 'a' }, { ...by(), deadlineMs: 2_000 }),
    );
    server.faults.clear();
    expect(slow.message).to.equal(
      `get clusterorders ${NS}/a: ${new URL(server.url).host}: no answer within the deadline`,
    );
  });

  it('plain HTTP to an HTTPS port is no API server', async () => {
    const told = await codes({ server: server.url.replace('https:', 'http:') });
    expect(told).to.have.length(1);
    expect(told[0]).to.match(/^Unreachable/);
  });

  it('of the service: simulated hubs by their id, others by their kubeconfig, none without', async () => {
    const clusters = createClusters({
      dir: '/nowhere',
      instance: 'test',
      secrets: { reveal: () => Promise.resolve(Buffer.from(server.kubeconfig())) },
      clock: systemClock(),
      timers: systemTimers(),
      logger: recordingLogger(),
    });
    closers.push(() => clusters.close());
    const { kubeconfig: _none, ...bare } = connectionOf(NS);
    expect(clusters.of({ ...bare, id: 'sim-a' })?.simulated).to.equal(true);
    expect(clusters.of(bare)).to.equal(undefined);
    const real = clusters.of(connectionOf(NS));
    expect(real?.simulated).to.equal(false);
    expect(clusters.of(connectionOf(NS, { revision: 2 }))).to.equal(real);
    expect((await real?.check(by()))?.problems).to.deep.equal([]);
  });
});
