import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { RealKafka } from '../../ops/real/kafka/server.ts';
import type { KafkaSettings } from '../../src/adapters/kafka/kafkajs-client.ts';
import { KafkaFault } from '../../src/app/publisher/ports.ts';
import { describeKafkaContract } from '../integration/kafka/contract.ts';
import { realKafkaUnderTest } from '../integration/kafka/real-cluster.ts';
import { startTestKafka } from '../support/kafka/broker.ts';
import {
  clusterOf,
  createBrokerRig,
  expectDelivered,
  makeTopics,
  streamsOf,
  TOPIC,
  type BrokerRig,
} from '../support/kafka/publisher-on-broker.ts';
import { loopbackTls, type LoopbackTls } from '../support/http/loopback-tls.ts';
import { until } from '../support/service/stack.ts';
import { recordingLogger } from '../support/loggers.ts';

const USER = 'ledger';
const PASSWORD = 'right-Pa55word';
const WRONG = 'wr0ng-Pa55word';

/** The adapter of production on a real Apache Kafka, through a listener with TLS and SCRAM-SHA-512. */
describe('a real Apache Kafka with TLS and passwords', function () {
  this.timeout(120_000);
  let kafka: RealKafka;
  let tls: LoopbackTls;
  let folder: string;
  const file = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };

  before(async function () {
    folder = mkdtempSync(join(tmpdir(), 'ledger-kafka-access-'));
    tls = await loopbackTls();
    kafka = await startTestKafka(this, { users: { [USER]: PASSWORD }, tls });
  });
  after(async () => {
    await kafka?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  describeKafkaContract(
    'kafkajs',
    () =>
      realKafkaUnderTest({
        brokers: kafka.brokers,
        secure: {
          brokers: kafka.secureBrokers,
          username: USER,
          password: PASSWORD,
          tlsCa: file('ca.pem', tls.cert),
        },
      }),
    { timeoutMs: 60_000 },
  );

  describe('and the publisher', () => {
    const FEW = { retries: 1, maxRetryTime: 100 };
    let rig: BrokerRig;
    before(() => makeTopics(kafka.brokers, TOPIC));
    beforeEach(async () => {
      rig = await createBrokerRig(kafka.brokers);
      await rig.append(streamsOf(3));
    });
    afterEach(() => rig.dispose());

    const settings = (passwordFile: string, ca = tls.cert): Partial<KafkaSettings> => ({
      brokers: kafka.secureBrokers,
      retry: FEW,
      tlsCa: file(`ca-${ca.length}-${ca === tls.cert}.pem`, ca),
      sasl: { mechanism: 'scram-sha-512', username: USER, passwordFile },
    });
    const errorOf = async (how: Partial<KafkaSettings>) => {
      const running = rig.start({ cluster: clusterOf([], rig.log, how) });
      await until('the topic says what is wrong', () => running.topic().lastError !== undefined, 10_000);
      const { state, lastError } = running.topic();
      return { state, reason: lastError?.reason, message: lastError?.message ?? '', running };
    };
    /** All that anybody could read, as text. */
    const told = (...more: unknown[]): string => JSON.stringify([rig.log.lines, more]);

    it('says that the password is refused without telling it, and goes on with the right one', async () => {
      const passwordFile = file('password', WRONG);
      const { state, reason, message, running } = await errorOf(settings(passwordFile));
      expect({ state, reason }).to.deep.equal({ state: 'waiting', reason: 'unauthorized' });
      expect(message).to.match(/SCRAM.*authentication failed/i);
      expect(rig.log.lines.filter(({ level }) => level === 'warn').length).to.be.greaterThan(0);
      // The file is read anew for each connection: nothing is started again.
      writeFileSync(passwordFile, `${PASSWORD}\n`);
      await running.caughtUp();
      await running.stop();
      await expectDelivered(rig.store, kafka.brokers);
      for (const secret of [WRONG, PASSWORD])
        expect(told(running.publisher.status()), 'a password was told').to.not.include(secret);
    });

    it('says that a password file is missing, with its variable and path', async () => {
      const { reason, message } = await errorOf(settings(join(folder, 'not-there')));
      expect(reason).to.equal('unauthorized');
      expect(message).to.match(/LEDGER_KAFKA_SASL_PASSWORD_FILE: .*not-there cannot be read: ENOENT/);
    });

    it('talks to no broker whose certificate is not of the authority, and says so', async () => {
      const { cert } = await loopbackTls();
      const { state, message, running } = await errorOf(settings(file('password', PASSWORD), cert));
      expect(state).to.equal('waiting');
      expect(message).to.match(/certificate/i);
      expect(running.topic().sent).to.equal(0);
    });

    it('says that the listener wants encryption, when it is asked without', async () => {
      const { tlsCa: _, ...plain } = settings(file('password', PASSWORD));
      const fault = await clusterOf([], recordingLogger(), plain)
        .producers.open(new AbortController().signal)
        .then(
          () => undefined,
          (error: unknown) => error,
        );
      expect(fault).to.be.instanceOf(KafkaFault);
      expect((fault as KafkaFault).reason).to.be.oneOf(['unreachable', 'unauthorized']);
      expect((fault as KafkaFault).message).to.not.include(PASSWORD);
    });
  });
});
