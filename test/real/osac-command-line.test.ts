import { expect } from 'chai';
import { kinds } from '../../src/domain/kinds.ts';
import { eventually } from '../support/eventually.ts';
import { startSecureStack, type SecureStack } from '../support/service/tls.ts';
import { notRunHere } from '../support/not-run-here.ts';
import {
  osacCommandLine,
  startCommandLine,
  type CommandLine,
  type Outcome,
} from '../support/grpc/osac-command-line.ts';
import { osacRegistry, type Surface } from '../support/grpc/osac-wire.ts';

type Cluster = {
  readonly id: string;
  readonly metadata: {
    readonly name: string;
    readonly version?: number;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly ssh_public_key?: string;
    readonly node_sets: Readonly<Record<string, { readonly size?: number }>>;
  };
  readonly status?: { readonly state?: string };
};

const PUBLIC = 'osac.public.v1';

/**
 * What OSAC's command line calls, in its order, by the library that it uses, over TLS, with a token. Its messages come
 * from a table that was not made of our `proto/`.
 */
describe("OSAC's command line", function () {
  this.timeout(300_000);
  let secure: SecureStack;
  let cli: CommandLine;
  let alice: string;
  let root: string;

  before(async function () {
    const program = osacCommandLine((line) => console.log(`      ${line}`));
    if ('missing' in program) return notRunHere(this, 'grpc-go', program.missing);
    secure = await startSecureStack();
    cli = startCommandLine(program.path, secure.grpc, secure.authority);
    alice = await secure.stack.token({ tenant: 'acme', user: 'alice' });
    root = await secure.stack.token({ admin: true, user: 'root' });
  });
  after(async () => {
    await cli?.close();
    await secure?.stack.dispose();
  });

  const osac = (...argv: readonly string[]): Promise<Outcome> => cli.run(alice, ...argv);
  const admin = (...argv: readonly string[]): Promise<Outcome> => cli.run(root, ...argv, '--private');
  const done = async (command: Promise<Outcome>): Promise<Outcome> => {
    const outcome = await command;
    expect(outcome.exit, `${outcome.error} ${JSON.stringify(outcome.calls)}`).to.equal(0);
    return outcome;
  };
  const called = ({ calls }: Outcome): string[] =>
    calls.map(
      ({ method, request, code }) => `${method} ${JSON.stringify(request)}${code === 'OK' ? '' : ` ${code}`}`,
    );
  const byName = (name: string): string => `this.id == "${name}" || this.metadata.name == "${name}"`;
  const list = (service: string, fields: object): string => `${service}/List ${JSON.stringify(fields)}`;
  const clusterOf = (outcome: Outcome): Cluster => outcome.objects[0] as unknown as Cluster;
  const show = async (name: string): Promise<Cluster> =>
    clusterOf(await done(osac('get', 'clusters', name, '-o', 'json')));
  const create = async (name: string): Promise<Cluster> =>
    clusterOf(await done(osac('create', 'cluster', '--name', name, '--template', 'ocp-small')));
  const isReady = async (name: string): Promise<boolean> =>
    (await show(name)).status?.state === 'CLUSTER_STATE_READY';

  it('logs in, with any token', async () => {
    for (const token of [alice, 'garbage']) {
      const outcome = await done(cli.run(token, 'login'));
      expect(called(outcome)).to.deep.equal([
        `${PUBLIC}.Capabilities/Get {}`,
        'grpc.health.v1.Health/Check {}',
      ]);
    }
  });

  it('asks a second time with a token that is refused, then says why', async () => {
    const outcome = await cli.run('garbage', 'get', 'clusters');
    expect(outcome.exit).to.equal(1);
    expect(called(outcome)).to.deep.equal(Array(2).fill(`${PUBLIC}.Clusters/List {} Unauthenticated`));
    expect(outcome.error).to.match(/^Error: rpc error: code = Unauthenticated desc = ./);
  });

  it('creates a cluster from a template that it looks up', async () => {
    const outcome = await done(osac('create', 'cluster', '--name', 'c1', '--template', 'ocp-small'));
    expect(called(outcome)).to.have.length(2);
    expect(called(outcome)[0]).to.equal(
      list(`${PUBLIC}.ClusterTemplates`, { limit: 10, filter: byName('ocp-small') }),
    );
    expect(clusterOf(outcome).metadata.name).to.equal('c1');
    expect(clusterOf(outcome).spec.node_sets['workers']?.size).to.equal(2);
  });

  it('says so of a template and of a version that it does not find', async () => {
    for (const argv of [
      ['--template', 'nope'],
      ['--template', 'ocp-small', '--version', 'nope'],
    ]) {
      const outcome = await osac('create', 'cluster', '--name', 'x', ...argv);
      expect(outcome.exit).to.equal(1);
      expect(outcome.error).to.include("'nope' not found");
    }
  });

  it('creates a cluster of a version that it looks up by either name', async () => {
    const { objects } = await done(osac('get', 'clusterversions', '-o', 'json'));
    const [version] = objects as unknown as {
      readonly id: string;
      readonly spec: { readonly version: string };
    }[];
    const outcome = await done(
      osac(
        'create',
        'cluster',
        '--name',
        'c2',
        '--template',
        'ocp-small',
        '--version',
        version?.spec.version ?? '',
      ),
    );
    expect(JSON.stringify(outcome.objects)).to.include(`"version":{"id":"${version?.id}"`);
  });

  it('shows tables with the names of what is referred to', async () => {
    const outcome = await done(osac('get', 'clusters'));
    expect(outcome.rows.map(([, name, template]) => `${name} ${template}`)).to.include.members([
      'c1 ocp-small',
      'c2 ocp-small',
    ]);
    const services = outcome.calls.map(({ method }) => method);
    expect(services.filter((method) => method === `${PUBLIC}.ClusterTemplates/List`)).to.have.length(1);
  });

  it('finds by ids and names, with a filter of its own, and says where nothing is found', async () => {
    const { id } = await show('c1');
    const both = await done(osac('get', 'clusters', id, 'c2', '-o', 'json'));
    expect(both.objects).to.have.length(2);
    expect(both.calls[0]?.request['filter']).to.equal(
      `this.id in ["${id}", "c2"] || this.metadata.name in ["${id}", "c2"]`,
    );
    const one = await done(
      osac('get', 'cluster', id, 'c2', '--filter', 'this.metadata.name == "c2"', '-o', 'json'),
    );
    expect(one.objects).to.have.length(1);
    const none = await done(osac('get', 'clusters', 'nope'));
    expect(none.hint).to.equal('There are no objects matching the given criteria.');
    expect((await done(osac('get', 'nonsense'))).calls).to.deep.equal([]);
    const wrong = await osac('get', 'clusters', '--filter', 'this.nope == 1');
    expect(wrong.error).to.match(/^Error: rpc error: code = InvalidArgument desc = /);
  });

  it('narrows lists to the tenant that was chosen', async () => {
    await done(cli.run(root, 'tenant', 'acme'));
    const outcome = await done(cli.run(root, 'get', 'clusters', '-o', 'json', '--tenant', 'acme'));
    expect(called(outcome)).to.deep.equal([
      list(`${PUBLIC}.Clusters`, { filter: 'this.metadata.tenant == "acme"' }),
    ]);
    expect(outcome.objects).to.have.length(2);
    const globex = await done(cli.run(root, 'get', 'clusters', 'c1', '-o', 'json', '--tenant', 'globex'));
    expect(globex.objects).to.deep.equal([]);
  });

  it('describes a cluster with its version', async () => {
    const outcome = await done(osac('describe', 'cluster', 'c1'));
    expect(outcome.hint).to.equal('');
    expect(outcome.calls.map(({ method, code }) => `${method} ${code}`)).to.deep.equal([
      `${PUBLIC}.Clusters/List OK`,
      `${PUBLIC}.ClusterVersions/List OK`,
    ]);
    expect((await osac('describe', 'cluster', 'nope')).exit).to.equal(1);
  });

  it('labels and annotates, and removes the last label, too', async () => {
    await done(osac('label', 'cluster', 'c1', 'env=prod', 'team=blue'));
    await done(osac('annotate', 'cluster', 'c1', 'owner=Alice B.'));
    expect((await show('c1')).metadata.labels).to.deep.equal({ env: 'prod', team: 'blue' });
    await done(osac('label', 'cluster', 'c1', 'team-'));
    expect((await show('c1')).metadata.labels).to.deep.equal({ env: 'prod' });
    await done(osac('label', 'cluster', 'c1', 'env-'));
    await done(osac('annotate', 'cluster', 'c1', 'owner-'));
    const { metadata } = await show('c1');
    expect(metadata.labels ?? {}).to.deep.equal({});
    expect(metadata.annotations?.['owner']).to.equal(undefined);
  });

  it('edits: what changed in between stays, a text that was removed is cleared', async () => {
    const set = await cli.open(
      alice,
      'edit',
      'cluster',
      'c1',
      '--patch',
      '{"spec":{"ssh_public_key":"ssh-rsa AAAA"}}',
    );
    await done(osac('scale', 'cluster', 'c1', '--node-set', 'workers=3'));
    await done(set.goOn());
    const edited = await show('c1');
    expect(edited.spec.ssh_public_key).to.equal('ssh-rsa AAAA');
    expect(edited.spec.node_sets['workers']?.size).to.equal(3);
    const clear = await cli.open(
      alice,
      'edit',
      'cluster',
      'c1',
      '--patch',
      '{"spec":{"ssh_public_key":null}}',
    );
    await done(clear.goOn());
    expect((await show('c1')).spec.ssh_public_key).to.equal(undefined);
  });

  it('scales under a mask, with all node sets', async () => {
    const outcome = await done(osac('scale', 'cluster', 'c1', '--node-set', 'workers=2'));
    expect(outcome.calls[1]?.request).to.deep.include({ update_mask: 'spec.nodeSets' });
    expect((await show('c1')).spec.node_sets['workers']?.size).to.equal(2);
  });

  it('watches: it is told of what happens from then on', async () => {
    const watch = await cli.open(alice, 'get', 'clusters', '-w');
    const named = await cli.open(alice, 'get', 'clusters', 'c3', '-w');
    const { id } = await create('c3');
    await done(osac('label', 'cluster', 'c2', 'seen=yes'));
    const has = (events: readonly object[], text: string) =>
      events.some((each) => JSON.stringify(each).includes(text));
    await eventually('both events', () => has(watch.events, id) && has(watch.events, '"seen":"yes"'));
    await eventually('the event of its own', () => has(named.events, id));
    expect(has(named.events, '"seen":"yes"')).to.equal(false);
    for (const each of [watch, named]) expect((await each.goOn()).exit).to.equal(0);
    const refused = await cli.run('garbage', 'get', 'clusters', '-w');
    expect(refused.error).to.include('code = Unauthenticated');
  });

  it('gets kubeconfig and password once a cluster is READY', async () => {
    await eventually('c1 is READY', () => isReady('c1'), 120_000, 250);
    const kubeconfig = await done(osac('get', 'kubeconfig', 'c1'));
    expect(kubeconfig.text).to.include('apiVersion');
    expect(called(kubeconfig)[0]).to.equal(list(`${PUBLIC}.Clusters`, { limit: 10, filter: byName('c1') }));
    expect((await done(osac('get', 'password', 'c1'))).text).not.to.equal('');
    expect((await osac('get', 'kubeconfig', 'nope')).error).to.equal("Error: cluster 'nope' not found");
  });

  it('deletes several, and nothing where one name is unknown', async () => {
    const none = await done(osac('delete', 'cluster', 'c2', 'nope'));
    expect(none.hint).to.equal("cluster 'nope' not found");
    expect(none.calls).to.have.length(1);
    const outcome = await done(osac('delete', 'cluster', 'c2', 'c3'));
    expect(outcome.calls.map(({ method }) => method)).to.deep.equal([
      `${PUBLIC}.Clusters/List`,
      `${PUBLIC}.Clusters/Delete`,
      `${PUBLIC}.Clusters/Delete`,
    ]);
    await eventually(
      'both are gone',
      async () => {
        const { objects } = await done(osac('get', 'clusters', 'c2', 'c3', '-o', 'json'));
        return objects.length === 0;
      },
      120_000,
      250,
    );
  });

  /** Public services of kinds that OSAC's command line offers and this service does not have. */
  const missing = [...osacRegistry()].flatMap((each) => {
    if (each.kind !== 'service' || each.file.proto.package !== PUBLIC) return [];
    const isOffered = ['list', 'get', 'create', 'update', 'delete'].every((name) => name in each.method);
    return isOffered && !kinds.some(({ service }) => service === each.name) ? [each.name] : [];
  });

  it('is told plainly of what does not exist here', async () => {
    for (const service of missing) {
      const { error } = await osac('get', service.toLowerCase());
      expect(error).to.equal(
        `Error: rpc error: code = Unimplemented desc = unknown service ${PUBLIC}.${service}`,
      );
    }
  });

  /** Kind, surface and fields of a file, in the order in which one may refer to the other. */
  /** An address is of use on its own hub alone. */
  const inZone = { 'fulfillment-ledger/zone': 'west' };
  const inNet = { virtual_network: { name: 'net' } };
  const files: readonly (readonly [message: string, surface: Surface, fields: object])[] = [
    ['Tenant', 'private', { metadata: { name: 'initech' }, spec: { domains: ['initech.example'] } }],
    ['HostType', 'private', { id: 'l40s', title: 'L40S' }],
    ['Hub', 'private', { id: 'sim-more', spec: { namespace: 'osac' } }],
    [
      'ClusterVersion',
      'private',
      { metadata: { name: 'v9' }, spec: { version: '9.0.0', image: 'quay.example/r:9' } },
    ],
    ['InstanceType', 'private', { metadata: { name: 'large' }, spec: { cores: 8, memory_gib: 32 } }],
    [
      'ClusterTemplate',
      'private',
      {
        id: 'more',
        metadata: { name: 'more' },
        title: 'More',
        node_sets: { workers: { host_type: { id: 'l40s' }, size: 1 } },
      },
    ],
    [
      'ClusterCatalogItem',
      'private',
      { metadata: { name: 'item' }, title: 'Item', template: { id: 'more' }, published: true },
    ],
    ['Role', 'private', { metadata: { name: 'cook' }, spec: { title: 'Cook' } }],
    ['Project', 'private', { metadata: { name: 'kitchen', tenant: 'acme' }, spec: { title: 'Kitchen' } }],
    ['User', 'private', { metadata: { name: 'bob', tenant: 'acme' }, spec: { username: 'bob' } }],
    [
      'ProjectMembership',
      'private',
      {
        metadata: { name: 'bob-cooks', tenant: 'acme', project: 'kitchen' },
        spec: { role: 'PROJECT_MEMBERSHIP_ROLE_VIEWER', users: [{ name: 'bob' }] },
      },
    ],
    [
      'RoleBinding',
      'private',
      {
        metadata: { name: 'cooks', tenant: 'acme' },
        spec: { role: { name: 'cook' }, users: [{ name: 'bob' }] },
      },
    ],
    [
      'IdentityProvider',
      'private',
      {
        metadata: { name: 'sso', tenant: 'acme' },
        spec: { title: 'SSO', oidc: { issuer: 'https://idp.example', client_id: 'c', client_secret: 's' } },
      },
    ],
    [
      'ExternalIPPool',
      'private',
      {
        id: 'pool',
        metadata: { name: 'pool', annotations: inZone },
        spec: { cidrs: ['192.0.2.0/24'], ip_family: 'IP_FAMILY_IPV4' },
      },
    ],
    ['ExternalIP', 'private', { metadata: { name: 'ip', tenant: 'acme' }, spec: { pool: { id: 'pool' } } }],
    ['ExternalIP', 'private', { metadata: { name: 'ip2', tenant: 'acme' }, spec: { pool: { id: 'pool' } } }],
    [
      'StorageBackend',
      'private',
      {
        id: 'ceph',
        metadata: { name: 'ceph' },
        spec: {
          provider: 'ceph',
          endpoint: 'https://ceph.example',
          credentials: { username: 'u', password: 'p' },
        },
      },
    ],
    [
      'StorageTier',
      'private',
      { metadata: { name: 'platinum' }, spec: { backends: [{ backend_id: 'ceph' }] } },
    ],
    [
      'Volume',
      'private',
      {
        metadata: { name: 'data', tenant: 'acme' },
        spec: { storage_tier: 'platinum', size_gib: '10', access_mode: 'VOLUME_ACCESS_MODE_READ_WRITE_ONCE' },
      },
    ],
    ['Secret', 'public', { metadata: { name: 's1' }, data: { key: 'dmFsdWU=' } }],
    [
      'DiskImage',
      'public',
      {
        metadata: { name: 'image' },
        spec: {
          source_type: 'SOURCE_TYPE_REGISTRY',
          source_ref: 'quay.example/i',
          architecture: ['ARCHITECTURE_AMD64'],
        },
      },
    ],
    ['Cluster', 'public', { metadata: { name: 'c4' }, spec: { catalog_item: { name: 'item' } } }],
    [
      'Cluster',
      'public',
      { metadata: { name: 'c5', annotations: inZone }, spec: { template: { name: 'ocp-small' } } },
    ],
    [
      'NetworkClass',
      'private',
      {
        title: 'Physical',
        implementation_strategy: 'phys_net',
        is_default: true,
        fabric_manager: 'netris',
        capabilities: { supports_ipv4: true },
      },
    ],
    [
      'VirtualNetwork',
      'public',
      { metadata: { name: 'net', annotations: inZone }, spec: { ipv4_cidr: '10.20.0.0/16' } },
    ],
    ['Subnet', 'public', { metadata: { name: 'sub' }, spec: { ...inNet, ipv4_cidr: '10.20.1.0/24' } }],
    [
      'SecurityGroup',
      'public',
      {
        metadata: { name: 'ssh' },
        spec: {
          ...inNet,
          ingress: [{ protocol: 'PROTOCOL_TCP', port_from: 22, port_to: 22, ipv4_cidr: '0.0.0.0/0' }],
        },
      },
    ],
    [
      'ComputeInstanceTemplate',
      'private',
      {
        id: 'machine',
        metadata: { name: 'machine' },
        title: 'Machine',
        spec_defaults: {
          instance_type: { name: 'large' },
          boot_disk: { size_gib: 20 },
          run_strategy: 'Always',
        },
      },
    ],
    [
      'ComputeInstanceCatalogItem',
      'private',
      {
        metadata: { name: 'vm-item' },
        title: 'Machine',
        template: { id: 'machine' },
        published: true,
        field_definitions: [
          { path: 'disk_image.id', editable: true },
          { path: 'disk_image.name', editable: true },
          { path: 'network_attachments', editable: true },
        ],
      },
    ],
    [
      'ComputeInstance',
      'public',
      {
        metadata: { name: 'vm1' },
        spec: {
          template: { name: 'machine' },
          disk_image: { name: 'image' },
          network_attachments: [{ subnet: { name: 'sub' }, security_groups: [{ name: 'ssh' }] }],
        },
      },
    ],
    [
      'BareMetalInstanceType',
      'private',
      {
        metadata: { name: 'metal' },
        spec: {
          hardware: {
            cpu: { cores: 32, architecture: 'x86_64', threads_per_core: 2 },
            memory: { total_gb: '256' },
          },
          host_label_selector: { match_labels: { class: 'standard' } },
        },
      },
    ],
    ['BareMetalInstanceTemplate', 'private', { id: 'server', metadata: { name: 'server' }, title: 'Server' }],
    [
      'BareMetalInstanceCatalogItem',
      'private',
      { metadata: { name: 'metal-item' }, title: 'Server', template: { id: 'server' }, published: true },
    ],
    [
      'BareMetalInstance',
      'public',
      { metadata: { name: 'server1' }, spec: { catalog_item: { name: 'metal-item' } } },
    ],
    ['NATGateway', 'public', { metadata: { name: 'nat' }, spec: { ...inNet, external_ip: { name: 'ip' } } }],
    [
      'ExternalIPAttachment',
      'public',
      {
        metadata: { name: 'attached' },
        spec: { external_ip: { name: 'ip2' }, cluster: { name: 'c5' }, target_endpoint: 1 },
      },
    ],
  ];
  /** No hub says so here; an admin's edit of the status does. */
  const settled: Readonly<Record<string, string>> = {
    ExternalIPPool: 'EXTERNAL_IP_POOL_STATE_READY',
    ExternalIP: 'EXTERNAL_IP_STATE_ALLOCATED',
    VirtualNetwork: 'VIRTUAL_NETWORK_STATE_READY',
    Subnet: 'SUBNET_STATE_READY',
    SecurityGroup: 'SECURITY_GROUP_STATE_READY',
  };

  it('has a file of every kind', () => {
    const messages = new Set(files.map(([message]) => message));
    expect([...messages]).to.have.members(kinds.map(({ message }) => message));
  });

  for (const [message, surface, fields] of files)
    it(`creates, labels and unlabels a ${message} of a file`, async () => {
      const run = surface === 'private' ? admin : osac;
      const text = JSON.stringify({ '@type': `osac.${surface}.v1.${message}`, ...fields });
      const created = clusterOf(await done(run('create', '-f', text)));
      const kind = message.toLowerCase();
      const seen = async (): Promise<Cluster> => {
        const argv = ['get', kind, created.id, '-o', 'json'];
        return clusterOf(await done(cli.run(root, ...argv, ...(surface === 'private' ? ['--private'] : []))));
      };
      const before = await seen();
      await done(run('label', kind, created.id, 'env=test'));
      expect((await seen()).metadata.labels).to.include({ env: 'test' });
      await done(run('label', kind, created.id, 'env-'));
      const after = await seen();
      if (settled[message] !== undefined) {
        const patch = JSON.stringify({ status: { state: settled[message] } });
        const editor = await cli.open(root, 'edit', kind, created.id, '--patch', patch, '--private');
        await done(editor.goOn());
      }
      expect(after.metadata.labels).to.deep.equal(before.metadata.labels);
      expect(after.spec).to.deep.equal(before.spec);
    });

  it('creates a cluster from an item of the catalogue without a look', async () => {
    const outcome = await done(osac('create', 'cluster', '--name', 'c6', '--catalog-item', 'item'));
    const object = { metadata: { name: 'c6' }, spec: { catalog_item: { name: 'item' } } };
    expect(called(outcome)).to.deep.equal([`${PUBLIC}.Clusters/Create ${JSON.stringify({ object })}`]);
  });

  it('creates a virtual machine with the names that it was given, looking up its template alone', async () => {
    const argv = ['--subnet', 'sub', '--disk-image', 'image', '--user-data', '#cloud-config'];
    const outcome = await done(
      osac('create', 'computeinstance', '--name', 'vm2', '--template', 'machine', ...argv),
    );
    const template = { id: 'machine' };
    const disk_image = { name: 'image' };
    const network_attachments = [{ subnet: { id: 'sub' } }];
    const spec = { template, disk_image, network_attachments, user_data: '#cloud-config' };
    expect(outcome.calls.map(({ method, request }) => [method, request])).to.deep.equal([
      [`${PUBLIC}.ComputeInstanceTemplates/List`, { limit: 10, filter: byName('machine') }],
      [`${PUBLIC}.ComputeInstances/Create`, { object: { metadata: { name: 'vm2' }, spec } }],
    ]);
    expect(JSON.stringify(outcome.objects)).to.include('"name":"sub"').and.not.include('#cloud-config');
  });

  it('creates a virtual machine of an item of the catalogue without a look', async () => {
    const argv = ['--catalog-item', 'vm-item', '--subnet', 'sub', '--disk-image', 'image'];
    const outcome = await done(osac('create', 'computeinstance', '--name', 'vm3', ...argv));
    expect(outcome.calls.map(({ method }) => method)).to.deep.equal([`${PUBLIC}.ComputeInstances/Create`]);
    expect(outcome.calls[0]?.request).to.deep.nested.include({
      'object.spec.catalog_item': { id: 'vm-item' },
    });
  });

  it('opens the serial console of a machine that runs, by a ticket on a connection of its own', async () => {
    const state = async (): Promise<string | undefined> =>
      clusterOf(await done(osac('get', 'computeinstance', 'vm2', '-o', 'json'))).status?.state;
    await eventually(
      'vm2 runs',
      async () => (await state()) === 'COMPUTE_INSTANCE_STATE_RUNNING',
      120_000,
      250,
    );
    // More than one message of its own.
    const typed = `echo ${'x'.repeat(300)}\recho over grpc-go\r`;
    const argv = ['serial', 'computeinstance', 'vm2', '--input', typed, '--until', '\r\nover grpc-go\r\n'];
    const outcome = await done(osac('console', ...argv));
    expect(outcome.calls.map(({ method, code }) => `${method} ${code}`)).to.deep.equal([
      `${PUBLIC}.ComputeInstances/List OK`,
      `${PUBLIC}.ConsoleSessions/Create OK`,
    ]);
    expect(outcome.text).to.include(`\r\n${'x'.repeat(300)}\r\n`);
    expect(outcome.rows).to.deep.equal([
      ['2', ''],
      ['3', 'the client left'],
    ]);
    const absent = await osac('console', 'serial', 'computeinstance', 'nope');
    expect(absent.error).to.equal("Error: compute instance 'nope' not found");
  });

  it('shows virtual machines with their templates, and describes, edits and deletes one', async () => {
    const table = await done(osac('get', 'computeinstances'));
    expect(table.rows.map((row) => row.slice(1))).to.have.deep.members(
      ['vm1', 'vm2', 'vm3'].map((name) => [name, 'machine']),
    );
    expect(table.calls.map(({ method }) => method)).to.deep.equal([
      `${PUBLIC}.ComputeInstances/List`,
      `${PUBLIC}.ComputeInstanceTemplates/List`,
    ]);
    expect(called(await done(osac('describe', 'computeinstance', 'vm1')))).to.deep.equal([
      list(`${PUBLIC}.ComputeInstances`, { limit: 2, filter: byName('vm1') }),
    ]);
    const watch = await cli.open(alice, 'get', 'computeinstances', 'vm2', '-w');
    const patch = JSON.stringify({ spec: { run_strategy: 'Halted' } });
    await done((await cli.open(alice, 'edit', 'computeinstance', 'vm2', '--patch', patch)).goOn());
    await eventually('the halt is told', () => JSON.stringify(watch.events).includes('"Halted"'));
    await done(watch.goOn());
    const outcome = await done(osac('delete', 'computeinstance', 'vm1', 'vm2', 'vm3'));
    expect(outcome.calls).to.have.length(4);
    await eventually(
      'the machines are gone',
      async () => (await done(osac('get', 'computeinstances', '-o', 'json'))).objects.length === 0,
      120_000,
      250,
    );
  });

  it('shows users with their tenants, of which each is looked up once', async () => {
    const outcome = await done(admin('get', 'users'));
    const tenants = new Set(outcome.rows.map(([, , tenant]) => tenant));
    expect([...tenants]).to.include('acme');
    const looks = outcome.calls.filter(({ method }) => method === 'osac.private.v1.Tenants/List');
    expect(looks.map(({ request }) => request['filter'])).to.have.members(
      [...tenants].map((name) => byName(name ?? '')),
    );
  });

  it('creates a storage backend on the private surface without a look, and nobody sees its password', async () => {
    const argv = ['--name', 'array', '--provider', 'vast', '--endpoint', 'https://array.example'];
    const secret = ['--username', 'admin', '--password', 'pa55-of-the-array'];
    const outcome = await done(cli.run(root, 'create', 'storagebackend', ...argv, ...secret));
    const spec = {
      provider: 'vast',
      endpoint: 'https://array.example',
      credentials: { username: 'admin', password: 'pa55-of-the-array' },
    };
    expect(outcome.calls.map(({ method, request }) => [method, request])).to.deep.equal([
      ['osac.private.v1.StorageBackends/Create', { object: { metadata: { name: 'array' }, spec } }],
    ]);
    const shown = await done(admin('get', 'storagebackends', 'array', '-o', 'json'));
    expect(JSON.stringify(shown.objects)).to.include('array.example').and.not.include('pa55-of-the-array');
  });

  it('edits nothing: the object is sent as it was read, and stays at its version', async () => {
    const seen = async (): Promise<Cluster> =>
      clusterOf(await done(osac('get', 'diskimage', 'image', '-o', 'json')));
    const before = await seen();
    const editor = await cli.open(alice, 'edit', 'diskimage', 'image', '--patch', '{}');
    await done(editor.goOn());
    expect(await seen()).to.deep.equal(before);
  });

  // Unlike OSAC's, this service shows nobody what a secret holds.
  it('reads and describes a secret by a call of its own', async () => {
    for (const argv of [
      ['get', 'secret', 's1', '-o', 'yaml'],
      ['describe', 'secret', 's1'],
    ]) {
      const outcome = await done(osac(...argv));
      expect(outcome.calls.map(({ method }) => method)).to.deep.equal([
        `${PUBLIC}.Secrets/List`,
        `${PUBLIC}.Secrets/Get`,
      ]);
      expect(JSON.stringify(outcome.objects)).to.include('"name":"s1"').and.not.include('dmFsdWU=');
    }
  });

  it('is refused what only admins may do', async () => {
    const outcome = await osac('get', 'hubs', '--private');
    expect(outcome.error).to.equal('Error: rpc error: code = PermissionDenied desc = permission denied');
  });
});
