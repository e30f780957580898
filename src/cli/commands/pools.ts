import type { Command } from 'commander';
import type { PoolDetails, PoolHolder, PoolSummary } from '../../http/ledger/pool-operations.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { table } from '../output.ts';
import { addAgentPoolCommands } from './agent-pools.ts';

const POOLS = '/api/ledger/v1/pools';
const KINDS = `
A kind is
  vlan      VLANs of a fabric
  prefix    prefixes of a VRF
  address   external IP pools; they are created with \`ledgerctl create\`
`;

type SizeOptions = {
  readonly range?: readonly string[];
  readonly reserved?: readonly string[];
  readonly quarantine?: string;
  readonly reason: string;
};

/** `ledgerctl pools`: what orders take VLANs, prefixes and addresses from. */
export const addPoolCommands = (program: Command, connection: Connection): void => {
  const { client, io } = connection;
  const pools = program
    .command('pools')
    .description('agents, VLANs, prefixes and addresses that orders take')
    .addHelpText('after', KINDS);
  addAgentPoolCommands(pools, connection);
  pools
    .command('list')
    .description('all pools, with what is free, used and in quarantine')
    .addHelpText('after', examples('pools list'))
    .action(async () => {
      const { items } = await (await client()).get<{ items: PoolSummary[] }>(POOLS);
      if (items.length === 0) return io.err('there is no pool\n');
      io.out(`${table(HEADER, items.flatMap(rowsOf))}\n`);
    });
  pools
    .command('show <kind> <id>')
    .description('one pool with its holders')
    .addHelpText('after', KINDS)
    .addHelpText('after', '\nExit status:\n  0  done\n  3  pool not found\n')
    .addHelpText('after', examples('pools show vlan vlans-east'))
    .action(async (kind: string, id: string) => {
      io.out(textOf(await (await client()).get<PoolDetails>(pathOf(kind, id))));
    });
  pools
    .command('create <kind> <id>')
    .description('create a pool of VLANs or prefixes; the same command again changes nothing')
    .requiredOption('--zone <zone>', 'zone that it serves')
    .option('--fabric <name>', 'switches that share the VLANs')
    .option('--vrf <name>', 'VRF in which the prefixes are routed')
    .requiredOption('--range <range...>', 'VLANs such as 100-199, or CIDRs of one family or both')
    .option('--reserved <range...>', 'parts that are never given out')
    .option('--quarantine <seconds>', 'rest of what was released (default: 3600 for VLANs, 600 for prefixes)')
    .requiredOption('--reason <text>', 'why; it stands in the history')
    .addHelpText(
      'after',
      examples(
        "pools create vlan vlans-east --zone east --fabric leaf-east --range 100-599 --reason 'new site'",
        "pools create prefix nets-east --zone east --vrf tenants --range 10.20.0.0/16 fd20::/48 --reason 'new site'",
      ),
    )
    .action(
      async (
        kind: string,
        id: string,
        { zone, fabric, vrf, ...size }: SizeOptions & { zone: string; fabric?: string; vrf?: string },
      ) => {
        const body = { id, zone, ...given({ fabric, vrf }), ...sizeOf(size) };
        io.out(textOf(await (await client()).send<PoolDetails>('POST', pathOf(kind), body)));
      },
    );
  pools
    .command('resize <kind> <id>')
    .description('change ranges, reservations or quarantine; allocations must stay inside')
    .option('--range <range...>', 'all of its ranges from now on')
    .option('--reserved <range...>', 'all parts that are never given out from now on')
    .option('--quarantine <seconds>', 'rest of what is released from now on')
    .requiredOption('--reason <text>', 'why; it stands in the history')
    .addHelpText('after', examples("pools resize vlan vlans-east --range 100-799 --reason 'more orders'"))
    .action(async (kind: string, id: string, size: SizeOptions) => {
      const path = `${pathOf(kind, id)}/resize`;
      io.out(textOf(await (await client()).send<PoolDetails>('POST', path, sizeOf(size))));
    });
  pools
    .command('retire <kind> <id>')
    .description('end a pool: it gives out nothing more, and takes back what it gave')
    .requiredOption('--reason <text>', 'why; it stands in the history')
    .addHelpText('after', examples("pools retire vlan vlans-east --reason 'fabric replaced'"))
    .action(async (kind: string, id: string, { reason }: { reason: string }) => {
      const path = `${pathOf(kind, id)}/retire`;
      io.out(textOf(await (await client()).send<PoolDetails>('POST', path, { reason })));
    });
};

const pathOf = (kind: string, id?: string): string =>
  [POOLS, kind, ...(id === undefined ? [] : [id])]
    .map((part, i) => (i === 0 ? part : encodeURIComponent(part)))
    .join('/');

const given = (fields: { readonly [name: string]: unknown }): object =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** What is no number goes as it is: the service says what is wrong with it. */
const sizeOf = ({ range, reserved, quarantine, reason }: SizeOptions): object => ({
  ...given({ ranges: range, reserved }),
  ...(quarantine === undefined
    ? {}
    : { quarantine_seconds: /^\d{1,10}$/.test(quarantine) ? Number(quarantine) : quarantine }),
  reason,
});

const HEADER = ['kind', 'pool', 'of', 'zone', 'state', 'family', 'size', 'free', 'used', 'quarantined', ''];

const ofWhat = ({ fabric, vrf, hub }: PoolSummary): string => fabric ?? vrf ?? hub ?? '';

const rowsOf = (pool: PoolSummary): (string | undefined)[][] =>
  pool.counts.map(({ family, size, free, used, quarantined }) => [
    pool.kind,
    pool.id,
    ofWhat(pool),
    pool.zone,
    pool.state,
    family,
    size,
    free,
    used,
    quarantined,
    pool.pressure ? 'pressure: less than 5 % free' : undefined,
  ]);

const textOf = (pool: PoolDetails): string => {
  const reserved = pool.reserved.length === 0 ? '' : `, without ${pool.reserved.join(', ')}`;
  const lines = [
    `ranges: ${pool.ranges.join(', ')}${reserved}`,
    `quarantine: ${pool.quarantine_seconds} s${pool.next_release === undefined ? '' : `; the next one ends at ${pool.next_release}`}`,
  ];
  const holders =
    pool.holders.length === 0
      ? 'nobody holds any of it'
      : table(['holder', 'purpose', 'holds', 'allocation'], pool.holders.map(holderRow));
  return `${table(HEADER, rowsOf(pool))}\n\n${lines.join('\n')}\n\n${holders}\n`;
};

const holderRow = (holder: PoolHolder): (string | number | undefined)[] => {
  const { kind, id, purpose, vlan_id: vlan, prefixes, address, generation } = holder;
  return [`${kind} ${id}`, purpose, prefixes?.join(', ') ?? vlan ?? address, generation];
};
