import type { Command } from 'commander';
import type { CliActions, Connection } from '../connection.ts';
import { addAuditTreeCommands } from './audit-tree.ts';
import { addAuditVerifyCommand } from './audit-verify.ts';

/** `ledgerctl audit`: the history for auditors. What needs a service asks it; `verify` needs none. */
export const addAuditCommands = (program: Command, connection: Connection, actions: CliActions): void => {
  const audit = program.command('audit').description('the history: who did what, and proofs that it is so');
  addAuditVerifyCommand(audit, connection.io, actions);
  addAuditTreeCommands(audit, connection);
};
