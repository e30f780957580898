import { serviceAccountUser, type Identities } from '../access/identities.ts';
import type { Change, Store } from '../store.ts';
import type { JsonObject, Kind, KubeObject, User } from '../types.ts';
import type { Objects } from '../write/objects.ts';

const TOKEN_TYPE = 'kubernetes.io/service-account-token';
const ACCOUNT = 'kubernetes.io/service-account.name';
const ACCOUNT_UID = 'kubernetes.io/service-account.uid';

const CONTROLLER: User = { name: 'system:kube-controller-manager', groups: ['system:masters'] };

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Service accounts: `default` in every namespace, tokens for token Secrets, and their end with the account. */
export const accountsController = (store: Store, objects: Objects, identities: Identities, ca: string) => {
  const kind = (plural: string): Kind => {
    const found = store.find('', plural);
    if (found === undefined) throw new Error(`${plural} is not served`);
    return found;
  };
  const pending = new Set<string>();
  const secretsWaiting = new Map<string, KubeObject>();

  const fill = (secret: KubeObject): void => {
    const { namespace = '', name, annotations = {} } = secret.metadata;
    const account = annotations[ACCOUNT] ?? '';
    const [accounts, secrets] = [kind('serviceaccounts'), kind('secrets')];
    const owner = store.get(accounts, namespace, account);
    const current = store.get(secrets, namespace, name);
    if (owner === undefined || current === undefined) return;
    const token = identities.token(serviceAccountUser(namespace, account));
    store.put(secrets, {
      ...current,
      metadata: { ...current.metadata, annotations: { ...annotations, [ACCOUNT_UID]: owner.metadata.uid } },
      data: {
        ...(current['data'] as JsonObject),
        token: base64(token),
        namespace: base64(namespace),
        'ca.crt': base64(ca),
      },
    });
  };

  const removeTokensOf = (namespace: string, account: string): void => {
    const secrets = kind('secrets');
    for (const secret of store.list(secrets, namespace)) {
      if (secret['type'] === TOKEN_TYPE && secret.metadata.annotations?.[ACCOUNT] === account) {
        objects.remove(secrets, secret, {});
      }
    }
  };

  return {
    changed: ({ group, plural }: Kind, { type, object }: Change): void => {
      if (group !== '') return;
      const { namespace = '', name } = object.metadata;
      if (plural === 'namespaces' && type === 'ADDED') pending.add(name);
      if (plural === 'secrets' && type !== 'DELETED' && isUnfilled(object)) {
        secretsWaiting.set(`${namespace}/${name}`, object);
      }
      if (plural === 'serviceaccounts' && type === 'DELETED') {
        identities.revokeUser(serviceAccountUser(namespace, name).name);
        removeTokensOf(namespace, name);
      }
    },
    /** One pass. */
    serve: (): void => {
      for (const namespace of pending) {
        const found = store.get(kind('namespaces'), '', namespace);
        if (found === undefined || found.metadata.deletionTimestamp !== undefined) continue;
        const accounts = kind('serviceaccounts');
        if (store.get(accounts, namespace, 'default') !== undefined) continue;
        const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
        objects.create(accounts, namespace, body, { user: CONTROLLER, manager: 'kube-controller-manager' });
      }
      pending.clear();
      for (const secret of secretsWaiting.values()) fill(secret);
      secretsWaiting.clear();
    },
  };
};

const isUnfilled = (secret: KubeObject): boolean => {
  const data = (secret['data'] ?? {}) as JsonObject;
  return secret['type'] === TOKEN_TYPE && data['token'] === undefined;
};
