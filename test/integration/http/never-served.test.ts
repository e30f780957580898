import { expect } from 'chai';
import { PRIVATE, PUBLIC, textAt, type Caller, type Json, type Reply } from '../../support/http/service.ts';
import { startDispatching, type Dispatching } from './dispatching.ts';
import { CLUSTERS, SMALL } from './ordering.ts';

const DRY = { 'x-dry-run': 'true' };
const ZONE = 'fulfillment-ledger/zone';

/** What no registered hub could ever hold is refused before anything is stored; what only lacks room is taken. */
describe('orders that can never be served', () => {
  let it_: Dispatching;
  let admin: Caller;
  let user: Caller;
  let serial = 0;

  before(async () => {
    it_ = await startDispatching();
    ({ admin, user } = it_);
  });
  after(() => it_.service.close());

  /** What the hub `sim-1` is from now on. */
  const hubIs = async (spec: object): Promise<void> => {
    const reply = await admin('PATCH', `${PRIVATE}/hubs/sim-1?update_mask=spec.zone,spec.capacity`, { spec });
    expect(reply.status, reply.text).to.equal(200);
  };
  const order = (workers: number, annotations: object = {}, headers = {}): Promise<Reply> =>
    user(
      'POST',
      CLUSTERS,
      {
        metadata: { name: `n-${(serial += 1)}`, annotations },
        spec: { ...SMALL, node_sets: { workers: { size: workers } } },
      },
      headers,
    );
  const scale = (id: string, workers: number, headers = {}): Promise<Reply> =>
    user('PATCH', `${CLUSTERS}/${id}`, { spec: { node_sets: { workers: { size: workers } } } }, headers);
  const refuses = (reply: Reply, message: string | RegExp): void => {
    expect(reply.status, reply.text).to.equal(400);
    expect(reply.json['code']).to.equal(9);
    if (typeof message === 'string') expect(reply.json['message']).to.equal(message);
    else expect(reply.json['message']).to.match(message);
  };
  const accepts = (reply: Reply): string => {
    expect(reply.status, reply.text).to.equal(200);
    return textAt(reply.json, 'id');
  };
  const lastPosition = async (): Promise<string> => (await it_.service.store.lastPosition()) ?? '';

  it('are refused with how many can be had, and so is their dry run', async () => {
    await hubIs({ capacity: { nodes: { fc430: 5 } } });
    const message = "node set 'workers': 6 fc430 can never be had: one cluster can have at most 5";
    const before = await lastPosition();
    const refused = await order(6);
    refuses(refused, message);
    expect(refused.headers.get('x-ledger-reason')).to.equal('CAPACITY_IMPOSSIBLE');
    const [fields, info] = refused.json['details'] as unknown as Json[];
    expect(fields).to.have.nested.property('field_violations[0].field', 'spec.node_sets.workers.size');
    expect(info?.['metadata']).to.deep.equal({ host_type: 'fc430', wanted: '6', possible: '5' });
    refuses(await order(6, {}, DRY), message);
    expect(await lastPosition(), 'nothing is stored').to.equal(before);
    accepts(await order(5));
    expect((await order(5, {}, DRY)).status, 'two such orders lack room only').to.equal(200);
  });
  it('are refused for a zone that no hub has, at once after the hub left it', async () => {
    await hubIs({ zone: 'east' });
    accepts(await order(500, { [ZONE]: 'east' }));
    const message = `annotation '${ZONE}': unknown zone 'mars': name another one, or leave the annotation out`;
    refuses(await order(1, { [ZONE]: 'mars' }), message);
    refuses(await order(1, { [ZONE]: 'mars' }, DRY), message);
    await hubIs({ zone: 'mars' });
    const id = accepts(await order(1, { [ZONE]: 'mars' }));
    await hubIs({ zone: 'east' });
    const to = (zone: string): object => ({ metadata: { annotations: { [ZONE]: zone } } });
    refuses(await user('PATCH', `${CLUSTERS}/${id}`, to('venus')), /unknown zone 'venus'/);
    refuses(await user('PATCH', `${CLUSTERS}/${id}`, to('venus'), DRY), /unknown zone 'venus'/);
    accepts(await user('PATCH', `${CLUSTERS}/${id}`, to('east')));
  });
  it('are taken while no hub is registered, or one without a limit', async () => {
    await hubIs({ zone: '', capacity: {} });
    accepts(await order(999_999));
    const alone = await startDispatching();
    try {
      expect((await alone.admin('DELETE', `${PRIVATE}/hubs/sim-1`)).status).to.equal(200);
      const reply = await alone.user('POST', CLUSTERS, {
        metadata: { name: 'any', annotations: { [ZONE]: 'mars' } },
        spec: { ...SMALL, node_sets: { workers: { size: 9_999 } } },
      });
      expect(reply.status, reply.text).to.equal(200);
    } finally {
      await alone.service.close();
    }
  });
  it('are refused for a change of what has no place yet, and never for a smaller one', async () => {
    await hubIs({ capacity: { nodes: { fc430: 8 } } });
    const id = accepts(await order(6));
    refuses(await scale(id, 9), /9 fc430 can never be had: one cluster can have at most 8$/);
    refuses(await scale(id, 9, DRY), /at most 8$/);
    await hubIs({ capacity: { nodes: { fc430: 4 } } });
    accepts(await scale(id, 5));
    refuses(await scale(id, 6), /at most 4$/);
    accepts(await user('PATCH', `${CLUSTERS}/${id}`, { metadata: { labels: { a: 'b' } } }));
  });
  it('are refused for a change of a cluster on its hub, with how many are free; taking back is always possible', async () => {
    await hubIs({ capacity: { nodes: { fc430: 8 } } });
    const id = await it_.dispatched(order(2).then(accepts));
    const message =
      "node set 'workers': 9 fc430 can never be had: this cluster can have at most 8, 8 more are free now";
    const before = await lastPosition();
    refuses(await scale(id, 9), message);
    refuses(await scale(id, 9, DRY), message);
    expect(await lastPosition()).to.equal(before);
    accepts(await scale(id, 8));
    await hubIs({ capacity: { nodes: { fc430: 1 } } });
    accepts(await scale(id, 7));
    accepts(await scale(id, 2));
  });
  it('are refused where they come from a catalogue item, and so is an item that nobody could order', async () => {
    await hubIs({ capacity: { nodes: { fc430: 5 } } });
    const item = (name: string, definition: object, headers = {}): Promise<Reply> =>
      admin(
        'POST',
        `${PRIVATE}/cluster_catalog_items`,
        {
          metadata: { name },
          title: name,
          template: SMALL.template,
          published: true,
          field_definitions: [{ path: 'node_sets.workers.size', editable: true, ...definition }],
        },
        headers,
      );
    const never =
      "the defaults of this item cannot be ordered: node set 'workers': 6 fc430 can never be had: one cluster can have at most 5";
    refuses(await item('too-large', { default: 6 }), never);
    refuses(await item('too-large', { default: 6 }, DRY), never);
    const id = accepts(await item('fits', { default: 5 }));
    const from = (size: object, headers = {}): Promise<Reply> =>
      user(
        'POST',
        CLUSTERS,
        { metadata: { name: `n-${(serial += 1)}` }, spec: { catalog_item: { id }, ...size } },
        headers,
      );
    accepts(await from({}));
    refuses(
      await from({ node_sets: { workers: { size: 6 } } }),
      /^node set 'workers': 6 fc430 can never be had/,
    );
    refuses(await from({ node_sets: { workers: { size: 6 } } }, DRY), /^node set 'workers': 6 fc430/);
    const patch = { field_definitions: [{ path: 'node_sets.workers.size', editable: true, default: 6 }] };
    refuses(await admin('PATCH', `${PRIVATE}/cluster_catalog_items/${id}`, patch), never);
    refuses(await admin('PATCH', `${PRIVATE}/cluster_catalog_items/${id}`, patch, DRY), never);
    await hubIs({ capacity: { nodes: { fc430: 4 } } });
    refuses(await from({}), /5 fc430 can never be had: one cluster can have at most 4$/);
    expect((await user('GET', `${PUBLIC}/cluster_catalog_items/${id}`)).status).to.equal(200);
  });
  it('are refused where every pool of their external IPs is on a hub that could never hold them', async () => {
    await hubIs({ zone: 'east', capacity: { nodes: { fc430: 5 } } });
    const second = { id: 'sim-2', spec: { namespace: 'osac-hub', zone: 'west' } };
    accepts(await admin('POST', `${PRIVATE}/hubs`, { ...second, metadata: { name: 'sim-2' } }));
    const pool = async (id: string, cidr: string, hub: string): Promise<void> => {
      const spec = { cidrs: [cidr], ip_family: 'IP_FAMILY_IPV4' };
      const path = `${PRIVATE}/external_ip_pools`;
      accepts(await admin('POST', path, { id, metadata: { name: id }, spec }));
      const status = { state: 'EXTERNAL_IP_POOL_STATE_READY', hub };
      accepts(await admin('PATCH', `${path}/${id}`, { status }));
    };
    const reached = (workers: number, zone?: string, headers = {}): Promise<Reply> =>
      user(
        'POST',
        CLUSTERS,
        {
          metadata: { name: `n-${(serial += 1)}`, annotations: zone === undefined ? {} : { [ZONE]: zone } },
          spec: { ...SMALL, auto_external_ip_attachment: true, node_sets: { workers: { size: workers } } },
        },
        headers,
      );
    await pool('large', '192.0.2.0/26', 'sim-1');
    const before = await lastPosition();
    refuses(await reached(6), /6 fc430 can never be had: one cluster can have at most 5$/);
    refuses(await reached(6, undefined, DRY), /at most 5$/);
    refuses(await reached(1, 'west'), /external IPs of the cluster are not in zone 'west'/);
    expect(await lastPosition(), 'nothing is stored').to.equal(before);
    accepts(await reached(5, 'east'));
    await pool('small', '198.51.100.0/29', 'sim-2');
    accepts(await reached(6));
    accepts(await reached(1, 'west'));
  });
});
