import type { JsonObject } from '../../../src/domain/json.ts';
import { MERGE, type KubeAnswer, type KubeClient } from '../kube-apiserver/client.ts';

/** Path of the ClusterOrders of a namespace. */
export const ordersOf = (namespace: string): string =>
  `/apis/osac.openshift.io/v1alpha1/namespaces/${namespace}/clusterorders`;

export const SPEC: JsonObject = { templateID: 'osac.templates.ocp_small', templateParameters: '{}' };

export const order = (
  name: string,
  spec: JsonObject | undefined = SPEC,
  metadata: JsonObject = {},
): JsonObject => ({
  apiVersion: 'osac.openshift.io/v1alpha1',
  kind: 'ClusterOrder',
  metadata: { name, ...metadata },
  ...(spec === undefined ? {} : { spec }),
});

type Send = (client: KubeClient, namespace: string) => Promise<KubeAnswer>;

const create =
  (body: JsonObject): Send =>
  (client, namespace) =>
    client.post(ordersOf(namespace), body);

const merge =
  (patch: JsonObject, path = '/ord-hbase'): Send =>
  (client, namespace) =>
    client.merge(ordersOf(namespace) + path, patch);

const node = (entry: JsonObject): JsonObject => ({ ...SPEC, nodeRequests: [entry] });
const without = (field: string): JsonObject => {
  const { [field]: _dropped, ...rest } = SPEC;
  return rest;
};

/** The request of each case of `fixtures/operator/31-validation-answers.json`, in that order. */
export const VALIDATION_REQUESTS: ReadonlyMap<string, Send> = new Map<string, Send>([
  ['create: templateID missing', create(order('ord-h00', without('templateID')))],
  ['create: no spec at all', create({ ...order('ord-h01', {}), spec: undefined as never })],
  ['create: templateID pattern (dash)', create(order('ord-h02', { ...SPEC, templateID: 'ocp-small' }))],
  ['create: templateID empty', create(order('ord-h03', { ...SPEC, templateID: '' }))],
  ['create: releaseImage pattern', create(order('ord-h04', { ...SPEC, releaseImage: '4.22.0' }))],
  ['create: podCIDR pattern', create(order('ord-h05', { ...SPEC, network: { podCIDR: 'fd00::/48' } }))],
  [
    'create: podCIDR 999.1.1.1/99 (passes the coarse pattern?)',
    create(order('ord-h06', { ...SPEC, network: { podCIDR: '999.1.1.1/99' } })),
  ],
  ['create: nodeRequests without resourceClass', create(order('ord-h07', node({ numberOfNodes: 1 })))],
  [
    'create: numberOfNodes as string',
    create(order('ord-h08', node({ numberOfNodes: '2', resourceClass: 'a' }))),
  ],
  [
    'create: numberOfNodes negative',
    create(order('ord-h09', node({ numberOfNodes: -1, resourceClass: 'a' }))),
  ],
  [
    'create: duplicate resourceClass',
    create(
      order('ord-h10', {
        ...SPEC,
        nodeRequests: [
          { numberOfNodes: 1, resourceClass: 'a' },
          { numberOfNodes: 2, resourceClass: 'a' },
        ],
      }),
    ),
  ],
  ['create: unknown field', create(order('ord-h11', { ...SPEC, bogus: true }))],
  [
    'create: templateParameters as object',
    create(order('ord-h12', { ...SPEC, templateParameters: { a: 1 } })),
  ],
  [
    'create: templateParameters not JSON',
    create(order('ord-h13', { ...SPEC, templateParameters: 'not json' })),
  ],
  ['create: pullSecret 262145', create(order('ord-h14', { ...SPEC, pullSecret: 'x'.repeat(262_145) }))],
  [
    'create: networkAttachment without subnetRef',
    create(order('ord-h15', { ...SPEC, networkAttachment: { securityGroupRefs: ['a'] } })),
  ],
  ['create: two faults at once', create(order('ord-h16', { ...SPEC, templateID: 'a-b', releaseImage: 'x' }))],
  ['create: name upper case', create(order('Order-A'))],
  ['create: name 64 characters', create(order('o'.repeat(64)))],
  ['create: name 253 characters', create(order('o'.repeat(253)))],
  [
    'create: label value 64 characters',
    create(order('ord-h20', SPEC, { labels: { 'osac.openshift.io/clusterorder-uuid': 'x'.repeat(64) } })),
  ],
  ['create: status in the body', create({ ...order('ord-hstat'), status: { phase: 'Ready' } })],
  [
    'create: base for changes',
    create(order('ord-hbase', { ...SPEC, networkAttachment: { subnetRef: 'subnet-a' } })),
  ],
  ['create: same name again', create(order('ord-hbase'))],
  ['merge: templateID changed', merge({ spec: { templateID: 'osac.templates.other' } })],
  ['merge: templateID removed', merge({ spec: { templateID: null } })],
  ['merge: spec removed', merge({ spec: null })],
  ['merge: subnetRef changed', merge({ spec: { networkAttachment: { subnetRef: 'subnet-b' } } })],
  [
    'merge: networkAttachment removed, then another added',
    async (client, namespace) => {
      await merge({ spec: { networkAttachment: null } })(client, namespace);
      return await merge({ spec: { networkAttachment: { subnetRef: 'subnet-b' } } })(client, namespace);
    },
  ],
  ['merge: nodeRequests null', merge({ spec: { nodeRequests: null } })],
  ['merge: status through the main resource', merge({ status: { phase: 'Ready' } })],
  ['merge: status phase not in enum', merge({ status: { phase: 'Degraded' } }, '/ord-hbase/status')],
  ['merge: wrong resourceVersion', merge({ metadata: { resourceVersion: '1', labels: { a: 'b' } } })],
  [
    'patch with application/json',
    (client, namespace) =>
      client.call('PATCH', `${ordersOf(namespace)}/ord-hbase`, { body: {}, type: 'application/json' }),
  ],
  [
    'put without resourceVersion',
    (client, namespace) => client.put(`${ordersOf(namespace)}/ord-hbase`, order('ord-hbase')),
  ],
  ['get unknown', (client, namespace) => client.get(`${ordersOf(namespace)}/ord-none`)],
  ['delete unknown', (client, namespace) => client.delete(`${ordersOf(namespace)}/ord-none`)],
  ['create in a missing namespace', (client) => client.post(ordersOf('nope'), order('ord-x'))],
  [
    'create of an unknown kind',
    (client, namespace) =>
      client.post(`/apis/osac.openshift.io/v1alpha1/namespaces/${namespace}/nothings`, { kind: 'Nothing' }),
  ],
  [
    'wrong token',
    (client, namespace) =>
      client.call('GET', ordersOf(namespace), { headers: { authorization: 'Bearer wrong' }, type: MERGE }),
  ],
]);

/** The steps of `fixtures/operator/32-immutability-gaps.json` on one order that has a networkAttachment. */
export const GAP_PATCHES: ReadonlyMap<string, JsonObject> = new Map<string, JsonObject>([
  ['remove networkAttachment', { spec: { networkAttachment: null } }],
  ['add another', { spec: { networkAttachment: { subnetRef: 'b' } } }],
  ['change it', { spec: { networkAttachment: { subnetRef: 'c' } } }],
  ['spec null', { spec: null }],
  ['new spec with another templateID', { spec: { templateID: 'other.one' } }],
]);
