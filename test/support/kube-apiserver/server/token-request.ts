import { numberAt, objectAt } from '../../../../src/domain/json-tools.ts';
import { serviceAccountUser, type Identities } from '../access/identities.ts';
import { notFound } from '../errors.ts';
import type { Store } from '../store.ts';
import type { JsonObject } from '../types.ts';
import type { Target } from './request.ts';

/** `POST serviceaccounts/<name>/token`: a token that ends by itself. */
export const serviceAccountTokens = (store: Store, identities: Identities, now: () => Date) => ({
  request: ({ namespace = '', name = '' }: Target, body: string): JsonObject => {
    const accounts = store.find('', 'serviceaccounts');
    if (accounts === undefined || store.get(accounts, namespace, name) === undefined) {
      throw notFound({ plural: 'serviceaccounts', group: '' }, name);
    }
    const asked = body === '' ? {} : (JSON.parse(body) as JsonObject);
    const seconds = numberAt(objectAt(asked, 'spec'), 'expirationSeconds') || 3600;
    const token = identities.token(serviceAccountUser(namespace, name), seconds * 1000);
    const expirationTimestamp = `${new Date(now().getTime() + seconds * 1000).toISOString().slice(0, 19)}Z`;
    return {
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      metadata: { name, namespace },
      spec: { expirationSeconds: seconds },
      status: { token, expirationTimestamp },
    };
  },
});
