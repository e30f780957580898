import { expect } from 'chai';
import { join } from 'node:path';
import { COMPUTE_INSTANCE, USER_DATA_SECRET } from '../../../src/domain/compute/hub-objects.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { startCli } from '../../support/cli/in-process.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';
import { readHubCalls, readHubObjects } from '../../support/hubs/hub-journal.ts';
import { itemsOf, PRIVATE, PUBLIC, textAt } from '../../support/http/service.ts';
import { ipAt, networkStory, ok, type NetworkStory } from '../../support/hubs/network-story.ts';

const MACHINES = `${PUBLIC}/compute_instances`;
const machineAt = (id: string): string => `${PRIVATE}/compute_instances/${id}`;
const QUICK = { simulation: 'factor=0.05' };
const USER_DATA = '#cloud-config\npassword: only-for-the-machine\n';

/** The whole service with its simulated hubs: what becomes of virtual machines there. */
describe('compute instances on a simulated hub', () => {
  let whole: WholeService;
  let people: NetworkStory;
  let subnet: string;
  let group: string;
  let serial = 0;

  const make = async (collection: string, spec: object): Promise<string> => {
    const metadata = { name: `m-${(serial += 1)}`, annotations: QUICK };
    return textAt(ok(await people.user('POST', `${PUBLIC}/${collection}`, { metadata, spec })), 'id');
  };
  const order = (more: object = {}): Promise<string> =>
    make('compute_instances', {
      template: { id: 'osac.templates.vm' },
      network_attachments: [{ subnet: { id: subnet }, security_groups: [{ id: group }] }],
      ...more,
    });
  const change = (id: string, spec: object) => people.user('PATCH', `${MACHINES}/${id}`, { spec });
  /** That nobody asked the hub to remove. */
  const left = (hub: string, kind: string) =>
    readHubObjects(join(whole.dataDir, 'hubs', `${hub}.sqlite`)).filter(
      (object) => object.kind === kind && object.deletionAt === undefined,
    );

  const goneInOrder = async (wanted: readonly string[]): Promise<void> => {
    const told = (await whole.log()).map(({ type, stream }) => `${type} ${stream}`);
    expect(told.filter((one) => wanted.includes(one))).to.deep.equal(wanted);
  };

  before(async () => {
    whole = await createWholeService();
    await whole.start();
    people = await networkStory(whole);
    ok(
      await people.admin('POST', `${PRIVATE}/network_classes`, {
        title: 'Networks',
        implementation_strategy: 'phys_net',
        fabric_manager: 'netris',
        is_default: true,
        capabilities: { supports_ipv4: true },
      }),
    );
    const network = await make('virtual_networks', { ipv4_cidr: '10.0.0.0/16' });
    await people.shows(`${PRIVATE}/virtual_networks/${network}`, 'READY');
    const inNetwork = { virtual_network: { id: network } };
    subnet = await make('subnets', { ...inNetwork, ipv4_cidr: '10.0.1.0/24' });
    group = await make('security_groups', inNetwork);
    await people.shows(`${PRIVATE}/subnets/${subnet}`, 'READY');
    await people.shows(`${PRIVATE}/security_groups/${group}`, 'READY');
  });
  after(() => whole.dispose());

  it('one runs on the hub of its subnet, as one object there, and goes again with its user data', async () => {
    const id = await order({ user_data: USER_DATA });
    const status = await people.shows(machineAt(id), 'RUNNING');
    const hub = stringAt(status, 'hub');
    expect(hub).to.equal(stringAt(await people.statusAt(`${PRIVATE}/subnets/${subnet}`), 'hub'));
    expect(status['internal_ip_address']).to.match(/^10\.0\.1\.\d+$/);
    expect(listAt(status, 'conditions')).to.have.length(6);
    const calls = readHubCalls(join(whole.dataDir, 'hubs', `${hub}.sqlite`)).filter(
      ({ operation, result }) => operation === 'create' && result === 'created',
    );
    for (const name of [COMPUTE_INSTANCE.nameOf(id), USER_DATA_SECRET.nameOf(id)])
      expect(calls.filter(({ object }) => object === name)).to.have.length(1);
    const shown = ok(await people.user('GET', `${MACHINES}/${id}`)) as JsonObject;
    expect(objectAt(shown, 'spec')).to.include({ user_data: '***', run_strategy: 'Always' });
    const refused = await people.user('DELETE', `${PUBLIC}/subnets/${subnet}`);
    expect(refused.status, refused.text).to.equal(400);
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    expect(await people.statusAt(machineAt(id))).to.include({ state: 'COMPUTE_INSTANCE_STATE_DELETING' });
    await people.isGone(machineAt(id));
    for (const kind of [COMPUTE_INSTANCE.kind, USER_DATA_SECRET.kind])
      expect(left(hub, kind)).to.deep.equal([]);
    expect(JSON.stringify(await whole.log())).not.to.include('only-for-the-machine');
  });

  it('one that cannot be as it is ordered is refused, with the field and what to do', async () => {
    const attached = [{ subnet: { id: subnet } }];
    const good = { template: { id: 'osac.templates.vm' }, network_attachments: attached };
    const other = await make('virtual_networks', { ipv4_cidr: '10.2.0.0/16' });
    await people.shows(`${PRIVATE}/virtual_networks/${other}`, 'READY');
    const foreign = await make('security_groups', { virtual_network: { id: other } });
    await people.shows(`${PRIVATE}/security_groups/${foreign}`, 'READY');
    const plain = { id: 'plain_vm', metadata: { name: 'plain', tenant: 'shared' }, title: 'Plain' };
    ok(await people.admin('POST', `${PRIVATE}/compute_instance_templates`, plain));
    const old = { metadata: { name: 'old' }, spec: { cores: 1, memory_gib: 1, description: 'old' } };
    ok(await people.admin('POST', `${PRIVATE}/instance_types`, old));
    const obsolete = { spec: { state: 'INSTANCE_TYPE_STATE_OBSOLETE' } };
    ok(await people.admin('PATCH', `${PRIVATE}/instance_types/old`, obsolete));
    for (const [spec, text] of [
      [{}, 'at least one network attachment is required'],
      [{ network_attachments: attached }, 'template is mandatory'],
      [
        { template: { id: 'plain_vm' }, network_attachments: attached },
        'the following required spec fields are missing: boot_disk, disk_image, instance_type, run_strategy',
      ],
      [{ ...good, catalog_item: { name: 'dev-machine' } }, 'give either a template or a catalog item'],
      [{ ...good, run_strategy: 'Sometimes' }, 'must be one of Always, Halted'],
      [
        { ...good, boot_disk: { size_gib: 1_000_000_000 } },
        "'spec.boot_disk.size_gib' must be from 1 to 65536",
      ],
      [{ ...good, additional_disks: [{}] }, "'spec.additional_disks.0.size_gib' must be from 1 to 65536"],
      [{ ...good, boot_disk: { size_gib: 1, storage_tier: 'nope' } }, "storage tier 'nope' does not exist"],
      [{ ...good, instance_type: { name: 'none' } }, 'InstanceType "none" not found'],
      [{ ...good, instance_type: { name: 'old' } }, "instance type 'old' is obsolete"],
      [{ ...good, disk_image: { name: 'none' } }, 'DiskImage "none" not found'],
      [{ ...good, user_data: 'x'.repeat(65_537) }, "'spec.user_data' may have at most 65536 bytes"],
      [{ ...good, restart_requested_at: '2020-01-01T00:00:00Z' }, 'must not lie in the past'],
      [{ ...good, network_attachments: [...attached, ...attached] }, 'twice'],
      [
        { ...good, network_attachments: [{ subnet: { id: subnet }, security_groups: [{ id: foreign }] }] },
        'must be of one virtual network',
      ],
      [{ ...good, template_parameters: { nope: { '@type': 'x', value: 1 } } }, ''],
    ] as const) {
      const body = { metadata: { name: 'refused' }, spec };
      const reply = await people.user('POST', MACHINES, body);
      expect(reply.status, `${JSON.stringify(spec).slice(0, 200)}: ${reply.text}`).to.equal(400);
      expect(reply.text).to.include(text.replaceAll('"', '\\"'));
    }
    const huge = { ...good, user_data: 'x'.repeat(1_048_576) };
    const tooLarge = await people.user('POST', MACHINES, { metadata: { name: 'refused' }, spec: huge });
    expect([tooLarge.status, tooLarge.json]).to.deep.equal([
      413,
      { code: 3, message: 'the request body is larger than 294912 bytes' },
    ]);
    const body = { metadata: { name: 'm-of-item' }, spec: { catalog_item: { name: 'dev-machine' } } };
    const small = { ...body.spec, boot_disk: { size_gib: 5 }, network_attachments: attached };
    const outside = await people.user('POST', MACHINES, { ...body, spec: small });
    expect(outside.text).to.include("validation failed for field 'boot_disk.size_gib'");
    const id = await make('compute_instances', {
      ...body.spec,
      network_attachments: attached,
      user_data: 'u',
    });
    await people.shows(machineAt(id), 'RUNNING');
    const changed = await change(id, { instance_type: { name: 'm8-xlarge' } });
    expect(changed.text).to.include("'spec.instance_type' is immutable");
    expect((await change(id, { run_strategy: 'Never' })).status).to.equal(400);
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    await people.isGone(machineAt(id));
  });

  it('one stops, starts and restarts as its spec says', async () => {
    const id = await order({ run_strategy: 'Halted' });
    const stopped = await people.shows(machineAt(id), 'STOPPED');
    ok(await change(id, { run_strategy: 'Always' }));
    const running = await people.shows(machineAt(id), 'RUNNING');
    expect(stringAt(running, 'state_transition_time') >= stringAt(stopped, 'state_transition_time')).to.equal(
      true,
    );
    ok(await change(id, { restart_requested_at: new Date().toISOString() }));
    const restarted = async () => stringAt(await people.statusAt(machineAt(id)), 'last_restarted_at') !== '';
    await people.until(`${id} is restarted`, restarted);
    await people.shows(machineAt(id), 'RUNNING');
    ok(await change(id, { run_strategy: 'Halted' }));
    await people.shows(machineAt(id), 'STOPPED');
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    await people.isGone(machineAt(id));
  });

  it('one with an external IP of its own gets it from a pool on its hub, and it goes before the machine', async () => {
    const own = { auto_external_ip_attachment: true };
    const none = await people.user('POST', MACHINES, {
      metadata: { name: 'no-pool' },
      spec: {
        template: { id: 'osac.templates.vm' },
        network_attachments: [{ subnet: { id: subnet } }],
        ...own,
      },
    });
    expect([none.status, none.json['code']], none.text).to.deep.equal([400, 9]);
    expect(none.text).to.include('no external IP pool on the hub of its subnet');
    expect((await people.user('GET', MACHINES)).text).not.to.include('no-pool');
    const hub = stringAt(await people.statusAt(`${PRIVATE}/subnets/${subnet}`), 'hub');
    const elsewhere = hub === 'sim-west-1' ? 'sim-east-1' : 'sim-west-1';
    await people.makePool('192.0.2.0/28', { 'fulfillment-ledger/hub': elsewhere });
    const pool = await people.makePool('192.0.2.64/30', {
      'fulfillment-ledger/hub': hub,
      'fulfillment-ledger/quarantine': 'PT0S',
    });
    const id = await order(own);
    await people.shows(machineAt(id), 'RUNNING');
    const madeFor = async (collection: string): Promise<JsonObject> => {
      const { items } = ok(await people.user('GET', `${PUBLIC}/${collection}`)) as { items?: JsonObject[] };
      const found = (items ?? []).filter(
        (one) => objectAt(objectAt(one, 'metadata'), 'labels')['osac.openshift.io/auto-created-for'] === id,
      );
      expect(found, collection).to.have.length(1);
      return found[0] ?? {};
    };
    const ip = await madeFor('external_ips');
    const attachment = await madeFor('external_ip_attachments');
    expect(objectAt(objectAt(ip, 'spec'), 'pool')).to.include({ id: pool });
    expect(objectAt(objectAt(attachment, 'spec'), 'compute_instance')).to.include({ id });
    const attachedAt = `${PRIVATE}/external_ip_attachments/${stringAt(attachment, 'id')}`;
    expect(await people.shows(attachedAt, 'READY')).to.include({ hub });
    expect(left(hub, 'ExternalIPAttachment')).to.have.length(1);
    const { address } = (await people.statusAt(ipAt(stringAt(ip, 'id')))) as { address?: string };
    expect((await people.statusAt(machineAt(id)))['external_ip_address'])
      .to.equal(address)
      .and.match(/^192/);
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    await people.isGone(machineAt(id));
    await people.isGone(attachedAt);
    await people.isGone(ipAt(stringAt(ip, 'id')));
    await goneInOrder([
      `ExternalIPAttachmentDeleted externalIpAttachment-${stringAt(attachment, 'id')}`,
      `ExternalIPDeletionRequested externalIp-${stringAt(ip, 'id')}`,
      `ExternalIPDeleted externalIp-${stringAt(ip, 'id')}`,
      `ComputeInstanceDeleted computeInstance-${id}`,
    ]);
  });

  it('an address that was attached by hand serves one machine, and its attachment goes before that', async () => {
    const hub = stringAt(await people.statusAt(`${PRIVATE}/subnets/${subnet}`), 'hub');
    const pool = await people.makePool('192.0.2.128/28', { 'fulfillment-ledger/hub': hub });
    const ips = [await people.order(pool), await people.order(pool)] as const;
    for (const ip of ips) await people.shows(ipAt(ip), 'ALLOCATED');
    const id = await order();
    const attach = (ip: string, more: object = {}) =>
      people.user('POST', `${PUBLIC}/external_ip_attachments`, {
        metadata: { name: `m-${(serial += 1)}`, annotations: QUICK },
        spec: { external_ip: { id: ip }, compute_instance: { id }, ...more },
      });
    const wrong = await attach(ips[0], { target_endpoint: 'EXTERNAL_IP_ATTACHMENT_ENDPOINT_API' });
    expect(wrong.text).to.include("must be left out with 'spec.compute_instance'");
    const attachment = textAt(ok(await attach(ips[0])), 'id');
    const attachedAt = `${PRIVATE}/external_ip_attachments/${attachment}`;
    const second = await attach(ips[1]);
    expect([second.status, second.json['code']], second.text).to.deep.equal([409, 6]);
    await people.shows(machineAt(id), 'RUNNING');
    await people.shows(attachedAt, 'READY');
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    await people.isGone(machineAt(id));
    await people.isGone(attachedAt);
    await goneInOrder([
      `ExternalIPAttachmentDeleted externalIpAttachment-${attachment}`,
      `ComputeInstanceDeleted computeInstance-${id}`,
    ]);
    await people.shows(ipAt(ips[0]), 'ALLOCATED');
    expect(await people.statusAt(ipAt(ips[0]))).not.to.have.property('attached');
  });

  it('one is started, stopped and restarted from the command line, where nothing else of it changes', async () => {
    const id = await order({ run_strategy: 'Halted' });
    const shown = ok(await people.user('GET', `${MACHINES}/${id}`)) as JsonObject;
    const name = stringAt(objectAt(shown, 'metadata'), 'name');
    await people.shows(machineAt(id), 'STOPPED');
    const claims = { sub: 'alice', preferred_username: 'alice', organization: ['t1'] };
    const run = async (...argv: readonly string[]) => {
      const { said, ended } = startCli(whole.access(claims), argv);
      return { code: await ended, ...said };
    };
    const tried = await run('start', '--dry-run', name);
    expect(tried).to.include({ code: 0, out: `compute_instance/${name} is to run (dry run)\n` });
    expect(stringAt(await people.statusAt(machineAt(id)), 'state')).to.match(/_STOPPED$/);
    expect(await run('start', name)).to.include({
      code: 0,
      out: `compute_instance/${name} is to run\n`,
    });
    await people.shows(machineAt(id), 'RUNNING');
    expect((await run('restart', id)).code).to.equal(0);
    await people.until('it is restarted', async () => {
      const status = await people.statusAt(machineAt(id));
      return status['last_restarted_at'] !== undefined && stringAt(status, 'state').endsWith('_RUNNING');
    });
    expect(await run('restart', id, '--at', '2020-01-01T00:00:00Z')).to.include({ code: 1 });
    expect(await run('stop', name)).to.include({ code: 0 });
    await people.shows(machineAt(id), 'STOPPED');
    expect(await run('stop', 'nobody')).to.include({ code: 3 });
    const { spec } = ok(await people.user('GET', `${MACHINES}/${id}`)) as { spec?: JsonObject };
    expect(spec).to.deep.include({
      boot_disk: { size_gib: 20 },
      network_attachments: [
        { subnet: { id: subnet, name: 'm-2' }, security_groups: [{ id: group, name: 'm-3' }] },
      ],
    });
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    await people.isGone(machineAt(id));
  });

  it('one stands in the default subnet and group of its tenant, and nobody without the right touches it', async () => {
    const defaults = { virtual_network_ipv4_cidr: '10.0.0.0/16', subnet_ipv4_cidr: '10.0.0.0/20' };
    const classes = itemsOf(await people.admin('GET', `${PRIVATE}/network_classes`)) as readonly JsonObject[];
    const standard = classes.find((one) => one['is_default'] === true) ?? {};
    const classAt = `${PRIVATE}/network_classes/${stringAt(standard, 'id')}`;
    ok(await people.admin('PATCH', classAt, { spec: { defaults } }));
    ok(await people.admin('POST', `${PRIVATE}/tenants`, { metadata: { name: 't2' } }));
    const bob = await whole.caller({ sub: 'bob', preferred_username: 'bob', organization: ['t2'] });
    ok(await people.admin('POST', `${PRIVATE}/projects`, { metadata: { name: 'apps', tenant: 't2' } }));
    const body = {
      metadata: { name: 'plain', project: 'apps', annotations: QUICK },
      spec: { template: { id: 'osac.templates.vm' } },
    };
    let said = '';
    const made = async () => {
      const reply = await bob('POST', MACHINES, body);
      said = reply.text;
      return reply.status === 200 ? (reply.json as JsonObject) : undefined;
    };
    let machine: JsonObject | undefined;
    await people.until(
      () => `the default subnet is ready: ${said}`,
      async () => (machine = await made()) !== undefined,
    );
    const id = stringAt(machine ?? {}, 'id');
    const [attachment = {}] = listAt(objectAt(machine ?? {}, 'spec'), 'network_attachments') as JsonObject[];
    expect(objectAt(attachment, 'subnet')).to.include({ name: 'default-ipv4' });
    expect(listAt(attachment, 'security_groups').map((one) => stringAt(one, 'name'))).to.deep.equal([
      'default',
    ]);
    await people.shows(machineAt(id), 'RUNNING');
    const viewer = await whole.caller({
      sub: 'vera',
      preferred_username: 'vera',
      organization: { t2: { groups: ['/apps/system:viewers'] } },
    });
    ok(await viewer('GET', `${MACHINES}/${id}`));
    const stop = { spec: { run_strategy: 'Halted' } };
    for (const [who, status] of [
      [viewer, 403],
      [people.user, 404],
    ] as const) {
      expect((await who('PATCH', `${MACHINES}/${id}`, stop)).status).to.equal(status);
      expect((await who('DELETE', `${MACHINES}/${id}`)).status).to.equal(status);
    }
    expect((await people.user('GET', `${MACHINES}/${id}`)).status).to.equal(404);
    expect((await people.user('GET', MACHINES)).text).not.to.include(id);
    await people.shows(machineAt(id), 'RUNNING');
    ok(await bob('DELETE', `${MACHINES}/${id}`));
    await people.isGone(machineAt(id));
  });
});
