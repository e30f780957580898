import type { Context } from 'mocha';
import { kafkaInstallation } from '../../../ops/real/kafka/installation.ts';
import { startRealKafka, type RealKafka, type RealKafkaOptions } from '../../../ops/real/kafka/server.ts';
import { obtained } from '../not-run-here.ts';

/** A real broker for the suite of a hook. Where it cannot be installed, the suite is not run here. */
export const startTestKafka = (
  context: Context,
  options: Omit<RealKafkaOptions, 'installation'> = {},
): Promise<RealKafka> =>
  startRealKafka({ installation: obtained(context, 'kafka', kafkaInstallation), ...options });
