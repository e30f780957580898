import { notRunHere } from '../../support/not-run-here.ts';
import { describeKafkaContract } from './contract.ts';
import { realKafkaUnderTest } from './real-cluster.ts';

/**
 * The adapter that production uses, on brokers whose addresses `LEDGER_TEST_KAFKA` holds (comma list, without
 * passwords). `npm run test:real` starts brokers of its own.
 */
const brokers = (process.env['LEDGER_TEST_KAFKA'] ?? '').split(',').filter((broker) => broker !== '');

if (brokers.length > 0)
  describeKafkaContract('kafkajs', () => realKafkaUnderTest({ brokers }), { timeoutMs: 60_000 });
else
  describe('Kafka port contract: kafkajs, on brokers that are there', () => {
    it('is not run here', function () {
      notRunHere(this, 'kafka-brokers', 'LEDGER_TEST_KAFKA holds no brokers');
    });
  });
