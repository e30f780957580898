import type { Command } from 'commander';
import type { Connection } from '../connection.ts';
import { addAgentPoolCommands } from './agent-pools.ts';

/** `ledgerctl pools`: what orders take from pools, and what is left there. */
export const addPoolCommands = (program: Command, connection: Connection): void => {
  const pools = program
    .command('pools')
    .description('agents, VLANs, prefixes and addresses that orders take');
  addAgentPoolCommands(pools, connection);
};
