import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { BadSetting, type Config } from '../config.ts';

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
  if (tlsCa !== undefined && tlsCa !== 'system') {
    const [variable, example] = ['LEDGER_KAFKA_TLS_CA', '/etc/kafka/ca.pem'] as const;
    const ca = await readable(variable, tlsCa, example);
    if (!isCertificate(ca)) throw bad(variable, `${tlsCa} holds no certificate (PEM)`, example);
  }
  if (passwordFile !== undefined)
    await readable('LEDGER_KAFKA_SASL_PASSWORD_FILE', passwordFile, '/etc/kafka/password');
};

const readable = async (variable: string, path: string, example: string): Promise<string> => {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const why = (error as NodeJS.ErrnoException).code ?? String(error);
    throw bad(variable, `${path} cannot be read (${why})`, example, error);
  }
};

/** Asked of the certificate itself: a TLS context takes a key or a broken one for an authority, too, and trusts nobody then. */
const isCertificate = (ca: string): boolean => {
  if (!ca.includes('-----BEGIN')) return false;
  try {
    return new X509Certificate(ca).raw.length > 0;
  } catch {
    return false;
  }
};

const bad = (variable: string, what: string, example: string, cause?: unknown): BadSetting =>
  new BadSetting(`${variable}: ${what}. Example: ${variable}=${example}`, { cause });
