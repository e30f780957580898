import type { Config } from '../config.ts';
import { certificateOf, settingFile } from './setting-files.ts';

const TLS_CA = { variable: 'LEDGER_KAFKA_TLS_CA', example: '/etc/kafka/ca.pem' };
const PASSWORD = { variable: 'LEDGER_KAFKA_SASL_PASSWORD_FILE', example: '/etc/kafka/password' };

/**
 * Files of the brokers' settings that cannot be used are refused at the start, as those of other settings are. They are read
 * anew for each connection (a password changes), so that this is a look only. Throws BadSetting with the variable.
 */
export const checkKafkaFiles = async ({
  kafkaBrokers: brokers,
  kafkaTlsCa: tlsCa,
  kafkaSaslPasswordFile: passwordFile,
}: Pick<Config, 'kafkaBrokers' | 'kafkaTlsCa' | 'kafkaSaslPasswordFile'>): Promise<void> => {
  if (brokers.length === 0) return;
  if (tlsCa !== undefined && tlsCa !== 'system')
    certificateOf(TLS_CA, tlsCa, await settingFile(TLS_CA, tlsCa));
  if (passwordFile !== undefined) await settingFile(PASSWORD, passwordFile);
};
