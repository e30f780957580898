import { expect } from 'chai';
import { aggregateOf } from '../../../src/domain/kinds.ts';
import { claimsOf } from '../../../src/domain/networks/subnet-plan.ts';
import { planOf, virtualNetwork } from '../../../src/domain/networks/virtual-network.resource.ts';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

const CLASSES = `${PRIVATE}/network_classes`;
const NETWORKS = `${PUBLIC}/virtual_networks`;
const SUBNETS = `${PUBLIC}/subnets`;
const READY = { status: { state: 'VIRTUAL_NETWORK_STATE_READY' } };

describe('network classes, virtual networks and subnets, over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let user: Caller;
  let other: Caller;
  let serial = 0;

  const ok = (reply: Reply): Json => {
    expect(reply.status, reply.text).to.equal(200);
    return reply.json;
  };
  const refused = (reply: Reply, status: number, code: number, words: string): void => {
    expect([reply.status, reply.json['code']], reply.text).to.deep.equal([status, code]);
    expect(reply.json['message']).to.contain(words);
  };
  const name = (): string => `n-${(serial += 1)}`;
  const makeClass = (strategy: string, more: object = {}): Promise<Reply> =>
    admin('POST', CLASSES, {
      title: 'Networks',
      implementation_strategy: strategy,
      fabric_manager: 'netris',
      capabilities: { supports_ipv4: true },
      ...more,
    });
  const order = (spec: object, caller = user): Promise<Reply> =>
    caller('POST', NETWORKS, { metadata: { name: name() }, spec });
  const readyNetwork = async (cidr = '10.0.0.0/16'): Promise<string> => {
    const id = textAt(ok(await order({ ipv4_cidr: cidr })), 'id');
    ok(await admin('PATCH', `${PRIVATE}/virtual_networks/${id}`, READY));
    return id;
  };
  const part = (network: string, cidr: string, more: object = {}, headers = {}): Promise<Reply> =>
    user(
      'POST',
      SUBNETS,
      { metadata: { name: name() }, spec: { virtual_network: { id: network }, ipv4_cidr: cidr }, ...more },
      headers,
    );
  const claimed = async (network: string): Promise<readonly string[]> => {
    const { state } = await service.runner.load(aggregateOf(virtualNetwork), network);
    return claimsOf(planOf(state))
      .flatMap(({ ranges }) => ranges)
      .toSorted();
  };

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    for (const tenant of ['t1', 't2'])
      ok(await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: tenant } }));
    user = callerOf(service, await service.token({ user: 'alice', tenants: ['t1'] }));
    other = callerOf(service, await service.token({ user: 'bob', tenants: ['t2'] }));
  });
  after(() => service.close());

  it('no network without a class; the default one is taken, and a second default takes its place', async () => {
    refused(await order({ ipv4_cidr: '10.0.0.0/16' }), 400, 3, 'no default NetworkClass is configured');
    const first = ok(
      await makeClass('phys_net', {
        id: 'ignored',
        is_default: true,
        status: { state: 'NETWORK_CLASS_STATE_FAILED' },
      }),
    );
    expect(first).to.deep.include({ status: { state: 'NETWORK_CLASS_STATE_READY' } });
    expect(first['id']).not.to.equal('ignored');
    expect((first['metadata'] as Json)['name']).to.equal('phys-net');
    const { json } = await order({ ipv4_cidr: '10.0.7.1/16' });
    expect(json['spec']).to.deep.equal({ ipv4_cidr: '10.0.0.0/16' });
    const hidden = ok(await admin('GET', `${PRIVATE}/virtual_networks/${textAt(json, 'id')}`));
    expect(hidden['spec']).to.deep.equal({
      region: 'default',
      network_class: { id: first['id'], name: 'phys-net' },
      ipv4_cidr: '10.0.0.0/16',
      implementation_strategy: 'phys_net',
    });
    const both = { supports_ipv4: true, supports_ipv6: true, supports_dual_stack: true };
    const second = ok(await makeClass('dual_net', { is_default: true, capabilities: both }));
    expect(ok(await admin('GET', `${CLASSES}/${textAt(first, 'id')}`))).not.to.have.property('is_default');
    expect(second).to.include({ is_default: true });
    refused(await admin('DELETE', `${CLASSES}/${textAt(first, 'id')}`), 400, 9, 'is in use by at least one');
  });

  it('a class that is not ready, is unknown or lacks the family makes no network', async () => {
    const only4 = ok(await makeClass('only_four'));
    const path = `${PRIVATE}/virtual_networks`;
    const ordered = (network_class: object, spec: object): Promise<Reply> =>
      admin('POST', path, {
        metadata: { name: name(), tenant: 't1' },
        spec: { region: 'r', network_class, ...spec },
      });
    refused(await ordered({ id: only4['id'] }, { ipv6_cidr: 'fd00::/48' }), 400, 3, 'does not support IPv6');
    refused(
      await ordered({ name: 'nope' }, { ipv4_cidr: '10.0.0.0/16' }),
      400,
      3,
      'NetworkClass "nope" not found',
    );
    const pending = { status: { state: 'NETWORK_CLASS_STATE_PENDING' } };
    ok(await admin('PATCH', `${CLASSES}/${textAt(only4, 'id')}`, pending));
    refused(await ordered({ id: only4['id'] }, { ipv4_cidr: '10.0.0.0/16' }), 400, 9, 'is not ready');
    refused(
      await admin('POST', path, {
        metadata: { name: name(), tenant: 't1' },
        spec: { ipv4_cidr: '10.0.0.0/16' },
      }),
      400,
      3,
      "field 'spec.region' is required",
    );
  });

  it('nothing is made in a network that is not ready, nor in that of another tenant', async () => {
    const early = textAt(ok(await order({ ipv4_cidr: '10.0.0.0/16' })), 'id');
    refused(
      await part(early, '10.0.1.0/24'),
      400,
      9,
      `parent VirtualNetwork '${early}' is not in READY state`,
    );
    const theirs = ok(await order({ ipv4_cidr: '10.0.0.0/16' }, other));
    ok(await admin('PATCH', `${PRIVATE}/virtual_networks/${textAt(theirs, 'id')}`, READY));
    for (const virtual_network of [{ id: theirs['id'] }, { name: (theirs['metadata'] as Json)['name'] }])
      refused(
        await part('', '10.0.1.0/24', { spec: { virtual_network, ipv4_cidr: '10.0.1.0/24' } }),
        400,
        3,
        'not found',
      );
    expect(await claimed(textAt(theirs, 'id'))).to.deep.equal([]);
  });

  it('a subnet lies inside its network and overlaps none; a dry run takes nothing', async () => {
    const network = await readyNetwork();
    const first = ok(await part(network, '10.0.1.7/24'));
    expect(first['spec']).to.deep.include({ ipv4_cidr: '10.0.1.0/24' });
    expect((first['metadata'] as Json)['annotations']).to.deep.equal({
      'osac.openshift.io/owner-reference': network,
    });
    const overlap = "'10.0.1.128/25' overlaps '10.0.1.0/24' of another subnet";
    const dry = { 'x-dry-run': 'true' };
    for (const headers of [{}, dry])
      refused(await part(network, '10.0.1.128/25', {}, headers), 409, 6, overlap);
    ok(await part(network, '10.0.2.0/24', {}, dry));
    expect(await claimed(network)).to.deep.equal(['10.0.1.0/24']);
    refused(await part(network, '10.1.0.0/24'), 400, 3, 'it must lie inside');
    refused(await part(network, '10.0.0.0/15'), 400, 3, 'it must lie inside');
    const six = { spec: { virtual_network: { id: network }, ipv6_cidr: 'fd00::/64' } };
    refused(await part(network, '', six), 400, 3, 'the virtual network has no IPv6 range');
  });

  it('what is refused afterwards gives its range back', async () => {
    const network = await readyNetwork();
    const first = ok(await part(network, '10.0.1.0/24', { metadata: { name: 'same-name' } }));
    refused(
      await part(network, '10.0.2.0/24', { metadata: { name: 'same-name' } }),
      409,
      6,
      'already exists',
    );
    expect(await claimed(network)).to.deep.equal(['10.0.1.0/24']);
    const same = { id: first['id'] };
    expect((await part(network, '10.0.3.0/24', same)).status).to.equal(409);
    expect(await claimed(network)).to.deep.equal(['10.0.1.0/24']);
  });

  it('64 creations at once: no two overlap, and exactly one of each overlapping pair is made', async () => {
    const network = await readyNetwork('10.64.0.0/16');
    const replies = await Promise.all(
      Array.from({ length: 64 }, (_, i) =>
        part(network, `10.64.${i % 32}.${i < 32 ? 0 : 128}/${i < 32 ? 24 : 25}`),
      ),
    );
    expect(replies.filter(({ status }) => status === 200)).to.have.lengthOf(32);
    expect(replies.filter(({ status }) => status === 409)).to.have.lengthOf(32);
    expect(await claimed(network)).to.have.lengthOf(32);
  });

  it('two requests for one id leave one subnet, which keeps its range', async () => {
    const network = await readyNetwork();
    for (let round = 0; round < 10; round += 1) {
      const wanted = [0, 1, 2].map((part) => `10.0.${round}.${part * 64}/26`);
      const replies = await Promise.all(wanted.map((cidr) => part(network, cidr, { id: `twice-${round}` })));
      const made = wanted.filter((_cidr, i) => replies[i]?.status === 200);
      expect(made).to.have.lengthOf(1);
      expect((await claimed(network)).filter((range) => range.startsWith(`10.0.${round}.`))).to.deep.equal(
        made,
      );
    }
  });

  it('a creation that is repeated with its key makes one subnet with one claim', async () => {
    const network = await readyNetwork();
    const metadata = { name: name() };
    const headers = { 'idempotency-key': 'subnet-1' };
    const replies = await Promise.all(
      [1, 2, 3].map(() => part(network, '10.0.9.0/24', { metadata }, headers)),
    );
    expect(new Set(replies.map((reply) => textAt(ok(reply), 'id'))).size).to.equal(1);
    expect(await claimed(network)).to.deep.equal(['10.0.9.0/24']);
  });

  it('a network goes after its subnets, whose ranges are free again', async () => {
    const network = await readyNetwork();
    const one = textAt(ok(await part(network, '10.0.1.0/24')), 'id');
    refused(
      await user('DELETE', `${NETWORKS}/${network}`),
      400,
      9,
      `cannot delete VirtualNetwork '${network}': 1 Subnet(s) still reference it: subnet '`,
    );
    const others: string[] = [];
    for (let i = 0; i < 6; i += 1)
      others.push(textAt(ok(await part(network, `10.0.${16 + i}.0/24`, { id: `${network}-${i}` })), 'id'));
    const many = textAt((await user('DELETE', `${NETWORKS}/${network}`)).json, 'message');
    expect(many).to.match(
      /: 7 Subnet\(s\) still reference it: (subnet '[^']+', ){4}subnet '[^']+' and 2 more$/,
    );
    for (const id of others) ok(await user('DELETE', `${SUBNETS}/${id}`));
    ok(await user('DELETE', `${SUBNETS}/${one}`));
    expect(await claimed(network)).to.deep.equal([]);
    const two = textAt(ok(await part(network, '10.0.1.0/25')), 'id');
    ok(await user('DELETE', `${SUBNETS}/${two}`));
    ok(await user('DELETE', `${NETWORKS}/${network}`));
  });

  it('tenants write no status, and ranges and networks stay as they are', async () => {
    const network = await readyNetwork();
    const sent = { status: { state: 'SUBNET_STATE_READY' } };
    const made = ok(await part(network, '10.0.1.0/24', sent));
    const id = textAt(made, 'id');
    expect(made['status']).to.deep.equal({});
    const path = `${SUBNETS}/${id}`;
    expect(ok(await user('PATCH', path, sent))['status']).to.deep.equal({});
    refused(await user('PATCH', path, { spec: { ipv4_cidr: '10.0.2.0/24' } }), 400, 3, 'is immutable');
    refused(
      await user('PATCH', `${NETWORKS}/${network}`, { spec: { ipv6_cidr: 'fd00::/48' } }),
      400,
      3,
      'is immutable',
    );
    // What is sent in another spelling is what is there.
    const again = { spec: { virtual_network: { id: network }, ipv4_cidr: '10.0.1.7/24' } };
    expect(ok(await user('PATCH', path, again))).to.deep.equal(made);
    const networkPath = `${NETWORKS}/${network}`;
    const before = ok(await user('GET', networkPath));
    expect(ok(await user('PATCH', networkPath, { spec: { ipv4_cidr: '10.0.0.9/16' } }))).to.deep.equal(
      before,
    );
    const wider = await user('PATCH', networkPath, { spec: { ipv4_cidr: '10.0.0.9/15' } });
    refused(wider, 400, 3, 'is immutable');
    // One field is enough, and the annotation of the service stays.
    const labelled = ok(await user('PATCH', path, { metadata: { annotations: { note: 'mine' } } }));
    expect((labelled['metadata'] as Json)['annotations']).to.deep.equal({
      note: 'mine',
      'osac.openshift.io/owner-reference': network,
    });
    expect(ok(await admin('PATCH', `${PRIVATE}/subnets/${id}`, sent))['status']).to.deep.equal(sent.status);
  });
});
