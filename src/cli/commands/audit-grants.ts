import { InvalidArgumentError, type Command } from 'commander';
import type { Grant } from '../../http/audit/answers.ts';
import { queryText } from '../api-client.ts';
import type { Connection } from '../connection.ts';
import { examples } from '../examples.ts';
import { addList, JSON_ANSWER } from '../audit/lists.ts';
import { jsonText, printable } from '../output.ts';
import { AUDIT } from './audit-events.ts';
import { repeatable } from './hub-paths.ts';

type GrantOptions = {
  readonly tenant: string[];
  readonly all: boolean;
  readonly reason: string;
  readonly until?: string;
  readonly json: boolean;
};

/** `ledgerctl audit grant|ungrant|grants`: who may read the history of other tenants. */
export const addAuditGrantCommands = (audit: Command, connection: Connection): void => {
  const { client, io } = connection;
  audit
    .command('grant')
    .description('let an auditor read the history of tenants that are not its own')
    .argument('<subject>', 'id of the auditor (`actor.subject` of its events)')
    .usage('<subject> (--tenant <name...> | --all) --reason <text> [options]')
    .option('--tenant <name...>', 'these tenants (this or --all is required)', [])
    .option('--all', 'all tenants, and what only the provider sees (this or --tenant is required)', false)
    .requiredOption('--reason <text>', 'why; kept in the history')
    .option(
      '--until <time>',
      'when it ends, for example 2027-01-01T00:00:00Z (default: when it is withdrawn)',
    )
    .option(...JSON_ANSWER)
    .addHelpText(
      'after',
      examples('audit grant 5d3c0f0e-7b1c-5a52-9a52-08a3a4a2a0b1 --tenant acme --reason "yearly audit"'),
    )
    .action(async (subject: string, { tenant, all, reason, until, json }: GrantOptions) => {
      if (all === tenant.length > 0) throw new InvalidArgumentError('give --tenant or --all');
      const body = { subject, tenants: all ? 'all' : tenant, reason, expires_at: until };
      const grant = await (await client()).send<Grant>('POST', `${AUDIT}/grants`, body, repeatable());
      io.out(json ? jsonText(grant) : `${grant.id}\n`);
      if (grant.subject_seen === false)
        io.err(`nobody with the id ${subject} has logged in yet: the grant counts when somebody does\n`);
    });
  audit
    .command('ungrant')
    .description(
      'withdraw a grant; it counts at once, for exports that were made under it, too (not for files that were fetched)',
    )
    .argument('<grant>', 'id of the grant')
    .requiredOption('--reason <text>', 'why; kept in the history')
    .addHelpText(
      'after',
      examples('audit ungrant 0190fdc2-bf52-71b8-8c36-977f348f4436 --reason "audit is over"'),
    )
    .action(async (id: string, { reason }: { reason: string }) => {
      const path = `${AUDIT}/grants/${encodeURIComponent(id)}${queryText({ reason })}`;
      await (await client()).send('DELETE', path, undefined, repeatable());
      io.err(`grant ${id} is withdrawn\n`);
    });
  addList<Grant>(audit, connection, 'grants', 'all grants that were ever given', {
    none: 'no grants',
    header: ['id', 'status', 'subject', 'tenants', 'until', 'reason'],
    row: ({ id, status, subject, tenants, expires_at: until, reason }) => [
      id,
      status,
      subject,
      tenants === 'all' ? 'all' : tenants.join(','),
      until,
      printable(reason),
    ],
  });
};
