import { resolve } from 'node:path';

/**
 * The directory of secrets as `readConfig` finds it, without the schema of all settings, which takes as long to load as a
 * short command takes in all. Undefined: these two settings cannot be used, and `readConfig` says why.
 */
export const plainSecretsDir = (
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined => {
  const dataDir = environment['LEDGER_DATA_DIR']?.trim() ?? './data';
  const secretsDir = environment['LEDGER_SECRETS_DIR']?.trim() ?? '';
  if (dataDir === '') return undefined;
  return secretsDir === '' ? resolve(dataDir, 'secrets') : resolve(secretsDir);
};
