import { expect } from 'chai';
import {
  PRIVATE,
  PUBLIC,
  callerOf,
  itemsOf,
  startTestService,
  textAt,
  type Caller,
  type Json,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';

const COLLECTIONS = ['virtual_networks', 'subnets', 'security_groups', 'external_ips', 'nat_gateways'];
const DEFAULTS = {
  virtual_network_ipv4_cidr: '10.0.0.0/16',
  subnet_ipv4_cidr: '10.0.0.0/20',
  virtual_network_ipv6_cidr: 'fd00::/48',
  subnet_ipv6_cidr: 'fd00::/64',
  egress_rules: [{ protocol: 'PROTOCOL_ALL', ipv4_cidr: '0.0.0.0/0' }],
};

describe('the default networking of a tenant, over HTTP', () => {
  let service: TestService;
  let admin: Caller;
  let networkClass = '';

  const ok = (reply: Reply): Json => {
    expect(reply.status, reply.text).to.equal(200);
    return reply.json;
  };
  const onboard = (tenant: string, headers = {}): Promise<Reply> =>
    admin('POST', `${PRIVATE}/tenants`, { metadata: { name: tenant } }, headers);
  const namesOf = async (tenant: string): Promise<{ readonly [collection: string]: readonly string[] }> => {
    const found: { [collection: string]: readonly string[] } = {};
    for (const collection of COLLECTIONS) {
      const list = await admin('GET', `${PRIVATE}/${collection}?filter=this.metadata.tenant=='${tenant}'`);
      found[collection] = itemsOf(list).map((item) => textAt(item['metadata'] as Json, 'name'));
    }
    return found;
  };
  const provide = (defaults: object): Promise<Reply> =>
    admin('PATCH', `${PRIVATE}/network_classes/${networkClass}`, { spec: { defaults } });

  before(async () => {
    service = await startTestService();
    admin = callerOf(service, await service.token({ user: 'root', admin: true }));
    networkClass = textAt(
      ok(
        await admin('POST', `${PRIVATE}/network_classes`, {
          title: 'Networks',
          implementation_strategy: 'phys_net',
          fabric_manager: 'netris',
          is_default: true,
          capabilities: { supports_ipv4: true, supports_ipv6: true, supports_dual_stack: true },
        }),
      ),
      'id',
    );
  });
  after(() => service.close());

  const NOTHING = Object.fromEntries(COLLECTIONS.map((collection) => [collection, []]));

  it('is nothing where the default class says nothing, and a dry run makes nothing', async () => {
    ok(await onboard('plain'));
    ok(await provide(DEFAULTS));
    ok(await onboard('dry', { 'x-dry-run': 'true' }));
    expect(await namesOf('plain')).to.deep.equal(NOTHING);
    expect(await namesOf('dry')).to.deep.equal(NOTHING);
  });

  it('is made with the tenant, labelled and protected, and goes with it alone', async () => {
    ok(await onboard('acme'));
    expect(await namesOf('acme')).to.deep.equal({
      virtual_networks: ['default'],
      subnets: ['default-ipv4', 'default-ipv6'],
      security_groups: ['default'],
      external_ips: [],
      nat_gateways: [],
    });
    const user = callerOf(service, await service.token({ user: 'alice', tenants: ['acme'] }));
    for (const collection of ['subnets', 'security_groups']) {
      const [item = {}] = itemsOf(await user('GET', `${PUBLIC}/${collection}`));
      expect((item['metadata'] as Json)['labels']).to.deep.equal({ 'osac.openshift.io/default': 'true' });
      const path = `${PUBLIC}/${collection}/${textAt(item, 'id')}`;
      ok(await user('PATCH', path, { metadata: { labels: {} } }));
      const refused = await user('DELETE', path);
      expect([refused.status, refused.json['code']]).to.deep.equal([400, 9]);
      expect(refused.json['message']).to.contain('default networking resources are system-managed');
    }
    // Nobody else makes anything under such an id.
    for (const collection of COLLECTIONS)
      for (const [caller, surface] of [
        [user, PUBLIC],
        [admin, PRIVATE],
      ] as const) {
        const metadata = { name: 'like-it', ...(surface === PRIVATE ? { tenant: 'acme' } : {}) };
        const reply = await caller('POST', `${surface}/${collection}`, { id: 'default-evil', metadata });
        expect([reply.status, reply.json['code']], reply.text).to.deep.equal([400, 3]);
        expect(reply.json['message']).to.contain("ids that begin with 'default-'");
      }
    // What a tenant adds to it is its own, and holds the tenant.
    const spec = { virtual_network: { name: 'default' } };
    const networks = itemsOf(await user('GET', `${PUBLIC}/virtual_networks`));
    const ready = { status: { state: 'VIRTUAL_NETWORK_STATE_READY' } };
    ok(await admin('PATCH', `${PRIVATE}/virtual_networks/${textAt(networks[0], 'id')}`, ready));
    const own = ok(
      await user('POST', `${PUBLIC}/subnets`, {
        metadata: { name: 'own' },
        spec: { ...spec, ipv4_cidr: '10.0.16.0/24' },
      }),
    );
    // Whoever took away what refers to it would be told so only then.
    const used = await user('DELETE', `${PUBLIC}/virtual_networks/${textAt(networks[0], 'id')}`);
    expect(used.json['message']).to.contain('default networking resources are system-managed');
    expect((await admin('DELETE', `${PRIVATE}/tenants/acme`)).json['message']).to.contain(
      'it still has objects of kind subnet',
    );
    ok(await user('DELETE', `${PUBLIC}/subnets/${textAt(own, 'id')}`));
    ok(await admin('DELETE', `${PRIVATE}/tenants/acme`));
    expect((await admin('GET', `${PRIVATE}/tenants/acme`)).status).to.equal(404);
    expect(await namesOf('acme')).to.deep.equal(NOTHING);
  });

  it('is another one for a tenant that comes again under its name', async () => {
    for (const _time of [1, 2]) {
      ok(await onboard('again'));
      expect(await namesOf('again'))
        .to.have.property('virtual_networks')
        .that.deep.equals(['default']);
      ok(await admin('DELETE', `${PRIVATE}/tenants/again`));
      expect(await namesOf('again')).to.deep.equal(NOTHING);
    }
  });

  it('stays as it was settled, whatever the class says later, and is shown to nobody', async () => {
    ok(await onboard('kept'));
    ok(await provide({}));
    const document = ok(await admin('GET', `${PRIVATE}/tenants/kept`));
    expect(document).not.to.have.any.keys('default_networking');
    ok(await admin('PATCH', `${PRIVATE}/tenants/kept`, { spec: { domains: ['kept.example'] } }));
    ok(await admin('DELETE', `${PRIVATE}/tenants/kept`));
    expect(await namesOf('kept')).to.deep.equal(NOTHING);
  });

  it('is all or nothing: no tenant without the address that its NAT gateway needs, nor of a class not ready', async () => {
    ok(await provide({ ...DEFAULTS, enable_nat_gateway: true }));
    const refused = async (tenant: string, words: string): Promise<void> => {
      const reply = await onboard(tenant);
      expect([reply.status, reply.json['code']], reply.text).to.deep.equal([400, 9]);
      expect(reply.json['message']).to.contain(`failed to provision default networking resources: ${words}`);
      expect((await admin('GET', `${PRIVATE}/tenants/${tenant}`)).status).to.equal(404);
      expect(await namesOf(tenant)).to.deep.equal(NOTHING);
    };
    await refused('none', 'no external IP pool is ready for its NAT gateway');
    const pools = `${PRIVATE}/external_ip_pools`;
    const spec = { cidrs: ['192.0.2.0/28'], ip_family: 'IP_FAMILY_IPV4' };
    const foreign = { id: 'foreign', metadata: { name: 'foreign', tenant: 'plain' } };
    ok(await admin('POST', pools, { ...foreign, spec: { ...spec, cidrs: ['198.51.100.0/24'] } }));
    ok(await admin('PATCH', `${pools}/foreign`, { status: { state: 'EXTERNAL_IP_POOL_STATE_READY' } }));
    await refused('none', 'no external IP pool is ready for its NAT gateway');
    ok(await admin('POST', pools, { id: 'p', metadata: { name: 'p' }, spec }));
    ok(await admin('PATCH', `${pools}/p`, { status: { state: 'EXTERNAL_IP_POOL_STATE_READY' } }));
    ok(await onboard('natted'));
    expect(await namesOf('natted')).to.deep.include({
      external_ips: ['default-nat'],
      nat_gateways: ['default-nat'],
    });
    const [address] = itemsOf(await admin('GET', `${PRIVATE}/external_ips`));
    expect(address?.['status']).to.include({ attached: true });
    ok(await admin('DELETE', `${PRIVATE}/tenants/natted`));
    expect((await admin('GET', `${PRIVATE}/tenants/natted`)).status).to.equal(404);
    const pending = { status: { state: 'NETWORK_CLASS_STATE_PENDING' } };
    ok(await admin('PATCH', `${PRIVATE}/network_classes/${networkClass}`, pending));
    await refused('never', `network class '${networkClass}' is not ready`);
  });
});
