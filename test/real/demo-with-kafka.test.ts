import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import { startMain, type Run } from '../support/e2e-process.ts';
import { startTestKafka } from '../support/kafka/broker.ts';

/** `npm run demo -- --kafka <brokers>` as a user types it, with a real Apache Kafka. */
const DEMO_MS = 120_000;

describe('the demo with a real Apache Kafka', function () {
  this.timeout(DEMO_MS + 30_000);
  let kafka: RealKafka;
  before(async () => {
    kafka = await startTestKafka();
  });
  after(() => kafka?.close());
  const demo = (...argv: string[]): Promise<Run> =>
    startMain(['demo', ...argv], {}, undefined, DEMO_MS).ended;

  it('shows the records of its orders in a consumer, and checks what they say', async () => {
    const { code, out, err } = await demo('--kafka', kafka.brokers.join(','));
    expect(code, `${out}\n${err}`).to.equal(0);
    for (const claim of [
      /── Kafka: a consumer of 127\.0\.0\.1:\d+\n +\d\d topics were made/,
      /── Kafka: what arrived of demo-first\n +[\d:.]+ +ClusterOrdered +cluster-[0-9a-f-]+@0\n/,
      /── Kafka: what arrived of demo-second\n/,
      /✓ each entry of its timeline arrived, in its order \(\d+ on osac\.events\.clusters\.v1\)/,
      /✓ its newest document is what GET shows \(osac\.state\.cluster\.v1\)/,
      /✓ metering begins with its creation and the start of its parts \(created, started, started/,
      /✓ a tombstone is the last of each/,
      /✓ what came more than once was the same/,
    ])
      expect(out).to.match(claim);
  });

  it('says that nobody answers, instead of going on without', async () => {
    const { code, out } = await demo('--kafka', '127.0.0.1:1');
    expect(code).to.equal(1);
    expect(out).to.match(/Kafka: a consumer of 127\.0\.0\.1:1\n[^]*the brokers do not answer/);
  });
});
