import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { expectCode, expectRefusal, metaOf, type Behaviour } from './context.ts';
import { SPEC, order } from './requests.ts';
import { eventually } from '../eventually.ts';

const GROUP = 'osac.openshift.io';
const RBAC = 'rbac.authorization.k8s.io';

const rule = (apiGroup: string, resources: string[], verbs: string[]): JsonObject => ({
  apiGroups: [apiGroup],
  resources,
  verbs,
});

/** The stock rights of the account that the hub's registration makes (OSAC's operator), cut to what is used. */
export const HUB_ACCESS: readonly JsonObject[] = [
  rule(GROUP, ['clusterorders'], ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']),
  rule(GROUP, ['clusterorders/status'], ['get', 'patch', 'update']),
  rule('', ['secrets'], ['create']),
];

export const HUB_ACCESS_CLUSTER: readonly JsonObject[] = [
  rule('hypershift.openshift.io', ['hostedclusters'], ['get']),
  rule('', ['secrets'], ['get']),
  rule('', ['namespaces'], ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch']),
  rule(GROUP, ['subnets', 'networkclasses'], ['get', 'list', 'watch']),
];

const access = (
  verb: string,
  group: string,
  resource: string,
  namespace: string,
  subresource = '',
): JsonObject => ({
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SelfSubjectAccessReview',
  spec: {
    resourceAttributes: { verb, group, resource, namespace, ...(subresource === '' ? {} : { subresource }) },
  },
});

const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews';

/** Who may do what. */
export const RIGHTS: readonly Behaviour[] = [
  {
    name: 'a wrong token is 401, a good one without the right 403 with who, what and where',
    check: async ({ admin, account, orders, namespace }) => {
      const wrong = await admin.call('GET', orders, { headers: { authorization: 'Bearer wrong' } });
      expectRefusal(wrong, 401, 'Unauthorized');
      const nobody = await account([]);
      const refused = await nobody.get(orders);
      expectRefusal(refused, 403, 'Forbidden');
      expect(refused.body['message']).to.match(
        /^clusterorders\.osac\.openshift\.io is forbidden: User "system:serviceaccount:\S+" cannot list resource "clusterorders" in API group "osac\.openshift\.io" in the namespace "\S+"$/,
      );
      const created = await nobody.post(orders, order('x'));
      expectRefusal(created, 403, 'Forbidden');
      const one = await nobody.get(`${orders}/x`);
      expect(one.body['message']).to.match(/^clusterorders\.osac\.openshift\.io "x" is forbidden: /);
      const hosted = await nobody.get('/apis/hypershift.openshift.io/v1beta1/hostedclusters');
      expect(hosted.body['message']).to.match(/at the cluster scope$/);
      expectCode(await nobody.get(`/api/v1/namespaces/${namespace}`), 403);
    },
  },
  {
    name: "the hub account's stock rights: orders in its namespace, HostedClusters and Secrets by name, nothing else",
    check: async ({ account, orders, namespace, name }) => {
      const hub = await account(HUB_ACCESS, HUB_ACCESS_CLUSTER);
      const path = `${orders}/${name('ord')}`;
      expectCode(await hub.post(orders, order(path.slice(orders.length + 1))), 201);
      expectCode(await hub.get(orders), 200);
      expectCode(await hub.merge(`${path}/status`, { status: { phase: 'Progressing' } }), 200);
      const watch = await hub.watch(orders);
      watch.close();
      expectCode(await hub.delete(path), 200);
      expectCode(await hub.get('/api/v1/namespaces'), 200);
      const hosted = `/apis/hypershift.openshift.io/v1beta1/namespaces/${namespace}/hostedclusters`;
      expectCode(await hub.get(`${hosted}/none`), 404);
      expectCode(await hub.get(`/api/v1/namespaces/${namespace}/secrets/none`), 404);
      expectCode(await hub.get(hosted), 403);
      expectCode(await hub.get(`/api/v1/namespaces/${namespace}/secrets`), 403);
      expectCode(
        await hub.get(`/apis/hypershift.openshift.io/v1beta1/namespaces/${namespace}/nodepools`),
        403,
      );
      expectCode(await hub.get('/apis/osac.openshift.io/v1alpha1/clusterorders'), 403);
    },
  },
  {
    name: 'anybody may ask what he may do',
    check: async ({ account, namespace }) => {
      const hub = await account(HUB_ACCESS);
      const allowed = async (question: JsonObject): Promise<unknown> => {
        const answer = await hub.post(REVIEWS, question);
        expectCode(answer, 201);
        return objectAt(answer.body, 'status')['allowed'];
      };
      expect(await allowed(access('create', GROUP, 'clusterorders', namespace))).to.equal(true);
      expect(await allowed(access('patch', GROUP, 'clusterorders', namespace, 'status'))).to.equal(true);
      expect(await allowed(access('delete', GROUP, 'clusterorders', namespace, 'status'))).to.equal(false);
      expect(await allowed(access('create', GROUP, 'clusterorders', 'default'))).to.equal(false);
      expect(await allowed(access('list', 'hypershift.openshift.io', 'nodepools', namespace))).to.equal(
        false,
      );
    },
  },
  {
    name: 'rights follow the bindings at once',
    check: async ({ admin, account, orders, namespace, name }) => {
      const nobody = await account([]);
      expectCode(await nobody.get(orders), 403);
      const me = await nobody.post('/apis/authentication.k8s.io/v1/selfsubjectreviews', {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'SelfSubjectReview',
      });
      const user = stringAt(objectAt(objectAt(me.body, 'status'), 'userInfo'), 'username');
      const [roles, bindings] = ['roles', 'rolebindings'].map(
        (one) => `/apis/${RBAC}/v1/namespaces/${namespace}/${one}`,
      );
      const metadata = { name: name('role') };
      const apiVersion = `${RBAC}/v1`;
      const rules = [rule(GROUP, ['clusterorders'], ['list'])];
      expectCode(await admin.post(roles ?? '', { apiVersion, kind: 'Role', metadata, rules }), 201);
      const binding = {
        apiVersion,
        kind: 'RoleBinding',
        metadata,
        roleRef: { apiGroup: RBAC, kind: 'Role', name: metadata.name },
        subjects: [{ kind: 'User', apiGroup: RBAC, name: user }],
      };
      expectCode(await admin.post(bindings ?? '', binding), 201);
      await eventually('the right is there', async () => (await nobody.get(orders)).code === 200, 20_000);
      expectCode(await admin.delete(`${bindings}/${metadata.name}`), 200);
      await eventually('the right is gone', async () => (await nobody.get(orders)).code === 403, 20_000);
    },
  },
  {
    name: 'nobody hands out rights that he has not; a missing role is 404',
    check: async ({ account, namespace, name }) => {
      const giver = await account([rule(RBAC, ['rolebindings'], ['create'])]);
      const bindings = `/apis/${RBAC}/v1/namespaces/${namespace}/rolebindings`;
      const binding = (role: string): JsonObject => ({
        apiVersion: `${RBAC}/v1`,
        kind: 'RoleBinding',
        metadata: { name: name('binding') },
        roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: role },
        subjects: [{ kind: 'ServiceAccount', name: 'default', namespace }],
      });
      const refused = await giver.post(bindings, binding('cluster-admin'));
      expectRefusal(refused, 403, 'Forbidden');
      expect(refused.body['message']).to.include('attempting to grant RBAC permissions not currently held');
      const missing = await giver.post(bindings, binding('no-such-role'));
      expectRefusal(missing, 404, 'NotFound');
    },
  },
  {
    name: 'a token Secret of a service account is filled, and is good for a call',
    check: async ({ admin, namespace, name }) => {
      const core = `/api/v1/namespaces/${namespace}`;
      const account = name('sa');
      const accounts = `${core}/serviceaccounts`;
      const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account } };
      expectCode(await admin.post(accounts, body), 201);
      const secret = {
        apiVersion: 'v1',
        kind: 'Secret',
        type: 'kubernetes.io/service-account-token',
        metadata: { name: account, annotations: { 'kubernetes.io/service-account.name': account } },
      };
      expectCode(await admin.post(`${core}/secrets`, secret), 201);
      let token = '';
      await eventually(
        'the token is there',
        async () => {
          const data = objectAt((await admin.get(`${core}/secrets/${account}`)).body, 'data');
          token = Buffer.from(stringAt(data, 'token'), 'base64').toString('utf8');
          return token !== '' && stringAt(data, 'ca.crt') !== '';
        },
        20_000,
      );
      const call = await admin.call('GET', `${core}/secrets`, {
        headers: { authorization: `Bearer ${token}` },
      });
      expectCode(call, 403);
      expect(call.body['message']).to.include(`"system:serviceaccount:${namespace}:${account}"`);
      expectCode(await admin.delete(`${accounts}/${account}`), 200);
      const revoked = { headers: { authorization: `Bearer ${token}` } };
      // A real server believes a deleted account's token for another 10 s.
      await eventually(
        'the token is refused',
        async () => {
          const { code } = await admin.call('GET', `${core}/secrets`, revoked);
          return code === 401;
        },
        20_000,
      );
    },
  },
  {
    name: 'every namespace has a service account of its own',
    check: async ({ admin, namespace }) => {
      await eventually(
        'the account is there',
        async () => {
          const { code } = await admin.get(`/api/v1/namespaces/${namespace}/serviceaccounts/default`);
          return code === 200;
        },
        20_000,
      );
    },
  },
  {
    name: 'what one writes shows in managedFields under his name',
    check: async ({ admin, orders, name }) => {
      const path = `${orders}/${name('ord')}`;
      expectCode(
        await admin.post(orders, order(path.slice(orders.length + 1), SPEC), { fieldManager: 'maker' }),
        201,
      );
      const patch = { spec: { sshPublicKey: 'k' } };
      const { body } = await admin.merge(path, patch, { fieldManager: 'changer' });
      const entries = metaOf(body)['managedFields'] as JsonObject[];
      const owned = (manager: string): string =>
        JSON.stringify(entries.find((entry) => entry['manager'] === manager)?.['fieldsV1'] ?? {});
      expect(owned('maker')).to.include('f:templateID').and.not.to.include('f:sshPublicKey');
      expect(owned('changer')).to.include('f:sshPublicKey').and.not.to.include('f:templateID');
    },
  },
];
