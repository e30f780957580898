import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { kubeBinary } from '../../ops/real/kube-apiserver/binary.ts';
import { playOn, type PlayedServers } from '../../ops/real/kube-apiserver/play.ts';
import { startKubeServers, type KubeServers } from '../../ops/real/kube-apiserver/servers.ts';
import { rulebookEnvironment } from '../../ops/real/rulebook/environment.ts';
import { startRealRulebook, type RealRulebook } from '../../ops/real/rulebook/server.ts';
import { startMain, type Run } from '../support/service/run-main.ts';
import { notRunHere, obtained } from '../support/not-run-here.ts';

/** `npm run demo -- --hub <kubeconfig>` as a user types it, on a real API server with the rights that a hub grants. */
const binary = kubeBinary((line) => console.log(`  ${line}`));
/** Thirty seconds by itself; another suite with servers of its own runs beside it. */
const DEMO_MS = 180_000;
const NAMESPACE = 'demo-hub';
const ANOTHER = 'demo-rulebook';
const TOKEN = 'token-of-the-listener';
const HMAC_SECRET = 'key-that-signs-webhooks';
const PLAYBOOKS = new URL('../../ops/real/rulebook/playbooks/', import.meta.url).pathname;

describe('the demo on a real API server', function () {
  this.timeout(DEMO_MS + 60_000);
  let servers: KubeServers;
  let play: PlayedServers;

  before(async function () {
    if ('missing' in binary) return notRunHere(this, 'kube-apiserver', binary.missing);
    servers = await startKubeServers(binary.path);
    play = await playOn(servers, { namespace: NAMESPACE, pace: 0.1, hosts: { fc430: 6 } });
  });
  after(async () => {
    await play?.stop();
    await servers?.close();
  });
  const demo = (...argv: string[]): Promise<Run> =>
    startMain(['demo', '--hub', play.kubeconfig, ...argv], {}, undefined, DEMO_MS).ended;

  it('orders, scales, crashes, recovers, deletes, and finds on the hub what it claims', async () => {
    const { code, out, err } = await demo('--hub-namespace', NAMESPACE, '--patience', '90s');
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
    const { code, out } = await demo('--hub-namespace', 'nope', '--patience', '10s');
    expect(code).to.equal(1);
    expect(out).to.match(/NOT AS CLAIMED: the hub can be reached .*\n.*nope/);
  });

  describe('without an operator, and with the real ansible-rulebook', () => {
    let rulebook: RealRulebook;
    let folder: string;

    before(async function () {
      await play.stop();
      play = await playOn(servers, { namespace: ANOTHER, pace: 0.1, hosts: {}, operator: false });
      folder = mkdtempSync(join(tmpdir(), 'ledger-demo-rulebook-'));
      rulebook = await startRealRulebook({
        environment: obtained(this, 'rulebook', rulebookEnvironment),
        token: TOKEN,
        hmacSecret: HMAC_SECRET,
        playbooks: {
          create: `${PLAYBOOKS}hub-create-hosted-cluster.yml`,
          delete: `${PLAYBOOKS}hub-delete-hosted-cluster.yml`,
        },
        env: {
          HUB_URL: servers.url,
          HUB_TOKEN: servers.adminToken,
          HUB_CA_FILE: file('ca.pem', servers.ca),
        },
      });
    });
    after(async () => {
      await rulebook?.close();
      rmSync(folder, { recursive: true, force: true });
    });
    const file = (name: string, text: string): string => {
      const path = join(folder, name);
      writeFileSync(path, text, { mode: 0o600 });
      return path;
    };

    it('orders, scales, crashes, recovers and deletes all the same', async () => {
      const { code, out, err } = await demo(
        `--hub-namespace=${ANOTHER}`,
        '--hub-mode=eda',
        '--hub-controller=ledger',
        `--hub-endpoint=${rulebook.url}`,
        `--hub-token-file=${file('token', TOKEN)}`,
        `--hub-hmac-secret-file=${file('hmac', HMAC_SECRET)}`,
        '--patience=90s',
      );
      expect(code, `${out}\n${err}\n${rulebook.output().slice(-3_000)}`).to.equal(0);
      expect(out).to.match(/✓ the hub holds exactly one ClusterOrder for demo-second/);
    });
  });
});
