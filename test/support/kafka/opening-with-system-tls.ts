import { createKafkaCluster } from '../../../src/adapters/kafka/kafkajs-cluster.ts';
import { systemClock } from '../../../src/adapters/system/system-ports.ts';
import { silentLogger } from '../loggers.ts';

/** Opens a producer at the brokers that are named, trusting whom the system trusts, and prints what is wrong then. */
const { producers } = createKafkaCluster(
  { brokers: process.argv.slice(2), clientId: 't', tlsCa: 'system' },
  { logger: silentLogger, clock: systemClock() },
);
const fault = await producers
  .open(AbortSignal.timeout(Number(process.env['OPEN_MS'])))
  .then(() => 'open')
  .catch(String);
console.log(fault);
