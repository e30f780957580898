import { expect } from 'chai';
import { join } from 'node:path';
import { BARE_METAL_INSTANCE, BARE_METAL_USER_DATA } from '../../../src/domain/bare-metal/hub-objects.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { listAt, objectAt, stringAt } from '../../../src/domain/json-tools.ts';
import { startCli } from '../../support/cli/in-process.ts';
import { readHubCalls, readHubObjects } from '../../support/hubs/hub-journal.ts';
import { ipAt, networkStory, ok, type NetworkStory } from '../../support/hubs/network-story.ts';
import { PRIVATE, PUBLIC, textAt } from '../../support/http/service.ts';
import { createWholeService, type WholeService } from '../../support/service/whole-service.ts';

const MACHINES = `${PUBLIC}/baremetal_instances`;
const machineAt = (id: string): string => `${PRIVATE}/baremetal_instances/${id}`;
const QUICK = { simulation: 'factor=0.05' };
const STRATEGY = 'BARE_METAL_INSTANCE_RUN_STRATEGY_';
const USER_DATA = '#cloud-config\npassword: only-for-the-machine\n';

/** The whole service with its simulated hubs: what becomes of whole servers there. */
describe('bare-metal instances on a simulated hub', () => {
  let whole: WholeService;
  let people: NetworkStory;
  let subnet: string;
  let storage: string;
  let group: string;
  let serial = 0;

  const make = async (collection: string, spec: object, more: object = {}): Promise<string> => {
    const metadata = { name: `b-${(serial += 1)}`, annotations: { ...QUICK, ...more } };
    return textAt(ok(await people.user('POST', `${PUBLIC}/${collection}`, { metadata, spec })), 'id');
  };
  const order = (spec: object = {}, more: object = {}): Promise<string> =>
    make('baremetal_instances', { catalog_item: { name: 'gpu-server' }, ...spec }, more);
  const attached = (more: object = {}) => ({
    network_attachments: [{ subnet: { id: subnet }, security_groups: [{ id: group }], ...more }],
  });
  const change = (id: string, spec: object) => people.user('PATCH', `${MACHINES}/${id}`, { spec });
  const remove = async (id: string): Promise<void> => {
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    await people.isGone(machineAt(id));
  };
  const fileOf = (hub: string): string => join(whole.dataDir, 'hubs', `${hub}.sqlite`);
  const created = (hub: string, name: string) =>
    readHubCalls(fileOf(hub)).filter(
      ({ operation, result, object }) => operation === 'create' && result === 'created' && object === name,
    );
  /** That nobody asked the hub to remove. */
  const left = (hub: string, kind: string) =>
    readHubObjects(fileOf(hub)).filter((one) => one.kind === kind && one.deletionAt === undefined);

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
    storage = await make('subnets', { ...inNetwork, ipv4_cidr: '10.0.2.0/24' });
    group = await make('security_groups', inNetwork);
    await people.shows(`${PRIVATE}/subnets/${subnet}`, 'READY');
    await people.shows(`${PRIVATE}/subnets/${storage}`, 'READY');
    await people.shows(`${PRIVATE}/security_groups/${group}`, 'READY');
  });
  after(() => whole.dispose());

  it('one runs on the hub of its subnet, as one object there, and is returned with its user data', async () => {
    const id = await order({ ...attached(), user_data: USER_DATA });
    const status = await people.shows(machineAt(id), 'RUNNING');
    const hub = stringAt(status, 'hub');
    expect(hub).to.equal(stringAt(await people.statusAt(`${PRIVATE}/subnets/${subnet}`), 'hub'));
    const [nic] = listAt(objectAt(status, 'hardware'), 'nics');
    expect(stringAt(nic, 'mac')).to.match(/^02(:[0-9a-f]{2}){5}$/);
    const [shown] = listAt(status, 'network_attachment_statuses');
    expect(shown).to.deep.include({ interface: 'ens1', subnet_ref: subnet, primary: true });
    expect(stringAt(shown, 'ip_address')).to.match(/^10\.0\.1\.\d+$/);
    for (const name of [BARE_METAL_INSTANCE.nameOf(id), BARE_METAL_USER_DATA.nameOf(id)])
      expect(created(hub, name)).to.have.length(1);
    const document = ok(await people.user('GET', `${MACHINES}/${id}`)) as JsonObject;
    expect(objectAt(document, 'spec')).to.deep.include({
      user_data: '***',
      run_strategy: `${STRATEGY}ALWAYS`,
      image: { source_type: 'http', source_ref: 'https://images.example/rhel-9-6.qcow2' },
    });
    expect(objectAt(document, 'status')).not.to.have.property('hub');
    for (const inUse of [`subnets/${subnet}`, `security_groups/${group}`])
      expect((await people.user('DELETE', `${PUBLIC}/${inUse}`)).json, inUse).to.include({ code: 9 });
    ok(await people.user('DELETE', `${MACHINES}/${id}`));
    const late = await change(id, { run_strategy: `${STRATEGY}HALTED` });
    expect([late.status, late.json['code']], late.text).to.deep.equal([400, 9]);
    expect(late.text).to.include('is being returned');
    await people.isGone(machineAt(id));
    for (const kind of [BARE_METAL_INSTANCE.kind, BARE_METAL_USER_DATA.kind])
      expect(left(hub, kind)).to.deep.equal([]);
    expect(JSON.stringify(await whole.log())).not.to.include('only-for-the-machine');
  });

  it('one is powered off and on and restarted, from the command line too', async () => {
    const id = await order({ ...attached(), run_strategy: `${STRATEGY}HALTED` });
    const claims = { sub: 'alice', preferred_username: 'alice', organization: ['t1'] };
    const run = async (...argv: readonly string[]) => {
      const { said, ended } = startCli(whole.access(claims), argv);
      return { code: await ended, ...said };
    };
    await people.shows(machineAt(id), 'STOPPED');
    const target = `baremetalinstance/${id}`;
    const begun = await run('start', target);
    expect(begun, begun.err).to.include({ code: 0 });
    await people.shows(machineAt(id), 'RUNNING');
    const restarted = (trigger: string) => async () => {
      const status = await people.statusAt(machineAt(id));
      return status['restart_trigger'] === trigger && stringAt(status, 'state').endsWith('_RUNNING');
    };
    ok(await change(id, { restart_trigger: '7' }));
    await people.until('it is restarted', restarted('7'));
    expect(await run('restart', target)).to.include({ code: 0 });
    await people.until('it is restarted again', restarted('8'));
    expect(await run('restart', target, '--at', '2030-01-01T00:00:00Z')).to.include({ code: 2 });
    expect(await run('stop', target)).to.include({ code: 0 });
    await people.shows(machineAt(id), 'STOPPED');
    await remove(id);
  });

  it('without attachments it is placed as a cluster is', async () => {
    const id = await order();
    const status = await people.shows(machineAt(id), 'RUNNING');
    const hub = stringAt(status, 'hub');
    expect(created(hub, BARE_METAL_INSTANCE.nameOf(id))).to.have.length(1);
    expect(status).not.to.have.property('network_attachment_statuses');
    await remove(id);
    expect(left(hub, BARE_METAL_INSTANCE.kind)).to.deep.equal([]);
  });

  it('one waits, and says so, while no host has the labels that its type selects', async () => {
    const id = await order(attached(), { simulation: 'factor=0.05,hosts=class:small' });
    await people.until('it waits for a host', async () => {
      const conditions = listAt(await people.statusAt(machineAt(id)), 'conditions');
      return conditions.some(
        (one) => stringAt(one, 'message') === 'its hub has no free host that matches it',
      );
    });
    expect(stringAt(await people.statusAt(machineAt(id)), 'state')).to.match(/_PROVISIONING$/);
    const matching = await order(attached(), {
      simulation: 'factor=0.05,hosts=class:small | class:h100 rack:r1',
    });
    await people.shows(machineAt(matching), 'RUNNING');
    await remove(matching);
    await remove(id);
  });

  it('one of a type that no hub has is refused, also by a dry run, and nothing is left of it', async () => {
    ok(await people.admin('POST', `${PRIVATE}/host_types`, { id: 'rare', metadata: { name: 'rare' } }));
    const template = { id: 'b.rare', metadata: { name: 'rare' }, title: 'Rare', host_type: 'rare' };
    ok(await people.admin('POST', `${PRIVATE}/baremetal_instance_templates`, template));
    const item = { metadata: { name: 'rare', tenant: 'shared' }, title: 'Rare', published: true };
    const offered = { ...item, template: { id: template.id } };
    ok(await people.admin('POST', `${PRIVATE}/baremetal_instance_catalog_items`, offered));
    const body = { metadata: { name: 'never' }, spec: { catalog_item: { name: 'rare' } } };
    for (const headers of [{}, { 'x-dry-run': 'true' }]) {
      const refused = await people.user('POST', MACHINES, body, headers);
      expect([refused.status, refused.json['code']], refused.text).to.deep.equal([400, 9]);
      expect(refused.text).to.include("field 'spec.catalog_item': no host of type 'rare' can be had");
    }
    expect((await people.user('GET', MACHINES)).text).not.to.include('never');
  });

  it('one host serves one machine: the next one gets it once it was returned', async () => {
    const few = { simulation: 'factor=0.05,hosts=class:h100 rack:only' };
    const first = await order(attached(), few);
    await people.shows(machineAt(first), 'RUNNING');
    const second = await order(attached(), few);
    await people.until('it waits for the host', async () =>
      listAt(await people.statusAt(machineAt(second)), 'conditions').some((one) =>
        stringAt(one, 'message').includes('no free host'),
      ),
    );
    await remove(first);
    const { hub } = await people.shows(machineAt(second), 'RUNNING');
    const rows = readHubObjects(fileOf(typeof hub === 'string' ? hub : ''));
    const [was, is] = [first, second].map((id) => rows.find((row) => row.id === id));
    expect(is?.host?.name).to.equal(was?.host?.name);
    expect(is?.host?.at).to.be.greaterThan(was?.deletionAt ?? Infinity);
    await remove(second);
  });

  it('one that cannot be as it is ordered is refused, with the field and what to do', async () => {
    const on = (at: string, more: object = {}) => ({ subnet: { id: at }, ...more });
    const hidden = { metadata: { name: 'hidden', tenant: 'shared' }, title: 'Hidden' };
    ok(await people.admin('POST', `${PRIVATE}/baremetal_instance_catalog_items`, hidden));
    const item = { catalog_item: { name: 'gpu-server' } };
    const two = (first: object, second: object) => ({
      ...item,
      network_attachments: [on(subnet, first), on(storage, second)],
    });
    for (const [spec, text] of [
      [{}, "field 'spec.catalog_item' is required"],
      [{ catalog_item: { name: 'none' } }, 'not found'],
      [{ catalog_item: { name: 'hidden' } }, 'BareMetalInstanceCatalogItem "hidden" not found'],
      [two({ interface: 'ens1' }, {}), 'interface is required'],
      [
        two({ interface: 'ens1' }, { interface: 'ens2' }),
        "exactly one of several network attachments must have 'primary: true' (got 0)",
      ],
      [two({ interface: 'ens1', primary: true }, { interface: 'ens2', primary: true }), '(got 2)'],
      [two({ interface: 'ens1', primary: true }, { interface: 'ens1' }), "names interface 'ens1' twice"],
      [
        two({ interface: 'ens1', primary: true }, { interface: 'ens9' }),
        "host type 'h100' has no interface 'ens9'",
      ],
      [two({ interface: 'ens1', primary: true }, { interface: 'bmc' }), "has role 'lifecycle'"],
      [{ ...item, network_attachments: [on(subnet, { interface: 'bmc' })] }, "has role 'lifecycle'"],
      [
        { ...item, network_attachments: [on(subnet, { interface: 'a' }), on(subnet, { interface: 'b' })] },
        '',
      ],
      [{ ...item, network_attachments: [on('none')] }, 'Subnet "none" not found'],
      [
        { ...item, ...attached(), user_data: 'x'.repeat(65_537) },
        "'spec.user_data' may have at most 65536 bytes",
      ],
      [
        { ...item, auto_external_ip_attachment: true },
        'at least one network attachment is required for an external IP',
      ],
      [
        { ...item, ...attached(), auto_external_ip_attachment: true },
        'no external IP pool on the hub of its subnet',
      ],
      [
        { ...item, restart_trigger: '9223372036854775807' },
        "'spec.restart_trigger' must be from -9007199254740991 to 9007199254740991",
      ],
      [
        {
          ...item,
          template_parameters: {
            a: { '@type': 'type.googleapis.com/google.protobuf.StringValue', value: 'b' },
          },
        },
        "fields not allowed by catalog item 'gpu-server': template_parameters.a",
      ],
      [{ ...item, image: { source_type: 'http', source_ref: 'x' } }, 'fields not allowed'],
    ] as const) {
      const reply = await people.user('POST', MACHINES, { metadata: { name: 'refused' }, spec });
      expect(reply.status, `${JSON.stringify(spec).slice(0, 200)}: ${reply.text}`).to.equal(400);
      expect(reply.text).to.include(text.replaceAll('"', '\\"'));
    }
    expect((await people.user('GET', MACHINES)).text).not.to.include('refused');
    const id = await order({
      network_attachments: [
        on(subnet, { interface: 'ens1' }),
        on(storage, { interface: 'ens2', primary: true }),
      ],
    });
    await people.shows(machineAt(id), 'RUNNING');
    for (const [spec, text] of [
      [{ network_attachments: [on(subnet)] }, 'only security groups may change'],
      [
        { network_attachments: [on(subnet, { interface: 'ens2' }), on(storage)] },
        'only security groups may change',
      ],
      [
        { network_attachments: [on(subnet, { primary: true }), on(storage, { primary: false })] },
        'only security',
      ],
      [{ catalog_item: { name: 'none' } }, ''],
      [{ ssh_public_key: 'ssh-ed25519 AAAA' }, "'spec.ssh_public_key' is immutable"],
      [{ user_data: 'other' }, "'spec.user_data' is immutable"],
      [{ run_strategy: 77 }, 'must be one of'],
    ] as const) {
      const reply = await change(id, spec);
      expect(reply.status, `${JSON.stringify(spec)}: ${reply.text}`).to.equal(400);
      expect(reply.text).to.include(text);
    }
    ok(
      await change(id, {
        network_attachments: [on(subnet, { security_groups: [{ id: group }] }), on(storage)],
      }),
    );
    await remove(id);
  });

  it('one with an external IP of its own gets it from a pool on its hub, and it goes before the machine', async () => {
    const hub = stringAt(await people.statusAt(`${PRIVATE}/subnets/${subnet}`), 'hub');
    await people.makePool('192.0.2.64/30', {
      'fulfillment-ledger/hub': hub,
      'fulfillment-ledger/quarantine': 'PT0S',
    });
    const id = await order({ ...attached(), auto_external_ip_attachment: true });
    await people.shows(machineAt(id), 'RUNNING');
    const madeFor = async (collection: string): Promise<string> => {
      const { items } = ok(await people.user('GET', `${PUBLIC}/${collection}`)) as { items?: JsonObject[] };
      const found = (items ?? []).filter(
        (one) => objectAt(objectAt(one, 'metadata'), 'labels')['osac.openshift.io/auto-created-for'] === id,
      );
      expect(found, collection).to.have.length(1);
      return stringAt(found[0], 'id');
    };
    const ip = await madeFor('external_ips');
    const attachment = await madeFor('external_ip_attachments');
    const attachedAt = `${PRIVATE}/external_ip_attachments/${attachment}`;
    expect(await people.shows(attachedAt, 'READY')).to.include({ hub });
    await remove(id);
    await people.isGone(attachedAt);
    await people.isGone(ipAt(ip));
  });

  it('the provider sees which hosts a type selects, and nobody else does', async () => {
    const at = 'bare_metal_instance_types/h100';
    const own = ok(await people.admin('GET', `${PRIVATE}/${at}`)) as JsonObject;
    expect(objectAt(own, 'spec')['host_label_selector']).to.deep.equal({ match_labels: { class: 'h100' } });
    const shown = ok(await people.user('GET', `${PUBLIC}/${at}`)) as JsonObject;
    expect(objectAt(shown, 'spec')).not.to.have.property('host_label_selector');
    const template = { id: 'b.none', metadata: { name: 'none' }, title: 'T', host_type: 'none' };
    const refused = await people.admin('POST', `${PRIVATE}/baremetal_instance_templates`, template);
    expect(refused.text).to.include("host type 'none' not found");
    const used = await people.admin('DELETE', `${PRIVATE}/host_types/h100`);
    expect(used.json).to.include({ code: 9 });
    const again = { spec: { hardware: { cpu: { cores: 1, architecture: 'arm64', threads_per_core: 1 } } } };
    expect((await people.admin('PATCH', `${PRIVATE}/${at}`, again)).text).to.include(
      "'spec.hardware' is immutable",
    );
    expect((await people.admin('POST', `${PUBLIC}/baremetal_instance_templates`, template)).status).to.equal(
      501,
    );
  });
});
