import { AutomationError, type AutomationConnection } from '../../app/automation/automation.ts';
import type { SecretStore } from '../../app/ports.ts';
import type { SecretRef } from '../../domain/secret-ref.ts';
import { defined } from '../../domain/json-tools.ts';

/** Values of a connection's secrets, revealed for one call and held no longer. */
export type Credentials = {
  readonly token?: string;
  readonly hmacSecret?: string;
  /** What must never be in a text. */
  readonly values: readonly string[];
};

/** Throws AutomationError `unauthorized` when a value is not in the secret store. */
export const revealCredentials = async (
  secrets: Pick<SecretStore, 'reveal'>,
  { hub, tenant, token, hmacSecret }: AutomationConnection,
): Promise<Credentials> => {
  const revealed = async (ref: SecretRef | undefined, what: string): Promise<string | undefined> => {
    if (ref === undefined) return undefined;
    const value = await secrets.reveal(ref, ref.tenant ?? tenant);
    if (value !== undefined) return new TextDecoder().decode(value);
    throw new AutomationError(
      'unauthorized',
      `the ${what} of hub ${hub}'s automation is not in the secret store`,
    );
  };
  // A line end that came with a file is no part of a token, and no header can hold it.
  const [bearer, key] = await Promise.all([
    revealed(token, 'token').then((value) => value?.trim()),
    revealed(hmacSecret, 'HMAC secret'),
  ]);
  return {
    ...defined({ token: bearer, hmacSecret: key }),
    values: [bearer, key].filter((value) => value !== undefined),
  };
};
