import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import type { JsonObject, JsonValue } from '../../../src/domain/json.ts';
import { isObject, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import {
  kubeClient,
  type KubeAccess,
  type KubeAnswer,
  type KubeClient,
  type KubeWatch,
} from '../kube-apiserver/client.ts';
import { ordersOf } from './requests.ts';
import { eventually } from '../eventually.ts';

/** What a behaviour is checked with: an administrator, a namespace of its own, and accounts that may do little. */
export type ConformanceContext = {
  readonly admin: KubeClient;
  readonly namespace: string;
  /** Path of the ClusterOrders of the namespace. */
  readonly orders: string;
  /** A name that nobody used yet. */
  name(prefix?: string): string;
  /** Another namespace of this run; it goes at the end. */
  anotherNamespace(): Promise<string>;
  /** A client with the token of a new service account, bound to these rules in the namespace and cluster-wide. */
  account(rules: readonly JsonObject[], clusterRules?: readonly JsonObject[]): Promise<KubeClient>;
  close(): Promise<void>;
};

export type Behaviour = {
  readonly name: string;
  check(context: ConformanceContext): Promise<void>;
};

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

/** Installs the CRDs that are not there and makes a namespace; `close` takes away what this run has made. */
export const conformanceContext = async (
  access: KubeAccess,
  definitions: readonly JsonObject[],
): Promise<ConformanceContext> => {
  const admin = kubeClient(access);
  const run = randomUUID().slice(0, 8);
  const installed = await install(admin, definitions);
  const namespaces: string[] = [];
  const clusterObjects: string[] = [];
  const clients: KubeClient[] = [];
  let count = 0;

  const name = (prefix = 'x'): string => `${prefix}-${run}-${(count += 1)}`;

  const anotherNamespace = async (): Promise<string> => {
    const made = name('conformance');
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: made } };
    expectCode(await admin.post('/api/v1/namespaces', body), 201);
    namespaces.push(made);
    return made;
  };

  const namespace = await anotherNamespace();

  const bind = async (account: string, rules: readonly JsonObject[], place: string): Promise<void> => {
    const cluster = place === '';
    const role = cluster ? 'ClusterRole' : 'Role';
    const [roles, bindings] = cluster
      ? [`${RBAC}/clusterroles`, `${RBAC}/clusterrolebindings`]
      : [`${RBAC}/namespaces/${place}/roles`, `${RBAC}/namespaces/${place}/rolebindings`];
    const apiVersion = 'rbac.authorization.k8s.io/v1';
    const metadata = { name: account };
    expectCode(await admin.post(roles, { apiVersion, kind: role, metadata, rules: [...rules] }), 201);
    const binding = {
      apiVersion,
      kind: `${role}Binding`,
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: role, name: account },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    };
    expectCode(await admin.post(bindings, binding), 201);
    if (cluster) clusterObjects.push(`${roles}/${account}`, `${bindings}/${account}`);
  };

  return {
    admin,
    namespace,
    orders: ordersOf(namespace),
    name,
    anotherNamespace,
    account: async (rules, clusterRules = []) => {
      const account = name('account');
      const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
      const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account } };
      expectCode(await admin.post(accounts, body), 201);
      if (rules.length > 0) await bind(account, rules, namespace);
      if (clusterRules.length > 0) await bind(account, clusterRules, '');
      const asked = await admin.post(`${accounts}/${account}/token`, {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        spec: { expirationSeconds: 3600 },
      });
      expectCode(asked, 201);
      const client = kubeClient({
        url: access.url,
        ca: access.ca,
        token: stringAt(objectAt(asked.body, 'status'), 'token'),
      });
      clients.push(client);
      return client;
    },
    close: async () => {
      for (const path of clusterObjects) await admin.delete(path);
      for (const one of namespaces) {
        await releaseOrders(admin, one);
        await admin.delete(`/api/v1/namespaces/${one}`);
      }
      await eventually(
        'the namespaces are gone',
        async () => {
          const codes = await Promise.all(namespaces.map((one) => admin.get(`/api/v1/namespaces/${one}`)));
          return codes.every(({ code }) => code === 404);
        },
        20_000,
      );
      for (const one of installed) await admin.delete(`${CRDS}/${one}`);
      for (const client of [admin, ...clients]) client.close();
    },
  };
};

const install = async (admin: KubeClient, definitions: readonly JsonObject[]): Promise<string[]> => {
  const installed: string[] = [];
  for (const definition of definitions) {
    const name = stringAt(objectAt(definition, 'metadata'), 'name');
    if ((await admin.get(`${CRDS}/${name}`)).code === 200) continue;
    expectCode(await admin.post(CRDS, definition), 201);
    installed.push(name);
  }
  for (const name of installed) {
    await eventually(
      `${name} is established`,
      async () => {
        const conditions = objectAt((await admin.get(`${CRDS}/${name}`)).body, 'status')['conditions'];
        return JSON.stringify(conditions ?? []).includes('"Established"');
      },
      20_000,
    );
  }
  return installed;
};

/** A check that failed in the middle may leave finalizers behind. */
const releaseOrders = async (admin: KubeClient, namespace: string): Promise<void> => {
  const { body } = await admin.get(ordersOf(namespace));
  for (const item of itemsOf(body)) {
    const path = `${ordersOf(namespace)}/${metaOf(item)['name'] as string}`;
    await admin.merge(path, { metadata: { finalizers: null } });
  }
};

export const metaOf = (object: JsonObject): JsonObject => objectAt(object, 'metadata');

export const versionOf = (object: JsonObject): string => stringAt(metaOf(object), 'resourceVersion');

export const itemsOf = (list: JsonObject): JsonObject[] => {
  const { items } = list;
  return Array.isArray(items) ? (items as JsonValue[]).filter(isObject) : [];
};

export const namesOf = (list: JsonObject): string[] =>
  itemsOf(list).map((item) => stringAt(metaOf(item), 'name'));

export const expectCode = (answer: KubeAnswer, code: number): void => {
  expect(answer.code, answer.text.slice(0, 600)).to.equal(code);
};

/** The refusal's code and reason, and that one of its causes is this (`reason field`). */
export const expectRefusal = (answer: KubeAnswer, code: number, reason: string, cause?: string): void => {
  expectCode(answer, code);
  expect(answer.body['reason'], answer.text).to.equal(reason);
  if (cause === undefined) return;
  const causes = objectAt(answer.body, 'details')['causes'];
  const found = (Array.isArray(causes) ? (causes as JsonValue[]).filter(isObject) : []).map(
    (one) => `${stringAt(one, 'reason')} ${stringAt(one, 'field')}`,
  );
  expect(found, answer.text).to.include(cause);
};

/** The next event of this type; others are an error, bookmarks are skipped unless wanted. */
export const nextEvent = async (watch: KubeWatch, type: string): Promise<JsonObject> => {
  for (;;) {
    const event = await watch.next(10_000);
    if (event === undefined) throw new Error(`no ${type} event within 10 s`);
    if (event.type === 'BOOKMARK' && type !== 'BOOKMARK') continue;
    expect(event.type, JSON.stringify(event.object).slice(0, 400)).to.equal(type);
    return event.object;
  }
};
