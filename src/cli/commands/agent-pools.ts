import type { Command } from 'commander';
import type { AgentPool, AgentPoolDetails, PoolAgent } from '../../http/ledger/agent-pool-operations.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { table } from '../output.ts';

const STATES = ['free', 'reserved', 'bound', 'cleaning', 'failed', 'retired', 'discovering'] as const;
const PATH = '/api/ledger/v1/pools/agents';

/** `ledgerctl pools agents`: agents of the hubs whose agents the ledger owns. */
export const addAgentPoolCommands = (pools: Command, { client, io }: Connection): void => {
  const agents = pools
    .command('agents')
    .description('agents of each hub by class and state, hot pools, and the orders that wait for agents');
  agents
    .command('list', { isDefault: true })
    .description('all hubs, by class and state')
    .option('--host-hour <cost>', 'cost of one host per hour: shows the cost of the idle ones')
    .addHelpText('after', examples('pools agents', 'pools agents list --host-hour 2.40'))
    .action(async ({ hostHour }: { hostHour?: string }) => {
      const query = hostHour === undefined ? '' : `?host_hour=${encodeURIComponent(hostHour)}`;
      const { items } = await (await client()).get<{ items: AgentPool[] }>(`${PATH}${query}`);
      if (items.length === 0) return io.err('the ledger owns no agents of any hub\n');
      io.out(`${poolsText(items)}\n`);
    });
  agents
    .command('show <hub>')
    .description('each agent of one hub, with its holder')
    .addHelpText('after', examples('pools agents show sim-east-1'))
    .action(async (hub: string) => {
      const pool = await (await client()).get<AgentPoolDetails>(`${PATH}/${encodeURIComponent(hub)}`);
      io.out(`${poolsText([pool])}\n\n${agentsText(pool.agents)}\n`);
    });
  agents
    .command('clean <hub> <agent>')
    .description('have a failed or retired agent wiped, after which it is free')
    .addHelpText('after', examples('pools agents clean sim-east-1 sim-east-1-fc430-007'))
    .action(async (hub: string, agent: string) => {
      const path = `${PATH}/${encodeURIComponent(hub)}/${encodeURIComponent(agent)}/clean`;
      const { state } = await (await client()).send<PoolAgent>('POST', path);
      io.out(`agent ${agent}: ${state}\n`);
    });
  agents
    .command('retire <hub> <agent>')
    .description('take a free or failed agent out of the pool')
    .requiredOption('--reason <text>', 'why; shown with the agent')
    .addHelpText('after', examples('pools agents retire sim-east-1 sim-east-1-fc430-007 --reason OPS-311'))
    .action(async (hub: string, agent: string, { reason }: { reason: string }) => {
      const path = `${PATH}/${encodeURIComponent(hub)}/${encodeURIComponent(agent)}/retire`;
      const { state } = await (await client()).send<PoolAgent>('POST', path, { reason });
      io.out(`agent ${agent}: ${state}\n`);
    });
};

const poolsText = (pools: readonly AgentPool[]): string => {
  const classes = pools.flatMap(({ hub, classes: all }) =>
    all.map(({ host_class: name, known, hot_pool: hot, low_since: low, ...counts }) => [
      hub,
      name,
      ...STATES.map((state) => counts[state]),
      known,
      hot?.target,
      hot?.idle_cost_per_hour?.toFixed(2),
      low,
    ]),
  );
  const header = ['hub', 'class', ...STATES, 'known', 'target', 'idle cost/h', 'low since'];
  const waiting = pools.flatMap(({ hub, waiting: all }) =>
    all.map(({ position, kind, id, wanted, priority, since, eta }) => [
      hub,
      position,
      `${kind} ${id}`,
      Object.entries(wanted)
        .map(([name, size]) => `${size} ${name}`)
        .join(', '),
      priority,
      since,
      eta ?? 'never',
    ]),
  );
  const queue = table(['hub', 'position', 'order', 'wants', 'priority', 'since', 'eta'], waiting);
  return [table(header, classes), ...(waiting.length === 0 ? [] : [queue])].join('\n\n');
};

const agentsText = (agents: readonly PoolAgent[]): string =>
  table(
    ['agent', 'class', 'state', 'since', 'holder', 'reason'],
    agents.map(({ agent, host_class: name, state, since, holder, reason }) => [
      agent,
      name,
      state,
      since,
      holder && `${holder.kind} ${holder.id}`,
      reason,
    ]),
  );
