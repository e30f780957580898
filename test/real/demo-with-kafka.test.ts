import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import { Kafka, logLevel } from '../../src/adapters/kafka/kafkajs-library.ts';
import { topicContents } from '../../src/adapters/kafka/topic-contents.ts';
import { offsetsSoon } from '../../src/adapters/kafka/partition-leaders.ts';
import { startMain, type Run } from '../support/service/run-main.ts';
import { startTestKafka } from '../support/kafka/broker.ts';

/** `npm run demo -- --kafka <brokers>` as a user types it, with a real Apache Kafka. */
const DEMO_MS = 120_000;

describe('the demo with a real Apache Kafka', function () {
  this.timeout(DEMO_MS + 30_000);
  let kafka: RealKafka;
  before(async function () {
    kafka = await startTestKafka(this);
  });
  after(() => kafka?.close());
  /** Where the topics of clusters end. */
  const lengths = async (): Promise<readonly string[]> => {
    const admin = new Kafka({ brokers: [...kafka.brokers], logLevel: logLevel.NOTHING }).admin();
    await admin.connect();
    try {
      const topics = ['osac.metering.lifecycle', 'osac.audit.checkpoints', 'osac.events.clusters.v1'];
      const ends = await Promise.all(topics.map((topic) => offsetsSoon(admin, topic)));
      return ends.flat().map(({ partition, high }) => `${partition}:${high}`);
    } finally {
      await admin.disconnect();
    }
  };
  const onBrokers = (...argv: string[]): Promise<Run> => demo('--kafka', kafka.brokers.join(','), ...argv);
  const demo = (...argv: string[]): Promise<Run> =>
    startMain(['demo', ...argv], {}, undefined, DEMO_MS).ended;

  it('shows the records of its orders in a consumer, and checks what they say', async () => {
    const { code, out, err } = await onBrokers('--remove-topics');
    expect(code, `${out}\n${err}`).to.equal(0);
    for (const claim of [
      /── Kafka: a consumer of 127\.0\.0\.1:\d+\n +\d\d topics were made/,
      /── Kafka: what arrived of demo-first\n +[\d:.]+ +ClusterOrdered +cluster-[0-9a-f-]+@0\n/,
      /── Kafka: what arrived of demo-second\n/,
      /✓ each entry of its timeline arrived, in its order \(\d+ on osac\.events\.clusters\.v1\)/,
      /✓ its newest document is what GET shows \(osac\.state\.cluster\.v1\)/,
      /✓ metering begins with its creation and the start of its parts \(created, started, started/,
      /✓ a tombstone is the last of each/,
      /✓ repeated records were equal/,
      /\n +\d\d topics that this demo had made were removed\n$/,
    ])
      expect(out).to.match(claim);
  });

  it('works again on brokers from which the topics were removed, and leaves its own there unless it is told', async () => {
    const { code, out, err } = await onBrokers();
    expect(code, `${out}\n${err}`).to.equal(0);
    expect(out).to.match(/── Kafka: a consumer of 127\.0\.0\.1:\d+\n +\d\d topics were made/);
    expect(out).to.not.include('removed');
  });

  it('does not begin where topics hold records of another log, adds nothing to them, and says how to go on', async () => {
    const { withRecords } = topicContents;
    const kept = await lengths();
    const { code, out, err } = await onBrokers('--remove-topics');
    expect(code, `${out}\n${err}`).to.equal(1);
    const text = `${out}${err}`;
    expect(text).to.match(
      /^\n── Kafka: a consumer of [^\n]+\n\n +NOT BEGUN: topics there hold records of another log already \(osac\.[a-z.0-9]+ and \d+ more\)[^\n]*kafka-topics\.sh --bootstrap-server 127[^\n]*--remove-topics[^\n]*\n$/,
    );
    expect(await lengths(), 'after it').to.deep.equal(kept);
    expect(
      await withRecords(kafka.brokers, ['osac.metering.lifecycle', 'osac.metering.corrections', 'none']),
    ).to.deep.equal(['osac.metering.lifecycle']);
  });

  it('says that nobody answers, instead of going on without', async () => {
    const { code, out } = await demo('--kafka', '127.0.0.1:1');
    expect(code).to.equal(1);
    expect(out).to.match(/Kafka: a consumer of 127\.0\.0\.1:1\n[^]*the brokers do not answer/);
  });
});
