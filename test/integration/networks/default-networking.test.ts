import { expect } from 'chai';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
import { eventually } from '../../support/eventually.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { PRIVATE, itemsOf, type Caller, type Json } from '../../support/http/service.ts';
import { ok } from '../../support/hubs/network-story.ts';

const stateOf = (document: Json): string => stringAt(objectAt(document as JsonObject, 'status'), 'state');
const KINDS = ['virtual_networks', 'subnets', 'security_groups', 'external_ips', 'nat_gateways'];

/** The whole service with its simulated hubs: a tenant gets its networking there, and leaves nothing. */
describe('the default networking of a tenant, on a simulated hub', () => {
  let whole: WholeService;
  let admin: Caller;

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    admin = await whole.caller({ sub: 'root', preferred_username: 'root', groups: ['/admins'] });
  });
  after(() => whole.dispose());

  const statesOf = async (tenant: string): Promise<readonly string[]> => {
    const lists = await Promise.all(
      KINDS.map((kind) => admin('GET', `${PRIVATE}/${kind}?filter=this.metadata.tenant=='${tenant}'`)),
    );
    return lists.flatMap(itemsOf).map((item) => stateOf(item));
  };

  it('becomes ready, and the tenant is gone once nothing of it is left', async () => {
    const pools = `${PRIVATE}/external_ip_pools`;
    const simulation = 'factor=0.02';
    ok(
      await admin('POST', pools, {
        id: 'p',
        metadata: { name: 'p', annotations: { simulation } },
        spec: { cidrs: ['192.0.2.0/28'], ip_family: 'IP_FAMILY_IPV4' },
      }),
    );
    await eventually('the pool is ready', async () => {
      const pool = await admin('GET', `${pools}/p`);
      return stateOf(pool.json) === 'EXTERNAL_IP_POOL_STATE_READY';
    });
    ok(
      await admin('POST', `${PRIVATE}/network_classes`, {
        title: 'Networks',
        implementation_strategy: 'phys_net',
        fabric_manager: 'netris',
        is_default: true,
        capabilities: { supports_ipv4: true },
        spec: {
          defaults: {
            virtual_network_ipv4_cidr: '10.0.0.0/16',
            subnet_ipv4_cidr: '10.0.0.0/20',
            enable_nat_gateway: true,
          },
        },
      }),
    );
    ok(await admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 'acme-two' } }));
    let states: readonly string[] = [];
    await eventually(
      () => `all of it is ready: ${states.join(' ')}`,
      async () => {
        states = await statesOf('acme-two');
        return states.length === 5 && states.every((state) => /_(READY|ALLOCATED)$/.test(state));
      },
    );
    ok(await admin('DELETE', `${PRIVATE}/tenants/acme-two`));
    const path = `${PRIVATE}/tenants/acme-two`;
    await eventually('the tenant is gone', async () => (await admin('GET', path)).status === 404);
    expect(await statesOf('acme-two')).to.deep.equal([]);
    const pool = ok(await admin('GET', `${pools}/p`));
    expect(pool['status']).not.to.have.property('allocated');
  });
});
