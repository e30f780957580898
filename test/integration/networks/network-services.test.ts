import { expect } from 'chai';
import { join } from 'node:path';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
import { eventually } from '../../support/eventually.ts';
import { readHubObjects } from '../../support/hubs/hub-journal.ts';
import { PRIVATE, PUBLIC, textAt } from '../../support/http/service.ts';
import { ipAt, networkStory, ok, type NetworkStory } from '../../support/hubs/network-story.ts';

const GROUPS = `${PUBLIC}/security_groups`;
const GATEWAYS = `${PUBLIC}/nat_gateways`;
const QUICK = { simulation: 'factor=0.05' };
/** One hub has it: addresses serve networks of their own hub alone. */
const WEST = { ...QUICK, 'fulfillment-ledger/zone': 'west' };
const https = (range: string) => ({
  protocol: 'PROTOCOL_TCP',
  port_from: 443,
  port_to: 443,
  ipv4_cidr: range,
});

/** The whole service with its simulated hubs: what becomes of the services of a network there. */
describe('security groups and NAT gateways on a simulated hub', () => {
  let whole: WholeService;
  let people: NetworkStory;
  let pool: string;
  let serial = 0;

  const privateAt = (path: string): string => path.replace(PUBLIC, PRIVATE);
  const make = async (collection: string, spec: object, annotations: object = QUICK): Promise<string> => {
    const metadata = { name: `it-${(serial += 1)}`, annotations };
    return textAt(ok(await people.user('POST', `${PUBLIC}/${collection}`, { metadata, spec })), 'id');
  };
  const makeNetwork = async (): Promise<string> => {
    const id = await make('virtual_networks', { ipv4_cidr: '10.0.0.0/16' }, WEST);
    await people.shows(`${PRIVATE}/virtual_networks/${id}`, 'READY');
    return id;
  };
  const makeAddress = async (): Promise<string> => {
    const id = await people.order(pool);
    await people.shows(ipAt(id), 'ALLOCATED');
    return id;
  };
  const gatewayOf = (network: string, address: string) => ({
    virtual_network: { id: network },
    external_ip: { id: address },
  });
  /** Objects of a kind that the hub holds, by their id; and how often each was made. */
  const onHub = (kind: string, hub = 'sim-west-1') =>
    readHubObjects(join(whole.dataDir, 'hubs', `${hub}.sqlite`)).filter((object) => object.kind === kind);

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    people = await networkStory(whole);
    const classes = `${PRIVATE}/network_classes`;
    const capabilities = { supports_ipv4: true };
    for (const manager of ['fabric_manager', 'k8s_manager'])
      ok(
        await people.admin('POST', classes, {
          title: 'Networks',
          implementation_strategy: `by_${manager}`,
          capabilities,
          [manager]: 'm',
          is_default: manager === 'fabric_manager',
        }),
      );
    pool = await people.makePool('192.0.2.0/26', {
      ...WEST,
      'fulfillment-ledger/quarantine': 'PT0S',
    });
  });
  after(() => whole.dispose());

  it('a group becomes ready where its network is, and again with other rules', async () => {
    const network = await makeNetwork();
    const id = await make('security_groups', {
      virtual_network: { id: network },
      ingress: [https('10.1.2.3/8')],
    });
    await people.shows(`${PRIVATE}/security_groups/${id}`, 'READY');
    const before = await people.user('GET', `${GROUPS}/${id}`);
    expect(ok(before)).to.deep.include({
      spec: {
        virtual_network: { id: network, name: 'it-1' },
        ingress: [https('10.0.0.0/8')],
      },
    });
    ok(
      await people.user('PATCH', `${GROUPS}/${id}`, { spec: { ingress: [], egress: [https('0.0.0.0/0')] } }),
    );
    await people.shows(`${PRIVATE}/security_groups/${id}`, 'READY');
    const [object, ...others] = onHub('SecurityGroup').filter((one) => one.id === id);
    expect(others).to.deep.equal([]);
    expect(object?.spec).to.deep.equal({
      virtualNetwork: network,
      implementationStrategy: 'network_policy',
      ingressRules: [],
      egressRules: [{ protocol: 'tcp', portFrom: 443, portTo: 443, destinationCidr: '0.0.0.0/0' }],
    });
    const held = await people.user('DELETE', `${PUBLIC}/virtual_networks/${network}`);
    expect([held.status, held.json['code']]).to.deep.equal([400, 9]);
    ok(await people.user('DELETE', `${GROUPS}/${id}`));
    await people.isGone(`${PRIVATE}/security_groups/${id}`);
    ok(await people.user('DELETE', `${PUBLIC}/virtual_networks/${network}`));
    await people.isGone(`${PRIVATE}/virtual_networks/${network}`);
  });

  it('a gateway has its network and its address to itself, and gives the address back at the end', async () => {
    const [network, other] = [await makeNetwork(), await makeNetwork()];
    const [address, second] = [await makeAddress(), await makeAddress()];
    const id = await make('nat_gateways', gatewayOf(network, address));
    expect(await people.statusAt(ipAt(address))).to.include({ attached: true });
    await people.shows(privateAt(`${GATEWAYS}/${id}`), 'READY');
    const refused = async (spec: object): Promise<readonly unknown[]> => {
      const { status, json } = await people.user('POST', GATEWAYS, { metadata: { name: 'no' }, spec });
      return [status, json['code'], json['message']];
    };
    expect(await refused(gatewayOf(other, address))).to.deep.equal([
      400,
      9,
      `external IP '${address}' is already attached`,
    ]);
    expect(await refused(gatewayOf(network, second))).to.deep.equal([
      409,
      6,
      'the virtual network has a NAT gateway already: delete that one first',
    ]);
    expect(await people.statusAt(ipAt(second)), 'nothing is left of what was refused').to.not.have.property(
      'attached',
    );
    for (const path of [ipAt(address), `${PRIVATE}/virtual_networks/${network}`])
      expect((await people.admin('DELETE', path)).status, path).to.equal(400);
    ok(await people.user('DELETE', `${GATEWAYS}/${id}`));
    await people.isGone(privateAt(`${GATEWAYS}/${id}`));
    await eventually(
      'its address is free',
      async () => (await people.statusAt(ipAt(address)))['attached'] === undefined,
    );
    expect(onHub('NATGateway').filter((one) => one.id === id)).to.have.length(1);
    const again = await make('nat_gateways', gatewayOf(network, address));
    await people.shows(privateAt(`${GATEWAYS}/${again}`), 'READY');
  });

  it('a dry run takes neither the network nor the address', async () => {
    const [network, address] = [await makeNetwork(), await makeAddress()];
    const body = { metadata: { name: 'dry' }, spec: gatewayOf(network, address) };
    ok(await people.user('POST', GATEWAYS, body, { 'X-Dry-Run': 'true' }));
    expect(await people.statusAt(ipAt(address))).to.not.have.property('attached');
    await make('nat_gateways', gatewayOf(network, address));
    const taken = await people.user('POST', GATEWAYS, body, { 'X-Dry-Run': 'true' });
    expect(taken.status).to.be.oneOf([400, 409]);
  });

  it('64 gateways that want one network and one address at once: one gets them', async () => {
    const [network, address] = [await makeNetwork(), await makeAddress()];
    const replies = await Promise.all(
      Array.from({ length: 64 }, (_, n) =>
        people.user('POST', GATEWAYS, {
          metadata: { name: `many-${n}`, annotations: QUICK },
          spec: gatewayOf(network, address),
        }),
      ),
    );
    const made = replies.filter(({ status }) => status === 200);
    expect(made).to.have.length(1);
    for (const { status, text } of replies) expect(status, text).to.be.oneOf([200, 400, 409]);
    const [winner] = made;
    await people.shows(`${PRIVATE}/nat_gateways/${textAt(winner?.json ?? {}, 'id')}`, 'READY');
    const types = (await whole.log())
      .filter(({ stream }) => stream === `externalIp-${address}`)
      .map(({ type }) => type);
    expect(types.filter((type) => type === 'ExternalIPAttached')).to.have.length(1);
  });

  it('a gateway needs a class with a fabric and an address that is there, of its own tenant', async () => {
    const flat = await make('virtual_networks', {
      ipv4_cidr: '10.0.0.0/16',
      network_class: { name: 'by-k8s-manager' },
    }).catch(() => '');
    const [network, address] = [await makeNetwork(), await makeAddress()];
    const answers = async (spec: object, caller = people.user) => {
      const { status, json } = await caller('POST', GATEWAYS, { metadata: { name: 'no' }, spec });
      return [status, json['code'], json['message']];
    };
    expect(flat).to.equal('');
    const admins = await people.admin('POST', `${PRIVATE}/virtual_networks`, {
      metadata: { name: 'flat', tenant: 't1', annotations: WEST },
      spec: { region: 'r', ipv4_cidr: '10.0.0.0/16', network_class: { name: 'by-k8s-manager' } },
    });
    const without = textAt(ok(admins), 'id');
    await people.shows(`${PRIVATE}/virtual_networks/${without}`, 'READY');
    expect(await answers(gatewayOf(without, address))).to.deep.equal([
      400,
      9,
      `the class of virtual network '${without}' has no 'fabric_manager', which NAT gateways need`,
    ]);
    const pending = await people.order(pool, { simulation: 'factor=1000' });
    expect(await answers(gatewayOf(network, pending))).to.deep.equal([
      400,
      9,
      `external IP '${pending}' is not allocated (its state is EXTERNAL_IP_STATE_PENDING)`,
    ]);
    ok(await people.admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't2' } }));
    const bob = await whole.caller({ sub: 'bob', preferred_username: 'bob', organization: ['t2'] });
    for (const reference of [{ id: network }, { name: 'flat' }])
      expect(await answers({ virtual_network: reference, external_ip: { id: address } }, bob)).to.deep.equal([
        400,
        3,
        'reference validation failed: ' +
          `object.spec.virtual_network: VirtualNetwork "${Object.values(reference)[0]}" not found; ` +
          `object.spec.external_ip: ExternalIP "${address}" not found`,
      ]);
  });

  it('a network and all that lies in it are deleted at once, in any order, and nothing is left', async () => {
    const network = await makeNetwork();
    const address = await makeAddress();
    const inside = { virtual_network: { id: network } };
    const all = [
      `virtual_networks/${network}`,
      `external_ips/${address}`,
      `subnets/${await make('subnets', { ...inside, ipv4_cidr: '10.0.1.0/24' })}`,
      `security_groups/${await make('security_groups', inside)}`,
      `nat_gateways/${await make('nat_gateways', gatewayOf(network, address))}`,
    ];
    // Parents first: they are refused until what lies in them is gone.
    await eventually('all of them are gone', async () => {
      const replies = await Promise.all(all.map((path) => people.user('DELETE', `${PUBLIC}/${path}`)));
      for (const { status, text } of replies) expect(status, text).to.be.oneOf([200, 400, 404]);
      return replies.every(({ status }) => status === 404);
    });
    for (const kind of ['VirtualNetwork', 'Subnet', 'SecurityGroup', 'NATGateway', 'ExternalIP'])
      for (const { id, deletionAt } of onHub(kind))
        if (all.some((path) => path.endsWith(`/${id}`)))
          expect(deletionAt, `${kind} ${id}`).to.be.a('number');
  });

  it('a child of a network that is not ready, or is being deleted, is refused', async () => {
    const network = await make(
      'virtual_networks',
      { ipv4_cidr: '10.0.0.0/16' },
      { simulation: 'factor=1000' },
    );
    const body = (name: string) => ({ metadata: { name }, spec: { virtual_network: { id: network } } });
    const early = await people.user('POST', GROUPS, body('early'));
    expect([early.status, early.json['code']]).to.deep.equal([400, 9]);
    expect(early.json['message']).to.match(/^parent VirtualNetwork '.*' is not in READY state/);
    await eventually('it is placed', async () => {
      const { hub } = await people.statusAt(`${PRIVATE}/virtual_networks/${network}`);
      return hub !== undefined;
    });
    ok(await people.user('DELETE', `${PUBLIC}/virtual_networks/${network}`));
    const late = await people.user('POST', GROUPS, body('late'));
    expect(late.status, late.text).to.equal(400);
  });

  it('the timeline tells what happened, and the list of orders shows it', async () => {
    const [network, address] = [await makeNetwork(), await makeAddress()];
    const group = await make('security_groups', { virtual_network: { id: network } });
    const gateway = await make('nat_gateways', gatewayOf(network, address));
    await people.shows(`${PRIVATE}/security_groups/${group}`, 'READY');
    await people.shows(`${PRIVATE}/nat_gateways/${gateway}`, 'READY');
    const told = async (path: string): Promise<string> => {
      const { text } = await people.user('GET', `${PUBLIC}/${path}/timeline`);
      return text;
    };
    await eventually('its timeline says so', async () =>
      (await told(`security_groups/${group}`)).includes('Its hub carries its rules out.'),
    );
    await eventually('its timeline says so', async () =>
      (await told(`nat_gateways/${gateway}`)).includes('The NAT gateway is ready.'),
    );
    expect(await told(`external_ips/${address}`)).to.include(`NAT gateway '${gateway}' uses it`);
    const { json } = await people.admin('GET', `/api/ledger/v1/orders/${gateway}`);
    expect(json).to.deep.include({ kind: 'natGateway', state: 'ready' });
  });
});
