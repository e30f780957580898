import type { Command } from 'commander';
import type { CliActions, Connection } from '../connection.ts';
import { addAuditEventCommands } from './audit-events.ts';
import { addAuditExportCommands } from './audit-exports.ts';
import { addAuditGrantCommands } from './audit-grants.ts';
import { addAuditMirrorCommand } from './audit-mirror.ts';
import { addAuditProofCommands } from './audit-proofs.ts';
import { addRetentionCommands } from './audit-retention.ts';
import { addAuditTreeCommands } from './audit-tree.ts';
import { addAuditVerifyCommand } from './audit-verify.ts';

/** `ledgerctl audit`: the history for auditors. What needs a service asks it; `verify` needs none. */
export const addAuditCommands = (program: Command, connection: Connection, actions: CliActions): void => {
  const audit = program
    .command('audit')
    .description('the history: every act with its actor, and proofs of it');
  addAuditEventCommands(audit, connection);
  addAuditProofCommands(audit, connection);
  addAuditExportCommands(audit, connection);
  addAuditMirrorCommand(audit, connection);
  addAuditVerifyCommand(audit, connection.io, actions);
  addRetentionCommands(audit, connection);
  addAuditGrantCommands(audit, connection);
  addAuditTreeCommands(audit, connection);
};
