import { expect } from 'chai';
import { grpcCaller, Code, type GrpcCaller, type GrpcReply } from '../../support/grpc/caller.ts';
import { PRIVATE, PUBLIC, type Caller, type Json, type TestService } from '../../support/http/service.ts';
import { startOrdering, type Ordering } from '../http/ordering.ts';

const CLUSTERS = '/osac.public.v1.Clusters';
const OWN_CLUSTERS = '/osac.private.v1.Clusters';

/** The calls of OSAC's command line and operator, which send an object as they read it, with their changes. */
describe('whole objects over gRPC', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let order: Ordering['order'];
  let cli: GrpcCaller;
  let operator: GrpcCaller;

  before(async () => {
    ({ service, admin, user, order } = await startOrdering());
    cli = grpcCaller(service.grpcAddress, await service.token({ user: 'alice', tenants: ['t1'] }));
    operator = grpcCaller(service.grpcAddress, await service.token({ user: 'root', admin: true }));
  });
  after(async () => {
    cli.close();
    operator.close();
    await service.close();
  });

  const ok = ({ code, message, json }: GrpcReply): Json => {
    expect(Code[code], message).to.equal('OK');
    return json;
  };
  /** As `osac label`, `annotate`, `edit` and `scale` begin. */
  const listed = async (name: string): Promise<Json> => {
    const filter = `this.id == "${name}" || this.metadata.name == "${name}"`;
    const { items } = ok(await cli.call(`${CLUSTERS}/List`, { limit: 2, filter }));
    return (items as unknown as readonly [Json])[0];
  };
  const edited = (object: Json, part: 'metadata' | 'spec' | 'status', more: object): Json => ({
    ...object,
    [part]: { ...(object[part] as object), ...more } as unknown as Json,
  });

  it('create and edit: the name of an object is taken where its id belongs', async () => {
    const { items } = ok(await cli.call('/osac.public.v1.ClusterVersions/List', { order: 'spec.version' }));
    const [older, newer] = (items as unknown as readonly Json[]).map(({ id, metadata }) => ({
      id,
      name: metadata?.['name'],
    }));
    const name = 'named-by-id';
    const spec = { template: { id: 'osac.templates.small' }, version: { id: older?.name } };
    ok(await cli.call(`${CLUSTERS}/Create`, { object: { metadata: { name }, spec } }));
    const read = await listed(name);
    expect(read['spec']?.['version']).to.deep.equal(older);
    const object = edited(read, 'spec', { version: { id: newer?.name } });
    ok(await cli.call(`${CLUSTERS}/Update`, { object }));
    expect((await listed(name))['spec']?.['version']).to.deep.equal(newer);
  });

  it('label: the last label goes', async () => {
    const { name } = await order({ labels: { env: 'dev' } });
    const object = edited(await listed(name), 'metadata', { labels: {} });
    ok(await cli.call(`${CLUSTERS}/Update`, { object }));
    expect((await listed(name))['metadata']).not.to.have.any.keys('labels');
  });

  it('edit: a text is cleared, and a scale between read and update survives', async () => {
    const { id, name } = await order({}, { template: { id: 'osac.templates.small' }, ssh_public_key: 'k' });
    const object = edited(await listed(name), 'spec', { ssh_public_key: '' });
    await user('PATCH', `${PUBLIC}/clusters/${id}`, { spec: { node_sets: { workers: { size: 9 } } } });
    ok(await cli.call(`${CLUSTERS}/Update`, { object }));
    const spec = (await listed(name))['spec'];
    expect(spec?.['ssh_public_key'] ?? '').to.equal('');
    expect(spec?.['node_sets']?.['workers']?.['size']).to.equal(9);
  });

  it('edit: nothing was changed, and nothing is written', async () => {
    const { name } = await order({ labels: { env: 'dev' } });
    const object = await listed(name);
    const position = await service.store.lastPosition();
    expect(ok(await cli.call(`${CLUSTERS}/Update`, { object }))['object']).to.deep.equal(object);
    expect(await service.store.lastPosition()).to.equal(position);
  });

  it('scale: the mask decides, although the object is complete', async () => {
    const { id, name } = await order({ labels: { env: 'dev' } });
    const read = await listed(name);
    await user('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { env: 'prod' } } });
    const node_sets = { workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 5 } };
    const object = edited(read, 'spec', { node_sets });
    ok(await cli.call(`${CLUSTERS}/Update`, { object, update_mask: 'spec.nodeSets' }));
    const after = await listed(name);
    expect(after['spec']?.['node_sets']?.['workers']?.['size']).to.equal(5);
    expect(after['metadata']?.['labels']).to.deep.equal({ env: 'prod' });
  });

  it('scale: zero under the mask is a zero, although protobuf leaves it out', async () => {
    const { name } = await order();
    const node_sets = { workers: { host_type: { id: 'fc430', name: 'fc430' }, size: 0 } };
    const object = edited(await listed(name), 'spec', { node_sets });
    ok(await cli.call(`${CLUSTERS}/Update`, { object, update_mask: 'spec.nodeSets' }));
    expect((await listed(name))['spec']?.['node_sets']?.['workers']).not.to.have.any.keys('size');
  });

  it('a client that knows nothing of our additions clears none of them', async () => {
    const { items } = (await admin('GET', `${PRIVATE}/hubs`)).json;
    const [{ id }] = items as unknown as readonly [{ readonly id: string }];
    const spec = { scheduling: 'cordoned' };
    await admin('PATCH', `${PRIVATE}/hubs/${id}?update_mask=spec.scheduling`, { spec });
    const read = ok(await operator.call('/osac.private.v1.Hubs/Get', { id }))['object'] as Json;
    expect(read['spec']).to.include(spec);
    const { scheduling: _unknown, ...known } = read['spec'] as Json;
    const object = { ...edited(read, 'metadata', { labels: { env: 'dev' } }), spec: known };
    const after = ok(await operator.call('/osac.private.v1.Hubs/Update', { object }))['object'] as Json;
    expect(after['metadata']?.['labels']).to.deep.equal({ env: 'dev' });
    expect(after['spec']).to.include(spec);
  });

  it('lock: an object that is not the newest is aborted', async () => {
    const { id, name } = await order();
    const object = edited(await listed(name), 'metadata', { labels: { env: 'dev' } });
    await user('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { annotations: { a: 'b' } } });
    const refused = await cli.call(`${CLUSTERS}/Update`, { object, lock: true });
    expect(Code[refused.code]).to.equal('ABORTED');
  });

  it('a version above the current one is aborted with the reason', async () => {
    const { name } = await order();
    const object = edited(await listed(name), 'metadata', { version: 9 });
    const refused = await cli.call(`${CLUSTERS}/Update`, { object });
    expect(Code[refused.code]).to.equal('ABORTED');
    expect(refused.message).to.contain('has no version 9');
  });

  it('the operator adds its finalizer, writes a status, and takes the last finalizer away', async () => {
    const { id } = await order();
    const get = async (): Promise<Json> =>
      ok(await operator.call(`${OWN_CLUSTERS}/Get`, { id }))['object'] as Json;
    const update = async (object: Json): Promise<Json> =>
      ok(await operator.call(`${OWN_CLUSTERS}/Update`, { object }))['object'] as Json;
    const held = await update(
      edited(await get(), 'metadata', { finalizers: ['osac.openshift.io/feedback'] }),
    );
    expect(held['metadata']?.['finalizers']).to.deep.equal(['osac.openshift.io/feedback']);
    const read = await get();
    await user('PATCH', `${PUBLIC}/clusters/${id}`, { metadata: { labels: { env: 'prod' } } });
    const reported = await update(edited(read, 'status', { api_url: 'https://api.example' }));
    expect(reported['status']).to.include({ api_url: 'https://api.example' });
    expect(reported['metadata']?.['labels']).to.deep.equal({ env: 'prod' });
    const freed = await update(edited(await get(), 'metadata', { finalizers: [] }));
    expect(freed['metadata']).not.to.have.any.keys('finalizers');
    const shown = await admin('GET', `${PRIVATE}/clusters/${id}`);
    expect(shown.json['metadata']).not.to.have.any.keys('finalizers');
  });
});
