import { expect } from 'chai';
import { eventually } from '../support/eventually.ts';
import {
  osacCommandLine,
  startCommandLine,
  type CommandLine,
  type Outcome,
} from '../support/grpc/osac-command-line.ts';
import { notRunHere } from '../support/not-run-here.ts';
import { startSecureStack, type SecureStack } from '../support/service/tls.ts';

type Thing = {
  readonly id: string;
  readonly metadata: { readonly name: string; readonly tenant?: string };
  readonly spec: Readonly<Record<string, { readonly id?: string } | undefined>>;
  readonly status?: { readonly state?: string };
};

const PUBLIC = 'osac.public.v1';
const ID = /^[0-9a-f-]{36}$/;

/** A tenant's network as OSAC's command line makes it, on simulated hubs, which carry it out. */
describe("networks by OSAC's command line", function () {
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
    // An address is of use on its own hub alone, and `create virtualnetwork` cannot name one.
    await done(cli.run(root, 'delete', 'hub', 'sim-east-1', 'sim-east-2', '--private'));
    for (const document of [
      {
        '@type': 'osac.private.v1.NetworkClass',
        title: 'Physical',
        implementation_strategy: 'phys_net',
        is_default: true,
        fabric_manager: 'netris',
        capabilities: { supports_ipv4: true },
      },
      {
        '@type': 'osac.private.v1.ExternalIPPool',
        metadata: { name: 'pool' },
        spec: { cidrs: ['192.0.2.0/28'], ip_family: 'IP_FAMILY_IPV4' },
      },
    ])
      await done(cli.run(root, 'create', '-f', JSON.stringify(document), '--private'));
  });
  after(async () => {
    await cli?.close();
    await secure?.stack.dispose();
  });

  const osac = (...argv: readonly string[]): Promise<Outcome> => cli.run(alice, ...argv);
  const done = async (command: Promise<Outcome>): Promise<Outcome> => {
    const outcome = await command;
    expect(outcome.exit, `${outcome.error} ${JSON.stringify(outcome.calls)}`).to.equal(0);
    return outcome;
  };
  const byName = (name: string): string => `this.id == "${name}" || this.metadata.name == "${name}"`;
  const thingOf = (outcome: Outcome): Thing => outcome.objects[0] as unknown as Thing;
  const called = ({ calls }: Outcome): string[] =>
    calls.map(({ method, request }) => `${method} ${JSON.stringify(request)}`);
  const show = async (kind: string, name: string): Promise<Thing> =>
    thingOf(await done(osac('get', kind, name, '-o', 'json')));
  const reaches = (kind: string, name: string, state: string): Promise<void> => {
    let seen: Thing | undefined;
    return eventually(
      () => `${kind} ${name} is ${state}: ${JSON.stringify(seen)}`,
      async () => {
        seen = await show(kind, name);
        return seen.status?.state?.endsWith(`_${state}`) === true;
      },
      120_000,
      250,
    );
  };
  /** Makes it; what it looked up before, each as `<service> <name>`, and that the ids went along. */
  const creates = async (
    kind: string,
    service: string,
    lookups: Readonly<Record<string, readonly [service: string, name: string]>>,
    ...argv: readonly string[]
  ): Promise<Thing> => {
    const outcome = await done(osac('create', kind, ...argv));
    const looks = Object.values(lookups);
    expect(called(outcome).slice(0, -1)).to.deep.equal(
      looks.map(([of, name]) => `${PUBLIC}.${of}/List ${JSON.stringify({ limit: 2, filter: byName(name) })}`),
    );
    const last = outcome.calls.at(-1);
    expect(last?.method).to.equal(`${PUBLIC}.${service}/Create`);
    const { spec } = (last?.request['object'] ?? { spec: {} }) as Thing;
    for (const field of Object.keys(lookups)) expect(spec[field]?.id, field).to.match(ID);
    return thingOf(outcome);
  };

  it('makes a network without a look, nor the tenant that was chosen', async () => {
    const argv = ['--name', 'net', '--ipv4-cidr', '10.20.0.0/16', '--tenant', 'acme'];
    const made = await done(osac('create', 'virtualnetwork', ...argv));
    expect(called(made)).to.deep.equal([
      `${PUBLIC}.VirtualNetworks/Create {"object":{"metadata":{"name":"net"},"spec":{"ipv4_cidr":"10.20.0.0/16"}}}`,
    ]);
    expect(thingOf(made).metadata.tenant).to.equal('acme');
    await reaches('virtualnetwork', 'net', 'READY');
  });

  it('makes subnets and security groups in it, and shows its name beside them', async () => {
    const inNet = { virtual_network: ['VirtualNetworks', 'net'] } as const;
    const of = ['--virtual-network', 'net'];
    for (const n of [1, 2])
      await creates('subnet', 'Subnets', inNet, '--name', `s${n}`, ...of, '--ipv4-cidr', `10.20.${n}.0/24`);
    const rule = { protocol: 'PROTOCOL_TCP', port_from: 22, port_to: 22, ipv4_cidr: '192.0.2.0/24' };
    const ingress = ['--ingress', JSON.stringify([rule])];
    await creates('securitygroup', 'SecurityGroups', inNet, '--name', 'ssh', ...of, ...ingress);
    for (const name of ['s1', 's2']) await reaches('subnet', name, 'READY');
    await reaches('securitygroup', 'ssh', 'READY');
    for (const [kind, rows] of [
      ['subnets', ['s1 net', 's2 net']],
      ['securitygroups', ['ssh net']],
    ] as const) {
      const table = await done(osac('get', kind));
      expect(table.rows.map(([, name, network]) => `${name} ${network}`)).to.have.members(rows);
      const looks = table.calls.filter(({ method }) => method === `${PUBLIC}.VirtualNetworks/List`);
      expect(looks, 'one look for each network').to.have.length(1);
    }
  });

  it('says so of a network that it does not find, and sends nothing', async () => {
    const argv = ['--name', 'lost', '--virtual-network', 'nope', '--ipv4-cidr', '10.20.9.0/24'];
    const outcome = await osac('create', 'subnet', ...argv);
    expect([outcome.exit, outcome.error]).to.deep.equal([1, "Error: virtualnetwork 'nope' not found"]);
    expect(outcome.calls).to.have.length(1);
  });

  it('takes addresses of a pool, one for a gateway and one for a cluster', async () => {
    for (const name of ['out', 'in']) {
      await creates(
        'externalip',
        'ExternalIPs',
        { pool: ['ExternalIPPools', 'pool'] },
        '--name',
        name,
        '--pool',
        'pool',
      );
      await reaches('externalip', name, 'ALLOCATED');
    }
    const gateway = {
      virtual_network: ['VirtualNetworks', 'net'],
      external_ip: ['ExternalIPs', 'out'],
    } as const;
    const nat = ['--name', 'nat', '--virtual-network', 'net', '--external-ip', 'out'];
    await creates('natgateway', 'NATGateways', gateway, ...nat);
    await reaches('natgateway', 'nat', 'READY');
    const table = await done(osac('get', 'natgateways'));
    expect(table.rows.map((row) => row.slice(1))).to.deep.equal([['nat', 'net', 'out']]);
    expect(table.calls.map(({ method }) => method)).to.deep.equal([
      `${PUBLIC}.NATGateways/List`,
      `${PUBLIC}.VirtualNetworks/List`,
      `${PUBLIC}.ExternalIPs/List`,
    ]);

    const cluster = {
      '@type': `${PUBLIC}.Cluster`,
      metadata: { name: 'c1' },
      spec: { template: { name: 'ocp-small' } },
    };
    await done(osac('create', '-f', JSON.stringify(cluster)));
    const target = { external_ip: ['ExternalIPs', 'in'], cluster: ['Clusters', 'c1'] } as const;
    const attached = ['--name', 'attached', '--external-ip', 'in', '--cluster', 'c1'];
    const endpoint = ['--target-endpoint', 'EXTERNAL_IP_ATTACHMENT_ENDPOINT_API'];
    await creates('externalipattachment', 'ExternalIPAttachments', target, ...attached, ...endpoint);
    await reaches('externalipattachment', 'attached', 'READY');
  });

  it('gives an address to one user at a time', async () => {
    const argv = ['--name', 'second', '--virtual-network', 'net', '--external-ip', 'in'];
    const outcome = await osac('create', 'natgateway', ...argv);
    expect([outcome.exit, outcome.calls.at(-1)?.code]).to.deep.equal([1, 'FailedPrecondition']);
    expect(outcome.error).to.match(/external IP '.*' is already attached$/);
  });

  it('watches, edits, labels and deletes what it made', async () => {
    const watch = await cli.open(root, 'get', 'subnets', '-w', '--private');
    await done(osac('label', 'subnet', 's1', 'env=test'));
    await eventually('the event', () => JSON.stringify(watch.events).includes('"env":"test"'));
    expect((await watch.goOn()).exit).to.equal(0);
    await done(osac('label', 'subnet', 's1', 'env-'));
    const before = await show('subnet', 's1');
    const editor = await cli.open(alice, 'edit', 'subnet', 's1', '--patch', '{}');
    await done(editor.goOn());
    expect(await show('subnet', 's1')).to.deep.equal(before);

    const kept = await osac('delete', 'virtualnetwork', 'net');
    expect([kept.exit, kept.calls.at(-1)?.code]).to.deep.equal([1, 'FailedPrecondition']);
    const gone = async (kind: string, ...names: readonly string[]): Promise<void> => {
      await done(osac('delete', kind, ...names));
      await eventually(
        `${names.join()} gone`,
        async () => (await done(osac('get', kind, ...names, '-o', 'json'))).objects.length === 0,
        120_000,
        250,
      );
    };
    await gone('externalipattachment', 'attached');
    await gone('natgateway', 'nat');
    await gone('subnet', 's1', 's2');
    await gone('securitygroup', 'ssh');
    await gone('externalip', 'out', 'in');
    await gone('virtualnetwork', 'net');
  });
});
