import { join } from 'node:path';
import { expect } from 'chai';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { SUBNET, VIRTUAL_NETWORK } from '../../../src/domain/networks/hub-objects.ts';
import { eventually } from '../../support/eventually.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
import { PRIVATE, PUBLIC, itemsOf, textAt, type Json } from '../../support/http/service.ts';
import { readHubCalls } from '../../support/hubs/hub-journal.ts';
import { networkStory, ok, POOLS, type NetworkStory } from '../../support/hubs/network-story.ts';

const KINDS = ['virtual_networks', 'subnets', 'security_groups', 'external_ips', 'nat_gateways'];
const stateOf = (document: Json): string => stringAt(objectAt(document as JsonObject, 'status'), 'state');
const NETWORKS = `${PUBLIC}/virtual_networks`;
const SUBNETS = `${PUBLIC}/subnets`;
const networkAt = (id: string): string => `${PRIVATE}/virtual_networks/${id}`;
const subnetAt = (id: string): string => `${PRIVATE}/subnets/${id}`;
const QUICK = { simulation: 'factor=0.05' };

/** The whole service with its simulated hubs: what becomes of networks and subnets there. */
describe('virtual networks and subnets on a simulated hub', () => {
  let whole: WholeService;
  let people: NetworkStory;
  let networkClass = '';
  let serial = 0;

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    people = await networkStory(whole);
    const made = ok(
      await people.admin('POST', `${PRIVATE}/network_classes`, {
        title: 'Networks',
        implementation_strategy: 'phys_net',
        fabric_manager: 'netris',
        is_default: true,
        capabilities: { supports_ipv4: true },
      }),
    );
    networkClass = textAt(made, 'id');
  });
  after(() => whole.dispose());

  const metadata = (annotations: object = {}): object => ({
    name: `n-${(serial += 1)}`,
    annotations: { ...QUICK, ...annotations },
  });
  const order = async (annotations: object = {}): Promise<string> => {
    const body = { metadata: metadata(annotations), spec: { ipv4_cidr: '10.0.0.0/16' } };
    return textAt(ok(await people.user('POST', NETWORKS, body)), 'id');
  };
  const part = async (network: string, cidr: string, annotations: object = {}): Promise<string> => {
    const spec = { virtual_network: { id: network }, ipv4_cidr: cidr };
    return textAt(ok(await people.user('POST', SUBNETS, { metadata: metadata(annotations), spec })), 'id');
  };

  it('a network and its subnets become ready on one hub, and go again, the network last', async () => {
    const network = await order();
    const hub = stringAt(await people.shows(networkAt(network), 'READY'), 'hub');
    const parts = [await part(network, '10.0.1.0/24'), await part(network, '10.0.2.0/24')];
    for (const id of parts) expect(await people.shows(subnetAt(id), 'READY')).to.include({ hub });
    expect((await people.user('DELETE', `${NETWORKS}/${network}`)).status).to.equal(400);
    for (const id of parts) ok(await people.user('DELETE', `${SUBNETS}/${id}`));
    expect((await people.user('DELETE', `${NETWORKS}/${network}`)).status).to.equal(400);
    for (const id of parts) await people.isGone(subnetAt(id));
    ok(await people.user('DELETE', `${NETWORKS}/${network}`));
    await people.isGone(networkAt(network));
    const calls = readHubCalls(join(whole.dataDir, 'hubs', `${hub}.sqlite`));
    const made = calls.filter(
      ({ operation, result, kind }) =>
        operation === 'create' && result === 'created' && [VIRTUAL_NETWORK.kind, SUBNET.kind].includes(kind),
    );
    const objects = [VIRTUAL_NETWORK.nameOf(network), ...parts.map((id) => SUBNET.nameOf(id))];
    expect(made.map(({ object }) => object).toSorted()).to.deep.equal(objects.toSorted());
  });

  it('the ranges of a subnet are free only once its hub shows that it is gone', async () => {
    const network = await order();
    await people.shows(networkAt(network), 'READY');
    const id = await part(network, '10.0.1.0/24', { simulation: 'factor=0.05,delete=20s' });
    await people.shows(subnetAt(id), 'READY');
    ok(await people.user('DELETE', `${SUBNETS}/${id}`));
    const spec = { virtual_network: { id: network }, ipv4_cidr: '10.0.1.0/25' };
    expect((await people.user('POST', SUBNETS, { metadata: metadata(), spec })).status).to.equal(409);
    await people.isGone(subnetAt(id));
    await part(network, '10.0.1.0/25');
    const log = await whole.log();
    const at = (type: string, stream: string): number =>
      log.findIndex((event) => event.type === type && event.stream === stream);
    expect(at('SubnetRangesReleased', `virtualNetwork-${network}`)).to.be.lessThan(
      at('SubnetDeleted', `subnet-${id}`),
    );
  });

  const statesOf = async (tenant: string): Promise<readonly string[]> => {
    const lists = await Promise.all(
      KINDS.map((kind) => people.admin('GET', `${PRIVATE}/${kind}?filter=this.metadata.tenant=='${tenant}'`)),
    );
    return lists.flatMap(itemsOf).map((item) => stateOf(item));
  };

  it('the default networking of a tenant becomes ready, and the tenant is gone once nothing of it is left', async () => {
    const { admin } = people;
    const hub = 'sim-east-2';
    const pool = await people.makePool('192.0.2.0/28', { 'fulfillment-ledger/hub': hub });
    const defaults = {
      virtual_network_ipv4_cidr: '10.0.0.0/16',
      subnet_ipv4_cidr: '10.0.0.0/20',
      enable_nat_gateway: true,
    };
    ok(await admin('PATCH', `${PRIVATE}/network_classes/${networkClass}`, { spec: { defaults } }));
    ok(await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'acme-two' } }));
    let states: readonly string[] = [];
    await eventually(
      () => `all of it is ready: ${states.join(' ')}`,
      async () => {
        states = await statesOf('acme-two');
        return states.length === 5 && states.every((state) => /_(READY|ALLOCATED)$/.test(state));
      },
    );
    for (const collection of KINDS.filter((kind) => kind !== 'security_groups'))
      for (const item of itemsOf(
        await admin('GET', `${PRIVATE}/${collection}?filter=this.metadata.tenant=='acme-two'`),
      ))
        expect(objectAt(item as JsonObject, 'status'), collection).to.include({ hub });
    const theirs = await whole.caller({ sub: 'bob', preferred_username: 'bob', organization: ['acme-two'] });
    expect((await theirs('GET', NETWORKS)).text, 'tenants are not told of hubs').not.to.include(hub);
    const before = (await whole.log()).length;
    ok(await admin('DELETE', `${PRIVATE}/tenants/acme-two`));
    const path = `${PRIVATE}/tenants/acme-two`;
    await eventually('the tenant is gone', async () => (await admin('GET', path)).status === 404);
    expect(await statesOf('acme-two')).to.deep.equal([]);
    const told = (await whole.log())
      .slice(before)
      .filter(({ type, data }) => type === 'RequestRefused' && data['command'] !== 'CreateDocument')
      .map(({ data }) => ['kind', 'command', 'code'].map((name) => stringAt(data, name)).join(' '));
    expect(told, 'nothing is asked for before it can be').to.deep.equal([]);
    expect(await people.statusAt(`${POOLS}/${pool}`)).not.to.have.property('allocated');
  });
});
