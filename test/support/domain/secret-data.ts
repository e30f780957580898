import type { SecretRef } from '../../../src/domain/secret-ref.ts';

/** Where the value of a Secret's one key is: a Secret without data is refused. */
export const secretData: { readonly [path: string]: SecretRef } = {
  'data.key': { id: 'data', version: '1', kind: 'secret-data', fingerprint: '0'.repeat(16) },
};
