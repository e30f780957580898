import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt } from '../../../src/domain/json-tools.ts';
import { JSON_PATCH, MERGE } from '../kube-apiserver/client.ts';
import {
  expectCode,
  expectRefusal,
  metaOf,
  nextEvent,
  versionOf,
  type Behaviour,
  type ConformanceContext,
} from './context.ts';
import { SPEC, order } from './requests.ts';
import { eventually } from '../eventually.ts';

const created = async (
  { admin, orders, name }: ConformanceContext,
  spec: JsonObject = SPEC,
  metadata: JsonObject = {},
): Promise<{ path: string; object: JsonObject }> => {
  const body = order(name('ord'), spec, metadata);
  const answer = await admin.post(orders, body);
  expectCode(answer, 201);
  return { path: `${orders}/${metaOf(body)['name'] as string}`, object: answer.body };
};

const HELD = { finalizers: ['osac.openshift.io/finalizer'] };
const RELEASE = { metadata: { finalizers: null } };

const madeOwner = async ({
  admin,
  namespace,
  name,
}: ConformanceContext): Promise<{ path: string; reference: JsonObject }> => {
  const metadata = { name: name('owner') };
  const all = `/api/v1/namespaces/${namespace}/configmaps`;
  const made = await admin.post(all, { apiVersion: 'v1', kind: 'ConfigMap', metadata });
  expectCode(made, 201);
  const uid = metaOf(made.body)['uid'] as string;
  return {
    path: `${all}/${metadata.name}`,
    reference: { apiVersion: 'v1', kind: 'ConfigMap', name: metadata.name, uid },
  };
};

/** The path of a new Secret that this owner holds. */
const madeChild = async (
  { admin, namespace, name }: ConformanceContext,
  owner: JsonObject,
): Promise<string> => {
  const all = `/api/v1/namespaces/${namespace}/secrets`;
  const metadata = { name: name('child'), ownerReferences: [owner] };
  expectCode(await admin.post(all, { apiVersion: 'v1', kind: 'Secret', metadata }), 201);
  return `${all}/${metadata.name}`;
};

/** How writes are checked, counted and refused. */
export const WRITING: readonly Behaviour[] = [
  {
    name: 'a name that is taken is 409 AlreadyExists, and says when its object is on its way out',
    check: async (context) => {
      const { path, object } = await created(context, SPEC, HELD);
      const again = order(metaOf(object)['name'] as string);
      const taken = await context.admin.post(context.orders, again);
      expectRefusal(taken, 409, 'AlreadyExists');
      expect(taken.body['message']).to.match(/^clusterorders\.osac\.openshift\.io .* already exists$/);
      expectCode(await context.admin.delete(path), 200);
      const leaving = await context.admin.post(context.orders, again);
      expectRefusal(leaving, 409, 'AlreadyExists');
      expect(leaving.body['message']).to.match(/^object is being deleted: /);
      expectCode(await context.admin.merge(path, RELEASE), 200);
      expectCode(await context.admin.get(path), 404);
    },
  },
  {
    name: 'what the schema forbids is 422 with the field',
    check: async ({ admin, orders, name }) => {
      const wrong = (spec: JsonObject) => admin.post(orders, order(name(), spec));
      expectRefusal(await wrong({}), 422, 'Invalid', 'FieldValueRequired spec.templateID');
      expectRefusal(await wrong({ templateID: 'a-b' }), 422, 'Invalid', 'FieldValueInvalid spec.templateID');
      const typed = await wrong({ ...SPEC, nodeRequests: [{ resourceClass: 'a', numberOfNodes: '1' }] });
      expectRefusal(typed, 422, 'Invalid', 'FieldValueTypeInvalid spec.nodeRequests[0].numberOfNodes');
      expectRefusal(
        await admin.post(orders, order('Upper')),
        422,
        'Invalid',
        'FieldValueInvalid metadata.name',
      );
      const kind = { ...order(name()), kind: 'Other' };
      expect((await admin.post(orders, kind)).code).to.be.within(400, 422);
    },
  },
  {
    name: 'a rule about the old value is 422, and there is a way round it by null',
    check: async (context) => {
      const { path } = await created(context);
      const other = await context.admin.merge(path, { spec: { templateID: 'osac.templates.other' } });
      expectRefusal(other, 422, 'Invalid', 'FieldValueInvalid spec.templateID');
      expectCode(await context.admin.merge(path, { spec: null }), 200);
      expectCode(await context.admin.merge(path, { spec: { templateID: 'osac.templates.other' } }), 200);
    },
  },
  {
    name: 'unknown fields are dropped; with fieldValidation=Strict they are 400',
    check: async ({ admin, orders, name }) => {
      const body = order(name(), { ...SPEC, bogus: 1 });
      const strict = await admin.post(orders, body, { fieldValidation: 'Strict' });
      expectRefusal(strict, 400, 'BadRequest');
      expect(strict.body['message']).to.include('unknown field "spec.bogus"');
      const dropped = await admin.post(orders, body);
      expectCode(dropped, 201);
      expect(dropped.body['spec']).to.deep.equal(SPEC);
    },
  },
  {
    name: 'status is written by /status only, everything else by the main resource only',
    check: async (context) => {
      const body = { ...order(context.name()), status: { phase: 'Ready' } };
      const answer = await context.admin.post(context.orders, body);
      expectCode(answer, 201);
      expect(answer.body).not.to.have.property('status');
      const path = `${context.orders}/${metaOf(body)['name'] as string}`;
      const patch = {
        spec: { sshPublicKey: 'k' },
        metadata: { labels: { a: 'b' } },
        status: { phase: 'Ready' },
      };
      const status = await context.admin.merge(`${path}/status`, patch);
      expectCode(status, 200);
      expect(status.body['status']).to.deep.equal({ phase: 'Ready' });
      expect(status.body['spec']).to.deep.equal(SPEC);
      const main = await context.admin.merge(path, { status: { phase: 'Failed' } });
      expect(main.body['status']).to.deep.equal({ phase: 'Ready' });
      const wrong = await context.admin.merge(`${path}/status`, { status: { phase: 'Degraded' } });
      expectRefusal(wrong, 422, 'Invalid', 'FieldValueNotSupported status.phase');
    },
  },
  {
    name: 'generation counts changes of the spec, and the deletion',
    check: async (context) => {
      const { path, object } = await created(context, SPEC, HELD);
      const generation = (body: JsonObject): unknown => metaOf(body)['generation'];
      expect(generation(object)).to.equal(1);
      const labelled = await context.admin.merge(path, { metadata: { labels: { a: 'b' } } });
      expect(generation(labelled.body)).to.equal(1);
      const status = await context.admin.merge(`${path}/status`, { status: { phase: 'Ready' } });
      expect(generation(status.body)).to.equal(1);
      const changed = await context.admin.merge(path, { spec: { sshPublicKey: 'k' } });
      expect(generation(changed.body)).to.equal(2);
      const deleted = await context.admin.delete(path);
      expect(generation(deleted.body)).to.equal(3);
      expect(metaOf(deleted.body)).to.have.property('deletionTimestamp');
      expectCode(await context.admin.merge(path, RELEASE), 200);
    },
  },
  {
    // What a retry changes, so that the operator sees another spec (domain/clusters/relaunch.ts).
    name: 'JSON in a text field is stored as it is written: white space in it is a change of the spec',
    check: async (context) => {
      const { path } = await created(context);
      for (const [generation, templateParameters] of [
        [2, '{ }'],
        [3, '{  }'],
      ] as const) {
        const { body } = await context.admin.merge(path, { spec: { templateParameters } });
        expect(objectAt(body, 'spec')).to.deep.equal({ ...SPEC, templateParameters });
        expect(metaOf(body)['generation']).to.equal(generation);
      }
    },
  },
  {
    name: 'a change that changes nothing keeps the version and makes no event',
    check: async (context) => {
      const { path, object } = await created(context);
      const watch = await context.admin.watch(context.orders, { resourceVersion: versionOf(object) });
      const same = await context.admin.merge(path, { spec: { templateID: SPEC['templateID'] as string } });
      expect(versionOf(same.body)).to.equal(versionOf(object));
      await context.admin.merge(path, { metadata: { labels: { a: 'b' } } });
      const seen = await nextEvent(watch, 'MODIFIED');
      expect(objectAt(metaOf(seen), 'labels')).to.deep.equal({ a: 'b' });
      watch.close();
    },
  },
  {
    name: 'a stale version is 409 Conflict, in PUT and in a patch that carries one; a PUT without one is 422',
    check: async (context) => {
      const { path, object } = await created(context);
      expectCode(await context.admin.merge(path, { metadata: { labels: { a: 'b' } } }), 200);
      expectRefusal(await context.admin.put(path, object), 409, 'Conflict');
      const patch = { metadata: { resourceVersion: versionOf(object), labels: { a: 'c' } } };
      expectRefusal(await context.admin.merge(path, patch), 409, 'Conflict');
      const bare = order(metaOf(object)['name'] as string);
      const cause = 'FieldValueInvalid metadata.resourceVersion';
      expectRefusal(await context.admin.put(path, bare), 422, 'Invalid', cause);
    },
  },
  {
    name: 'a lease goes to who read it last',
    check: async ({ admin, namespace, name }) => {
      const leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
      const body = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name: name() },
        spec: { holderIdentity: 'a', leaseDurationSeconds: 15 },
      };
      const first = await admin.post(leases, body);
      expectCode(first, 201);
      const path = `${leases}/${body.metadata.name}`;
      const taken = { ...first.body, spec: { holderIdentity: 'b', leaseDurationSeconds: 15 } };
      expectCode(await admin.put(path, taken), 200);
      expectRefusal(await admin.put(path, taken), 409, 'Conflict');
    },
  },
  {
    name: 'a JSON patch whose test fails is 422 and changes nothing',
    check: async (context) => {
      const { path, object } = await created(context);
      const operations = [
        { op: 'add', path: '/metadata/labels', value: { a: 'b' } },
        { op: 'test', path: '/spec/templateID', value: 'other' },
      ];
      const answer = await context.admin.call('PATCH', path, { body: operations, type: JSON_PATCH });
      expectCode(answer, 422);
      expect(versionOf((await context.admin.get(path)).body)).to.equal(versionOf(object));
      const good = [{ op: 'add', path: '/metadata/labels', value: { 'a/b': 'c' } }];
      expectCode(await context.admin.call('PATCH', path, { body: good, type: JSON_PATCH }), 200);
    },
  },
  {
    name: 'a patch without a patch type is 415',
    check: async (context) => {
      const { path } = await created(context);
      const answer = await context.admin.call('PATCH', path, { body: {}, type: 'application/json' });
      expectRefusal(answer, 415, 'UnsupportedMediaType');
    },
  },
  {
    name: 'generateName makes a new name each time',
    check: async ({ admin, orders }) => {
      const body = { ...order(''), metadata: { generateName: 'order-' } };
      const names = [await admin.post(orders, body), await admin.post(orders, body)].map(
        (answer) => metaOf(answer.body)['name'] as string,
      );
      expect(names[0]).to.match(/^order-[a-z0-9]{5}$/);
      expect(names[1]).not.to.equal(names[0]);
    },
  },
  {
    name: 'finalizers hold a deletion, and none can be added to it',
    check: async (context) => {
      const { path } = await created(context, SPEC, HELD);
      expectCode(await context.admin.delete(path), 200);
      const more = { metadata: { finalizers: [...HELD.finalizers, 'osac.openshift.io/infrastructure'] } };
      expectRefusal(
        await context.admin.merge(path, more),
        422,
        'Invalid',
        'FieldValueForbidden metadata.finalizers',
      );
      expectCode(await context.admin.merge(path, { spec: { sshPublicKey: 'k' } }), 200);
      expectCode(await context.admin.merge(path, RELEASE), 200);
      expectCode(await context.admin.get(path), 404);
    },
  },
  {
    name: 'a deletion with the uid of another object is 409',
    check: async (context) => {
      const { path } = await created(context);
      const wrong = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: 'another' } };
      expectRefusal(await context.admin.delete(path, wrong), 409, 'Conflict');
      expectCode(await context.admin.get(path), 200);
    },
  },
  {
    name: 'what depends on an owner goes with it, and what depends on nobody goes, too',
    check: async (context) => {
      const { admin, namespace, name } = context;
      const owner = await madeOwner(context);
      const strange = {
        ...owner.reference,
        name: name('nobody'),
        uid: '00000000-0000-4000-8000-000000000000',
      };
      const children = [await madeChild(context, owner.reference), await madeChild(context, strange)];
      expectCode(await admin.delete(owner.path), 200);
      // A real collector that is just learning new kinds does nothing else for half a minute.
      for (const child of children) {
        const gone = async (): Promise<boolean> => (await admin.get(child)).code === 404;
        await eventually(`${child} is gone from ${namespace}`, gone, 60_000);
      }
    },
  },
  {
    name: 'a deletion in the foreground waits for what depends on it, one that orphans leaves it alone',
    check: async (context) => {
      const { admin } = context;
      const [first, second] = [await madeOwner(context), await madeOwner(context)];
      const blocked = await madeChild(context, { ...first.reference, blockOwnerDeletion: true });
      const left = await madeChild(context, second.reference);
      const options = { kind: 'DeleteOptions', apiVersion: 'v1' };
      expectCode(await admin.delete(first.path, { ...options, propagationPolicy: 'Foreground' }), 200);
      expectCode(await admin.delete(second.path, { ...options, propagationPolicy: 'Orphan' }), 200);
      const gone = (path: string) => async (): Promise<boolean> => (await admin.get(path)).code === 404;
      await eventually('the first owner is gone', gone(first.path), 60_000);
      expectCode(await admin.get(blocked), 404);
      await eventually('the second owner is gone', gone(second.path), 60_000);
      const orphan = await admin.get(left);
      expectCode(orphan, 200);
      expect(metaOf(orphan.body)).not.to.have.property('ownerReferences');
    },
  },
  {
    name: 'a terminating namespace takes nothing new, and goes when what is in it goes',
    check: async (context) => {
      const place = await context.anotherNamespace();
      const orders = `/apis/osac.openshift.io/v1alpha1/namespaces/${place}/clusterorders`;
      expectCode(await context.admin.post(orders, order('held', SPEC, HELD)), 201);
      expectCode(await context.admin.delete(`/api/v1/namespaces/${place}`), 200);
      const refused = await context.admin.post(orders, order('late'));
      expectRefusal(refused, 403, 'Forbidden', 'NamespaceTerminating metadata.namespace');
      await eventually(
        'the order is being deleted',
        async () => {
          const { body } = await context.admin.get(`${orders}/held`);
          return metaOf(body)['deletionTimestamp'] !== undefined;
        },
        20_000,
      );
      const { body } = await context.admin.get(`/api/v1/namespaces/${place}`);
      expect(objectAt(body, 'status')['phase']).to.equal('Terminating');
      expectCode(await context.admin.merge(`${orders}/held`, RELEASE), 200);
      await eventually(
        'the namespace is gone',
        async () => {
          const { code } = await context.admin.get(`/api/v1/namespaces/${place}`);
          return code === 404;
        },
        20_000,
      );
    },
  },
  {
    name: 'a namespace whose name is no label is 422',
    check: async ({ admin }) => {
      const body = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      for (const name of ['with.dot', 'x'.repeat(64)]) {
        const answer = await admin.post('/api/v1/namespaces', body(name));
        expectRefusal(answer, 422, 'Invalid', 'FieldValueInvalid metadata.name');
      }
    },
  },
  {
    name: 'server-side apply refuses what another manager owns, takes it by force, and drops what is not applied',
    check: async (context) => {
      const { path, object } = await created(context);
      const name = metaOf(object)['name'] as string;
      const nodes = (numberOfNodes: number): JsonObject =>
        order(name, { ...SPEC, nodeRequests: [{ resourceClass: 'a', numberOfNodes }] });
      expectCode(await context.admin.apply(path, nodes(1), 'one'), 200);
      const refused = await context.admin.apply(path, nodes(2), 'two');
      expectRefusal(refused, 409, 'Conflict', 'FieldManagerConflict .spec.nodeRequests');
      expectCode(await context.admin.apply(path, nodes(2), 'two', true), 200);
      const same = await context.admin.apply(path, nodes(2), 'two');
      expectCode(same, 200);
      expect(versionOf((await context.admin.apply(path, nodes(2), 'two')).body)).to.equal(
        versionOf(same.body),
      );
      const dropped = await context.admin.apply(path, order(name), 'two');
      expectCode(dropped, 200);
      expect(dropped.body['spec']).not.to.have.property('nodeRequests');
    },
  },
  {
    name: 'stringData of a Secret is stored as data',
    check: async ({ admin, namespace, name }) => {
      const secrets = `/api/v1/namespaces/${namespace}/secrets`;
      const metadata = { name: name('secret') };
      const secret = { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { password: 'four words' } };
      expectCode(await admin.post(secrets, secret), 201);
      const { body } = await admin.get(`${secrets}/${metadata.name}`);
      expect(body['data']).to.deep.equal({ password: Buffer.from('four words').toString('base64') });
      expect(body).not.to.have.property('stringData');
    },
  },
  {
    name: 'status of a load balancer can be given without any load balancer',
    check: async ({ admin, namespace, name }) => {
      const services = `/api/v1/namespaces/${namespace}/services`;
      const metadata = { name: name('svc') };
      const spec = { type: 'LoadBalancer', ports: [{ name: 'api', port: 6443, targetPort: 6443 }] };
      expectCode(await admin.post(services, { apiVersion: 'v1', kind: 'Service', metadata, spec }), 201);
      const path = `${services}/${metadata.name}`;
      const status = { loadBalancer: { ingress: [{ ip: '10.9.0.5' }] } };
      expectCode(await admin.call('PATCH', `${path}/status`, { body: { status }, type: MERGE }), 200);
      const { body } = await admin.get(path);
      expect(JSON.stringify(body['status'])).to.include('10.9.0.5');
    },
  },
];
