import { kafkaInstallation } from '../../../ops/real/kafka/installation.ts';
import { startRealKafka, type RealKafka, type RealKafkaOptions } from '../../../ops/real/kafka/server.ts';

/** A real broker for one suite. Throws when it cannot be installed here: the suite then fails, it does not skip. */
export const startTestKafka = (options: Omit<RealKafkaOptions, 'installation'> = {}): Promise<RealKafka> =>
  startRealKafka({ installation: kafkaInstallation((line) => console.log(`      ${line}`)), ...options });
