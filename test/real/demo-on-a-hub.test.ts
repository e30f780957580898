import { expect } from 'chai';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { playOn, type PlayedServers } from '../../ops/real/kube-apiserver/play.ts';
import { startKubeServers, type KubeServers } from '../../ops/real/kube-apiserver/servers.ts';
import { startMain } from '../support/e2e-process.ts';

/** `npm run demo -- --hub <kubeconfig>` as a user types it, on a real API server with the rights that a hub grants. */
const binary = kubeBinary((line) => console.log(`  ${line}`));
const DEMO_MS = 120_000;
const NAMESPACE = 'demo-hub';

describe('the demo on a real API server', function () {
  this.timeout(DEMO_MS + 60_000);
  let servers: KubeServers;
  let play: PlayedServers;

  before(async function () {
    if ('missing' in binary) {
      console.log(`      not run here: real kube-apiserver: ${binary.missing}`);
      this.skip();
    }
    servers = await startKubeServers(binary.path);
    play = await playOn(servers, { namespace: NAMESPACE, pace: 0.1, hosts: { fc430: 6 } });
  });
  after(async () => {
    await play?.stop();
    await servers?.close();
  });

  it('orders, scales, crashes, recovers, deletes, and finds on the hub what it claims', async () => {
    const argv = ['demo', '--hub', play.kubeconfig, '--hub-namespace', NAMESPACE, '--patience', '60s'];
    const { code, out, err } = await startMain(argv, {}, undefined, DEMO_MS).ended;
    expect(code, `${out}\n${err}`).to.equal(0);
    for (const claim of [
      /✓ the hub can be reached with that kubeconfig and has what orders need \(v1\.36/,
      /✓ it became READY, as observed on the hub/,
      /✓ its kubeconfig is handed out/,
      /✓ 3 nodes are there and it is READY/,
      /✓ no second order was made/,
      /✓ the order was finished by the new process/,
      /✓ the hub holds exactly one ClusterOrder for demo-first \(demo-hub\/order-/,
      /✓ the hub holds exactly one ClusterOrder for demo-second/,
      /✓ no simulated hub was called/,
      /✓ the hub holds no ClusterOrder of them any more/,
      /✓ resources, rebuilt from the first event, equals the live one/,
    ])
      expect(out).to.match(claim);
  });

  it('registers nothing that is not fit for orders, and says why', async () => {
    const argv = ['demo', '--hub', play.kubeconfig, '--hub-namespace', 'nope', '--patience', '10s'];
    const { code, out } = await startMain(argv, {}, undefined, DEMO_MS).ended;
    expect(code).to.equal(1);
    expect(out).to.match(/NOT AS CLAIMED: the hub can be reached .*\n.*nope/);
  });
});
