import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import {
  AS_DEPLOYED,
  createStack,
  isReady,
  SERVE,
  untilCluster,
  type Stack,
} from '../support/service/stack.ts';
import { startTestKafka } from '../support/kafka/broker.ts';

const [MAIN = ''] = SERVE;

/** What analysts are told to type, typed, with a real Apache Kafka. */
describe('the first steps of analysts', function () {
  this.timeout(120_000);
  let kafka: RealKafka;
  let stack: Stack;
  before(async function () {
    kafka = await startTestKafka(this);
    stack = await createStack('sqlite', { ...AS_DEPLOYED, LEDGER_KAFKA_BROKERS: kafka.brokers.join(',') });
    await stack.start();
    const alice = await stack.client({ tenant: 'acme', user: 'alice' });
    await alice.send('POST', '/api/fulfillment/v1/clusters', {
      id: 'readme-1',
      metadata: { name: 'readme' },
      spec: { template: { name: 'ocp-small' } },
    });
    await untilCluster(alice, 'readme-1', isReady);
  });
  after(async () => {
    await stack?.dispose();
    await kafka?.close();
  });

  it('works as written', async () => {
    const [, chapter = ''] = readFileSync('docs/streams.md', 'utf8').split('## First steps\n');
    const [, , block = ''] = /```sh\n([\s\S]*?)```[\s\S]*?```sh\n([\s\S]*?)```/.exec(chapter) ?? [];
    expect(block).to.include('create-topics');
    // The consumer goes on until Ctrl-C, which comes when it has shown the cluster; `npx` runs what is here.
    const shell = String.raw`set -euo pipefail
consumed() { grep -m 1 'cluster readme-1 is CLUSTER_STATE_READY'; kill -INT $(cat consumer.pid); cat > /dev/null; }
npx() {
  tool=$1; shift
  if [ "$tool" = ledgerctl ]; then node '${MAIN}' "$@"
  else { node "$@" & echo $! > consumer.pid; wait $! || true; } | consumed; fi
}
cd '${process.cwd()}'
`.replaceAll('consumer.pid', `${stack.dataDir}/consumer.pid`);
    const { code, out, err } = await bash(shell + block, {
      LEDGER_DATA_DIR: stack.dataDir,
      LEDGERCTL_URL: stack.http(),
      BROKERS: kafka.brokers.join(','),
    });
    expect(code, `${out}\n${err}`).to.equal(0);
    expect(out).to.include('osac.state.cluster.v1');
    expect(out).to.include('cluster readme-1 is CLUSTER_STATE_READY; clusters in the view: 1\n');
    expect(err, 'at the first start of a consumer').to.not.match(/ERROR|kafka: /);
    expect(out).to.include('osac.events.clusters.v1.replay.again');
    expect(out).to.match(/^.*acme.*osac\.templates\.ocp_small.*$/m);
  });
});

const bash = (
  lines: string,
  env: NodeJS.ProcessEnv,
): Promise<{ readonly code: number | null; readonly out: string; readonly err: string }> =>
  new Promise((resolve) => {
    const child = spawn('bash', ['-c', lines], { env: { ...process.env, ...env } });
    const texts = { out: '', err: '' };
    child.stdout.on('data', (text: Buffer) => (texts.out += text.toString()));
    child.stderr.on('data', (text: Buffer) => (texts.err += text.toString()));
    child.once('close', (code) => resolve({ code, ...texts }));
  });
